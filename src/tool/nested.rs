//! Calls that a running tool makes of others. The tool only asks; whoever runs
//! the turn records the call, has it judged and run as any other, and says how it
//! stands.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::model::id::CallId;

/// The agent-loop tools of Hermes, which answer nobody but the model.
pub const LOOP_TOOLS: [&str; 4] = ["todo", "memory", "session_search", "delegate_task"];

/// What a tool that makes calls is given.
#[derive(Clone, Debug)]
pub struct Nest {
    /// Names of the tools that the session has.
    pub tools: Vec<String>,
    asks: mpsc::Sender<Asked>,
}

/// A call that is wanted.
#[derive(Debug)]
pub struct Asked {
    pub parent: CallId,
    pub name: String,
    pub arguments: Map<String, Value>,
    /// Fires when nobody waits for it any more.
    pub cancel: CancellationToken,
    pub told: watch::Sender<Standing>,
}

/// How a call stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is on its way.
    Begun,
    /// A person is asked.
    Asking,
    /// Its result is stored.
    Settled(Arc<str>),
}

impl Nest {
    /// One for the tools of a session, and where its questions come out.
    pub fn new(tools: Vec<String>, asks: mpsc::Sender<Asked>) -> Self {
        Self { tools, asks }
    }

    /// Asks for a call. The receiver ends without a result where the turn is
    /// stopped first.
    pub async fn call(
        &self,
        parent: CallId,
        name: &str,
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> watch::Receiver<Standing> {
        let (told, hears) = watch::channel(Standing::Begun);
        let asked = Asked {
            parent,
            name: name.to_owned(),
            arguments,
            cancel,
            told,
        };
        // Nobody takes questions any more: the receiver ends at once.
        let _gone = self.asks.send(asked).await;
        hears
    }
}
