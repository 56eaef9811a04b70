//! Putting a session's workspace back, on a client's behalf: only while no turn
//! runs or waits. The files are changed between two transactions, since nothing
//! waits for a disk under the session's lock; calls of a turn that begins meanwhile
//! wait until it is done. The second one tells whoever reads the log, and the model.

use serde_json::json;

use super::append::{OutsideMessage, append};
use super::steer::steer;
use super::turns::{Made, busy, is_child};
use super::{EngineError, Verdict, earlier};
use crate::model::checkpoint::Restored;
use crate::model::event::EventType;
use crate::model::id::{CheckpointId, SessionId, TurnId};
use crate::model::message::{Part, Role};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{NewEvent, SessionRecord, TurnRecord, Writes};
use crate::model::turn::TurnOptions;
use crate::store::{Rows, Scope, StoreError};
use crate::tool::checkpoints::{self, RestoreError};
use crate::turn::engine::Engine;

impl Engine {
    /// Makes the session's workspace what it was at the checkpoint.
    pub async fn restore_checkpoint(
        &self,
        scope: &Scope,
        session: SessionId,
        id: CheckpointId,
        user: String,
    ) -> Verdict<Restored> {
        let engine = self.clone();
        let found = scope.write("restore_checkpoint", move |mut rows| {
            Box::pin(async move { idle(&mut rows, &engine, session).await })
        });
        found.await??;
        let place = (scope.tenant(), session);
        let restored = checkpoints::restore(self.host(), self.clock(), place, id).await;
        let restored = restored.map_err(|error| refused(&error))?;
        let (engine, told) = (self.clone(), restored.clone());
        // The turn that began meanwhile may have calls to judge.
        let stored = scope.write_anew("checkpoint_restored", move |mut rows| {
            let (engine, told) = (engine.clone(), (told.clone(), user.clone()));
            Box::pin(async move { tell(&mut rows, &engine, session, told).await })
        });
        if let Some(made) = stored.await?? {
            self.spawn_promoted(scope.tenant(), made.carried);
        }
        Ok(restored)
    }
}

/// Whether the workspace is free to be changed.
async fn idle(rows: &mut Rows<'_>, engine: &Engine, id: SessionId) -> Result<Verdict<()>, StoreError> {
    if let Some(earlier) = earlier(rows).await? {
        return Ok(Err(earlier));
    }
    let Some(session) = rows.lock_session(id).await? else {
        return Ok(Err(EngineError::NotFound("session")));
    };
    if session.lineage.is_some() {
        return Ok(Err(is_child()));
    }
    if engine.is_elsewhere(session.node_id) {
        let detail = "the session's files belong to another server of this database";
        return Ok(Err(EngineError::Refused(Problem::new(
            ProblemCode::EnvironmentLost,
            detail,
        ))));
    }
    match session.active_turn_id {
        Some(active) => Ok(Err(EngineError::Refused(busy(rows, id, active).await?))),
        None => Ok(Ok(())),
    }
}

/// Writes what was done to the log, and for the model: into the past of an idle
/// session, or to the turn that began meanwhile.
async fn tell(
    rows: &mut Rows<'_>,
    engine: &Engine,
    id: SessionId,
    (restored, user): (Restored, String),
) -> Result<Verdict<Option<Made>>, StoreError> {
    if let Some(earlier) = earlier(rows).await? {
        return Ok(Err(earlier));
    }
    let Some(mut session) = rows.lock_session(id).await? else {
        return Ok(Err(EngineError::NotFound("session")));
    };
    let event = NewEvent {
        kind: EventType::CheckpointRestored,
        turn_id: None,
        epoch: 0,
        data: json!({"restored": restored}),
    };
    let writes = Writes {
        events: vec![event],
        ..Writes::default()
    };
    rows.apply(&mut session, &writes, engine.clock().now()).await?;
    let content = vec![Part::text(notice(&restored))];
    let made = match session.active_turn_id {
        Some(active) => Box::pin(to_active(rows, engine, session, (active, user, content))).await?,
        None => {
            let said = OutsideMessage {
                role: Role::User,
                content,
                external_id: None,
                created_at: None,
            };
            Box::pin(append(rows, engine, session, &user, vec![said])).await?;
            Ok(None)
        }
    };
    if made.is_ok() {
        rows.remember(&restored).await?;
    }
    Ok(made)
}

async fn to_active(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    (active, user, content): (TurnId, String, Vec<Part>),
) -> Result<Verdict<Option<Made>>, StoreError> {
    let Some(turn) = rows.turn(session.session_id, active).await? else {
        return Err(StoreError::Lost);
    };
    let (id, now) = (TurnId::new(engine.clock()), engine.clock().now());
    let said = TurnRecord::queued(id, session.session_id, user, content, TurnOptions::default(), now);
    Ok(steer(rows, engine, session, turn, said).await?.map(Some))
}

/// What the model reads before its next answer.
fn notice(restored: &Restored) -> String {
    let left = match restored.not_restored_count {
        0 => String::new(),
        count => format!(" {count} names could not be put back."),
    };
    format!(
        "[The files of the workspace were put back to an earlier state, the one of checkpoint {}: what calls wrote or \
         removed since then is undone ({} written, {} removed).{left} What you remember of files may no longer be \
         true; read them again before you rely on it.]",
        restored.checkpoint_id, restored.written, restored.removed
    )
}

fn refused(error: &RestoreError) -> EngineError {
    let code = match error {
        RestoreError::NotFound => return EngineError::NotFound("checkpoint"),
        RestoreError::Busy => ProblemCode::SessionBusy,
        RestoreError::Nothing { .. } | RestoreError::NoWayBack { .. } => ProblemCode::CheckpointNotRestorable,
        RestoreError::Io(_) | RestoreError::Files(_) | RestoreError::Workspace(_) => {
            tracing::error!(%error, cause = std::error::Error::source(&error), "a checkpoint could not be restored");
            ProblemCode::Internal
        }
    };
    let detail = match code {
        ProblemCode::Internal => "the files could not be read or written; the server's log says more".to_owned(),
        _ => error.to_string(),
    };
    EngineError::Refused(Problem::new(code, detail))
}
