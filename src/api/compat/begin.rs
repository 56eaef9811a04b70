//! A turn, begun for a client of a drop-in surface: the same request as the native
//! surface makes, told apart only by where its session comes from.

use serde_json::json;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::native::streams;
use crate::api::state::ApiState;
use crate::live::cursor::Cursor;
use crate::live::follow::{Follower, Shown};
use crate::model::client_tool::ClientTool;
use crate::model::id::{SessionId, TurnId};
use crate::model::message::Part;
use crate::model::sampling::{Sampling, ToolChoice};
use crate::model::session::Metadata;
use crate::model::turn::{OnBusy, OnDisconnect, Turn, TurnOptions, TurnStatus};
use crate::store::{Once, Scope};
use crate::turn::requests::{CreatedTurn, EngineError, NewTurn, Whither, earlier};

/// Which surface a turn was asked for by; kept in the turn's metadata.
pub(in crate::api) const SURFACE: &str = "hermes.surface";
pub(in crate::api) const KEY: &str = "hermes.session_key";

/// What is asked.
#[derive(Default)]
pub(in crate::api) struct Ask {
    pub input: Vec<Part>,
    /// As the client wrote it. It counts where it is one of `model_routes`; of any
    /// other the configured model answers, as in the original.
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub metadata: Metadata,
    pub on_disconnect: OnDisconnect,
    /// Tools that the client carries out.
    pub tools: Vec<ClientTool>,
    pub tool_choice: Option<ToolChoice>,
}

/// A turn under way, of this request or of an earlier one under its key.
pub(in crate::api) struct Begun {
    pub turn: Turn,
    /// What clients of these surfaces call the session.
    pub session_name: String,
    pub first_seq: i64,
    pub leash: Leash,
    pub replayed: bool,
}

impl Begun {
    /// The turn from its beginning.
    pub(in crate::api) fn follower(&self, state: &ApiState, caller: &Caller) -> Follower {
        let beginning = Cursor {
            seq: self.first_seq - 1,
            d: 0,
        };
        let watched = (self.turn.session_id, Some(self.turn.id));
        streams::follow(state, caller.scope.clone(), watched, beginning, Shown::default())
    }
}

/// What was begun earlier under the key of this request; looked up before a
/// session is sought, since the conversation has gone on by it.
pub(in crate::api) async fn replay(caller: &Caller, once: &Option<Once>) -> Result<Option<Begun>, Failure> {
    if once.is_none() {
        return Ok(None);
    }
    let scope = caller.scope.clone().once(once.clone());
    let known = scope.read(|mut rows| Box::pin(async move { earlier(&mut rows).await }));
    match known.await? {
        None => Ok(None),
        Some(EngineError::Replayed(answer)) => again(&caller.scope, &answer).await.map(Some),
        Some(error) => Err(error.into()),
    }
}

/// Begins the turn. Behind a turn that runs it waits; a turn that waits for a
/// person is named instead, for a message is no decision.
pub(in crate::api) async fn begin(
    state: &ApiState,
    caller: &Caller,
    (whither, once): (Whither, Option<Once>),
    ask: Ask,
    held: bool,
) -> Result<Begun, Failure> {
    crate::api::native::bounds::said("/input", &ask.input, state.body.max_input_chars)?;
    crate::api::native::bounds::instructions(&ask.instructions)?;
    crate::api::native::bounds::metadata(&ask.metadata)?;
    crate::api::native::bounds::tools(&ask.tools)?;
    let on_busy = match &whither {
        Whither::Session(id) => behind(&caller.scope, *id).await?,
        Whither::Beside(..) | Whither::New(_) | Whither::Fork(..) => OnBusy::Reject,
    };
    let routes = &state.engine.settings().model_routes;
    let new = NewTurn {
        user_id: caller.principal.user.clone(),
        input: ask.input,
        on_busy,
        options: TurnOptions {
            on_disconnect: ask.on_disconnect,
            model: ask.model.filter(|model| routes.contains_key(model)),
            instructions: ask.instructions,
            metadata: ask.metadata,
            tools: ask.tools,
            sampling: Box::new(Sampling {
                tool_choice: ask.tool_choice,
                ..Sampling::default()
            }),
            tool_ceiling: caller.principal.tools.clone(),
            key_id: caller.principal.key,
            ..TurnOptions::default()
        },
    };
    let held = held && ask.on_disconnect == OnDisconnect::Cancel;
    let (maker, scope) = (state.clone(), caller.scope.clone());
    state
        .finish(async move { create(maker, scope, (whither, once), new, held).await })
        .await
}

async fn create(
    state: ApiState,
    scope: Scope,
    (whither, once): (Whither, Option<Once>),
    new: NewTurn,
    held: bool,
) -> Result<Begun, Failure> {
    let keyed = scope.clone().once(once);
    match state.engine.create_turn_in(&keyed, whither, new).await {
        Ok(CreatedTurn { turn, first_seq, .. }) => {
            let leash = match held {
                true => Leash::new(state, scope.clone(), turn.session_id, turn.id),
                false => Leash::none(),
            };
            Ok(Begun {
                session_name: name_of(&scope, turn.session_id).await?,
                turn,
                first_seq,
                leash,
                replayed: false,
            })
        }
        Err(EngineError::Replayed(answer)) => again(&scope, &answer).await,
        Err(error) => Err(error.into()),
    }
}

async fn again(scope: &Scope, answer: &str) -> Result<Begun, Failure> {
    let id: TurnId = serde_json::from_str(answer).map_err(Failure::internal)?;
    let found = scope.read(move |mut rows| {
        Box::pin(async move {
            match rows.session_of_turn(id).await? {
                Some(session) => rows.turn(session, id).await,
                None => Ok(None),
            }
        })
    });
    let record = found.await?.ok_or_else(|| Failure::not_found("turn"))?;
    Ok(Begun {
        session_name: name_of(scope, record.session_id).await?,
        first_seq: record.first_seq,
        turn: record.view(),
        leash: Leash::none(),
        replayed: true,
    })
}

/// The name that a client gave the session, or its id.
pub(in crate::api) async fn name_of(scope: &Scope, id: SessionId) -> Result<String, Failure> {
    let found = scope.read(move |mut rows| Box::pin(async move { rows.session(id).await }));
    let session = found.await?;
    Ok(session
        .and_then(|session| session.external_id)
        .unwrap_or_else(|| id.to_string()))
}

async fn behind(scope: &Scope, session: SessionId) -> Result<OnBusy, Failure> {
    let active = scope.read(move |mut rows| {
        Box::pin(async move {
            let active = rows
                .session_record(session)
                .await?
                .and_then(|record| record.active_turn_id);
            match active {
                Some(turn) => rows.turn(session, turn).await,
                None => Ok(None),
            }
        })
    });
    Ok(match active.await? {
        Some(turn) if turn.status == TurnStatus::Running => OnBusy::Enqueue,
        _ => OnBusy::Reject,
    })
}

/// What is kept with a turn of a surface.
pub(in crate::api) fn metadata(surface: &str, key: Option<&str>) -> Metadata {
    let mut metadata = Metadata::from([(SURFACE.to_owned(), json!(surface))]);
    metadata.extend(key.map(|key| (KEY.to_owned(), json!(key))));
    metadata
}
