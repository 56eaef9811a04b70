//! Lines for the demo model, a person's answers, and the checks that every transcript and log must
//! pass whatever happened.

use std::collections::HashMap;

use hermes_server::model::approval::Choice;
use hermes_server::model::event::{Event, EventBody};
use hermes_server::model::id::TurnId;
use hermes_server::model::message::{Message, Role};
use hermes_server::turn::requests::AnswerRequest;

/// An answer to an approval that says nothing more.
pub fn answer(choice: Choice) -> AnswerRequest {
    AnswerRequest {
        choice,
        digest: None,
        reason: None,
        stop_turn: false,
        arguments: None,
        grant: None,
        by: "tester".to_owned(),
    }
}

/// A directive that runs a command.
pub fn terminal(command: &str) -> String {
    format!("/tool terminal {}", serde_json::json!({ "command": command }))
}

/// A command that leaves one line in a file of the workspace each time it runs.
pub fn mark(name: &str) -> String {
    terminal(&format!("echo ran >> {name}"))
}

/// A command that needs an approval and leaves a line when it runs.
pub fn guarded(name: &str) -> String {
    terminal(&format!("rm -rf never-there && echo ran >> {name}"))
}

/// Every call has exactly one result, in order, right after its message.
pub fn check_transcript(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message.role {
            Role::Tool => {
                assert!(!open.is_empty(), "a result without a call: {message:?}");
                let expected = open.remove(0);
                assert_eq!(
                    message.tool_call_id.unwrap().to_string(),
                    expected,
                    "results in call order"
                );
            }
            _ => {
                assert!(open.is_empty(), "calls without results: {open:?}");
                open = message.tool_calls.iter().map(|call| call.id.to_string()).collect();
            }
        }
    }
    assert!(open.is_empty(), "calls without results at the end: {open:?}");
}

/// Numbers are gapless, and each turn has exactly one terminal event, its last.
pub fn check_log(log: &[Event]) {
    for (event, seq) in log.iter().zip(1..) {
        assert_eq!(event.seq, seq, "gapless");
    }
    let mut ended: HashMap<TurnId, i64> = HashMap::new();
    for event in log {
        let Some(turn) = event.turn_id else { continue };
        assert!(!ended.contains_key(&turn), "an event after the turn's end: {event:?}");
        if is_terminal(&event.body) {
            ended.insert(turn, event.seq);
        }
    }
}

pub fn is_terminal(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::TurnCompleted(_)
            | EventBody::TurnFailed(_)
            | EventBody::TurnCancelled(_)
            | EventBody::TurnInterrupted(_)
            | EventBody::TurnRolledBack(_)
    )
}

pub fn terminal_events(log: &[Event]) -> usize {
    log.iter().filter(|event| is_terminal(&event.body)).count()
}
