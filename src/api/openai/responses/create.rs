//! Responses, made: streamed, waited for, or left in the background.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use serde_json::Value;

use super::answers::answer;
use super::read::{self, Seen};
use super::request::{ResponseRequest, Wanted};
use crate::api::caller::Caller;
use crate::api::compat::begin::{Begun, begin, replay};
use crate::api::compat::ids::ResponseId;
use crate::api::compat::{chain, conversation, handed, headers, story};
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::once;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::principal::Scope;
use crate::model::session::Metadata;
use crate::store::Once;
use crate::turn::requests::Whither;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(create_response))
}

/// Make a response.
///
/// The server's agent answers and runs its tools itself: they are items
/// `function_call` and `function_call_output`. A call that needs an approval is an
/// item `mcp_approval_request`: a stream stays open until somebody decides, an
/// answer that is not streamed ends with it. It is answered by a response with
/// `mcp_approval_response`, which then is what follows, or at
/// `/v1/approvals/{id}/decision`.
///
/// Functions in `tools` are the client's to carry out: a response ends with their
/// items `function_call`, and so it does with a question of the model, a call of
/// `clarify`. A response with `function_call_output` for each of them is what
/// follows. A function with the name of a tool of the server is refused.
#[utoipa::path(post, path = "/v1/responses", tag = "responses", request_body = ResponseRequest,
    responses((status = 200, description = "The response, or its events.",
        content((Value = "application/json"), (String = "text/event-stream")))))]
pub(super) async fn create_response(
    State(state): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    state.takes_work()?;
    let (request, once): (ResponseRequest, _) = payload.loose_once(&caller.principal).await?;
    let wanted = request.read(&headers)?;
    let made = if !wanted.outputs.is_empty() {
        let given = handed::give(&state, &caller, wanted.outputs.clone(), once).await?;
        Made {
            id: ResponseId {
                turn: given.turn,
                after: given.after,
            },
            leash: Leash::none(),
            replayed: given.replayed,
        }
    } else if wanted.answers.is_empty() {
        let begun = begun(&state, &caller, &wanted, once).await?;
        Made {
            id: ResponseId {
                turn: begun.turn.id,
                after: 0,
            },
            leash: begun.leash,
            replayed: begun.replayed,
        }
    } else {
        let answered = answer(&state, &caller, wanted.answers.clone(), once).await?;
        Made {
            id: answered.id,
            leash: Leash::none(),
            replayed: answered.replayed,
        }
    };
    let replayed = made.replayed;
    let answer = told(&state, &caller, &wanted, made).await?;
    Ok(once::marked(answer, replayed))
}

struct Made {
    id: ResponseId,
    leash: Leash,
    replayed: bool,
}

async fn begun(state: &ApiState, caller: &Caller, wanted: &Wanted, once: Option<Once>) -> Result<Begun, Failure> {
    if let Some(begun) = replay(caller, &once).await? {
        return Ok(begun);
    }
    are_free(state, caller, wanted)?;
    let (whither, carried) = whither(state, caller, wanted).await?;
    let held = wanted.stream && !wanted.background;
    begin(state, caller, (whither, once), wanted.ask(carried), held).await
}

/// No function has the name of a tool of the server: which of the two the model
/// calls would be anybody's guess.
fn are_free(state: &ApiState, caller: &Caller, wanted: &Wanted) -> Result<(), Failure> {
    let registry = state.engine.registry(caller.principal.tenant);
    let taken = wanted
        .tools
        .iter()
        .find(|(_, tool)| registry.get(tool.name()).is_some());
    match taken {
        None => Ok(()),
        Some((pointer, tool)) => {
            let detail = format!(
                "a tool of the server is called `{}`; give the function another name",
                tool.name()
            );
            Err(Failure::field(&format!("{pointer}/name"), detail))
        }
    }
}

/// Where it goes, and the instructions that come along.
async fn whither(state: &ApiState, caller: &Caller, wanted: &Wanted) -> Result<(Whither, Option<String>), Failure> {
    let user = &caller.principal.user;
    if wanted.has_history {
        let fresh = conversation::fresh(state, caller, None, &wanted.said.history, Metadata::new())?;
        return Ok((fresh, None));
    }
    if let Some(previous) = &wanted.previous {
        let link = chain::behind(caller, previous)
            .await?
            .filter(|link| !link.story.is_deleted_response);
        let link = link.ok_or_else(|| Failure::not_found("response").known_as("previous_response_not_found"))?;
        return Ok((link.whither, link.story.turn.options.instructions));
    }
    if let Some(name) = wanted.session_name(user) {
        let carried = read::last_instructions(caller, &name).await?;
        return Ok((conversation::of_name(state, caller, name, &[]).await?, carried));
    }
    let said = &wanted.said;
    let first = said.history.first().map_or(&said.input, |first| &first.parts);
    let known_by = conversation::fingerprint(user, wanted.key.as_deref(), said.system.as_deref(), first);
    Ok((
        conversation::of_history(state, caller, known_by, &said.history).await?,
        None,
    ))
}

async fn told(state: &ApiState, caller: &Caller, wanted: &Wanted, made: Made) -> Result<Response, Failure> {
    let Made { id, mut leash, .. } = made;
    let seen = Seen::of(state, caller, id, Some(wanted.asked())).await?;
    let session = seen.session_name();
    let mut told: HeaderMap = session
        .parse()
        .ok()
        .map(|name| (headers::SESSION_ID, name))
        .into_iter()
        .collect();
    told.extend(
        wanted
            .key
            .as_ref()
            .and_then(|key| Some((Some(headers::SESSION_KEY), key.parse().ok()?))),
    );
    if wanted.stream {
        return Ok((told, seen.streamed(state, caller, None, leash).await?).into_response());
    }
    let body: Value = if wanted.background {
        seen.response(caller).await?
    } else {
        story::at_rest(state, caller, &seen.turn(), &mut leash).await?;
        Seen::of(state, caller, id, Some(wanted.asked()))
            .await?
            .response(caller)
            .await?
    };
    Ok((told, Json(body)).into_response())
}
