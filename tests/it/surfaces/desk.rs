//! A client of one surface at a time, for what every surface can do: how it asks,
//! follows, answers and finds its only turn.

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::wire::{Frame, Stream};
use crate::harness::client::Client;
use crate::harness::http::Web;

/// A user of a surface who has no session yet.
pub struct Desk<'a> {
    pub web: &'a Web,
    pub client: Client,
    pub surface: &'a str,
    pub told: &'a Value,
    /// Entries of the body beside what the surface needs.
    pub more: Value,
    pub key: Option<&'static str>,
}

pub fn tool() -> Value {
    json!({"type": "function", "function": {"name": "look_up"}})
}

impl Desk<'_> {
    /// The request that says something in the user's only session.
    pub async fn asks(&self, input: Value, stream: bool) -> RequestBuilder {
        let said = json!([{"role": "user", "content": input}]);
        let (path, mut body) = match self.surface {
            "native" => {
                let wait = if stream { "" } else { "?wait=20" };
                let path = format!("/v1/sessions/{}/turns{wait}", self.session().await);
                (path, json!({"input": input}))
            }
            "chat_completions" => (
                "/v1/chat/completions".to_owned(),
                json!({"messages": said, "stream": stream}),
            ),
            "responses" => ("/v1/responses".to_owned(), json!({"input": said, "stream": stream})),
            "runs" => ("/v1/runs".to_owned(), json!({"input": said, "session_id": "talk"})),
            "session_chat" => {
                self.session().await;
                let end = if stream { "chat/stream" } else { "chat" };
                (format!("/api/sessions/talk/{end}"), json!({"message": input}))
            }
            "ui" => (
                "/v1/ui/chat".to_owned(),
                json!({"id": "talk", "messages": [{"role": "user", "parts": parts(&input)}]}),
            ),
            other => panic!("no client of `{other}`"),
        };
        let own = body.as_object_mut().unwrap();
        own.extend(self.more.as_object().cloned().unwrap_or_default());
        let mut request = self.client.request(Method::POST, &path).json(&body);
        if stream && self.surface == "native" {
            request = request.header("accept", "text/event-stream");
        }
        if self.surface == "chat_completions" {
            request = request.header("x-hermes-session-id", "talk");
        }
        match self.key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        }
    }

    /// The session `talk`, with a tool of the client.
    pub async fn session(&self) -> String {
        let path = "/v1/sessions?external_id=talk";
        if let Some(session) = self.client.get(path).await.expect(200)["data"].get(0) {
            return session["id"].as_str().unwrap().to_owned();
        }
        let new =
            json!({"external_id": "talk", "tools": if self.more.is_null() { json!([tool()]) } else { json!([]) }});
        let made = self.client.post("/v1/sessions", &new).await.expect(201);
        made["id"].as_str().unwrap().to_owned()
    }

    /// The events of a turn that says this, if there are any.
    pub async fn streams(&self, input: &str) -> Option<Stream> {
        let request = self.asks(json!(input), true).await;
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.text().await.unwrap());
        if is_stream(&response) {
            return Some(Stream::of(response));
        }
        let path = match self.surface {
            "runs" => self.filled("/v1/runs/{run_id}/events").await,
            _ => return None,
        };
        Some(self.client.get_stream(&path).await)
    }

    pub async fn turn(&self) -> Value {
        for _ in 0..2_000 {
            let sessions = self.client.get("/v1/sessions").await.expect(200);
            if let Some(session) = sessions["data"].get(0) {
                let path = format!("/v1/sessions/{}/turns", session["id"].as_str().unwrap());
                if let Some(turn) = self.client.get(&path).await.expect(200)["data"].get(0) {
                    return turn.clone();
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("no turn begins");
    }

    /// The turn once it is over.
    pub async fn over(&self) -> Value {
        let turn = self.turn().await;
        let path = format!(
            "/v1/sessions/{}/turns/{}",
            turn["session_id"].as_str().unwrap(),
            turn["id"].as_str().unwrap()
        );
        let stream = self.client.request(Method::GET, &format!("{path}/stream"));
        self.web.stream(stream).await.rest().await;
        self.client.get(&path).await.expect(200)
    }

    /// The id of what the turn waits for.
    pub async fn required(&self) -> String {
        let path = format!("/v1/sessions/{}", self.turn().await["session_id"].as_str().unwrap());
        for _ in 0..2_000 {
            let session = self.client.get(&path).await.expect(200);
            if let Some(action) = session["required_actions"].get(0) {
                return action["id"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("the turn waits for nothing");
    }

    pub async fn transcript(&self) -> String {
        let turn = self.turn().await;
        let path = format!("/v1/sessions/{}/messages", turn["session_id"].as_str().unwrap());
        self.client.get(&path).await.expect(200)["data"].to_string()
    }

    /// A path with the ids of the user's only turn.
    pub async fn filled(&self, path: &str) -> String {
        let turn = self.turn().await;
        let id = turn["id"].as_str().unwrap();
        let digits = id.trim_start_matches("turn_");
        path.replace("{session_id}", turn["session_id"].as_str().unwrap())
            .replace("{turn_id}", id)
            .replace("{run_id}", &format!("run_{digits}"))
            .replace("{response_id}", &format!("resp_{digits}"))
            .replace("{chat_id}", "talk")
    }

    /// Sends to the place that the document names; whether it was taken.
    pub async fn sends(&self, what: &str, (name, id): (&str, &str), body: &Value) -> bool {
        let path = self.filled(self.told[what].as_str().unwrap()).await;
        let path = path.replace(&format!("{{{name}}}"), id);
        let sent = self
            .client
            .request(Method::POST, &path)
            .json(body)
            .send()
            .await
            .unwrap();
        sent.status().is_success()
    }

    /// A message of the page that carries a part of a tool.
    pub fn page(part: &Value) -> Value {
        json!({"id": "talk", "messages": [{"role": "assistant", "id": "m1", "parts": [part]}]})
    }

    pub fn decision(&self, approval: &str, choice: &str) -> Value {
        let approve = choice != "deny";
        match self.surface {
            "native" => json!({"choice": choice}),
            "responses" => json!({"input": [{"type": "mcp_approval_response", "approval_request_id": approval,
                "approve": approve, "hermes": {"choice": choice}}]}),
            "ui" => {
                let mut body = Self::page(&json!({"type": "dynamic-tool", "state": "approval-responded",
                    "approval": {"id": approval, "approved": approve}}));
                body["choices"] = json!({approval: choice});
                body
            }
            _ => json!({"choice": choice, "approval_id": approval}),
        }
    }

    /// What is given for a call, to a question or as a result.
    pub fn given(&self, call: &str, text: &str, is_answer: bool) -> Value {
        match (self.surface, is_answer) {
            ("responses", _) => {
                json!({"input": [{"type": "function_call_output", "call_id": call, "output": text}]})
            }
            ("ui", _) => Self::page(&json!({"type": "dynamic-tool", "toolCallId": call,
                "state": "output-available", "output": text})),
            (_, true) => json!({"answer": text}),
            (_, false) => json!({"results": [{"tool_call_id": call, "output": text}]}),
        }
    }
}

pub fn parts(input: &Value) -> Value {
    match input {
        Value::String(text) => json!([{"type": "text", "text": text}]),
        _ => json!([{"type": "text", "text": input[0]["text"]},
            {"type": "file", "mediaType": "image/png", "url": input[1]["image_url"]["url"]}]),
    }
}

pub fn is_stream(response: &Response) -> bool {
    response.headers()["content-type"]
        .to_str()
        .unwrap()
        .starts_with("text/event-stream")
}

/// The first id with this prefix.
pub fn id(frame: &Frame, prefix: &str) -> Option<String> {
    let start = frame.data.find(&format!("\"{prefix}_"))? + 1;
    let rest = &frame.data[start..];
    Some(rest[..rest.find('"')?].to_owned())
}

/// The id that a client comes back behind.
pub fn place(frame: &Frame) -> Option<String> {
    let number = serde_json::from_str::<Value>(&frame.data).ok()?["sequence_number"].as_i64();
    frame.id.clone().or(number.map(|number| number.to_string()))
}
