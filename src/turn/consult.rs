//! Calls of programs before they are stored: hooks are asked and commands
//! are scanned here, while the turn's owner goes on with what else runs.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::engine::Engine;
use super::owner::Owned;
use crate::model::id::CallId;
use crate::tool::coerce;
use crate::tool::hook::{Before, Subject};
use crate::tool::nested::Asked;
use crate::tool::session_tools::SessionTools;

/// A call that is wanted, with what hooks made of it.
pub(super) struct Wanted {
    pub call_id: CallId,
    pub asked: Asked,
    pub before: Before,
}

/// What comes of a wanted call; nothing where its program is gone first.
pub(super) type Consulted = BoxFuture<'static, Option<Wanted>>;

pub(super) fn consult(engine: &Engine, owned: &Owned, asked: Asked) -> Consulted {
    let (engine, state) = (engine.clone(), &owned.state);
    let call_id = CallId::new(engine.clock());
    let subject = Subject {
        tenant_id: owned.tenant,
        session_id: state.session.session_id,
        turn_id: Some(state.turn.turn_id),
        call_id: Some(call_id),
        answer_id: state.call(asked.parent).map(|parent| parent.message_id),
        parent_call_id: Some(asked.parent),
    };
    let tools = engine.scene(&state.session, &state.turn).tools;
    async move {
        let gone = asked.cancel.clone();
        let seen = async {
            let before = before(&engine, &tools, subject, &asked).await;
            let arguments = before.arguments.as_ref().unwrap_or(&asked.arguments);
            if let Some(command) = arguments.get("command").and_then(Value::as_str) {
                engine.host().scan(command).await;
            }
            before
        };
        let before = tokio::select! {
            before = seen => before,
            () = gone.cancelled() => return None,
        };
        Some(Wanted { call_id, asked, before })
    }
    .boxed()
}

/// A call that cannot run anyway is shown to nobody.
async fn before(engine: &Engine, tools: &SessionTools, subject: Subject, asked: &Asked) -> Before {
    let hooks = engine.hooks();
    let parameters = tools.parameters(&asked.name).filter(|_| hooks.ask_before());
    let Some(parameters) = parameters else {
        return Before::default();
    };
    let arguments: Map<String, Value> = coerce::coerce(&parameters, asked.arguments.clone());
    match super::step::missing_argument(&parameters, &arguments) {
        Some(_) => Before::default(),
        None => hooks.before_call(subject, &asked.name, &arguments).await,
    }
}
