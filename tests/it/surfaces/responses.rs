//! Responses: chained, streamed from anywhere, in the background, with approvals.

use reqwest::Method;
use serde_json::{Value, json};

use super::wire::Frame;
use crate::harness::client::Client;
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;
use crate::harness::script::{guarded, mark};

pub const PATH: &str = "/v1/responses";

pub async fn made(client: &Client, body: Value) -> Value {
    client.post(PATH, &body).await.expect(200)
}

pub fn text(response: &Value) -> String {
    let items = response["output"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["type"] == "message");
    items.filter_map(|item| item["content"][0]["text"].as_str()).collect()
}

pub fn types(response: &Value) -> Vec<&str> {
    response["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect()
}

/// What was said to and by the model in the only session.
pub async fn said(client: &Client) -> Vec<String> {
    let sessions = client.get("/v1/sessions").await.expect(200);
    assert_eq!(sessions["data"].as_array().unwrap().len(), 1, "{sessions}");
    let path = format!("/v1/sessions/{}/messages", sessions["data"][0]["id"].as_str().unwrap());
    let messages = client.get(&path).await.expect(200);
    messages["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["content"][0]["text"].as_str().unwrap_or("").to_owned())
        .collect()
}

/// Numbers grow, and what is built up from the events is what the last one has.
pub fn checked(frames: &[Frame]) -> Value {
    let mut last = -1;
    let mut output: Vec<Value> = Vec::new();
    for frame in frames {
        let data = frame.json();
        assert_eq!(frame.event.as_deref(), data["type"].as_str());
        let number = data["sequence_number"].as_i64().unwrap();
        assert!(last < number, "{frames:?}");
        last = number;
        let place = data["output_index"]
            .as_u64()
            .map(|place| usize::try_from(place).unwrap());
        match data["type"].as_str().unwrap() {
            "response.output_item.added" => {
                assert_eq!(place, Some(output.len()));
                output.push(data["item"].clone());
            }
            "response.content_part.added" => output[place.unwrap()]["content"] = json!([data["part"]]),
            "response.output_text.delta" => {
                let text = &mut output[place.unwrap()]["content"][0]["text"];
                *text = json!(format!("{}{}", text.as_str().unwrap(), data["delta"].as_str().unwrap()));
            }
            "response.output_text.done" => assert_eq!(output[place.unwrap()]["content"][0]["text"], data["text"]),
            "response.output_item.done" => output[place.unwrap()] = data["item"].clone(),
            _ => {}
        }
    }
    let response = frames.last().unwrap().json()["response"].clone();
    let ids = |items: &[Value]| items.iter().map(|item| item["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&output), ids(response["output"].as_array().unwrap()));
    response
}

#[test]
fn a_response_has_the_items_of_its_turn_however_it_is_read() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let script = format!("/say I look.\n{}\n/then\n/say all done", mark("x"));
        let whole = made(&client, json!({"input": script, "metadata": {"k": "v"}})).await;
        assert_eq!(
            (&whole["object"], &whole["status"]),
            (&json!("response"), &json!("completed"))
        );
        assert_eq!(
            types(&whole),
            ["message", "function_call", "function_call_output", "message"]
        );
        assert_eq!(whole["output"][1]["call_id"], whole["output"][2]["call_id"]);
        assert_eq!(
            (text(&whole), &whole["metadata"]),
            ("I look.all done".to_owned(), &json!({"k": "v"}))
        );
        assert!(whole["usage"]["total_tokens"].as_u64().unwrap() > 0);
        let id = whole["id"].as_str().unwrap();
        assert_eq!(client.get(&format!("{PATH}/{id}")).await.expect(200), whole);

        let frames = client
            .get_stream(&format!("{PATH}/{id}?stream=true"))
            .await
            .rest()
            .await;
        assert_eq!(checked(&frames), whole);
        // Behind any number comes what has a larger one.
        for (place, frame) in frames.iter().enumerate() {
            let number = &frame.json()["sequence_number"];
            let rest = client
                .get_stream(&format!("{PATH}/{id}?stream=true&starting_after={number}"))
                .await
                .rest()
                .await;
            assert_eq!(rest, frames[place + 1..], "behind {frame:?}");
        }
        let live = client
            .post_stream(PATH, &json!({"input": script, "stream": true}))
            .await
            .rest()
            .await;
        let streamed = checked(&live);
        assert_eq!((types(&streamed), text(&streamed)), (types(&whole), text(&whole)));
        let items = client.get(&format!("{PATH}/{id}/input_items")).await.expect(200);
        assert_eq!(
            items["data"][0]["content"],
            json!([{"type": "input_text", "text": script}])
        );
        web.stop().await;
    });
}

#[test]
fn a_chain_stores_each_message_once_and_carries_instructions() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let first = made(&client, json!({"input": "/say one", "instructions": "be brief"})).await;
        let second = made(
            &client,
            json!({"input": "/say two", "previous_response_id": first["id"]}),
        )
        .await;
        assert_eq!(
            (&second["instructions"], &second["previous_response_id"]),
            (&json!("be brief"), &first["id"])
        );
        assert_eq!(types(&second), ["message"], "nothing of the first is repeated");
        let third = made(
            &client,
            json!({"input": "/say three", "previous_response_id": second["id"], "instructions": "be long"}),
        )
        .await;
        assert_eq!(third["instructions"], "be long");
        assert_eq!(
            said(&client).await,
            ["/say one", "one", "/say two", "two", "/say three", "three"]
        );
        // A branch from the first leaves the others alone.
        made(
            &client,
            json!({"input": "/say other", "previous_response_id": first["id"]}),
        )
        .await;
        let sessions = client.get("/v1/sessions").await.expect(200);
        assert_eq!(sessions["data"].as_array().unwrap().len(), 2);
        let unknown = client
            .post(PATH, &json!({"input": "x", "previous_response_id": "resp_nothing"}))
            .await;
        assert_eq!(
            (unknown.status, &unknown.body["error"]["code"]),
            (404, &json!("previous_response_not_found"))
        );
        web.stop().await;
    });
}

