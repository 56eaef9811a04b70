//! Going on from a response: in its session where nothing came after it, in a fork
//! of the session where something did. So a chain holds each message once, however
//! often clients branch it.

use super::ids::ResponseId;
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::model::principal::Scope;
use crate::model::session::ApprovalMode;
use crate::store::Story;
use crate::turn::requests::{ForkPoint, ForkSession, Whither};

/// Where a chain goes on.
pub(in crate::api) struct Link {
    pub whither: Whither,
    /// The turn behind which it goes on.
    pub story: Story,
}

/// Behind the response of that name; nothing where there is none.
pub(in crate::api) async fn behind(caller: &Caller, response: &str) -> Result<Option<Link>, Failure> {
    let Some(id) = ResponseId::parse(response) else {
        return Ok(None);
    };
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            let Some(story) = rows.story(id.turn).await? else {
                return Ok(None);
            };
            let newest = rows.turns(story.session.id, None, None, 1).await?;
            Ok(Some((story, newest.first().map(|turn| turn.turn_id))))
        })
    });
    let Some((story, newest)) = found.await? else {
        return Ok(None);
    };
    let session = story.session.id;
    if newest == Some(id.turn) {
        return Ok(Some(Link {
            whither: Whither::Session(session),
            story,
        }));
    }
    caller.require(Scope::SessionsWrite)?;
    if story.session.approvals.mode == Some(ApprovalMode::Off) {
        caller.require(Scope::ApprovalsDecide)?;
    }
    let fork = ForkSession {
        user_id: caller.principal.user.clone(),
        point: ForkPoint::AfterTurn(id.turn),
        external_id: None,
        title: None,
        metadata: None,
        may_settle: true,
    };
    Ok(Some(Link {
        whither: Whither::Fork(session, Box::new(fork)),
        story,
    }))
}
