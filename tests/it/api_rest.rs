//! The routes beside sessions and turns, as a client meets them, on both
//! databases.

mod approvals;
mod decisions;
mod edits;
mod grants;
mod keys;
mod tools;
mod usage;

use serde_json::{Value, json};

use crate::harness::client::Client;
use crate::harness::http::{Events, Web};

/// A session that a test works in, followed from its first event.
pub struct Talk {
    pub client: Client,
    pub session: String,
    pub events: Events,
}

impl Talk {
    pub async fn new(web: &Web, client: &Client, settings: &Value) -> Self {
        let made = client.post("/v1/sessions", settings).await.expect(201);
        let session = made["id"].as_str().unwrap().to_owned();
        Self {
            client: client.clone(),
            events: client.stream(web, &format!("/v1/sessions/{session}/stream")).await,
            session,
        }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}{rest}", self.session)
    }

    /// Begins a turn and gives its id.
    pub async fn say(&self, text: &str) -> String {
        let turn = self
            .client
            .post(&self.path("/turns"), &json!({"input": text}))
            .await
            .expect(202);
        turn["id"].as_str().unwrap().to_owned()
    }

    /// What the turn waits for, once it waits, in the order it was asked.
    pub async fn asked(&mut self) -> Vec<Value> {
        self.events.until("turn.waiting").await;
        let path = format!("/v1/approvals?status=pending&session_id={}", self.session);
        let mut found = self.client.get(&path).await.expect(200)["data"]
            .as_array()
            .unwrap()
            .clone();
        found.reverse();
        found
    }

    /// Begins a turn that asks once, and gives the approval.
    pub async fn ask(&mut self, script: &str) -> Value {
        self.say(script).await;
        let asked = self.asked().await;
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked[0].clone()
    }
}

/// The path at which an approval is answered.
pub fn decision_of(approval: &Value) -> String {
    format!("/v1/approvals/{}/decision", approval["id"].as_str().unwrap())
}
