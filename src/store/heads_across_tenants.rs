//! How far the logs of sessions reach, asked by everybody who watches one, at
//! once: a thousand idle streams are a few questions in each heartbeat and not a
//! thousand. Who asks first waits a moment for others and asks for all. An answer
//! is a number; what it is about is read within the session's tenant.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;

use super::{Kind, Store, StoreError, Wall};
use crate::model::id::{SessionId, TenantId};

/// How long the first one waits for others: streams look at the same moments.
const GATHER: Duration = Duration::from_millis(20);
/// Sessions of one question.
const MOST: usize = 1000;

type Answer = Result<Option<i64>, StoreError>;

/// Those who wait for the next question.
#[derive(Debug, Default)]
pub(super) struct Heads(Mutex<Vec<Asked>>);

#[derive(Debug)]
struct Asked {
    tenant: TenantId,
    session: SessionId,
    answer: oneshot::Sender<Answer>,
}

/// Who asks for all; if it goes away before that, the others ask anew.
struct Leader<'a>(&'a Heads);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.0.waiting().clear();
    }
}

impl Heads {
    /// No code of others runs under this lock.
    fn waiting(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// The number of the newest event of a session; `None` where there is none
    /// any more. Dropping the future loses nothing for others.
    pub async fn head_across_tenants(&self, tenant: TenantId, session: SessionId) -> Answer {
        let heads = &self.0.heads;
        loop {
            let (answer, told) = oneshot::channel();
            let leads = {
                let mut waiting = heads.waiting();
                waiting.push(Asked {
                    tenant,
                    session,
                    answer,
                });
                waiting.len() == 1
            };
            if leads {
                let leader = Leader(heads);
                tokio::time::sleep(GATHER).await;
                let all = std::mem::take(&mut *heads.waiting());
                std::mem::forget(leader);
                self.answer_heads(all).await;
            }
            // Whoever asked for this one too went away.
            if let Ok(answer) = told.await {
                return answer;
            }
        }
    }

    async fn answer_heads(&self, mut all: Vec<Asked>) {
        while !all.is_empty() {
            let some = all.split_off(all.len().saturating_sub(MOST));
            let heads = self.heads_of(&some).await;
            for asked in some {
                let found = heads
                    .as_ref()
                    .map_err(Clone::clone)
                    .map(|heads| heads.get(&(asked.tenant, asked.session)).copied());
                // A watcher that left is told nothing.
                let _unheard = asked.answer.send(found);
            }
        }
    }

    async fn heads_of(&self, asked: &[Asked]) -> Result<HashMap<(TenantId, SessionId), i64>, StoreError> {
        const SQLITE: &str = "
            select tenant_id, session_id, head_seq from session
            where (tenant_id, session_id) in (select value ->> 't', value ->> 's' from json_each($1))
                and deleted_at is null";
        const POSTGRES: &str = "
            select s.tenant_id, s.session_id, s.head_seq
            from json_to_recordset($1::json) as r(t text, s text)
            join session s on s.tenant_id = r.t and s.session_id = r.s
            where s.deleted_at is null";
        let of: Vec<_> = asked
            .iter()
            .map(|asked| json!({"t": asked.tenant, "s": asked.session}))
            .collect();
        let of = json!(of).to_string();
        let read = self.read(Wall::Across, move |conn| {
            Box::pin(async move {
                let sql = match conn.dialect() {
                    Kind::Sqlite => SQLITE,
                    Kind::Postgres => POSTGRES,
                };
                conn.rows(sql, &[of.into()]).await
            })
        });
        let rows = read.await?;
        rows.iter()
            .map(|row| Ok(((row.id("tenant_id")?, row.id("session_id")?), row.int("head_seq")?)))
            .collect()
    }
}
