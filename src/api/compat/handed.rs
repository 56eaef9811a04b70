//! Calls that somebody else carries out: the client that brought their tool, or a
//! person whom the model asks. Which of a turn's are out, how they are shown, and
//! what is given for them: results and answers alike are outputs of a call.

use serde_json::{Value, json};

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::state::ApiState;
use crate::model::call::{CallStatus, Execution, ToolCall};
use crate::model::id::{CallId, SessionId, TurnId};
use crate::model::message::Message;
use crate::model::question::Question;
use crate::store::{Once, Story};
use crate::turn::step::ClientResult;

use super::question::seconds;
use super::story;

/// What the model is shown of any result at once.
const MAX_OUTPUT_CHARS: usize = 100_000;

/// What came of a call, as a client gives it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::api) struct Output {
    pub call: String,
    pub text: String,
    pub is_error: bool,
}

/// Where the turn goes on behind what was given.
pub(in crate::api) struct Given {
    pub session: SessionId,
    pub turn: TurnId,
    /// The number of the event before the first result.
    pub after: i64,
    pub replayed: bool,
}

/// Somebody else carries it out.
pub(in crate::api) fn is_elsewhere(call: &ToolCall) -> bool {
    matches!(call.execution, Execution::Client | Execution::Person)
}

/// Whoever carries it out has it and gave nothing yet.
pub(in crate::api) fn is_out(call: &ToolCall) -> bool {
    is_elsewhere(call) && call.status == CallStatus::Waiting && call.started_at.is_some()
}

/// The calls of a turn that are out.
pub(in crate::api) fn out(messages: &[Message]) -> Vec<&ToolCall> {
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    calls.filter(|call| is_out(call)).collect()
}

/// A call that waits for its client, as these surfaces show it.
pub(in crate::api) fn client_call(session: SessionId, call: &ToolCall) -> Value {
    json!({"tool_call_id": call.id, "tool": call.name, "arguments": call.arguments, "execution": call.execution,
        "href": format!("/v1/sessions/{session}/tool-results")})
}

/// The calls of a story that wait for its client.
pub(in crate::api) fn client_calls(story: &Story) -> Vec<Value> {
    let calls = out(&story.messages).into_iter();
    let own = calls.filter(|call| call.execution == Execution::Client);
    own.map(|call| client_call(story.session.id, call)).collect()
}

/// A question of the model, under all names that clients look for.
pub(in crate::api) fn question(question: &Question) -> Value {
    json!({"question_id": question.id, "clarification_id": question.id, "request_id": question.id,
        "question": question.question, "choices": question.choices, "status": question.status,
        "tool_call_id": question.tool_call_id, "expires_at": question.expires_at.map(seconds),
        "answer": question.answer.as_ref().map(|answer| &answer.text),
        "href": format!("/v1/questions/{}/answer", question.id)})
}

/// Gives calls their outputs. All that are out have to get one, since the model
/// is asked only then.
pub(in crate::api) async fn give(
    state: &ApiState,
    caller: &Caller,
    outputs: Vec<Output>,
    once: Option<Once>,
) -> Result<Given, Failure> {
    let calls = named(&outputs)?;
    let (story, turn) = found(caller, &calls).await?;
    let missing = out(&story.messages).into_iter().find(|call| !calls.contains(&call.id));
    if let Some(call) = missing {
        let detail = format!(
            "no output of the call `{}` is among them, which waits for one too",
            call.id
        );
        return Err(Failure::field("/input", detail).known_as("missing_tool_output"));
    }
    let session = story.session.id;
    let is_asked = |id: &CallId| {
        story
            .messages
            .iter()
            .flat_map(|message| &message.tool_calls)
            .any(|call| call.id == *id && call.execution == Execution::Person)
    };
    let (answers, results): (Vec<_>, Vec<_>) = calls.iter().copied().zip(outputs).partition(|(id, _)| is_asked(id));
    let mut replayed = false;
    let mut once = once;
    if !results.is_empty() {
        replayed |= carried_out(state, caller, session, results, once.take()).await?;
    }
    for (call, answer) in answers {
        replayed |= answered(state, caller, (turn, call), answer.text, once.take()).await?;
    }
    let read = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            let mut first = i64::MAX;
            for call in calls {
                first = first.min(rows.settled_at(session, call).await?.unwrap_or(i64::MAX));
            }
            Ok(first)
        })
    });
    Ok(Given {
        session,
        turn,
        after: read.await? - 1,
        replayed,
    })
}

