//! Running one call to a result the model can be shown: a tool that panics is a
//! failed call, and a result too long for the model is stored in the session's
//! temporary files and stands there as a preview.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use serde_json::{Map, Value};

use super::budget::{self, Budget};
use super::hook::After;
use super::readings::LONG;
use super::registry::{Entry, Source};
use super::{Call, Done, Host, error_text, untrusted};
use crate::base::aside;
use crate::environment::Parents;
use crate::guard::redact::{Mode, redact};
use crate::guard::threat::{self, Level, Risk};
use crate::model::artifact::Kept;
use crate::model::call::Effect;
use crate::model::id::{CallId, SessionId, TenantId};

/// Beneath the session's temporary directory.
const DIRECTORY: &str = "hermes-results";

/// Who reads a result, and so how long it may be.
#[derive(Clone, Copy, Debug)]
pub enum Reader {
    Model(Budget),
    /// A program that made the call: what it does not print nobody else sees.
    Program,
}

/// The most that a program reads of one result; its requests have the same bound.
const PROGRAM_BYTES: usize = 16 << 20;

impl Reader {
    fn is_too_long(&self, tool: &Entry, result: &str) -> bool {
        match self {
            Self::Model(budget) => budget.threshold(tool.result_limit()) < result.chars().count(),
            Self::Program => PROGRAM_BYTES < result.len(),
        }
    }
}

/// Runs the call and brings its result under the bound of its reader.
pub async fn run(tool: Arc<Entry>, call: Call, reader: Reader, mut after: Option<After>) -> Done {
    let shelf = Shelf {
        host: Arc::clone(&call.host),
        tenant: call.tenant_id,
        session: call.session_id,
        call: call.call_id,
    };
    let cancel = call.cancel.clone();
    let running = caught(Arc::clone(&tool), call);
    let done = match &mut after {
        Some(after) => after.around(tool.name(), cancel, Box::pin(running)).await,
        None => running.await,
    };
    finish(&tool, done, (&shelf, &reader), after).await
}

/// Runs the tool; one that panics is a call that failed.
async fn caught(tool: Arc<Entry>, call: Call) -> Done {
    let (effect, id) = (tool.effect(&call.arguments), call.call_id);
    let running = Arc::clone(&tool);
    let started = AssertUnwindSafe(async move { running.run(call).await });
    started.catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(tool = tool.name(), call = %id, "a tool panicked");
        let text = format!("Error executing {}: it stopped unexpectedly", tool.name());
        Done {
            // What it did before is not known.
            survived: effect == Effect::Write,
            ..Done::failure(error_text::envelope(&error_text::sanitise(&text)))
        }
    })
}

/// From what the tool gave back to what the model is shown: secrets masked, the
/// words of strangers marked, and no longer than it may be.
async fn finish(tool: &Entry, mut done: Done, (shelf, reader): (&Shelf, &Reader), after: Option<After>) -> Done {
    done.result = shelf.host.known().mask(&done.result);
    // What is part of the binary knows what of its results is text of a file, of
    // a terminal or its own, and masks it so; what went wrong may quote what it
    // was done with.
    if done.failed || matches!(tool.source(), Source::Loaded(_)) {
        done.result = mask(&done.result);
    }
    if let Some(after) = after
        && let Some(text) = after.changed(tool.name(), &done).await
    {
        // It stands for the whole result.
        (done.result, done.images) = (text, Vec::new());
    }
    // Before it is shortened: what is stored whole can be read as well.
    let risk = tool.is_untrusted().then(|| scanned(&done.result)).flatten();
    if reader.is_too_long(tool, &done.result) {
        let (shown, kept) = shelf.shorten(&done.result).await;
        done.result = shown;
        done.writes.artifacts.push(kept);
    }
    if tool.is_untrusted() {
        done.result = untrusted::fenced(tool.name(), std::mem::take(&mut done.result), risk.as_ref());
    }
    done.writes.risk = risk;
    done
}

/// What a scan finds in the words of strangers. Of a long text that takes its time.
fn scanned(text: &str) -> Option<Risk> {
    let risk = aside::work(LONG < text.len(), || threat::risk(text));
    (risk.risk == Level::High).then_some(risk)
}

/// Masks the texts within JSON, so that it stays JSON.
fn mask(result: &str) -> String {
    match serde_json::from_str::<Value>(result) {
        Ok(mut value @ (Value::Object(_) | Value::Array(_))) => {
            mask_within(&mut value);
            value.to_string()
        }
        _ => redact(result, Mode::Code),
    }
}

fn mask_within(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact(text, Mode::Code),
        Value::Array(items) => items.iter_mut().for_each(mask_within),
        Value::Object(fields) => fields.values_mut().for_each(mask_within),
        _ => {}
    }
}

/// Where a session's results are stored whole, as the model names them.
pub fn results_directory(host: &Host, tenant: TenantId, session: SessionId) -> PathBuf {
    let workspace = host.workspace_path(tenant, session);
    workspace.with_file_name("tmp").join(DIRECTORY)
}

/// Stores the whole text of a call's result where the model can read it.
pub async fn store(host: &Arc<Host>, tenant: TenantId, session: SessionId, call: CallId, text: &str) -> Kept {
    let host = Arc::clone(host);
    let shelf = Shelf {
        host,
        tenant,
        session,
        call,
    };
    // That it could not be stored is logged; the artifact has it.
    shelf.put(text).await;
    Kept::result(shelf.name(), text.to_owned())
}

