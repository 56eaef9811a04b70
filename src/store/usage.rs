//! What model calls took: one row each, never changed, and the sums that budgets
//! are judged by, raised in the same transaction.
//!
//! A sum is kept in a few parts and a session always raises the same one, so
//! that the turns of a tenant do not queue for one row. Parts are raised in the
//! order of their subjects, last in a transaction: nobody who holds one waits
//! for a session. A transaction of many sessions raises part after part.

use super::scope::Rows;
use super::transcript::wire_name;
use super::{Arg, Kind, Row, StoreError};
use crate::base::Timestamp;
use crate::model::budget::{BudgetGrant, BudgetScope, BudgetUnit, Spender};
use crate::model::id::SessionId;
use crate::model::record::Writes;
use crate::model::usage::{Purpose, UsageGroup, UsageRecord, UsageSum};

/// Parts of a sum. A part is held for the length of a commit, a millisecond or so,
/// and sessions that share one wait for each other: of sixteen commits at once,
/// as many as there are connections, few meet.
const PARTS: u32 = 64;

/// What was spent and granted under one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectSum {
    pub subject: String,
    tokens: u64,
    cost_nanos: u64,
    granted_tokens: u64,
    granted_cost_nanos: u64,
}

impl SubjectSum {
    pub fn spent(&self, unit: BudgetUnit) -> u64 {
        match unit {
            BudgetUnit::Tokens => self.tokens,
            BudgetUnit::CostNanos => self.cost_nanos,
        }
    }

    pub fn granted(&self, unit: BudgetUnit) -> u64 {
        match unit {
            BudgetUnit::Tokens => self.granted_tokens,
            BudgetUnit::CostNanos => self.granted_cost_nanos,
        }
    }
}

/// Which calls are summed up; `None` is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFilter {
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
    pub session: Option<SessionId>,
    pub user: Option<String>,
    pub model: Option<String>,
    pub purpose: Option<Purpose>,
}

