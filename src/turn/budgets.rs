//! How far the budgets of a turn are used, read in the transaction that decides
//! what the turn does next. What belongs to the session stands in its record;
//! what many sessions share is read without a lock, so that they do not wait for
//! one another: each may be a step late, no more.

use super::world::Rules;
use crate::base::Timestamp;
use crate::model::budget::{Budget, BudgetScope, BudgetUnit, Ceiling, Spender};
use crate::model::record::{SessionRecord, TurnRecord};
use crate::model::usage::UsageRecord;

use crate::store::{Rows, StoreError};

/// The budgets of `turn` by its rules; nothing is read where there are none, and
/// nothing of the reading weighs on the transactions then. `unwritten` are calls of the same
/// transaction that are not in the sums yet.
pub(super) async fn load(
    rows: &mut Rows<'_>,
    rules: &Rules,
    whose: (&SessionRecord, &TurnRecord),
    at: Timestamp,
    unwritten: &[UsageRecord],
) -> Result<Vec<Budget>, StoreError> {
    if rules.budgets.ceilings.is_empty() {
        return Ok(Vec::new());
    }
    Box::pin(read(rows, &rules.budgets.ceilings, whose, at, unwritten)).await
}

async fn read(
    rows: &mut Rows<'_>,
    ceilings: &[Ceiling],
    (session, turn): (&SessionRecord, &TurnRecord),
    at: Timestamp,
    unwritten: &[UsageRecord],
) -> Result<Vec<Budget>, StoreError> {
    let spender = Spender {
        session: session.session_id,
        turn: turn.turn_id,
        user: &turn.user_id,
    };
    let mut subjects: Vec<String> = ceilings.iter().map(|own| spender.subject(own.scope, at)).collect();
    subjects.sort();
    subjects.dedup();
    let sums = rows.subject_sums(&subjects).await?;
    let budgets = ceilings.iter().map(|own| {
        let subject = spender.subject(own.scope, at);
        let sum = sums.iter().find(|sum| sum.subject == subject);
        let spent = match own.scope {
            BudgetScope::Turn => turn.usage.of(own.unit),
            BudgetScope::Session => session.usage.of(own.unit),
            BudgetScope::User | BudgetScope::Tenant | BudgetScope::Day => {
                let also = unwritten.iter().filter(|call| shares(own.scope, turn, call));
                also.fold(sum.map_or(0, |sum| sum.spent(own.unit)), |all, call| {
                    all.saturating_add(taken(call, own.unit))
                })
            }
        };
        Budget {
            scope: own.scope,
            unit: own.unit,
            limit: own.limit.saturating_add(sum.map_or(0, |sum| sum.granted(own.unit))),
            spent,
        }
    });
    Ok(budgets.collect())
}

/// Whether an earlier call of the same session counts for this turn too.
fn shares(scope: BudgetScope, turn: &TurnRecord, call: &UsageRecord) -> bool {
    scope != BudgetScope::User || call.user_id == turn.user_id
}

fn taken(call: &UsageRecord, unit: BudgetUnit) -> u64 {
    match unit {
        BudgetUnit::Tokens => call.spent.total_tokens(),
        BudgetUnit::CostNanos => call.spent.cost_nanos,
    }
}