#[test]
fn a_conversation_goes_on_by_its_name() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        made(&client, json!({"input": "/say one", "conversation": "trip"})).await;
        let second = made(&client, json!({"input": "/say two", "conversation": {"id": "trip"}})).await;
        assert_eq!(said(&client).await, ["/say one", "one", "/say two", "two"]);
        let colleague = web
            .user("colleague", &hermes_server::model::principal::Scope::ALL[..6])
            .await;
        made(&colleague, json!({"input": "/say mine", "conversation": "trip"})).await;
        let own = colleague.get("/v1/sessions").await.expect(200);
        assert_eq!(own["data"].as_array().unwrap().len(), 1, "a name is its user's own");
        // Without its last response a conversation begins anew.
        let path = format!("{PATH}/{}", second["id"].as_str().unwrap());
        assert_eq!(client.delete(&path).await.expect(200)["deleted"], true);
        assert_eq!(client.get(&path).await.status, 404);
        assert_eq!(
            client
                .post(PATH, &json!({"input": "x", "previous_response_id": second["id"]}))
                .await
                .status,
            404
        );
        made(&client, json!({"input": "/say three", "conversation": "trip"})).await;
        let sessions = client.get("/v1/sessions").await.expect(200);
        let own = sessions["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["user_id"] == "owner")
            .count();
        assert_eq!(own, 2);
        web.stop().await;
    });
}

#[test]
fn what_is_not_stored_cannot_be_read() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let made = made(&client, json!({"input": "/say x", "store": false})).await;
        let gone = client.get(&format!("{PATH}/{}", made["id"].as_str().unwrap())).await;
        assert_eq!(
            (gone.status, &gone.body["error"]["code"]),
            (404, &json!("response_not_found"))
        );
        assert_eq!(
            client
                .post(PATH, &json!({"input": "x", "store": "no", "background": true}))
                .await
                .status,
            400
        );
        web.stop().await;
    });
}

