//! Writes of many sessions that wait at once, as one transaction: what each of them
//! asks next travels in one question, and what they write travels with one COMMIT.
//!
//! Such a transaction reads first and writes at its end, so that one write that
//! fails undoes nothing of another; a group that the database refuses is undone
//! whole, and each of its writes is made anew alone. A session is in it once: two
//! writes of one would both read the state before either.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};

use crate::model::id::{SessionId, TenantId};

use super::bell::Rings;
use super::conn::Link;
use super::job::{Attempt, Hooks, Job, LIMIT, Settle};
use super::postgres_link::{Answer, Transaction};
use super::postgres_pool::Pool;
use super::postgres_rows::{self, Written};
use super::postgres_text::Values;
use super::together::Together;
use super::{Arg, Conn, StoreError, dialect, usage};

/// Whoever holds a lock for longer is waited for by the one who needs it alone,
/// and not by everybody beside it.
const OPENING: &str = "begin;set local lock_timeout='100ms';set local plan_cache_mode=force_generic_plan;";
/// What is written for many at once is looked up for each; see [`dialect::LOOK_UP`].
fn opening() -> String {
    let look_up = dialect::LOOK_UP.map(|setting| format!("set local {setting}=off;"));
    format!("{OPENING}{}", look_up.concat())
}

/// A write, and the session that it is about.
pub(super) struct Member {
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
    pub(super) job: Job,
}

/// A write's place in its group.
#[derive(Debug)]
pub(super) struct Seat {
    place: usize,
    tenant: TenantId,
    session: String,
    asks: mpsc::Sender<Ask>,
    writes: Vec<Together>,
}

/// A read of one member that waits for its answer.
#[derive(Debug)]
struct Ask {
    place: usize,
    tenant: TenantId,
    sql: String,
    values: Values,
    answer: oneshot::Sender<Result<Answer, StoreError>>,
}

/// A member whose work is over.
struct Worked {
    place: usize,
    tenant: TenantId,
    attempt: Attempt,
    rings: Rings,
    writes: Vec<Together>,
}

/// A member that waits for the COMMIT.
type Ready = (Settle, Rings);

