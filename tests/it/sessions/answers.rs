//! How the model is to answer: said of a session or a turn, and heard by the
//! model server.

use serde_json::{Value, json};

use super::{say, session};
use crate::harness::client::Client;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::{Place, on_both};

const FIELDS: [&str; 7] = [
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "tool_choice",
    "response_format",
];

/// What the model server was told, without what it was not told.
fn told(asked: &Value) -> Value {
    let fields = asked.as_object().unwrap().iter();
    fields
        .filter(|(name, _)| FIELDS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

async fn turn(client: &Client, session: &str, body: &Value) -> Value {
    let answer = client.post(&format!("{session}/turns?wait=20"), body).await;
    answer.expect(200)
}

async fn asking(place: &mut Place, replies: Vec<Reply>) -> ModelServer {
    let model = ModelServer::start(replies).await;
    place.config.openai.base_url = Some(model.base_url.clone());
    place.config.model = Some("scripted".to_owned());
    model
}

fn format() -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "city", "strict": true,
        "schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}})
}

#[test]
fn a_turn_overrides_its_session_and_the_model_server_hears_it() {
    on_both(async |mut place: Place| {
        let model = asking(&mut place, (0..5).map(|_| Reply::say("ok")).collect()).await;
        let web = place.serve().await;
        let owner = web.owner().await;
        let defaults = json!({"temperature": 0.25, "top_p": 0.5, "max_output_tokens": 100, "reasoning_effort": "low",
            "response_format": format()});
        let path = session(&owner, &defaults).await;
        let seen = owner.get(&path).await.expect(200);
        for (name, value) in defaults.as_object().unwrap() {
            assert_eq!(&seen[name], value, "{name}");
        }
        turn(&owner, &path, &json!({"input": "a"})).await;
        let own = json!({"input": "b", "temperature": 1.5, "max_output_tokens": 7, "tool_choice": "none",
            "response_format": {"type": "json_object"}});
        let done = turn(&owner, &path, &own).await;
        // What it was made with, its own and the session's.
        assert_eq!(
            (
                &done["turn"]["temperature"],
                &done["turn"]["top_p"],
                &done["turn"]["max_output_tokens"]
            ),
            (&json!(1.5), &json!(0.5), &json!(7))
        );
        // One is removed, one is changed, the others stay.
        let patch = json!({"temperature": null, "top_p": 1.0, "tool_choice": "auto"});
        let changed = owner.patch(&path, &patch).await.expect(200);
        assert_eq!(
            (&changed["temperature"], &changed["top_p"], &changed["reasoning_effort"]),
            (&Value::Null, &json!(1.0), &json!("low"))
        );
        turn(&owner, &path, &json!({"input": "c"})).await;
        say(&owner, &session(&owner, &json!({})).await, "d").await;
        let asked: Vec<Value> = model.asked().iter().map(told).collect();
        assert_eq!(
            asked,
            [
                json!({"temperature": 0.25, "top_p": 0.5, "max_tokens": 100, "reasoning_effort": "low",
                    "response_format": format()}),
                json!({"tool_choice": "none", "temperature": 1.5, "top_p": 0.5, "max_tokens": 7,
                    "reasoning_effort": "low", "response_format": {"type": "json_object"}}),
                json!({"tool_choice": "auto", "top_p": 1.0, "max_tokens": 100, "reasoning_effort": "low",
                    "response_format": format()}),
                json!({}),
            ]
        );
        web.stop().await;
    });
}

#[test]
fn a_forced_call_is_forced_once() {
    on_both(async |mut place: Place| {
        let call = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function",
            "function": {"name": "todo", "arguments": "{}"}}]});
        let model = asking(
            &mut place,
            vec![Reply::stream(&[call], "tool_calls"), Reply::say("done")],
        )
        .await;
        let web = place.serve().await;
        let owner = web.owner().await;
        let choice = json!({"type": "function", "function": {"name": "todo"}});
        let path = session(&owner, &json!({"tool_choice": choice})).await;
        let done = say(&owner, &path, "go").await;
        assert_eq!(done["turn"]["status"], "completed", "{done}");
        let asked: Vec<Value> = model.asked().iter().map(told).collect();
        assert_eq!(asked, [json!({"tool_choice": choice}), json!({})]);
        web.stop().await;
    });
}

