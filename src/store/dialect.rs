//! The few things the two databases say differently, side by side. All other
//! SQL is one text for both.

use crate::base::{Clock, Timestamp};

use super::{Arg, Conn, Kind, StoreError};

/// The instant that leases are measured by: the database's own on Postgres,
/// where the clocks of many machines meet; the process's on SQLite.
pub async fn now(conn: &mut Conn, clock: &Clock) -> Result<Timestamp, StoreError> {
    match conn.dialect() {
        Kind::Sqlite => Ok(clock.now()),
        Kind::Postgres => {
            let sql = "select (extract(epoch from clock_timestamp()) * 1000)::bigint as now";
            conn.row(sql, &[])
                .await?
                .ok_or_else(|| StoreError::bug("no clock"))?
                .timestamp("now")
        }
    }
}

/// Settings that keep Postgres from going through a table to join rows to it.
pub(super) const LOOK_UP: [&str; 3] = ["enable_seqscan", "enable_hashjoin", "enable_mergejoin"];

/// Plans what follows in the transaction as look-ups by an index, in the order of an
/// index. A connection keeps its plans, and one that was made while a table was
/// small would go through the whole table for as long as that grows.
pub(super) async fn look_up(conn: &mut Conn) -> Result<(), StoreError> {
    const SQL: &str = "
        select set_config('enable_sort', 'off', true), set_config($1, 'off', true), set_config($2, 'off', true),
            set_config($3, 'off', true)";
    match conn.dialect() {
        Kind::Sqlite => Ok(()),
        Kind::Postgres => conn.execute(SQL, &LOOK_UP.map(Arg::from)).await.map(|_| ()),
    }
}

/// Makes transactions that name the same subject follow one another, until each
/// ends. On SQLite every write follows every other already.
pub async fn one_at_a_time(conn: &mut Conn, subject: &str) -> Result<(), StoreError> {
    match conn.dialect() {
        Kind::Sqlite => Ok(()),
        Kind::Postgres => {
            let sql = "select pg_advisory_xact_lock(hashtextextended($1, 0))";
            conn.execute(sql, &[subject.into()]).await.map(|_| ())
        }
    }
}

/// As [`one_at_a_time`], but whoever has waited 5 s gives up with
/// [`StoreError::InFlight`]; the transaction then waits so long for any lock.
pub(super) async fn alone_within_5_s(conn: &mut Conn, subject: &str) -> Result<(), StoreError> {
    match conn.dialect() {
        Kind::Sqlite => Ok(()),
        Kind::Postgres => {
            let sql = "select set_config('lock_timeout', '5s', true)";
            conn.execute(sql, &[]).await?;
            one_at_a_time(conn, subject)
                .await
                .map_err(|error| match error.code().as_deref() {
                    Some(LOCK_NOT_AVAILABLE) => StoreError::InFlight,
                    _ => error,
                })
        }
    }
}

/// Postgres's code of a lock that was waited for too long.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Processes other than `$1` that are gone: the lease ended before `$2`, or the
/// node `$3` is ours and its file lock says that nobody else runs on it, or (on
/// Postgres) the lock that a process holds for its life is free. Asking takes
/// that lock shared, so that two who ask do not see each other.
pub(super) const fn dead_processes(kind: Kind) -> &'static str {
    match kind {
        Kind::Sqlite => {
            "select process_id from process where process_id <> $1 and (expires_at <= $2 or node_id = $3) order by process_id"
        }
        Kind::Postgres => {
            "select process_id from process where process_id <> $1 and (expires_at <= $2 or node_id = $3 \
             or pg_try_advisory_xact_lock_shared(hashtextextended(process_id, 0))) order by process_id"
        }
    }
}

/// Whether the process `$1` can be alive at the instant `$2`; no row: dead.
pub(super) const fn living_process(kind: Kind) -> &'static str {
    match kind {
        Kind::Sqlite => "select process_id from process where process_id = $1 and $2 < expires_at",
        Kind::Postgres => {
            "select process_id from process where process_id = $1 and $2 < expires_at \
             and not pg_try_advisory_xact_lock_shared(hashtextextended(process_id, 0))"
        }
    }
}