#[test]
fn a_response_in_the_background_is_read_and_cancelled_by_its_id() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let begun = made(&client, json!({"input": "/tokens 100000 200", "background": true})).await;
        assert!(
            ["queued", "in_progress"].contains(&begun["status"].as_str().unwrap()),
            "{begun}"
        );
        let path = format!("{PATH}/{}", begun["id"].as_str().unwrap());
        let mut stream = client.get_stream(&format!("{path}?stream=true")).await;
        let seen = stream
            .until(|frame| frame.named() == "response.output_text.delta")
            .await;
        drop(stream);
        let number = seen.last().unwrap().json()["sequence_number"].clone();
        // Who comes back in the middle of a message is not told again that it begins.
        let mut stream = client
            .get_stream(&format!("{path}?stream=true&starting_after={number}"))
            .await;
        let more = stream
            .until(|frame| frame.named() == "response.output_text.delta")
            .await;
        assert_eq!(more.len(), 1, "{more:?}");
        assert_eq!(
            more[0].json()["output_index"],
            seen.last().unwrap().json()["output_index"]
        );
        let cancelled = Answer::of(
            client
                .request(Method::POST, &format!("{path}/cancel"))
                .send()
                .await
                .unwrap(),
        )
        .await;
        assert_eq!(cancelled.expect(200)["status"], "cancelled");
        let last = stream.rest().await;
        assert_eq!(last.last().unwrap().named(), "response.failed");
        assert_eq!(client.get(&path).await.expect(200)["status"], "cancelled");
        web.stop().await;
    });
}

#[test]
fn fc_023_an_approval_is_an_item_and_the_stream_stays_open() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let script = format!("{}\n/then\n/say after", guarded("x"));
        let mut stream = client
            .post_stream(PATH, &json!({"input": script, "stream": true}))
            .await;
        let is_asked = |frame: &Frame| {
            frame.json()["item"]["type"] == "mcp_approval_request" && frame.named() == "response.output_item.done"
        };
        let mut frames = stream.until(is_asked).await;
        let item = frames.last().unwrap().json()["item"].clone();
        let approval = item["approval_id"].as_str().unwrap();
        client
            .post(
                &format!("/v1/approvals/{approval}/decision"),
                &json!({"choice": "once"}),
            )
            .await
            .expect(200);
        frames.extend(stream.rest().await);
        let whole = checked(&frames);
        assert_eq!(
            types(&whole),
            [
                "function_call",
                "mcp_approval_request",
                "function_call_output",
                "message"
            ]
        );
        assert_eq!(
            (&whole["status"], text(&whole)),
            (&json!("completed"), "after".to_owned())
        );
        web.stop().await;
    });
}

async fn idle(web: &Web, session: &str) {
    let mut events = web
        .stream(web.request(Method::GET, &format!("/v1/sessions/{session}/stream")))
        .await;
    events.until("turn.completed").await;
}

#[test]
fn an_approval_is_answered_by_a_response_which_is_what_follows() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        for (approve, choice, outcome) in [
            (true, Value::Null, "succeeded"),
            (false, Value::Null, "denied"),
            (true, json!("session"), "succeeded"),
        ] {
            let script = format!("{}\n/then\n/say after {approve}", guarded("x"));
            let waits = made(&client, json!({"input": script})).await;
            assert_eq!(
                (&waits["status"], types(&waits)),
                (&json!("completed"), vec!["function_call", "mcp_approval_request"])
            );
            assert_eq!(waits["hermes"]["status"], "waiting_for_approval");
            let item = &waits["output"][1];
            let answer = json!({"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": approve, "hermes": {"choice": choice}});
            let body = json!({"previous_response_id": waits["id"], "input": [answer]});
            let send = async || {
                let key = item["id"].as_str().unwrap().to_owned();
                Answer::of(
                    client
                        .request(Method::POST, PATH)
                        .header("idempotency-key", key)
                        .json(&body)
                        .send()
                        .await
                        .unwrap(),
                )
                .await
            };
            let next = send().await.expect(200);
            assert_eq!(types(&next), ["function_call_output", "message"], "{next}");
            assert_eq!(next["output"][0]["outcome"], outcome);
            assert_eq!(text(&next), format!("after {approve}"));
            let again = send().await;
            assert_eq!(
                (again.header("idempotency-replayed").as_str(), &again.body["id"]),
                ("true", &next["id"])
            );
            assert_eq!(
                client
                    .get(&format!("{PATH}/{}", next["id"].as_str().unwrap()))
                    .await
                    .expect(200)["output"],
                next["output"]
            );
            idle(&web, &session_of(&client, &waits).await).await;
        }
        web.stop().await;
    });
}

