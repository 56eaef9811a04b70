//! One suite of scenarios through every surface: what came of a turn, what is in
//! its transcript and what is in its log are the same, whoever asked.

use hermes_server::model::principal::Scope;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::wire::Stream;
use crate::harness::client::{Client, NewKey};
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;
use crate::harness::script::{guarded, mark};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Surface {
    Native,
    NativeUi,
    Chat,
    ChatStream,
    Responses,
    ResponsesStream,
    Background,
    Runs,
    SessionChat,
    SessionChatStream,
    Ui,
}

use Surface::*;

const ALL: [Surface; 11] = [
    Native,
    NativeUi,
    Chat,
    ChatStream,
    Responses,
    ResponsesStream,
    Background,
    Runs,
    SessionChat,
    SessionChatStream,
    Ui,
];

/// What a scenario leaves, without what differs from turn to turn.
#[derive(Debug, PartialEq)]
struct Left {
    outcome: Value,
    transcript: Vec<Value>,
    log: Vec<String>,
}

impl Surface {
    /// The request that begins a turn of its own session, `talk` where the client
    /// names it.
    async fn asks(self, client: &Client, talk: &str, text: &str) -> RequestBuilder {
        let messages = json!([{"role": "user", "content": text}]);
        let (path, body) = match self {
            Native | NativeUi => {
                let session = client.post("/v1/sessions", &json!({})).await.expect(201)["id"].clone();
                (
                    format!("/v1/sessions/{}/turns", session.as_str().unwrap()),
                    json!({"input": text}),
                )
            }
            Chat => ("/v1/chat/completions".to_owned(), json!({"messages": messages})),
            ChatStream => (
                "/v1/chat/completions".to_owned(),
                json!({"messages": messages, "stream": true}),
            ),
            Responses => ("/v1/responses".to_owned(), json!({"input": text})),
            ResponsesStream => ("/v1/responses".to_owned(), json!({"input": text, "stream": true})),
            Background => ("/v1/responses".to_owned(), json!({"input": text, "background": true})),
            Runs => ("/v1/runs".to_owned(), json!({"input": text})),
            SessionChat | SessionChatStream => {
                client.post("/api/sessions", &json!({"id": talk})).await.expect(201);
                let end = if self == SessionChat { "chat" } else { "chat/stream" };
                (format!("/api/sessions/{talk}/{end}"), json!({"message": text}))
            }
            Ui => {
                let said = json!([{"role": "user", "parts": [{"type": "text", "text": text}]}]);
                ("/v1/ui/chat".to_owned(), json!({"id": talk, "messages": said}))
            }
        };
        let request = client
            .request(Method::POST, &path)
            .json(&body)
            .header("idempotency-key", format!("{self:?}"));
        let request = request.header("x-hermes-on-disconnect", "continue");
        if self == NativeUi {
            return request.header("accept", "text/event-stream; protocol=ui-message-stream");
        }
        request
    }

    /// The request that decides, as a client of the surface makes it.
    fn decides(self, client: &Client, (turn, approval): (&Value, &str), choice: &str) -> RequestBuilder {
        let digits = turn["id"].as_str().unwrap().replace("turn_", "");
        let approve = choice != "deny";
        let (path, body) = match self {
            Responses | ResponsesStream | Background => {
                let answer = json!({"type": "mcp_approval_response", "approval_request_id": approval,
                    "approve": approve, "hermes": {"choice": choice}});
                ("/v1/responses".to_owned(), json!({"input": [answer]}))
            }
            Ui => {
                let part = json!({"type": "dynamic-tool", "state": "approval-responded",
                    "approval": {"id": approval, "approved": approve}});
                let message = json!({"role": "assistant", "id": "m1", "parts": [part]});
                let body = json!({"id": "any", "messages": [message], "choices": {approval: choice}});
                ("/v1/ui/chat".to_owned(), body)
            }
            Native | NativeUi => (format!("/v1/approvals/{approval}/decision"), json!({"choice": choice})),
            Chat | ChatStream | Runs | SessionChat | SessionChatStream => {
                let body = json!({"choice": choice, "approval_id": approval});
                (format!("/v1/runs/run_{digits}/approval"), body)
            }
        };
        client.request(Method::POST, &path).json(&body)
    }

    /// The request whose answer is the stream of the turn.
    async fn follows(self, client: &Client, talk: &str, text: &str) -> RequestBuilder {
        let asks = self.asks(client, talk, text).await;
        if self.streams() {
            return asks;
        }
        let begun = Answer::of(asks.send().await.unwrap()).await.body;
        match self {
            Runs => client.request(
                Method::GET,
                &format!("/v1/runs/{}/events", begun["run_id"].as_str().unwrap()),
            ),
            Background => {
                let path = format!("/v1/responses/{}?stream=true", begun["id"].as_str().unwrap());
                client.request(Method::GET, &path)
            }
            other => panic!("{other:?} is followed by nobody"),
        }
    }

    fn streams(self) -> bool {
        matches!(self, NativeUi | ChatStream | ResponsesStream | SessionChatStream | Ui)
    }

