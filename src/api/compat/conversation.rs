//! Which session a client means. One that names it gets the session of that name,
//! with what the session remembers; one that sends everything each time gets the
//! session that holds just that, or a new one that begins with it.

use std::collections::BTreeMap;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::dialogue::{self, Said};
use super::media;
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::native::sessions::Plain;
use crate::api::state::ApiState;
use crate::model::id::SessionId;
use crate::model::message::{Message, Part, Role, text_of};
use crate::model::principal::Scope;
use crate::model::session::Metadata;
use crate::model::turn::TurnStatus;
use crate::store::{Archived, Rows, SessionFilter, StoreError};
use crate::turn::requests::{ImportSession, Whither};

/// Entries of the metadata that these surfaces keep.
pub(in crate::api) const SOURCE: &str = "hermes.source";
const FINGERPRINT: &str = "hermes.fingerprint";
/// The original's name for what comes over HTTP.
pub(in crate::api) const API_SERVER: &str = "api_server";
/// Sessions that began with the same words and are compared with what a client
/// sends.
const MOST_COMPARED: u32 = 8;
/// What stands in for an answer that had to wait; see `ending`.
pub(in crate::api) const WAITS: &str = "[Waiting for ";

/// The session of that name: by the name a client gave it, or by its id.
pub(in crate::api) async fn named(caller: &Caller, name: &str) -> Result<Option<SessionId>, Failure> {
    Ok(found(caller, name).await?.map(|(id, _)| id))
}

/// The same, and whether the caller is the one who calls it so.
async fn found(caller: &Caller, name: &str) -> Result<Option<(SessionId, bool)>, Failure> {
    let (name, user) = (name.to_owned(), caller.principal.user.clone());
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            if let Some((id, owner)) = rows.session_named(&user, &name).await? {
                return Ok(Some((id, owner == user)));
            }
            match name.parse::<SessionId>() {
                Ok(id) => Ok(rows.session_record(id).await?.map(|_| (id, true))),
                Err(_) => Ok(None),
            }
        })
    });
    Ok(found.await?)
}

/// The session of that name, or a new one that begins with `history`. Who may see
/// what others call so does not talk in theirs by a name that happens to be taken.
pub(in crate::api) async fn of_name(
    state: &ApiState,
    caller: &Caller,
    name: String,
    history: &[Said],
) -> Result<Whither, Failure> {
    match found(caller, &name).await? {
        Some((id, true)) => Ok(Whither::Session(id)),
        _ => fresh(state, caller, Some(name), history, Metadata::new()),
    }
}

/// A new session that begins with `history`.
pub(in crate::api) fn fresh(
    state: &ApiState,
    caller: &Caller,
    external_id: Option<String>,
    history: &[Said],
    mut metadata: Metadata,
) -> Result<Whither, Failure> {
    caller.require(Scope::SessionsWrite)?;
    metadata.insert(SOURCE.to_owned(), json!(API_SERVER));
    let plain = Plain {
        external_id,
        metadata,
        ..Plain::default()
    };
    let new = plain.checked(caller.principal.user.clone(), &state.toolsets)?;
    Ok(Whither::New(Box::new(ImportSession {
        new,
        todo: Vec::new(),
        turns: dialogue::as_past(history, state.clock().now()),
    })))
}

/// What a conversation without a name is known by: how it began. The original
/// leaves out who speaks, and so mixes users.
pub(in crate::api) fn fingerprint(user: &str, key: Option<&str>, system: Option<&str>, first: &[Part]) -> String {
    let known_by = match key {
        Some(key) => json!([user, "key", key]),
        None => json!([user, system.unwrap_or_default(), first]),
    };
    let hash = Sha256::digest(known_by.to_string().as_bytes());
    let hex: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("api-{hex}")
}

/// The newest session of that beginning which holds `history` and nothing more,
/// or a new one.
pub(in crate::api) async fn of_history(
    state: &ApiState,
    caller: &Caller,
    fingerprint: String,
    history: &[Said],
) -> Result<Whither, Failure> {
    let filter = SessionFilter {
        external_id: None,
        status: None,
        archived: Archived::All,
        metadata: BTreeMap::from([(FINGERPRINT.to_owned(), fingerprint.clone())]),
        root: None,
    };
    let (wanted, name, user) = (history.to_vec(), fingerprint.clone(), caller.principal.user.clone());
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            for session in rows.sessions(None, &filter, MOST_COMPARED).await? {
                if !wanted.is_empty() && holds(&mut rows, session.id, &wanted).await? {
                    return Ok((Some(session.id), true));
                }
            }
            Ok((None, rows.external_id_is_taken(&user, &name, None).await?))
        })
    });
    match found.await? {
        (Some(id), _) => Ok(Whither::Session(id)),
        (None, is_taken) => {
            let metadata = Metadata::from([(FINGERPRINT.to_owned(), json!(fingerprint))]);
            fresh(state, caller, (!is_taken).then_some(fingerprint), history, metadata)
        }
    }
}