impl Rows<'_> {
    pub(super) async fn add_spending(&mut self, session: SessionId, writes: &Writes) -> Result<(), StoreError> {
        self.add_usage(&writes.usage).await?;
        self.add_budget_grants(session, &writes.budget_grants).await
    }

    /// Stores model calls and raises the sums of their user, tenant and day.
    async fn add_usage(&mut self, calls: &[UsageRecord]) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into usage (tenant_id, usage_id, session_id, turn_id, user_id, purpose, model, input_tokens,
                cached_input_tokens, output_tokens, reasoning_tokens, cost_nanos, day, at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        for call in calls {
            let tokens = &call.spent.tokens;
            let args = [
                self.tenant.into(),
                call.usage_id.into(),
                call.session_id.into(),
                call.turn_id.into(),
                Arg::from(&call.user_id),
                wire_name(&call.spent.purpose)?,
                Arg::from(&call.spent.model),
                figure(tokens.input),
                figure(tokens.cached_input),
                figure(tokens.output),
                figure(tokens.reasoning),
                figure(call.spent.cost_nanos),
                Arg::Owned(call.at.day()),
                call.at.into(),
            ];
            self.conn.later(SQL, &args).await?;
            self.raise_sums(call).await?;
        }
        Ok(())
    }

    async fn raise_sums(&mut self, call: &UsageRecord) -> Result<(), StoreError> {
        const SQLITE: &str = "
            insert into usage_sum (tenant_id, subject, part, tokens, cost_nanos, granted_tokens, granted_cost_nanos)
            values ($1, $2, $5, $6, $7, 0, 0), ($1, $3, $5, $6, $7, 0, 0), ($1, $4, $5, $6, $7, 0, 0)
            on conflict (tenant_id, subject, part) do update
            set tokens = usage_sum.tokens + excluded.tokens,
                cost_nanos = usage_sum.cost_nanos + excluded.cost_nanos";
        // In the order of parts and names, as in every transaction. It sums up what
        // the members of a group raise: no row is raised twice by a statement.
        const POSTGRES: &str = "
            insert into usage_sum (tenant_id, subject, part, tokens, cost_nanos, granted_tokens, granted_cost_nanos)
            select $1, s.subject, $5, sum($6), sum($7), 0, 0
            from (values ($2), ($3), ($4)) as s(subject)
            group by 2, 3 order by 3, 2
            on conflict (tenant_id, subject, part) do update
            set tokens = usage_sum.tokens + excluded.tokens,
                cost_nanos = usage_sum.cost_nanos + excluded.cost_nanos";
        let spender = Spender {
            session: call.session_id,
            turn: call.turn_id,
            user: &call.user_id,
        };
        let subjects = [BudgetScope::Day, BudgetScope::Tenant, BudgetScope::User];
        let [day, tenant, user] = subjects.map(|scope| spender.subject(scope, call.at));
        let args = [
            self.tenant.into(),
            Arg::Owned(day),
            Arg::Owned(tenant),
            Arg::Owned(user),
            part(call.session_id).into(),
            figure(call.spent.total_tokens()),
            figure(call.spent.cost_nanos),
        ];
        let sql = match self.conn.dialect() {
            Kind::Sqlite => SQLITE,
            Kind::Postgres => POSTGRES,
        };
        self.conn.later(sql, &args).await
    }

    /// Allows more under some subjects.
    async fn add_budget_grants(&mut self, session: SessionId, grants: &[BudgetGrant]) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into usage_sum (tenant_id, subject, part, tokens, cost_nanos, granted_tokens, granted_cost_nanos)
            values ($1, $2, $3, 0, 0, $4, $5)
            on conflict (tenant_id, subject, part) do update
            set granted_tokens = usage_sum.granted_tokens + excluded.granted_tokens,
                granted_cost_nanos = usage_sum.granted_cost_nanos + excluded.granted_cost_nanos";
        let mut grants: Vec<&BudgetGrant> = grants.iter().collect();
        grants.sort_by(|one, other| one.subject.cmp(&other.subject));
        for grant in grants {
            let (tokens, cost) = match grant.unit {
                BudgetUnit::Tokens => (grant.add, 0),
                BudgetUnit::CostNanos => (0, grant.add),
            };
            let args = [
                self.tenant.into(),
                Arg::from(&grant.subject),
                part(session).into(),
                figure(tokens),
                figure(cost),
            ];
            self.conn.later(SQL, &args).await?;
        }
        Ok(())
    }

    /// The sums of at most five subjects; one without any is left out.
    pub async fn subject_sums(&mut self, subjects: &[String]) -> Result<Vec<SubjectSum>, StoreError> {
        const SQL: &str = "
            select subject, cast(sum(tokens) as bigint) as tokens, cast(sum(cost_nanos) as bigint) as cost_nanos,
                cast(sum(granted_tokens) as bigint) as granted_tokens,
                cast(sum(granted_cost_nanos) as bigint) as granted_cost_nanos
            from usage_sum
            where tenant_id = $1 and subject in ($2, $3, $4, $5, $6)
            group by subject";
        let mut args = vec![self.tenant.into()];
        // No subject is without a name.
        args.extend((0..5).map(|place| Arg::Text(subjects.get(place).map_or("", String::as_str))));
        let sum = |row: &Row| {
            Ok(SubjectSum {
                subject: row.text("subject")?,
                tokens: row.int("tokens")?.unsigned_abs(),
                cost_nanos: row.int("cost_nanos")?.unsigned_abs(),
                granted_tokens: row.int("granted_tokens")?.unsigned_abs(),
                granted_cost_nanos: row.int("granted_cost_nanos")?.unsigned_abs(),
            })
        };
        self.conn.rows(SQL, &args).await?.iter().map(sum).collect()
    }

    /// Model calls summed up by one of their properties, the greatest key (the
    /// newest day, session or turn) first, below `before`. Calls of deleted
    /// sessions count: they were made.
    pub async fn usage_by(
        &mut self,
        group: UsageGroup,
        filter: &UsageFilter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<UsageSum>, StoreError> {
        const SQL: &str = "
            select label, count(*) as calls, cast(sum(input_tokens) as bigint) as input_tokens,
                cast(sum(cached_input_tokens) as bigint) as cached_input_tokens,
                cast(sum(output_tokens) as bigint) as output_tokens,
                cast(sum(reasoning_tokens) as bigint) as reasoning_tokens,
                cast(sum(cost_nanos) as bigint) as cost_nanos
            from (
                select case $2 when 'day' then day when 'model' then model when 'session' then session_id
                        when 'user' then user_id when 'purpose' then purpose else turn_id end as label,
                    input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, cost_nanos
                from usage
                where tenant_id = $1 and user_id = coalesce($3, user_id) and at >= $4 and at < $5
                    and session_id = coalesce($6, session_id) and model = coalesce($7, model)
                    and purpose = coalesce($8, purpose) and user_id = coalesce($9, user_id)
            ) as labelled
            where $10 = 0 or label < $11
            group by label order by label desc limit $12";
        let args = [
            self.tenant.into(),
            Arg::from(group.name()),
            Arg::from(&self.user),
            filter.since.map_or(i64::MIN, |at| at.0).into(),
            filter.until.map_or(i64::MAX, |at| at.0).into(),
            filter.session.into(),
            Arg::from(&filter.model),
            filter.purpose.as_ref().map_or(Ok(Arg::OptText(None)), wire_name)?,
            Arg::from(&filter.user),
            before.is_some().into(),
            Arg::OptText(before),
            limit.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(usage_sum).collect()
    }
}

fn usage_sum(row: &Row) -> Result<UsageSum, StoreError> {
    let figure = |column: &str| row.int(column).map(i64::unsigned_abs);
    Ok(UsageSum {
        key: row.text("label")?,
        calls: figure("calls")?,
        input_tokens: figure("input_tokens")?,
        cached_input_tokens: figure("cached_input_tokens")?,
        output_tokens: figure("output_tokens")?,
        reasoning_tokens: figure("reasoning_tokens")?,
        cost_nanos: figure("cost_nanos")?,
    })
}

/// Which part of a sum a session raises.
pub(super) fn part(session: SessionId) -> u32 {
    let bytes = session.to_string();
    // The end of an id is its random half.
    bytes
        .bytes()
        .rev()
        .take(8)
        .fold(0, |all: u32, byte| all.wrapping_mul(31).wrapping_add(u32::from(byte)))
        % PARTS
}

/// A figure for a column; those of one call are bounded far below.
fn figure(figure: u64) -> Arg<'static> {
    Arg::Int(i64::try_from(figure).unwrap_or(i64::MAX))
}