    /// The request that finds the stream again; `last` is the last frame that was
    /// seen of it.
    async fn resumes(
        self,
        client: &Client,
        (talk, text): (&str, &str),
        turn: &Value,
        last: &super::wire::Frame,
    ) -> Option<RequestBuilder> {
        let digits = turn["id"].as_str().unwrap().replace("turn_", "");
        Some(match self {
            NativeUi => client.request(Method::GET, &format!("{}/stream?protocol=ui", path_of(turn))),
            ResponsesStream => {
                let number = last.json()["sequence_number"].clone();
                client.request(
                    Method::GET,
                    &format!("/v1/responses/resp_{digits}?stream=true&starting_after={number}"),
                )
            }
            Ui => client.request(Method::GET, &format!("/v1/ui/chat/{talk}/stream")),
            Background => {
                let number = last.json()["sequence_number"].clone();
                let path = format!("/v1/responses/resp_{digits}?stream=true&starting_after={number}");
                client.request(Method::GET, &path)
            }
            Runs => {
                let place = last.id.as_deref().unwrap();
                client.request(Method::GET, &format!("/v1/runs/run_{digits}/events?after={place}"))
            }
            SessionChatStream => client.request(Method::GET, &format!("/v1/runs/run_{digits}/events")),
            ChatStream => self.asks(client, talk, text).await,
            _ => return None,
        })
    }
}

fn path_of(turn: &Value) -> String {
    format!(
        "/v1/sessions/{}/turns/{}",
        turn["session_id"].as_str().unwrap(),
        turn["id"].as_str().unwrap()
    )
}

/// The client's only turn, once it is there.
async fn turn_of(client: &Client) -> Value {
    for _ in 0..2_000 {
        let sessions = client.get("/v1/sessions").await.expect(200);
        if let Some(session) = sessions["data"].as_array().unwrap().first() {
            let turns = format!("/v1/sessions/{}/turns", session["id"].as_str().unwrap());
            let turns = client.get(&turns).await.expect(200);
            if let Some(turn) = turns["data"].as_array().unwrap().first() {
                return turn.clone();
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("no turn begins");
}

async fn left(web: &Web, client: &Client, turn: &Value, short: bool) -> Left {
    web.stream(client.request(Method::GET, &format!("{}/stream", path_of(turn))))
        .await
        .rest()
        .await;
    let over = client.get(&path_of(turn)).await.expect(200);
    let session = format!("/v1/sessions/{}", turn["session_id"].as_str().unwrap());
    let messages = client.get(&format!("{session}/messages?limit=200")).await.expect(200);
    let told = |message: &Value| {
        let text = message["content"][0]["text"].as_str().unwrap_or_default();
        let text = if short { text.get(..5).unwrap_or(text) } else { text };
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls: Vec<Value> = calls
            .map(|call| json!([call["name"], call["arguments"], call["status"], call["exit_code"]]))
            .collect();
        json!([message["role"], text, message["finish_reason"], calls])
    };
    let events = client.get(&format!("{session}/events?limit=200")).await.expect(200);
    let own = events["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["turn_id"] == over["id"]);
    Left {
        outcome: json!([over["status"], over["stop_reason"], over["error"]["code"]]),
        transcript: messages["data"].as_array().unwrap().iter().map(told).collect(),
        log: own.map(|event| event["type"].as_str().unwrap().to_owned()).collect(),
    }
}

/// Asks in the background; whatever the surface answers is read to its end.
fn asked(request: RequestBuilder) -> tokio::task::JoinHandle<String> {
    tokio::spawn(async move { request.send().await.unwrap().text().await.unwrap() })
}

/// What streamed frames say together: a word may stand in two of them.
fn spoken(answer: &str) -> String {
    let frames = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    let frames = frames.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let said = |frame: Value| {
        let said = frame.pointer("/choices/0/delta/content").or_else(|| frame.get("delta"));
        said.and_then(Value::as_str).map(str::to_owned)
    };
    frames.filter_map(said).collect()
}

/// What a user's only session is called: names are a user's own, and all of a
/// tenant may call theirs alike.
const TALK: &str = "talk";

async fn user(web: &Web, surface: Surface, scenario: &str) -> Client {
    web.user(&format!("{surface:?}-{scenario}"), &Scope::ALL[..6]).await
}

/// Runs a scenario on every surface and compares what it leaves.
async fn same(web: &Web, scenario: &str, text: &str, choice: Option<&str>, says: &str) {
    let mut first: Option<Left> = None;
    for surface in ALL {
        let client = user(web, surface, scenario).await;
        let answer = asked(surface.asks(&client, TALK, text).await);
        let turn = turn_of(&client).await;
        if let Some(choice) = choice {
            let mut events = client
                .stream(
                    web,
                    &format!("/v1/sessions/{}/stream", turn["session_id"].as_str().unwrap()),
                )
                .await;
            let asked = events.until("approval.requested").await.data["data"]["approval"]["id"].clone();
            let decided = surface.decides(&client, (&turn, asked.as_str().unwrap()), choice);
            let decided = Answer::of(decided.send().await.unwrap()).await;
            assert_eq!(decided.status, 200, "{surface:?} {scenario}: {}", decided.body);
        }
        let left = left(web, &client, &turn, false).await;
        let answer = tokio::time::timeout(crate::harness::PATIENCE, answer)
            .await
            .expect("an answer in time")
            .unwrap();
        // One that is not streamed was answered before the decision.
        let is_told = surface.streams() || choice.is_none() && ![Native, Runs, Background].contains(&surface);
        let says_it = answer.contains(says) || spoken(&answer).contains(says);
        assert!(!is_told || says_it, "{surface:?} {scenario}: {answer}");
        match &first {
            None => first = Some(left),
            Some(first) => assert_eq!(&left, first, "{surface:?} {scenario}"),
        }
    }
}

#[test]
fn turns_come_out_alike_on_every_surface() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let tool = format!("/say I look.\n{}\n/then\n/say done", mark("x"));
        let asks = format!("{}\n/then\n{}\n/then\n/say after", guarded("x"), guarded("x"));
        let once = format!("{}\n/then\n/say after", guarded("x"));
        same(&web, "plain", "/say hello", None, "hello").await;
        same(&web, "tool", &tool, None, "done").await;
        same(&web, "once", &once, Some("once"), "after").await;
        same(&web, "deny", &once, Some("deny"), "after").await;
        // The second call is allowed by the first answer.
        same(&web, "session", &asks, Some("session"), "after").await;
        same(&web, "failure", "/error 401", None, "").await;
        web.stop().await;
    });
}

#[test]
fn turns_are_stopped_alike_on_every_surface() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut first: Option<Left> = None;
        for surface in ALL {
            let client = user(&web, surface, "cancel").await;
            let answer = asked(surface.asks(&client, TALK, "/say begun\n/tokens 100000 200").await);
            let turn = turn_of(&client).await;
            let mut events = client.stream(&web, &format!("{}/stream", path_of(&turn))).await;
            events.until("message.delta").await;
            let digits = turn["id"].as_str().unwrap().replace("turn_", "");
            let stop = match surface {
                Native | NativeUi => format!("{}/cancel", path_of(&turn)),
                Responses | ResponsesStream | Background => format!("/v1/responses/resp_{digits}/cancel"),
                _ => format!("/v1/runs/run_{digits}/stop"),
            };
            assert!(client.post(&stop, &json!({})).await.status < 300);
            let left = left(&web, &client, &turn, true).await;
            tokio::time::timeout(crate::harness::PATIENCE, answer)
                .await
                .expect("an answer in time")
                .unwrap();
            match &first {
                None => first = Some(left),
                Some(first) => assert_eq!(&left, first, "{surface:?}"),
            }
        }
        web.stop().await;
    });
}

