//! Waiting for a turn to come to rest, for clients that block. The bell wakes;
//! the heartbeat looks only whether the store is still there.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::id::{SessionId, TurnId};
use crate::model::message::Message;
use crate::model::session::RequiredAction;
use crate::model::turn::{Turn, TurnStatus};
use crate::store::Scope;

use super::failure::Failure;
use super::state::ApiState;

/// A turn at rest: it is over, or it waits for a person.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct TurnOutcome {
    pub turn: Turn,
    /// The last message of the model, when the turn is over.
    pub message: Option<Message>,
    /// Pending ones: the turn goes on when they are answered.
    pub approvals: Vec<Approval>,
    /// All that the turn waits for: these, questions, and calls that the client
    /// carries out.
    #[serde(default)]
    #[schema(required = true)]
    pub required_actions: Vec<RequiredAction>,
}

/// What was there when the wait ended.
pub(super) enum Waited {
    AtRest(Box<TurnOutcome>),
    /// Time is over, or the server is shutting down.
    UnderWay(Box<Turn>),
}

pub(super) async fn at_rest(
    state: &ApiState,
    scope: &Scope,
    session: SessionId,
    turn: TurnId,
    patience: Duration,
) -> Result<Waited, Failure> {
    // Subscribed before the first read: a commit after it is heard.
    let mut bell = state.store.bell().subscribe(session);
    let deadline = state.clock().sleep(patience);
    tokio::pin!(deadline);
    loop {
        let outcome = outcome(scope, session, turn).await?;
        // What waits for delegated work waits for nobody outside.
        let asks = outcome.turn.status == TurnStatus::Waiting && !outcome.required_actions.is_empty();
        if outcome.turn.status.is_terminal() || asks {
            return Ok(Waited::AtRest(Box::new(outcome)));
        }
        // A store that is away rings nothing: whoever waits hears of it here.
        let beat = state.clock().sleep(state.heartbeat);
        tokio::select! {
            () = bell.changed() => {}
            () = beat => {}
            () = &mut deadline => return Ok(Waited::UnderWay(Box::new(outcome.turn))),
            () = state.closing.cancelled() => return Ok(Waited::UnderWay(Box::new(outcome.turn))),
        }
    }
}

async fn outcome(scope: &Scope, session: SessionId, turn: TurnId) -> Result<TurnOutcome, Failure> {
    let read = scope.read(move |mut rows| {
        Box::pin(async move {
            if rows.session_record(session).await?.is_none() {
                return Ok(None);
            }
            let Some(record) = rows.turn(session, turn).await? else {
                return Ok(None);
            };
            let (mut message, mut approvals, mut required_actions) = (None, Vec::new(), Vec::new());
            if record.status.is_terminal() {
                message = rows.last_answer(session, turn).await?;
            } else if record.status == TurnStatus::Waiting {
                approvals = rows.approvals_of_turn(turn).await?;
                approvals.retain(|approval| approval.status == ApprovalStatus::Pending);
                let waits = rows.required_actions(session, session).await?;
                required_actions = waits.into_iter().map(|(_, action)| action).collect();
            }
            let turn = record.view();
            Ok(Some(TurnOutcome {
                turn,
                message,
                approvals,
                required_actions,
            }))
        })
    });
    read.await?.ok_or_else(|| Failure::not_found("turn"))
}
