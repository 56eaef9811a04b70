//! What a program asks for: read from its line, checked, handed on, answered.
//! One request at a time, as the program waits for each answer.

use std::time::Duration;

use serde_json::{Map, Value, json};
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::library;
use crate::base::Secret;
use crate::environment::line::{Line, Request};
use crate::model::id::CallId;
use crate::tool::error_text::envelope;
use crate::tool::nested::{LOOP_TOOLS, Nest, Standing};

/// Of `terminal`: what would outlive the call (Hermes).
const NOT_INSIDE: [&str; 4] = ["background", "pty", "notify_on_complete", "watch_patterns"];
/// How long a call that runs is given to end when its program is gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program's calls.
pub(super) struct Errands {
    line: Line,
    parent: CallId,
    nest: Option<Nest>,
    token: Secret,
    max_calls: u32,
    pub(super) made: u32,
    /// The program is gone.
    stop: CancellationToken,
    open: Option<watch::Receiver<Standing>>,
}

/// What moved.
pub(super) enum Moved {
    /// A person is asked: the program's time stands still.
    Asking,
    Going,
}

impl Errands {
    pub(super) fn new(
        line: Line,
        (parent, nest): (CallId, Option<Nest>),
        token: Secret,
        max_calls: u32,
        stop: CancellationToken,
    ) -> Self {
        Self {
            line,
            parent,
            nest,
            token,
            max_calls,
            made: 0,
            stop,
            open: None,
        }
    }

    /// The next thing that happens between the program and its calls. Dropping
    /// the future loses nothing.
    pub(super) async fn next(&mut self) -> Moved {
        if let Some(open) = &mut self.open {
            let ended = open.changed().await.is_err();
            let standing = open.borrow_and_update().clone();
            return match standing {
                Standing::Settled(result) => {
                    self.open = None;
                    self.answer(&result);
                    Moved::Going
                }
                _ if ended => {
                    self.open = None;
                    self.answer(&envelope("the call was not made: the turn is ending"));
                    Moved::Going
                }
                Standing::Asking => Moved::Asking,
                Standing::Begun => Moved::Going,
            };
        }
        if self.line.has_unsent() {
            if self.line.send().await.is_err() {
                std::future::pending::<()>().await;
            }
            return Moved::Going;
        }
        match self.line.next().await {
            Ok(Request::Whole(line)) => self.take(&line).await,
            Ok(Request::TooLong) => self.answer(&envelope("the request is too long")),
            // Nothing comes any more; the program ends by itself.
            Err(_) => std::future::pending().await,
        }
        Moved::Going
    }

    async fn take(&mut self, line: &[u8]) {
        let (name, arguments) = match self.checked(line) {
            Ok(asked) => asked,
            Err(refusal) => return self.answer(&refusal),
        };
        self.made += 1;
        let Some(nest) = &self.nest else { return };
        let cancel = self.stop.child_token();
        self.open = Some(nest.call(self.parent, &name, arguments, cancel).await);
    }

    /// The tool and its arguments, or the answer that is no call.
    fn checked(&self, line: &[u8]) -> Result<(String, Map<String, Value>), String> {
        let Ok(Value::Object(request)) = serde_json::from_slice(line) else {
            return Err(envelope("Invalid JSON: a request is one object on one line"));
        };
        let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
        let same = text("token").as_bytes().ct_eq(self.token.expose().as_bytes());
        if !bool::from(same) {
            return Err(envelope("Unauthorized RPC request"));
        }
        let name = text("tool");
        if LOOP_TOOLS.contains(&name) {
            return Err(envelope(&format!("{name} must be handled by the agent loop")));
        }
        let tools = self.nest.as_ref().map_or(&[][..], |nest| &nest.tools);
        let mut offered = library::offered(tools).map(|callable| callable.name);
        if !offered.any(|own| own == name) {
            let known: Vec<&str> = library::offered(tools).map(|callable| callable.name).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            let name = crate::base::text::first_chars(name, 100);
            return Err(envelope(&format!(
                "the tool `{name}` is not available in a program; available: {known}"
            )));
        }
        if self.max_calls <= self.made {
            let most = self.max_calls;
            return Err(envelope(&format!(
                "Tool call limit reached ({most}): the program may make no more calls"
            )));
        }
        let mut arguments = match request.get("args") {
            Some(Value::Object(arguments)) => arguments.clone(),
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err(envelope("`args` must be an object")),
        };
        if name == "terminal" {
            arguments.retain(|key, _| !NOT_INSIDE.contains(&key.as_str()));
        }
        Ok((name.to_owned(), arguments))
    }

    fn answer(&mut self, result: &str) {
        self.line.answer(&json!(result).to_string());
    }

    /// The program is gone. A call of it that runs is stopped and its end stored
    /// before that of the program; one that waits for a person is closed with it.
    pub(super) async fn finish(mut self, is_cancelled: bool) {
        self.stop.cancel();
        if let Some(open) = self.open.take().filter(|_| !is_cancelled) {
            let _late = tokio::time::timeout(PATIENCE, settled(open)).await;
        }
        if let Err(error) = self.line.close().await {
            tracing::debug!(%error, "a program's directory is left behind");
        }
    }
}

async fn settled(mut open: watch::Receiver<Standing>) {
    let ended = |standing: &Standing| !matches!(standing, Standing::Begun);
    // Without a sender it is over too.
    let _ended = open.wait_for(ended).await;
}
