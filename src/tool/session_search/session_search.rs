//! `session_search`: looks back into earlier sessions of the same user.

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::browse::browse;
use super::discover::{Wanted, discover};
use super::read::read;
use super::request::Request;
use super::scroll::{Nothing, scroll};
use crate::model::call::{Effect, Footprint};
use crate::model::id::SessionId;
use crate::store::{Rows, StoreError};
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool, error_text};

inventory::submit!(Registered(&SessionSearch));

struct SessionSearch;

impl Tool for SessionSearch {
    fn spec(&self) -> Spec {
        Spec {
            name: "session_search",
            toolset: "session_search",
            emoji: "🔎",
            description: "Looks back into earlier sessions with this user. With `query` it finds sessions in which \
                the words occur (all of them; `OR`, `NOT`, \"quoted words\" and `begin*` work). With `session_id` it \
                reads one; with `around_message_id` too it shows what stands around a message. Without anything it \
                lists the newest sessions. Use it when the user speaks of something that was said before, rather \
                than asking them to say it again.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words to find."},
                "limit": {"type": "integer", "description": "Sessions to show, 1 to 10.", "default": 3},
                "sort": {"type": "string", "enum": ["newest", "oldest"], "description": "Best first without it."},
                "session_id": {"type": "string", "description": "A session to read."},
                "around_message_id": {"type": "string", "description": "A message of it to show the surroundings of."},
                "window": {"type": "integer", "description": "Messages on each side, 1 to 20.", "default": 5},
                "role_filter": {
                    "type": "string",
                    "description": "Whose words are searched, separated by commas.",
                    "default": "user,assistant",
                },
            },
        })
    }

    fn example(&self) -> Value {
        json!({"query": "deploy OR release"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Read
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Parallel
    }

    fn subject(&self, _arguments: &Value) -> String {
        "earlier sessions".to_owned()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(look(call))
    }
}

async fn look(call: Call) -> Done {
    let request = match Request::read(&call.arguments) {
        Ok(request) => request,
        Err(unclear) => return refusal(&unclear.to_string()),
    };
    let Some(records) = call.records else {
        return refusal("no sessions are kept here");
    };
    let here = call.session_id;
    let looked = records.read(move |mut rows| Box::pin(async move { answer(&mut rows, here, request).await }));
    match looked.await {
        Ok(Ok(found)) => Done {
            result: found.to_string(),
            ..Done::default()
        },
        Ok(Err(why)) => refusal(why),
        Err(error) => {
            tracing::warn!(session = %here, %error, "earlier sessions could not be read");
            Done::failure(error_text::failed(
                "Unavailable",
                "the sessions cannot be read now; try again later",
            ))
        }
    }
}

async fn answer(
    rows: &mut Rows<'_>,
    here: SessionId,
    request: Request,
) -> Result<Result<Value, &'static str>, StoreError> {
    const NO_SESSION: &str = "no such session; `session_search` without arguments lists those there are";
    Ok(match request {
        Request::Browse { limit } => Ok(browse(rows, here, limit).await?),
        Request::Read { session } => read(rows, session).await?.ok_or(NO_SESSION),
        Request::Scroll {
            session,
            message,
            window,
        } => scroll(rows, here, (session, message), window)
            .await?
            .map_err(|nothing| match nothing {
                Nothing::NoSession => NO_SESSION,
                Nothing::NoMessage => "the session has no such message",
                Nothing::OwnLine => "that is this session; its messages are before you already",
            }),
        Request::Discover {
            text,
            query,
            limit,
            sort,
            roles,
        } => {
            let wanted = Wanted {
                text: &text,
                query: &query,
                limit,
                sort,
                roles: &roles,
            };
            Ok(discover(rows, here, wanted).await?)
        }
    })
}

fn refusal(why: &str) -> Done {
    Done::failure(json!({"success": false, "error": why}).to_string())
}