/// Whether a session's transcript is what the client says was said: every word of
/// users, and of answers what the client may have been shown.
async fn holds(rows: &mut Rows<'_>, session: SessionId, wanted: &[Said]) -> Result<bool, StoreError> {
    let turns = rows.turns(session, None, None, 10_000).await?;
    let status: BTreeMap<_, _> = turns.iter().map(|turn| (turn.turn_id, turn.status)).collect();
    let mut told: Vec<Told> = Vec::new();
    let mut after = -1;
    loop {
        let page = rows.messages(session, after, 200).await?;
        let Some((last, _)) = page.items.last() else { break };
        after = *last;
        for (_, message) in page.items.into_iter().filter(|(_, message)| !message.hidden) {
            let whole = status.get(&message.turn_id) == Some(&TurnStatus::Completed);
            tell(&mut told, message, whole);
        }
    }
    Ok(is_told(&told, wanted))
}

/// One side's words until the other speaks.
#[derive(Debug, PartialEq)]
struct Told {
    role: Role,
    /// Of a user: the parts. Of the model: what it said between its calls.
    parts: Vec<Part>,
    /// The turn completed, so that the client was shown just this.
    whole: bool,
}

fn tell(told: &mut Vec<Told>, message: Message, whole: bool) {
    match (message.role, told.last_mut()) {
        (Role::Tool | Role::System, _) => {}
        (Role::Assistant, Some(last)) if last.role == Role::Assistant => last.parts.extend(message.content),
        (role, _) => told.push(Told {
            role,
            parts: message.content,
            whole,
        }),
    }
}

fn is_told(told: &[Told], wanted: &[Said]) -> bool {
    told.len() == wanted.len() && told.iter().zip(wanted).all(|(told, said)| is_same(told, said))
}

fn is_same(told: &Told, said: &Said) -> bool {
    if told.role != said.role {
        return false;
    }
    if said.role == Role::User {
        return told.parts == said.parts;
    }
    let shown = text_of(&said.parts);
    if !told.whole || shown.starts_with(WAITS) {
        return true;
    }
    let last = told
        .parts
        .last()
        .map(|part| plain(&text_of(std::slice::from_ref(part))));
    let shown = plain(&shown);
    last.as_ref() == Some(&shown) || plain(&text_of(&told.parts)) == shown
}

/// Without what clients change in the white space, and without images, which the
/// client was shown in place of their names.
fn plain(text: &str) -> String {
    media::without(text).split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role, text: &str) -> Said {
        Said {
            role,
            parts: vec![Part::text(text)],
        }
    }

    fn told(role: Role, texts: &[&str]) -> Told {
        Told {
            role,
            parts: texts.iter().map(|text| Part::text(*text)).collect(),
            whole: true,
        }
    }

    #[test]
    fn a_session_is_known_by_what_was_said_in_it() {
        let session = [
            told(Role::User, &["a"]),
            told(Role::Assistant, &["I look.", "It is b."]),
        ];
        for shown in [
            "I look.\n\nIt is b.",
            "It is b.",
            " It is b. ",
            "It is b.![x.png](data:image/png;base64,AA==)",
        ] {
            assert!(
                is_told(&session, &[said(Role::User, "a"), said(Role::Assistant, shown)]),
                "{shown}"
            );
        }
        for other in [
            vec![said(Role::User, "a"), said(Role::Assistant, "c")],
            vec![said(Role::User, "b"), said(Role::Assistant, "It is b.")],
            vec![said(Role::User, "a")],
            vec![],
        ] {
            assert!(!is_told(&session, &other), "{other:?}");
        }
    }

    #[test]
    fn what_stood_in_for_an_answer_fits_it() {
        let waited = [
            said(Role::User, "a"),
            said(Role::Assistant, "[Waiting for approval apr_1: x]"),
        ];
        assert!(is_told(
            &[told(Role::User, &["a"]), told(Role::Assistant, &["done"])],
            &waited
        ));
        let broken = Told {
            whole: false,
            ..told(Role::Assistant, &["[The turn was cancelled]"])
        };
        assert!(is_told(
            &[told(Role::User, &["a"]), broken],
            &[said(Role::User, "a"), said(Role::Assistant, "x")]
        ));
    }

    #[test]
    fn users_and_keys_are_told_apart() {
        let of = |user, key| fingerprint(user, key, None, &[Part::text("hi")]);
        assert_eq!(of("ada", None), of("ada", None));
        assert_ne!(of("ada", None), of("bob", None));
        assert_ne!(of("ada", None), of("ada", Some("k")));
        assert_eq!(of("ada", None).len(), 20);
    }
}