/// Stores a text whole beside the results of calls, under a name of its own; the
/// path where the model can read it, if it could be written.
pub async fn shelve(
    host: &Host,
    (tenant, session): (TenantId, SessionId),
    name: String,
    text: String,
) -> (Kept, Option<PathBuf>) {
    let path = results_directory(host, tenant, session).join(&name);
    let written = async {
        let workspace = host.workspace(tenant, session).await.ok()?;
        let written = workspace.write_atomic(&path, text.clone().into_bytes(), Parents::Create);
        written.await.ok()
    };
    let is_written = written.await.is_some();
    (Kept::result(name, text), is_written.then_some(path))
}

/// Where the results of one call can be stored.
struct Shelf {
    host: Arc<Host>,
    tenant: TenantId,
    session: SessionId,
    call: CallId,
}

impl Shelf {
    /// Of an object whose text makes it long, the text alone is stored: the
    /// lines of a file can be read in parts, one line of JSON cannot.
    async fn shorten(&self, result: &str) -> (String, Kept) {
        if let Ok(Value::Object(mut fields)) = serde_json::from_str(result)
            && let Some(text) = longest_text(&mut fields)
            && result.len() < 2 * text.len()
        {
            let kept = Kept::result(self.name(), text.clone());
            *text = self.put(text).await;
            return (Value::Object(fields).to_string(), kept);
        }
        (self.put(result).await, Kept::result(self.name(), result.to_owned()))
    }

    fn name(&self) -> String {
        budget::file_name(&self.call.to_string())
    }

    /// Stores a text; what the model reads in its place comes back.
    async fn put(&self, text: &str) -> String {
        let Ok(workspace) = self.host.workspace(self.tenant, self.session).await else {
            return budget::unstored_text(text);
        };
        let path = workspace.tmp().join(DIRECTORY).join(self.name());
        let written = workspace.write_atomic(&path, text.as_bytes().to_vec(), Parents::Create);
        match written.await {
            Ok(()) => budget::stored_text(text, &path.to_string_lossy()),
            Err(error) => {
                tracing::warn!(%error, call = %self.call, "a long result could not be stored");
                budget::unstored_text(text)
            }
        }
    }
}

fn longest_text(fields: &mut Map<String, Value>) -> Option<&mut String> {
    let texts = fields.values_mut().filter_map(|value| match value {
        Value::String(text) => Some(text),
        _ => None,
    });
    texts.max_by_key(|text| text.len())
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use serde_json::json;

    use super::*;
    use crate::model::call::Footprint;
    use crate::tool::budget::{ResultLimit, STORED_TAG};
    use crate::tool::testing::Bench;
    use crate::tool::{Place, Spec, Tool};

    /// Answers with its argument `result`; panics without one.
    struct Echo;

    impl Tool for Echo {
        fn spec(&self) -> Spec {
            Spec {
                name: "echo",
                toolset: "test",
                emoji: "",
                description: "",
                requires_env: &[],
                result_limit: ResultLimit::Chars(3_000),
            }
        }

        fn parameters(&self) -> Value {
            json!({"type": "object"})
        }

        fn example(&self) -> Value {
            json!({})
        }

        fn effect(&self, _: &Value) -> Effect {
            Effect::Write
        }

        fn footprint(&self, _: &Value, _: &Place<'_>) -> Footprint {
            Footprint::Parallel
        }

        fn subject(&self, _: &Value) -> String {
            String::new()
        }

        fn run(&self, call: Call) -> BoxFuture<'static, Done> {
            Box::pin(async move {
                Done {
                    result: call.arguments["result"].as_str().unwrap().to_owned(),
                    ..Done::default()
                }
            })
        }
    }

    async fn echo(bench: &Bench, result: &str) -> String {
        let call = bench.call(json!({"result": result}));
        let reader = Reader::Model(Budget::default());
        run(Entry::built_in(&Echo).unwrap(), call, reader, None).await.result
    }

    fn stored(shown: &str) -> String {
        let path = shown
            .lines()
            .find_map(|line| line.strip_prefix("Full output saved to: "))
            .unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    #[tokio::test]
    async fn a_result_that_fits_stays_as_it_is() {
        let bench = Bench::new().await;
        let text = "x".repeat(3_000);
        assert_eq!(echo(&bench, &text).await, text);
    }

    #[tokio::test]
    async fn a_long_result_is_stored_where_the_session_can_read_it() {
        let bench = Bench::new().await;
        let text = "a line\n".repeat(1_000);
        let shown = echo(&bench, &text).await;
        assert!(shown.starts_with(STORED_TAG) && shown.len() < 2_500);
        assert_eq!(stored(&shown), text);
        assert!(shown.contains(bench.workspace().await.tmp().to_str().unwrap()));
    }

    #[tokio::test]
    async fn of_an_object_only_its_long_text_is_stored() {
        let bench = Bench::new().await;
        let text = "a line\n".repeat(1_000);
        let shown = echo(
            &bench,
            &json!({"output": text, "exit_code": 3, "error": null}).to_string(),
        )
        .await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["exit_code"], 3);
        assert_eq!(stored(shown["output"].as_str().unwrap()), text);
    }

    #[tokio::test]
    async fn a_tool_that_panics_is_a_failed_call() {
        let bench = Bench::new().await;
        let done = run(
            Entry::built_in(&Echo).unwrap(),
            bench.call(json!({})),
            Reader::Model(Budget::default()),
            None,
        )
        .await;
        assert!(done.failed && done.survived);
        assert!(
            done.result.contains("[TOOL_ERROR] Error executing echo"),
            "{}",
            done.result
        );
    }
}
