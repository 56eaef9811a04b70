//! A turn read whole for a client that did not watch it, and what matters of its
//! end to all of these surfaces.

use std::time::Duration;

use super::ending::is_at_rest;
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::state::ApiState;
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

/// The turn once it is over or waits for somebody outside. One that waits for its children
/// goes on by itself.
pub(in crate::api) async fn at_rest(
    state: &ApiState,
    caller: &Caller,
    turn: &Turn,
    leash: &mut Leash,
) -> Result<Story, Failure> {
    let story = rest(state, caller, turn).await;
    leash.let_go();
    story
}

async fn rest(state: &ApiState, caller: &Caller, turn: &Turn) -> Result<Story, Failure> {
    // Subscribed before the first read: a commit after it is heard.
    let mut bell = state.store.bell().subscribe(turn.session_id);
    let deadline = state.clock().sleep(PATIENCE);
    tokio::pin!(deadline);
    loop {
        let story = read(caller, turn.id).await?.ok_or_else(|| Failure::not_found("turn"))?;
        if story.turn.status.is_terminal() || is_at_rest(&story) {
            return Ok(story);
        }
        // A store that is away rings nothing: whoever waits hears of it here.
        let beat = state.clock().sleep(state.heartbeat);
        tokio::select! {
            () = bell.changed() => {}
            () = beat => {}
            // The turn goes on; the same request under its key finds it again.
            () = &mut deadline => return Err(Failure::draining()),
            () = state.closing.cancelled() => return Err(Failure::draining()),
        }
    }
}
