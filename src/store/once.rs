//! Requests that a client gave a key, so that sending one again does nothing
//! twice: what came of it is written in the transaction of its effect. Two that
//! share a key follow one another; a refusal leaves nothing behind.

use serde::Serialize;

use super::scope::{Rows, Scope};
use super::{Arg, Row, StoreError, dialect};
use crate::base::Timestamp;

/// How long a key is remembered.
pub(super) const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// A key within its tenant, and the body that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Once {
    /// User and API key.
    pub caller: String,
    pub route: String,
    pub key: String,
    /// SHA-256 in hex.
    pub body_hash: String,
}

/// What is known of a request before it is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It has no key, or the key is new.
    Nothing,
    /// It was carried out; this JSON came of it.
    Answer(String),
    /// Its key belongs to a request with another body.
    OtherBody,
}

impl Scope {
    /// The same rows, for the one transaction that this key stands for.
    pub fn once(mut self, once: Option<Once>) -> Self {
        self.once = once;
        self
    }
}

impl Rows<'_> {
    /// Whether something was carried out under the key, whatever its body.
    pub async fn is_known(&mut self) -> Result<bool, StoreError> {
        match self.once.clone() {
            Some(once) => Ok(self.kept(&once).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Comes first in its transaction: it waits for another one with the key.
    pub async fn earlier(&mut self) -> Result<Earlier, StoreError> {
        let Some(once) = self.once.clone() else {
            return Ok(Earlier::Nothing);
        };
        let subject = serde_json::json!(["idempotency", self.tenant, once.caller, once.route, once.key]);
        dialect::alone_within_5_s(self.conn, &subject.to_string()).await?;
        let Some(row) = self.kept(&once).await? else {
            return Ok(Earlier::Nothing);
        };
        if row.text("body_hash")? != once.body_hash {
            return Ok(Earlier::OtherBody);
        }
        row.text("answer").map(Earlier::Answer)
    }

    async fn kept(&mut self, once: &Once) -> Result<Option<Row>, StoreError> {
        const SQL: &str = "
            select body_hash, answer from idempotency
            where tenant_id = $1 and caller = $2 and route = $3 and idempotency_key = $4 and $5 < created_at";
        let since = self.instant().await?.0 - KEPT_MS;
        let args = [
            self.tenant.into(),
            Arg::from(&once.caller),
            Arg::from(&once.route),
            Arg::from(&once.key),
            since.into(),
        ];
        self.conn.row(SQL, &args).await
    }

    /// Keeps what came of the request, if it has a key.
    pub async fn remember<T: Serialize>(&mut self, answer: &T) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into idempotency (tenant_id, caller, route, idempotency_key, body_hash, answer, created_at)
            values ($1, $2, $3, $4, $5, $6, $7)
            on conflict (tenant_id, caller, route, idempotency_key) do update set
                body_hash = excluded.body_hash, answer = excluded.answer, created_at = excluded.created_at";
        let Some(once) = self.once.clone() else { return Ok(()) };
        let now = self.instant().await?;
        let args = [
            self.tenant.into(),
            Arg::from(&once.caller),
            Arg::from(&once.route),
            Arg::from(&once.key),
            Arg::from(&once.body_hash),
            Arg::json(answer)?,
            now.into(),
        ];
        self.conn.later(SQL, &args).await
    }

    async fn instant(&mut self) -> Result<Timestamp, StoreError> {
        dialect::now(self.conn, &self.clock).await
    }
}
