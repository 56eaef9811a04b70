//! What a call asks for: its arguments choose one of four ways to look back.

use serde_json::Value;

use crate::model::id::{MessageId, SessionId};
use crate::model::message::Role;
use crate::model::search::Query;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Sessions in which words occur.
    Discover {
        text: String,
        query: Query,
        limit: usize,
        sort: Sort,
        roles: Vec<Role>,
    },
    /// What stands around a message.
    Scroll {
        session: SessionId,
        message: MessageId,
        window: u32,
    },
    /// The beginning and the end of a session.
    Read { session: SessionId },
    /// The newest sessions.
    Browse { limit: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Best,
    Newest,
    Oldest,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unclear {
    #[error("`query` must have one to eight words in each alternative; `NOT` needs another word beside it")]
    Query,
    #[error("`session_id` must be the id of a session, such as an earlier result gives it, not `{0}`")]
    Session(String),
    #[error("`around_message_id` must be the id of a message, such as an earlier result gives it, not `{0}`")]
    Message(String),
    #[error("`sort` must be `newest` or `oldest`, not `{0}`")]
    Sort(String),
    #[error("`role_filter` names `user` and `assistant`, separated by commas, not `{0}`")]
    Role(String),
}

impl Request {
    pub(super) fn read(arguments: &Value) -> Result<Self, Unclear> {
        let text = |name: &str| arguments[name].as_str().map(str::trim).unwrap_or_default();
        let number = |name: &str, default: i64, most: i64| arguments[name].as_i64().unwrap_or(default).clamp(1, most);
        let limit = usize::try_from(number("limit", 3, 10)).unwrap_or(3);
        // Ids of the original name a profile before the session.
        let session = text("session_id").rsplit('/').next().unwrap_or_default();
        if !session.is_empty() {
            let id = session.parse().map_err(|_| Unclear::Session(session.to_owned()))?;
            let message = text("around_message_id");
            if message.is_empty() {
                return Ok(Self::Read { session: id });
            }
            return Ok(Self::Scroll {
                session: id,
                message: message.parse().map_err(|_| Unclear::Message(message.to_owned()))?,
                window: u32::try_from(number("window", 5, 20)).unwrap_or(5),
            });
        }
        let query = text("query");
        if query.is_empty() {
            return Ok(Self::Browse { limit });
        }
        Ok(Self::Discover {
            text: query.to_owned(),
            query: Query::of(query).ok_or(Unclear::Query)?,
            limit,
            sort: sort(text("sort"))?,
            roles: roles(text("role_filter"))?,
        })
    }
}

fn sort(name: &str) -> Result<Sort, Unclear> {
    match name {
        "" => Ok(Sort::Best),
        "newest" => Ok(Sort::Newest),
        "oldest" => Ok(Sort::Oldest),
        other => Err(Unclear::Sort(other.to_owned())),
    }
}

fn roles(names: &str) -> Result<Vec<Role>, Unclear> {
    let named = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let roles = named.map(|name| match name {
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        other => Err(Unclear::Role(other.to_owned())),
    });
    let roles: Vec<Role> = roles.collect::<Result<_, _>>()?;
    Ok(if roles.is_empty() {
        vec![Role::User, Role::Assistant]
    } else {
        roles
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_arguments_choose_the_way_and_the_narrower_one_wins() {
        let (session, message) = ("ses_01kg9p6je0e008qg8kd8wxd96z", "msg_01kg9p6je0e008qg8kd8wxd96z");
        let read = |arguments: Value| Request::read(&arguments);
        assert_eq!(read(json!({})), Ok(Request::Browse { limit: 3 }));
        for (limit, taken) in [(99, 10), (0, 1), (-4, 1), (7, 7)] {
            assert_eq!(read(json!({"limit": limit})), Ok(Request::Browse { limit: taken }));
        }
        let named = json!({"query": "x", "session_id": format!("default/{session}")});
        assert_eq!(
            read(named),
            Ok(Request::Read {
                session: session.parse().unwrap()
            })
        );
        let around = json!({"session_id": session, "around_message_id": message, "window": 0});
        assert!(matches!(read(around), Ok(Request::Scroll { window: 1, .. })));
        assert!(matches!(
            read(json!({"query": "x", "sort": "newest"})),
            Ok(Request::Discover { .. })
        ));
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        let fault = |arguments: Value| Request::read(&arguments).unwrap_err().to_string();
        assert!(fault(json!({"session_id": "7"})).contains("`7`"));
        assert!(fault(json!({"query": "NOT x"})).contains("`query`"));
        assert!(fault(json!({"query": "x", "role_filter": "user,tool"})).contains("`tool`"));
        assert!(fault(json!({"query": "x", "sort": "best"})).contains("`best`"));
    }
}