/// Some models take only the newer name of the limit, and say so.
#[test]
fn a_model_that_wants_the_other_name_of_the_limit_gets_it() {
    on_both(async |mut place: Place| {
        let refusal = "Unsupported parameter: 'max_tokens' is not supported with this model. \
            Use 'max_completion_tokens' instead.";
        let model = asking(&mut place, vec![Reply::refusal(400, refusal), Reply::say("ok")]).await;
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({"max_output_tokens": 9})).await;
        say(&owner, &path, "go").await;
        let asked: Vec<Value> = model.asked().iter().map(told).collect();
        assert_eq!(asked, [json!({"max_tokens": 9}), json!({"max_completion_tokens": 9})]);
        web.stop().await;
    });
}

/// The second run of the server asks as the first would have, though the session
/// says something else by then.
#[test]
fn a_turn_that_is_taken_over_asks_as_it_was_made() {
    on_both(async |mut place: Place| {
        let call = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function",
            "function": {"name": "terminal", "arguments": "{\"command\": \"rm -rf never-there\"}"}}]});
        let model = asking(
            &mut place,
            vec![Reply::stream(&[call], "tool_calls"), Reply::say("done")],
        )
        .await;
        let web = place.serve().await;
        let owner = web.client(crate::harness::http::KEY);
        let path = session(&owner, &json!({"temperature": 0.5})).await;
        let waits = say(&owner, &path, "go").await;
        assert_eq!(waits["turn"]["status"], "waiting", "{waits}");
        web.stop().await;
        let web = place.serve().await;
        let owner = web.client(crate::harness::http::KEY);
        owner.patch(&path, &json!({"temperature": 2.0})).await.expect(200);
        let approval = super::text(&waits["approvals"][0]["id"]);
        let decision = format!("/v1/approvals/{approval}/decision");
        owner.post(&decision, &json!({"choice": "deny"})).await.expect(200);
        let turn = super::text(&waits["turn"]["id"]);
        owner
            .stream(&web, &format!("{path}/turns/{turn}/stream"))
            .await
            .until("turn.completed")
            .await;
        let asked: Vec<Value> = model.asked().iter().map(told).collect();
        assert_eq!(asked, [json!({"temperature": 0.5}), json!({"temperature": 0.5})]);
        web.stop().await;
    });
}

#[test]
fn what_cannot_be_said_to_a_model_is_refused_by_name() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        let schema = |schema: Value| json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}});
        let named = |name: &str| json!({"tool_choice": {"type": "function", "function": {"name": name}}});
        for (body, pointer) in [
            (json!({"temperature": 2.1}), "/temperature"),
            (json!({"top_p": -1}), "/top_p"),
            (json!({"max_output_tokens": 0}), "/max_output_tokens"),
            (json!({"max_output_tokens": 1.5}), "/max_output_tokens"),
            (json!({"reasoning_effort": "much"}), "/reasoning_effort"),
            (json!({"tool_choice": "any"}), "/tool_choice"),
            (named("no_such_tool"), "/tool_choice/function/name"),
            (json!({"response_format": {"type": "xml"}}), "/response_format/type"),
            (
                schema(json!({"type": "txt"})),
                "/response_format/json_schema/schema/type",
            ),
            (
                schema(json!({"properties": {"a": {"required": "b"}}})),
                "/response_format/json_schema/schema/properties/a/required",
            ),
        ] {
            let mut turn = body.clone();
            turn["input"] = json!("hi");
            for refused in [
                owner.post("/v1/sessions", &body).await,
                owner.patch(&path, &body).await,
                owner.post(&format!("{path}/turns"), &turn).await,
            ] {
                let problem = refused.problem(400, "invalid_request");
                assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
            }
        }
        assert!(super::list(&owner, &format!("{path}/turns")).await.is_empty());
        web.stop().await;
    });
}
