//! Responses that answer what another waits for: questions, approvals, and what
//! stays another's whatever it is called. What each took, and what a restart leaves.

use serde_json::{Value, json};

use super::responses::{PATH, checked, made, said, text, types};
use super::wire::Frame;
use crate::harness::on_both;
use crate::harness::script::guarded;

#[test]
fn a_question_is_a_call_that_the_client_answers_and_each_response_counts_its_own() {
    on_both(async |mut place| {
        place.config.platform_toolsets.api_server.push("clarify".to_owned());
        let web = place.serve().await;
        let client = web.owner().await;
        let ask = "/tool clarify {\"question\": \"Which one?\", \"choices\": [\"a\", \"b\"]}\n/then\n/say done";
        let asked = made(&client, json!({"input": ask})).await;
        assert_eq!(
            (&asked["status"], &asked["hermes"]["status"], types(&asked)),
            (&json!("completed"), &json!("waiting_for_input"), vec!["function_call"])
        );
        let call = &asked["output"][0];
        assert_eq!(call["name"], "clarify");
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(arguments["question"], "Which one?");
        let given = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "b"});
        let body = json!({"previous_response_id": asked["id"], "input": [given]});
        let done = made(&client, body.clone()).await;
        assert_eq!((types(&done), text(&done)), (vec!["message"], "done".to_owned()));
        let empty = json!({"input": [{"type": "function_call_output", "call_id": call["call_id"], "output": " "}]});
        assert_eq!(client.post(PATH, &empty).await.status, 400);

        // What both took is what the turn took.
        let run = asked["hermes"]["run_id"].as_str().unwrap();
        let whole = client.get(&format!("/v1/runs/{run}")).await.expect(200)["usage"].clone();
        for field in ["input_tokens", "output_tokens", "total_tokens"] {
            let of = |usage: &Value| usage[field].as_u64().unwrap();
            let (first, second) = (of(&asked["usage"]), of(&done["usage"]));
            assert!(0 < first && 0 < second, "{field}");
            assert_eq!(first + second, of(&whole), "{field}");
        }
        // It is the same when it is read later, and streamed.
        let path = format!("{PATH}/{}", done["id"].as_str().unwrap());
        assert_eq!(client.get(&path).await.expect(200)["usage"], done["usage"]);
        let frames = client.get_stream(&format!("{path}?stream=true")).await.rest().await;
        assert_eq!(frames.last().unwrap().json()["response"]["usage"], done["usage"]);
        web.stop().await;
    });
}

#[test]
fn an_answer_to_an_approval_fits_it_or_is_refused_and_changes_nothing() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let script = format!("{}\n/then\n/say after", guarded("x"));
        let waits = made(&client, json!({"input": script})).await;
        assert!(0 < waits["usage"]["total_tokens"].as_u64().unwrap());
        let other = made(&client, json!({"input": script.replace("after", "later")})).await;
        let approval = |response: &Value| response["output"][1]["id"].clone();
        let answer = |id: &Value, approve: bool| json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": approve});
        let mut odd = answer(&approval(&waits), true);
        odd["choice"] = json!("perhaps");
        let (mine, theirs) = (answer(&approval(&waits), true), answer(&approval(&other), true));
        for (input, status, code) in [
            (json!([answer(&json!("mcpr_1"), true)]), 404, "approval_not_pending"),
            (
                json!([answer(&json!("apr_01jzzzzzzzzzzzzzzzzzzzzzzz"), true)]),
                404,
                "approval_not_pending",
            ),
            (json!([mine, theirs]), 400, "invalid_request"),
            (json!([mine, mine]), 400, "invalid_request"),
            (json!([odd]), 400, "invalid_approval_choice"),
            (
                json!([{"type": "mcp_approval_response", "approval_request_id": 5, "approve": true}]),
                400,
                "invalid_request",
            ),
            (json!([mine, "and go on"]), 400, "invalid_request"),
        ] {
            let refused = client.post(PATH, &json!({"input": input})).await;
            assert_eq!(
                (refused.status, &refused.body["error"]["code"]),
                (status, &json!(code)),
                "{input}: {}",
                refused.body
            );
        }
        let colleague = web
            .user("colleague", &hermes_server::model::principal::Scope::ALL[..6])
            .await;
        let foreign = colleague.post(PATH, &json!({"input": [mine]})).await;
        assert_eq!(foreign.status, 404);
        let run = |response: &Value| format!("/v1/runs/{}", response["hermes"]["run_id"].as_str().unwrap());
        for response in [&waits, &other] {
            let seen = client.get(&run(response)).await.expect(200);
            assert_eq!(seen["status"], "waiting_for_approval", "nothing was decided");
        }
        let next = made(&client, json!({"input": [mine]})).await;
        assert_eq!(text(&next), "after");
        // The same again is the same; another answer comes too late.
        let again = made(&client, json!({"input": [mine]})).await;
        assert_eq!((&again["id"], text(&again)), (&next["id"], "after".to_owned()));
        let late = client
            .post(PATH, &json!({"input": [answer(&approval(&waits), false)]}))
            .await;
        assert_eq!(late.status, 409, "{}", late.body);
        web.stop().await;
    });
}