/// The calls that the outputs name, each once.
fn named(outputs: &[Output]) -> Result<Vec<CallId>, Failure> {
    let mut calls: Vec<CallId> = Vec::new();
    for output in outputs {
        let chars = output.text.chars().count();
        if MAX_OUTPUT_CHARS < chars {
            let detail = format!("an output has {chars} characters; at most {MAX_OUTPUT_CHARS} are allowed");
            return Err(Failure::field("/input", detail));
        }
        match output.call.parse() {
            Ok(call) if calls.contains(&call) => {
                return Err(Failure::field("/input", format!("the call `{call}` has two outputs")));
            }
            Ok(call) => calls.push(call),
            Err(_) => return Err(no_such_call(&output.call)),
        }
    }
    Ok(calls)
}

fn no_such_call(call: &str) -> Failure {
    let shown = crate::base::text::first_chars(call, 100);
    Failure::field(
        "/input",
        format!("there is no call `{shown}` that this could be the output of"),
    )
    .known_as("tool_call_not_found")
}

/// The one turn that made all of the calls.
async fn found(caller: &Caller, calls: &[CallId]) -> Result<(Story, TurnId), Failure> {
    let asked = calls.to_vec();
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.turns_of_calls(&asked).await }));
    let turns = read.await?;
    if let Some(unknown) = calls.iter().find(|call| turns.iter().all(|(known, _)| known != *call)) {
        return Err(no_such_call(&unknown.to_string()));
    }
    let Some((_, turn)) = turns.first().copied() else {
        return Err(Failure::field("/input", "no output is among them"));
    };
    if turns.iter().any(|(_, other)| *other != turn) {
        return Err(Failure::field("/input", "the calls are of several turns"));
    }
    let story = story::read(caller, turn).await?;
    story
        .map(|story| (story, turn))
        .ok_or_else(|| Failure::not_found("turn"))
}

async fn carried_out(
    state: &ApiState,
    caller: &Caller,
    session: SessionId,
    results: Vec<(CallId, Output)>,
    once: Option<Once>,
) -> Result<bool, Failure> {
    let results = results.into_iter().map(|(call_id, output)| ClientResult {
        call_id,
        output: output.text,
        is_error: output.is_error,
    });
    let results: Vec<ClientResult> = results.collect();
    let (engine, scope) = (state.engine.clone(), caller.scope.clone().once(once));
    let done = state
        .finish_once(async move { engine.tool_results(&scope, session, results).await })
        .await?;
    Ok(done.replayed)
}

async fn answered(
    state: &ApiState,
    caller: &Caller,
    (turn, call): (TurnId, CallId),
    text: String,
    once: Option<Once>,
) -> Result<bool, Failure> {
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.questions_of_turn(turn).await }));
    let asked = read.await?.into_iter().find(|question| question.tool_call_id == call);
    let id = asked.ok_or_else(|| no_such_call(&call.to_string()))?.id;
    if text.trim().is_empty() {
        return Err(Failure::field("/input", "an answer says something"));
    }
    let (engine, scope) = (state.engine.clone(), caller.scope.clone().once(once));
    let by = caller.principal.user.clone();
    let done = state
        .finish_once(async move { engine.answer_question(&scope, id, text, by).await })
        .await?;
    Ok(done.replayed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(call: &str) -> Output {
        Output {
            call: call.to_owned(),
            text: "x".to_owned(),
            is_error: false,
        }
    }

    #[test]
    fn each_output_is_of_another_call() {
        let (first, second) = (CallId::from_bits(1).to_string(), CallId::from_bits(2).to_string());
        assert_eq!(named(&[output(&first), output(&second)]).unwrap().len(), 2);
        for wrong in [vec![output(&first), output(&first)], vec![output("call_x")]] {
            assert_eq!(named(&wrong).unwrap_err().problem().status, 400);
        }
    }
}