#[test]
fn who_left_finds_the_turn_again_on_every_surface_that_streams() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let text = "/say begun\n/tokens 300 600";
        let mut first: Option<Left> = None;
        let followed = |surface: &Surface| surface.streams() || [Runs, Background].contains(surface);
        for surface in ALL.into_iter().filter(followed) {
            let client = user(&web, surface, "resume").await;
            let mut stream = Stream::open(surface.follows(&client, TALK, text).await).await;
            let seen = stream
                .until(|frame| frame.data.contains("begun") && frame.data.contains("delta"))
                .await;
            drop(stream);
            let turn = turn_of(&client).await;
            if let Some(again) = surface
                .resumes(&client, (TALK, text), &turn, seen.last().unwrap())
                .await
            {
                let rest = Stream::open(again).await.rest().await;
                assert!(rest.len() > 1, "{surface:?}: {rest:?}");
            }
            let left = left(&web, &client, &turn, false).await;
            match &first {
                None => first = Some(left),
                Some(first) => assert_eq!(&left, first, "{surface:?}"),
            }
        }
        web.stop().await;
    });
}

#[test]
fn two_tenants_see_their_own_on_every_surface() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut tenants = Vec::new();
        for name in ["red", "blue"] {
            let tenant = web.tenant(name).await;
            let key = NewKey {
                tenant,
                user: "same",
                scopes: &[Scope::Admin],
                tools: None,
            };
            tenants.push((name, web.with_key(key).await));
        }
        for surface in ALL {
            for (name, client) in &tenants {
                let answer = asked(surface.asks(client, "talk", &format!("/say only {name}")).await);
                let turn = turn_of(client).await;
                left(&web, client, &turn, false).await;
                answer.await.unwrap();
            }
            for ((name, client), other) in tenants.iter().zip(["blue", "red"]) {
                let sessions = client.get("/v1/sessions").await.expect(200);
                let all = client.get("/api/sessions?include_children=1").await.expect(200);
                assert_eq!(all["data"].as_array().unwrap().len(), 1, "{surface:?}");
                assert!(
                    all.to_string().contains(name) && !all.to_string().contains(other),
                    "{surface:?}: {all}"
                );
                let session = sessions["data"][0]["id"].as_str().unwrap();
                client.delete(&format!("/v1/sessions/{session}")).await;
            }
        }
        web.stop().await;
    });
}
