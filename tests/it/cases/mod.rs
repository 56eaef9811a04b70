//! Public reports of users of such servers, as tests named after their ids.
//! `table` says of every report which test answers it, or why none does yet.

mod approvals;
mod backends;
mod limits;
mod providers;
mod reliability;
mod sessions;
mod streaming;
mod table;
mod tenancy;

use serde_json::{Value, json};

use crate::api_rest::{Talk, decision_of};
use crate::harness::PATIENCE;
use crate::harness::http::{Web, WireFrame};
use crate::harness::script::terminal;

/// A session of the owner, followed from its first event.
pub(crate) async fn talk(web: &Web, settings: Value) -> Talk {
    Talk::new(web, &web.owner().await, &settings).await
}

/// A directive that runs a command once the test lets it go.
fn held(command: &str) -> String {
    terminal(&format!("until [ -e go ]; do sleep 0.02; done; {command}"))
}

/// Lets the held command of a session go.
fn let_go(web: &Web, session: &str) {
    let workspace = web.server.workspace(session.parse().unwrap());
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("go"), "").unwrap();
}

/// Polls the turn at a path until `is_there`, without any stream.
async fn polled(talk: &Talk, turn: &str, is_there: impl Fn(&Value) -> bool) -> Value {
    let found = async {
        loop {
            let turn = talk.client.get(turn).await.expect(200);
            if is_there(&turn) {
                return turn;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .expect("the turn gets there")
}

async fn reached(talk: &Talk, turn: &str, status: &str) -> Value {
    polled(talk, turn, |turn| turn["status"] == status).await
}

/// The turn at a path once it has ended, looked at without any stream.
pub(crate) async fn ended(talk: &Talk, turn: &str) -> Value {
    polled(talk, turn, |turn| turn["finished_at"].is_string()).await
}

async fn decide(talk: &Talk, approval: &Value, choice: &str) {
    talk.client
        .post(&decision_of(approval), &json!({"choice": choice}))
        .await
        .expect(200);
}

pub(crate) async fn messages(talk: &Talk) -> Vec<Value> {
    let page = talk.client.get(&talk.path("/messages?limit=200")).await.expect(200);
    page["data"].as_array().unwrap().clone()
}

/// Durable events of the session so far, as pages give them.
pub(crate) async fn events(talk: &Talk) -> Vec<Value> {
    let page = talk.client.get(&talk.path("/events?limit=200")).await.expect(200);
    assert_eq!(page["has_more"], false);
    page["data"].as_array().unwrap().clone()
}

pub(crate) fn count(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["type"] == name).count()
}

/// The text of a message.
pub(crate) fn text(message: &Value) -> &str {
    message["content"][0]["text"].as_str().unwrap_or_default()
}

/// The results that the model was given, in order.
pub(crate) fn results(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(text)
        .collect()
}

/// The frames that stand for rows of the log.
fn durable(frames: &[WireFrame]) -> Vec<WireFrame> {
    let live = |frame: &&WireFrame| {
        frame.event.ends_with("delta")
            || ["message.started", "heartbeat", "stream.hello"].contains(&frame.event.as_str())
    };
    frames.iter().filter(|frame| !live(frame)).cloned().collect()
}

fn ends_turn(event: &str) -> bool {
    ["turn.completed", "turn.failed", "turn.cancelled"].contains(&event)
}