async fn session_of(client: &Client, response: &Value) -> String {
    let run = response["hermes"]["run_id"].as_str().unwrap();
    let run = client.get(&format!("/v1/runs/{run}")).await.expect(200);
    let sessions = client.get("/v1/sessions").await.expect(200);
    let name = &run["session_id"];
    let found = sessions["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| &one["external_id"] == name || &one["id"] == name);
    found.unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_failure_is_told_as_one() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let failed = made(&client, json!({"input": "/error 401"})).await;
        assert_eq!((&failed["status"], &failed["output"]), (&json!("failed"), &json!([])));
        assert!(failed["error"]["message"].is_string());
        let frames = client
            .post_stream(PATH, &json!({"input": "/error 401", "stream": true}))
            .await
            .rest()
            .await;
        assert_eq!(frames.last().unwrap().named(), "response.failed");
        web.stop().await;
    });
}

#[test]
fn who_leaves_a_stream_stops_what_nobody_can_come_back_to() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        for (background, status) in [(false, "cancelled"), (true, "in_progress")] {
            let body = json!({"input": "/tokens 100000 200", "stream": true, "background": background});
            let mut stream = client.post_stream(PATH, &body).await;
            let seen = stream
                .until(|frame| frame.named() == "response.output_text.delta")
                .await;
            let id = seen[0].json()["response"]["id"].as_str().unwrap().to_owned();
            drop(stream);
            let path = format!("{PATH}/{id}");
            if !background {
                client.get_stream(&format!("{path}?stream=true")).await.rest().await;
            }
            assert_eq!(client.get(&path).await.expect(200)["status"], status);
            client.post(&format!("{path}/cancel"), &json!({})).await;
        }
        web.stop().await;
    });
}

#[test]
fn a_response_of_another_tenant_does_not_exist() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let mine = made(&client, json!({"input": "/say secret"})).await;
        let id = mine["id"].as_str().unwrap();
        let tenant = web.tenant("another").await;
        let key = crate::harness::client::NewKey {
            tenant,
            user: "owner",
            scopes: &[hermes_server::model::principal::Scope::Admin],
            tools: None,
        };
        let other = web.with_key(key).await;
        for (method, path) in [
            (Method::GET, format!("{PATH}/{id}")),
            (Method::GET, format!("{PATH}/{id}?stream=true")),
            (Method::GET, format!("{PATH}/{id}/input_items")),
            (Method::POST, format!("{PATH}/{id}/cancel")),
            (Method::DELETE, format!("{PATH}/{id}")),
        ] {
            let answer = Answer::of(other.request(method, &path).send().await.unwrap()).await;
            assert_eq!(
                (answer.status, &answer.body["error"]["code"]),
                (404, &json!("response_not_found")),
                "{path}"
            );
        }
        let chained = other
            .post(PATH, &json!({"input": "x", "previous_response_id": id}))
            .await;
        assert_eq!(chained.status, 404);
        assert_eq!(client.get(&format!("{PATH}/{id}")).await.expect(200), mine);
        web.stop().await;
    });
}
