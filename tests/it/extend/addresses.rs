//! Hooks that are addresses: asked by POST, bounded in time, and what they are
//! told of calls that this server did not run.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::post;
use hermes_server::config::{Hook, HookAction, HookPoint};
use serde_json::{Value, json};

use super::results;
use crate::api_rest::Talk;
use crate::harness::script::mark;
use crate::harness::{Place, lines, on_both};

/// A server of the operator's that notes what it is told.
struct Desk {
    told: Arc<Mutex<Vec<Value>>>,
    address: String,
    serving: tokio::task::JoinHandle<()>,
}

async fn take(State(told): State<Arc<Mutex<Vec<Value>>>>, axum::Json(payload): axum::Json<Value>) -> axum::Json<Value> {
    let text = payload["args"].to_string();
    told.lock().unwrap().push(payload);
    if text.contains("never") {
        std::future::pending::<()>().await;
    }
    axum::Json(match text.contains("forbidden") {
        true => json!({"action": "block", "message": "not by this desk"}),
        false => json!({}),
    })
}

impl Desk {
    async fn open() -> Self {
        let told = Arc::new(Mutex::new(Vec::new()));
        let router = axum::Router::new()
            .route("/hook", post(take))
            .with_state(Arc::clone(&told));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = format!("http://{}/hook", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { told, address, serving }
    }

    fn hook(&self, place: &mut Place, point: HookPoint) {
        place.config.hooks.push(Hook {
            point,
            name: format!("desk {}", point.name()),
            action: HookAction::Url(self.address.parse().unwrap()),
            matcher: None,
            timeout: Duration::from_secs(1),
        });
    }

    /// What it was told at a point, once it was told as much.
    async fn told(&self, point: &str, count: usize) -> Vec<Value> {
        for _ in 0..400 {
            let all = self.told.lock().unwrap().clone();
            let here: Vec<Value> = all
                .into_iter()
                .filter(|told| told["hook_event_name"] == point)
                .collect();
            if count <= here.len() {
                return here;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the desk was not told of {point}");
    }
}

#[test]
fn an_address_refuses_a_call_and_one_that_does_not_answer_does_too() {
    on_both(async |mut place| {
        let desk = Desk::open().await;
        desk.hook(&mut place, HookPoint::PreToolCall);
        desk.hook(&mut place, HookPoint::PostToolCall);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &json!({})).await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        assert_eq!(
            results(&mut talk, &mark("forbidden")).await,
            [r#"{"error":"not by this desk"}"#]
        );
        let began = Instant::now();
        let late = results(&mut talk, &mark("never")).await;
        assert!(late[0].contains("failed, so the call was refused"), "{late:?}");
        assert!(began.elapsed() < Duration::from_secs(15));
        results(&mut talk, &mark("plain")).await;
        assert_eq!(
            ["forbidden", "never", "plain"].map(|name| lines(&workspace.join(name))),
            [0, 0, 1]
        );
        // It is told of refused calls like of others, with the ids that clients know.
        let before = desk.told("pre_tool_call", 3).await;
        let after = desk.told("post_tool_call", 3).await;
        let statuses: Vec<&Value> = after.iter().map(|told| &told["status"]).collect();
        assert_eq!(statuses, [&json!("blocked"), &json!("blocked"), &json!("ok")]);
        let messages = client.get(&talk.path("/messages")).await.expect(200);
        let answer = &messages["data"][1];
        for told in [&before[0], &after[0]] {
            assert_eq!(told["tenant_id"], json!(web.server.app.default_tenant()));
            assert_eq!(told["session_id"], json!(talk.session));
            assert_eq!(told["turn_id"], answer["turn_id"]);
            assert_eq!(told["tool_call_id"], answer["tool_calls"][0]["id"]);
            assert_eq!(told["api_request_id"], answer["id"]);
        }
        desk.serving.abort();
        web.stop().await;
    });
}

#[test]
fn an_observer_that_never_answers_holds_up_neither_turns_nor_the_end_of_the_server() {
    on_both(async |mut place| {
        let desk = Desk::open().await;
        desk.hook(&mut place, HookPoint::PostToolCall);
        place.config.hooks[0].timeout = Duration::from_secs(300);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &json!({})).await;
        let began = Instant::now();
        results(&mut talk, &mark("never")).await;
        desk.told("post_tool_call", 1).await;
        web.stop().await;
        assert!(began.elapsed() < Duration::from_secs(60));
        desk.serving.abort();
    });
}

#[test]
fn calls_that_the_client_carried_out_and_sessions_of_children_and_jobs_are_told_of_too() {
    on_both(async |mut place| {
        let desk = Desk::open().await;
        desk.hook(&mut place, HookPoint::PostToolCall);
        desk.hook(&mut place, HookPoint::OnSessionStart);
        desk.hook(&mut place, HookPoint::OnSessionEnd);
        let web = place.serve().await;
        let client = web.owner().await;
        let tool = json!({"type": "function", "function": {"name": "ring", "description": "Rings.",
            "parameters": {"type": "object", "properties": {}}}});
        let mut talk = Talk::new(&web, &client, &json!({"tools": [tool]})).await;
        talk.say("/tool ring {}").await;
        talk.events.until("turn.waiting").await;
        let waiting = client.get(&talk.path("/messages")).await.expect(200)["data"][1]["tool_calls"][0]["id"].clone();
        let given = json!({"results": [{"tool_call_id": waiting, "output": "rang"}]});
        client.post(&talk.path("/tool-results"), &given).await.expect(200);
        talk.events.until("turn.completed").await;
        let told = desk.told("post_tool_call", 1).await;
        assert_eq!(
            (&told[0]["tool_name"], &told[0]["result"], &told[0]["status"]),
            (&json!("ring"), &json!("rang"), &json!("ok"))
        );
        results(&mut talk, r#"/tool delegate_task {"goal": "say hello"}"#).await;
        let begun = desk.told("on_session_start", 2).await;
        assert_eq!(begun[0]["session_id"], json!(talk.session));
        assert_ne!(begun[1]["session_id"], json!(talk.session));
        assert_eq!(begun[1]["parent_session_id"], json!(talk.session));
        // The session of a job's run begins like any other.
        let body = json!({"prompt": "/say hello", "schedule": "every 2h"});
        let job = client.post("/v1/jobs", &body).await.expect(201);
        let trigger = format!("/v1/jobs/{}/trigger", job["id"].as_str().unwrap());
        client.post(&trigger, &json!({})).await;
        let runs = crate::jobs::runs(&client, &job, 1).await;
        let begun = desk.told("on_session_start", 3).await;
        assert_eq!(begun[2]["session_id"], runs[0]["session_id"]);
        // Neither the end of a turn nor archiving ends a session; it can go on.
        client.post(&talk.path("/archive"), &json!({})).await.expect(200);
        assert_eq!(desk.told("on_session_end", 0).await.len(), 0);
        client.delete(&talk.path("")).await.expect(204);
        let ended = desk.told("on_session_end", 1).await;
        assert_eq!(ended[0]["session_id"], json!(talk.session));
        desk.serving.abort();
        web.stop().await;
    });
}