#[test]
fn a_conversation_of_that_name_in_another_tenant_is_another() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        made(
            &client,
            json!({"input": "/say secret", "conversation": "trip", "instructions": "be brief"}),
        )
        .await;
        let key = crate::harness::client::NewKey {
            tenant: web.tenant("another").await,
            user: "owner",
            scopes: &[hermes_server::model::principal::Scope::Admin],
            tools: None,
        };
        let other = web.with_key(key).await;
        let theirs = made(&other, json!({"input": "/say theirs", "conversation": "trip"})).await;
        assert_eq!(theirs["instructions"], Value::Null, "nothing of the first is carried");
        assert_eq!(said(&other).await, ["/say theirs", "theirs"]);
        assert_eq!(said(&client).await, ["/say secret", "secret"]);
        // Nor does the name of the session that stands for it lead there.
        let sessions = client.get("/v1/sessions").await.expect(200);
        let name = sessions["data"][0]["external_id"].as_str().unwrap();
        let begun = json!({"input": "/say x", "session_id": name});
        other.post("/v1/runs", &begun).await.expect(202);
        assert_eq!(said(&client).await.len(), 2);
        web.stop().await;
    });
}

#[test]
fn a_response_in_the_background_waits_through_a_restart() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.client(crate::harness::http::KEY);
        let script = format!("/say I look.\n{}\n/then\n/say after", guarded("x"));
        let begun = made(&client, json!({"input": script, "background": true})).await;
        let path = format!("{PATH}/{}", begun["id"].as_str().unwrap());
        let mut stream = client.get_stream(&format!("{path}?stream=true")).await;
        let asks = |frame: &Frame| frame.json()["item"]["type"] == "mcp_approval_request";
        let mut frames = stream.until(asks).await;
        frames.extend(stream.next().await);
        let number = frames.last().unwrap().json()["sequence_number"].clone();
        let item = frames.last().unwrap().json()["item"].clone();
        drop(stream);
        web.stop().await;

        let web = place.serve().await;
        let client = web.client(crate::harness::http::KEY);
        let seen = client.get(&path).await.expect(200);
        assert_eq!(seen["hermes"]["status"], "waiting_for_approval");
        let stream = client
            .get_stream(&format!("{path}?stream=true&starting_after={number}"))
            .await;
        let answer = json!({"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": true});
        let next = made(&client, json!({"previous_response_id": begun["id"], "input": [answer]})).await;
        assert_eq!(text(&next), "after");
        frames.extend(stream.rest().await);
        let whole = checked(&frames);
        assert_eq!(
            (&whole["status"], text(&whole)),
            (&json!("completed"), "I look.after".to_owned())
        );
        assert_eq!(client.get(&path).await.expect(200), whole);
        web.stop().await;
    });
}
