//! Messages that were said elsewhere, brought into a session that is there.

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::base::Timestamp;
use crate::model::id::SessionId;
use crate::model::message::Role;
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::turn::requests::{Appended, OutsideMessage};

use super::bounds;
use super::new_turn::Input;

/// As many as a page of messages has at most.
const MAX_MESSAGES: usize = 200;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(append_messages))
}

/// Who said a message. Calls and their results come with a whole session, by
/// `POST /v1/sessions/import`.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Speaker {
    User,
    Assistant,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    role: Speaker,
    content: Input,
    /// Its name where it comes from, at most 256 characters. The session takes a
    /// name once: of a message that it has already nothing is changed.
    #[serde(default)]
    #[schema(max_length = 256)]
    external_id: Option<String>,
    /// When it was said; now, if nothing is said. The order is that of the list.
    #[serde(default)]
    created_at: Option<Timestamp>,
}

/// Messages to be added, oldest first.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessages {
    #[schema(min_items = 1, max_items = 200)]
    messages: Vec<NewMessage>,
}

impl NewMessages {
    fn checked(self, max_chars: usize) -> Result<Vec<OutsideMessage>, Failure> {
        if !(1..=MAX_MESSAGES).contains(&self.messages.len()) {
            let detail = format!("expected 1 to {MAX_MESSAGES} messages");
            return Err(Failure::field("/messages", detail));
        }
        let mut names = HashSet::new();
        let checked = self.messages.into_iter().enumerate().map(|(place, message)| {
            let at = |field: &str| format!("/messages/{place}/{field}");
            let Input(content) = message.content;
            bounds::said(&at("content"), &content, max_chars)?;
            bounds::name(&at("external_id"), &message.external_id, 256)?;
            if let Some(name) = &message.external_id
                && !names.insert(name.clone())
            {
                return Err(Failure::field(&at("external_id"), "another message of the list has it"));
            }
            Ok(OutsideMessage {
                role: match message.role {
                    Speaker::User => Role::User,
                    Speaker::Assistant => Role::Assistant,
                },
                content,
                external_id: message.external_id,
                created_at: message.created_at,
            })
        });
        checked.collect()
    }
}

/// Add messages that were said elsewhere to the end of an idle session.
///
/// They are its past: no model is asked, and the next turn knows them. Each
/// message of a user begins a turn that is over, and the session's log tells it
/// as any other. A message whose `external_id` the session has already is not
/// added again, so the same request may be sent twice.
#[utoipa::path(post, path = "/v1/sessions/{id}/messages", tag = "sessions", params(("id" = SessionId, Path)),
    request_body = NewMessages,
    responses(
        (status = 200, description = "The session has all of them already.", body = Appended),
        (status = 201, description = "The messages as they are stored.", body = Appended),
        (status = 409, description = "A turn of the session runs or waits.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn append_messages(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let (new, once): (NewMessages, _) = payload.json_once(&caller.principal).await?;
    let messages = new.checked(state.body.max_input_chars)?;
    let (engine, user) = (state.engine.clone(), caller.principal.user.clone());
    let scope = caller.scope.once(once);
    let appended = state.finish_once(async move { engine.append_messages(&scope, id, user, messages).await });
    Ok(appended.await?.answer(|appended| {
        let status = match appended.added {
            0 => StatusCode::OK,
            _ => StatusCode::CREATED,
        };
        (status, Json(appended)).into_response()
    }))
}
