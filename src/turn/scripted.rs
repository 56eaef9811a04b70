//! The script of a job's run: its turn begins with a call that the server makes in
//! the model's place. Where the job has no agent the call's output is the answer
//! too, and no model is asked at all. The call is judged, stored and run like any
//! other: the text of a shell script is the command, so that the guard reads what
//! runs.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::engine::Engine;
use super::owner::Owned;
use crate::environment::Parents;
use crate::model::message::text_of;
use crate::model::record::{CallRecord, LastAnswer, MessageRecord, TurnRecord};
use crate::model::turn::RunScript;
use crate::provider::{Answer, Call, Finish};
use crate::store::StoreError;

/// Above this the guard would not read it to the end.
const MAX_SCRIPT_BYTES: u64 = 64 * 1024;

/// What the call of a script is named by.
const CALL: &str = "script";

/// How long a call may take because it is a script.
pub(super) fn time(engine: &Engine, turn: &TurnRecord, call: &CallRecord) -> Option<Duration> {
    let is_script = turn.options.script.is_some() && call.nested.is_none() && call.provider_id == CALL;
    is_script.then_some(engine.settings().job_script_timeout)
}

/// The answer of this step, where no model has to be asked for it.
pub(super) async fn answer(engine: &Engine, owned: &Owned) -> Option<Result<Answer, StoreError>> {
    let turn = &owned.state.turn;
    let script = turn.options.script.as_ref()?;
    match turn.progress.last {
        LastAnswer::None => Some(Ok(call(engine, owned, script).await)),
        LastAnswer::Calls if script.alone => Some(output(owned).await.map(words)),
        _ => None,
    }
}

async fn call(engine: &Engine, owned: &Owned, script: &RunScript) -> Answer {
    match command(engine, owned, script).await {
        Ok(command) => Answer {
            calls: vec![Call {
                id: CALL.to_owned(),
                name: "terminal".to_owned(),
                arguments: json!({"command": command}).to_string(),
            }],
            finish: Finish::ToolCalls,
            ..words(String::new())
        },
        Err(why) => words(format!("The script {:?} cannot be run: {why}.", script.file)),
    }
}

/// A shell's script is a command as it stands; Python's is a file beside the
/// workspace, which Python runs.
async fn command(engine: &Engine, owned: &Owned, script: &RunScript) -> Result<String, String> {
    let (host, tenant) = (engine.host(), owned.tenant);
    let text = host.script(tenant, script.file.clone(), MAX_SCRIPT_BYTES).await;
    let text = text.map_err(|error| error.to_string())?;
    if !script.file.ends_with(".py") {
        return Ok(text);
    }
    let workspace = host.workspace(tenant, owned.state.session.session_id).await;
    let workspace = workspace.map_err(|error| error.to_string())?;
    let path = workspace.tmp().join("job_script.py");
    let written = workspace.write_atomic(&path, text.into_bytes(), Parents::Create).await;
    written.map_err(|error| error.to_string())?;
    let quoted = path.to_string_lossy().replace('\'', r"'\''");
    Ok(format!("python3 '{quoted}'"))
}

/// What the script printed, as the answer of its run.
async fn output(owned: &Owned) -> Result<String, StoreError> {
    let (session, turn) = (owned.state.session.session_id, owned.state.turn.turn_id);
    let read = owned
        .scope
        .read(move |mut rows| Box::pin(async move { rows.transcript_for(session, turn).await }));
    let said: Vec<MessageRecord> = read.await?.map(|(_, said, _)| said).unwrap_or_default();
    let result = said.last().map(|message| text_of(&message.content)).unwrap_or_default();
    Ok(told(&result))
}

/// What is read of a result of `terminal`.
#[derive(Deserialize)]
struct Printed {
    #[serde(default)]
    output: String,
    #[serde(default)]
    exit_code: i64,
    error: Option<String>,
}

fn told(result: &str) -> String {
    let Ok(Printed {
        output,
        exit_code,
        error,
    }) = serde_json::from_str(result)
    else {
        return result.to_owned();
    };
    match (error.filter(|error| !error.is_empty()), exit_code, output.trim()) {
        (Some(error), ..) => format!("The script did not run: {error}"),
        (None, 0, "") => "[SILENT]".to_owned(),
        (None, 0, printed) => printed.to_owned(),
        (None, code, printed) => format!("The script ended with exit code {code}.\n{printed}")
            .trim_end()
            .to_owned(),
    }
}

fn words(text: String) -> Answer {
    Answer {
        text,
        reasoning: String::new(),
        calls: Vec::new(),
        finish: Finish::Stop,
        usage: None,
        response_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_prints_is_the_answer_and_nothing_is_silence() {
        let told =
            |output: &str, code: i64| told(&json!({"output": output, "exit_code": code, "error": null}).to_string());
        assert_eq!(told("it rains\n", 0), "it rains");
        assert_eq!(told(" \n", 0), "[SILENT]");
        assert_eq!(told("no route", 2), "The script ended with exit code 2.\nno route");
        let refused = json!({"output": "", "exit_code": -1, "error": "denied", "status": "blocked"});
        assert_eq!(super::told(&refused.to_string()), "The script did not run: denied");
    }
}
