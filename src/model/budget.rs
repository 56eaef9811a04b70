//! Budgets: how much may be spent by what, and when that is used up. A budget
//! that is used up is a question to a person, never a silent stop.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{SessionId, TurnId};
use super::usage::{Foreseen, NANOS};
use crate::base::Timestamp;

/// The highest ceiling: a million units of the currency, or as many tokens as
/// it has billionths. Sums of grants stay far from any overflow.
pub const MAX_CEILING: u64 = 1_000_000 * NANOS;

/// Whose spending is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    Turn,
    Session,
    /// All turns that the user created, in whatever session.
    User,
    Tenant,
    /// The tenant in one day of UTC.
    Day,
}

impl BudgetScope {
    /// More than what belongs to one session is bounded: to raise it takes
    /// somebody who sees the whole tenant.
    pub fn is_shared(self) -> bool {
        !matches!(self, Self::Turn | Self::Session)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetUnit {
    /// Tokens sent and received.
    Tokens,
    /// Billionths of the currency.
    CostNanos,
}

/// A ceiling as it is configured or asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    pub limit: u64,
}

/// What a session's turns may take together, beside what the server allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionBudget {
    /// Tokens sent to the model and received from it. At the ceiling somebody is
    /// asked for more; what is granted counts on top of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    pub max_tokens: Option<u64>,
    /// The same for what the calls cost, in billionths of the currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    pub max_cost_nanos: Option<u64>,
}

/// All ceilings of a server, and how they are told and raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budgets {
    pub ceilings: Vec<Ceiling>,
    /// The share at which a warning is given.
    pub warn_percent: u32,
    /// What *grant more* adds, as a share of the ceiling.
    pub grant_percent: u32,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            ceilings: Vec::new(),
            warn_percent: 80,
            grant_percent: 50,
        }
    }
}

impl Budgets {
    /// Lowers the ceilings of tokens and of cost, or puts them where none were.
    pub fn narrow(&mut self, scope: BudgetScope, tokens: Option<u64>, cost_nanos: Option<u64>) {
        self.lower(scope, BudgetUnit::Tokens, tokens);
        self.lower(scope, BudgetUnit::CostNanos, cost_nanos);
    }

    fn lower(&mut self, scope: BudgetScope, unit: BudgetUnit, limit: Option<u64>) {
        let Some(limit) = limit else { return };
        let same = |own: &&mut Ceiling| own.scope == scope && own.unit == unit;
        match self.ceilings.iter_mut().find(same) {
            Some(own) => own.limit = own.limit.min(limit),
            None => self.ceilings.push(Ceiling { scope, unit, limit }),
        }
    }

    /// The ceiling without what was granted.
    pub fn ceiling(&self, scope: BudgetScope, unit: BudgetUnit) -> Option<u64> {
        let mut own = self.ceilings.iter();
        let own = own.find(|own| own.scope == scope && own.unit == unit);
        own.map(|own| own.limit)
    }
}

/// How far a budget is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Budget {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    /// With what was granted so far.
    pub limit: u64,
    pub spent: u64,
}

impl Budget {
    /// A model call now would cross the ceiling: nothing is left, or less than
    /// the call takes at least.
    pub fn is_exceeded(&self, next: Foreseen) -> bool {
        self.limit <= self.spent || self.limit < self.after(next)
    }

    /// What is spent once the next call took its least.
    pub fn after(&self, next: Foreseen) -> u64 {
        let least = match self.unit {
            BudgetUnit::Tokens => next.tokens,
            BudgetUnit::CostNanos => next.cost_nanos,
        };
        self.spent.saturating_add(least)
    }

    pub fn is_at(&self, percent: u32) -> bool {
        u128::from(self.limit) * u128::from(percent) <= u128::from(self.spent) * 100
    }

    /// One bit for each kind of budget.
    pub fn bit(&self) -> u16 {
        1 << (self.scope as u16 * 2 + self.unit as u16)
    }
}

/// A budget that is used up, and what *grant more* would add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceeded {
    #[serde(flatten)]
    pub budget: Budget,
    pub add: u64,
}

/// What a budget approval holds as its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetQuestion {
    pub budgets: Vec<Exceeded>,
}

/// What the spending and the grants of a budget are kept under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spender<'a> {
    pub session: SessionId,
    pub turn: TurnId,
    pub user: &'a str,
}

impl Spender<'_> {
    pub fn subject(&self, scope: BudgetScope, at: Timestamp) -> String {
        match scope {
            BudgetScope::Turn => self.turn.to_string(),
            BudgetScope::Session => self.session.to_string(),
            BudgetScope::User => format!("user:{}", self.user),
            BudgetScope::Tenant => "tenant".to_owned(),
            BudgetScope::Day => format!("day:{}", at.day()),
        }
    }
}

/// More for one budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetGrant {
    pub subject: String,
    pub unit: BudgetUnit,
    pub add: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limit: u64, spent: u64) -> Budget {
        Budget {
            scope: BudgetScope::Day,
            unit: BudgetUnit::Tokens,
            limit,
            spent,
        }
    }

    fn next(tokens: u64) -> Foreseen {
        Foreseen { tokens, cost_nanos: 0 }
    }

    #[test]
    fn a_call_that_would_cross_the_line_exceeds_the_budget() {
        for (limit, spent, tokens, exceeded) in [
            (100, 0, 0, false),
            (100, 99, 0, false),
            (100, 100, 0, true),
            (100, 120, 0, true),
            (100, 60, 40, false),
            (100, 60, 41, true),
            (u64::MAX, u64::MAX - 1, 5, false),
        ] {
            let judged = budget(limit, spent).is_exceeded(next(tokens));
            assert_eq!(judged, exceeded, "{limit} {spent} {tokens}");
        }
    }

    #[test]
    fn a_share_is_reached_exactly() {
        assert!(!budget(1000, 799).is_at(80) && budget(1000, 800).is_at(80));
        assert!(budget(3, 3).is_at(100) && !budget(3, 2).is_at(67) && budget(3, 2).is_at(66));
        assert!(!budget(u64::MAX, u64::MAX / 2).is_at(80));
    }

    #[test]
    fn every_kind_of_budget_has_its_own_bit() {
        use BudgetScope::{Day, Session, Tenant, Turn, User};
        let mut bits = 0;
        for scope in [Turn, Session, User, Tenant, Day] {
            for unit in [BudgetUnit::Tokens, BudgetUnit::CostNanos] {
                let one = Budget {
                    scope,
                    unit,
                    ..budget(1, 0)
                };
                assert_eq!(bits & one.bit(), 0);
                bits |= one.bit();
            }
        }
    }

    #[test]
    fn a_request_only_narrows_what_the_server_allows() {
        let mut budgets = Budgets::default();
        let (turn, tokens) = (BudgetScope::Turn, BudgetUnit::Tokens);
        budgets.narrow(turn, None, None);
        assert_eq!(budgets.ceiling(turn, tokens), None);
        for (asked, in_force) in [(50, 50), (80, 50), (20, 20)] {
            budgets.narrow(turn, Some(asked), None);
            assert_eq!(budgets.ceiling(turn, tokens), Some(in_force));
        }
        assert_eq!(budgets.ceiling(turn, BudgetUnit::CostNanos), None);
    }
}
