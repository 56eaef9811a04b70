//! What can be done with sessions beside talking in them, as a client sees it.

mod answers;
mod append;
mod fork;
mod lists;
mod purge;
mod search;
mod transfer;

use serde_json::{Value, json};

use crate::harness::client::Client;

/// The path of a new session.
async fn session(client: &Client, new: &Value) -> String {
    let made = client.post("/v1/sessions", new).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.header("location")
}

/// A turn that is waited for.
async fn say(client: &Client, session: &str, input: &str) -> Value {
    let turn = client
        .post(&format!("{session}/turns?wait=20"), &json!({"input": input}))
        .await;
    assert_eq!(turn.status, 200, "{}", turn.body);
    turn.body
}

async fn messages(client: &Client, session: &str) -> Vec<Value> {
    list(client, &format!("{session}/messages?limit=200")).await
}

async fn list(client: &Client, path: &str) -> Vec<Value> {
    client.get(path).await.expect(200)["data"].as_array().unwrap().clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
