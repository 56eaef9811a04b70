//! A turn read whole for a client that did not watch it, and what matters of its
//! end to all of these surfaces.

use std::time::Duration;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::state::ApiState;
use crate::api::wait::{self, Waited};
use crate::model::id::TurnId;
use crate::model::turn::Turn;
use crate::store::Story;

/// The longest that a request without a stream is held; clients of these surfaces
/// know no other way to wait.
const PATIENCE: Duration = Duration::from_hours(1);

pub(in crate::api) async fn read(caller: &Caller, turn: TurnId) -> Result<Option<Story>, Failure> {
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.story(turn).await }));
    Ok(read.await?)
}

/// The turn once it is over or waits for a person.
pub(in crate::api) async fn at_rest(
    state: &ApiState,
    caller: &Caller,
    turn: &Turn,
    leash: &mut Leash,
) -> Result<Story, Failure> {
    let waited = wait::at_rest(state, &caller.scope, turn.session_id, turn.id, PATIENCE).await;
    leash.let_go();
    if let Waited::UnderWay(_) = waited? {
        // The turn goes on; the same request under its key finds it again.
        return Err(Failure::draining());
    }
    read(caller, turn.id).await?.ok_or_else(|| Failure::not_found("turn"))
}