impl Seat {
    /// Asks with the others' next questions.
    pub(super) async fn ask(&mut self, sql: &str, args: &[Arg<'_>]) -> Result<Answer, StoreError> {
        // What was written is not there yet, so nothing can be read behind it.
        if !self.writes.is_empty() || !may_share(sql, args, &self.session) {
            return Err(StoreError::Alone);
        }
        let (answer, told) = oneshot::channel();
        let ask = Ask {
            place: self.place,
            tenant: self.tenant,
            sql: sql.to_owned(),
            values: Values::of(args)?,
            answer,
        };
        self.asks.send(ask).await.map_err(|_| StoreError::Alone)?;
        told.await.unwrap_or(Err(StoreError::Alone))
    }

    #[cfg(test)]
    pub(super) fn written(&self) -> &[Together] {
        &self.writes
    }

    /// Keeps statements that are carried out at the end.
    pub(super) fn write(&mut self, together: Together) {
        self.writes.push(together);
    }
}

/// Whether a statement that is waited for leaves the others of its group alone: a
/// read without a lock, or with that of the member's own session. Within one
/// transaction any other lock would keep nobody out.
fn may_share(sql: &str, args: &[Arg<'_>], session: &str) -> bool {
    if !sql.trim_start().starts_with("select") || sql.contains("advisory") || sql.contains("set_config") {
        return false;
    }
    if sql.contains("for no key update") {
        return matches!(args.get(1), Some(Arg::Owned(id)) if id == session);
    }
    !(sql.contains("for update") || sql.contains("for share") || sql.contains("for key share"))
}

/// Carries a group out and tells every member what came of its write.
pub(super) async fn carry_out(pool: &Arc<Pool>, hooks: &Hooks, mut members: Vec<Member>) {
    // Groups of several processes take their locks in the same order.
    members.sort_by_cached_key(|member| (member.tenant, usage::part(member.session), member.session));
    let transaction = Transaction::new(pool, opening(), Arc::clone(&hooks.trips)).await;
    let mut transaction = match transaction {
        Ok(transaction) => transaction,
        Err(error) => return members.into_iter().for_each(|member| member.job.refuse(error.clone())),
    };
    let Some(worked) = worked(&mut transaction, hooks, members).await else {
        return transaction.undo().await;
    };
    // They come in the order of their tenants.
    let (mut ready, mut by_tenant) = (Vec::new(), Vec::<(TenantId, Vec<Vec<Together>>)>::new());
    for member in worked {
        match member.attempt.fate {
            Ok(_) => {
                match by_tenant.last_mut() {
                    Some((tenant, members)) if *tenant == member.tenant => members.push(member.writes),
                    _ => by_tenant.push((member.tenant, vec![member.writes])),
                }
                ready.push((member.attempt.verdict, member.rings));
            }
            // It only read, so there is nothing of it to be undone.
            Err(error) => member.attempt.verdict.tell(Err(error)),
        }
    }
    let statements = |(tenant, members): &(TenantId, Vec<Vec<Together>>)| {
        let statements = postgres_rows::statements(members);
        statements
            .into_iter()
            .map(|written| (*tenant, written))
            .collect::<Vec<_>>()
    };
    let writes: Vec<(TenantId, Written)> = by_tenant.iter().flat_map(statements).collect();
    let walls = walls(writes.iter().map(|(tenant, _)| *tenant));
    let statements = writes.iter().map(|(_, (sql, values))| (sql.as_ref(), values));
    let asked: Vec<_> = walls.iter().map(String::as_str).zip(statements).collect();
    let late = |_| Err(StoreError::unclear("the database does not answer"));
    let committed = tokio::time::timeout(LIMIT, transaction.commit(&asked)).await;
    settle(hooks, ready, &committed.unwrap_or_else(late));
}

/// The work of all members, asked in step. Nothing where the database refused a
/// question: then all were told to go alone.
async fn worked(transaction: &mut Transaction, hooks: &Hooks, members: Vec<Member>) -> Option<Vec<Worked>> {
    let count = members.len();
    let (asks, mut asked) = mpsc::channel(count);
    let mut working: FuturesUnordered<_> = members
        .into_iter()
        .enumerate()
        .map(|(place, member)| work(place, member, asks.clone(), hooks))
        .collect();
    drop(asks);
    let (mut waiting, mut worked) = (Vec::<Ask>::new(), Vec::with_capacity(count));
    let mut refused = false;
    while worked.len() < count {
        tokio::select! {
            biased;
            Some(ask) = asked.recv() => waiting.push(ask),
            Some(done) = working.next() => worked.push(done),
            else => break,
        }
        if waiting.is_empty() || waiting.len() + worked.len() < count {
            continue;
        }
        refused |= !answer(transaction, std::mem::take(&mut waiting), refused).await;
    }
    if refused {
        let told = |worked: Worked| worked.attempt.verdict.tell(Err(StoreError::Alone));
        worked.into_iter().for_each(told);
        return None;
    }
    worked.sort_by_key(|worked| worked.place);
    Some(worked)
}

async fn work(place: usize, member: Member, asks: mpsc::Sender<Ask>, hooks: &Hooks) -> Worked {
    let seat = Seat {
        place,
        tenant: member.tenant,
        session: member.session.to_string(),
        asks,
        writes: Vec::new(),
    };
    let mut conn = Conn::new(Link::Grouped(seat)).ringing(hooks.bell.clone());
    let attempt = member.job.attempt(&mut conn, None).await;
    let rings = conn.take_rings();
    let (link, last) = conn.into_parts();
    let mut writes = match link {
        Link::Grouped(seat) => seat.writes,
        _ => Vec::new(),
    };
    writes.push(last);
    Worked {
        place,
        tenant: member.tenant,
        attempt,
        rings,
        writes,
    }
}

/// Asks for all that wait; answers whether the database answered. Once it did not,
/// nobody is answered any more.
async fn answer(transaction: &mut Transaction, mut waiting: Vec<Ask>, refused: bool) -> bool {
    waiting.sort_by_key(|ask| ask.place);
    let walls = walls(waiting.iter().map(|ask| ask.tenant));
    let statements = waiting.iter().map(|ask| (ask.sql.as_str(), &ask.values));
    let asked: Vec<_> = walls.iter().map(String::as_str).zip(statements).collect();
    let answers = match refused {
        true => None,
        false => tokio::time::timeout(LIMIT, transaction.run_all(&asked)).await.ok(),
    };
    let Some(Ok(answers)) = answers else {
        for ask in waiting {
            let _unheard = ask.answer.send(Err(StoreError::Alone));
        }
        return false;
    };
    for (ask, answer) in waiting.into_iter().zip(answers) {
        let _unheard = ask.answer.send(Ok(answer));
    }
    true
}

fn settle(hooks: &Hooks, ready: Vec<Ready>, outcome: &Result<(), StoreError>) {
    if outcome.is_ok() && !ready.is_empty() {
        hooks.commits.fetch_add(1, Ordering::Relaxed);
    }
    for (verdict, rings) in ready {
        match outcome {
            Ok(()) => {
                hooks.bell.ring_all(rings);
                verdict.tell(Ok(()));
            }
            Err(error @ StoreError::Unclear(_)) => {
                hooks.bell.ring_all(rings.unclear());
                verdict.tell(Err(error.clone()));
            }
            // Who of them it was, each of them finds out alone.
            Err(_) => verdict.tell(Err(StoreError::Alone)),
        }
    }
}

/// What makes each statement of a question its tenant's: nothing behind another one
/// of the same tenant, for it holds until the next. An id prints as its prefix and
/// lower-case base32: nothing in it can end the literal.
fn walls(tenants: impl Iterator<Item = TenantId>) -> Vec<String> {
    let mut before = None;
    let wall = |tenant| match before.replace(tenant) {
        Some(same) if same == tenant => String::new(),
        _ => format!("set local app.tenant='{tenant}';"),
    };
    tenants.map(wall).collect()
}
