//! Tools that the client carries out.

use reqwest::Method;
use serde_json::{Value, json};

use super::{results, tool};
use crate::api_rest::Talk;
use crate::harness::client::Client;
use crate::harness::http::Web;
use crate::harness::on_both;
use crate::harness::script::terminal;

const CALLS: &str = "/tool look_up {\"order\": \"7\"}\n/tool look_up {\"order\": 8}\n/then\n/say done";

async fn talk(web: &Web, owner: &Client) -> Talk {
    Talk::new(web, owner, &json!({"tools": [tool("look_up")]})).await
}

/// The calls that wait for the client, in order.
async fn waiting(talk: &mut Talk) -> Vec<Value> {
    talk.events.until("turn.waiting").await;
    let shown = talk.client.get(&talk.path("")).await.expect(200);
    assert_eq!(shown["status"], "requires_action");
    shown["required_actions"].as_array().unwrap().clone()
}

fn result(action: &Value, output: &str) -> Value {
    json!({"tool_call_id": action["id"], "output": output})
}

async fn give(talk: &Talk, results: &[Value]) -> crate::harness::http::Answer {
    let body = json!({"results": results});
    talk.client.post(&talk.path("/tool-results"), &body).await
}

#[test]
fn a_call_is_handed_over_and_its_result_goes_to_the_model() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let turn = talk.say(CALLS).await;
        let proposed = talk.events.until("tool_call.proposed").await.data;
        let call = &proposed["data"]["tool_call"];
        assert_eq!(
            (&call["execution"], &call["arguments"]["order"]),
            (&json!("client"), &json!(7))
        );
        let started = talk.events.until("tool_call.started").await.data;
        assert_eq!(started["data"]["tool_call"]["status"], "waiting");
        let actions = waiting(&mut talk).await;
        assert_eq!(actions.len(), 2, "both have nothing to wait for");
        assert_eq!(
            (&actions[0]["type"], &actions[0]["id"], &actions[0]["summary"]),
            (&json!("client_tool"), &call["id"], &json!("look_up"))
        );
        assert_eq!(actions[0]["href"], talk.path("/tool-results"));
        assert!(web.server.is_left().await, "a parked turn holds no task");

        let given = give(&talk, &[result(&actions[1], "eight")]).await.expect(200);
        let settled = &given["tool_calls"][0];
        assert_eq!(
            (&settled["status"], &settled["result"]),
            (&json!("succeeded"), &json!("eight"))
        );
        let shown = owner.get(&talk.path(&format!("/turns/{turn}"))).await.expect(200);
        assert_eq!(shown["status"], "waiting", "the other is still out");
        let mut failed = result(&actions[0], "no such order");
        failed["is_error"] = json!(true);
        give(&talk, &[failed]).await.expect(200);
        let resumed = talk.events.until("turn.resumed").await.data;
        assert_eq!(resumed["data"]["reason"], "tool_results");
        talk.events.until("turn.completed").await;
        let messages = owner.get(&talk.path("/messages")).await.expect(200);
        assert_eq!(results(&messages), ["no such order", "eight"]);
        let idle = owner.get(&talk.path("")).await.expect(200);
        assert_eq!(
            (&idle["status"], &idle["required_actions"]),
            (&json!("idle"), &json!([]))
        );
        web.stop().await;
    });
}

#[test]
fn results_are_taken_once_and_all_or_none_of_a_request() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        talk.say(CALLS).await;
        let actions = waiting(&mut talk).await;
        let mut elsewhere = self::talk(&web, &owner).await;
        elsewhere.say(CALLS).await;
        let foreign = waiting(&mut elsewhere).await;

        let unknown = json!({"tool_call_id": format!("call_{}", "0".repeat(26)), "output": "x"});
        for stranger in [unknown, result(&foreign[0], "x")] {
            let both = [result(&actions[0], "seven"), stranger];
            let problem = give(&talk, &both).await.problem(404, "not_found");
            assert_eq!(problem["context"]["index"], 1);
            assert_eq!(problem["errors"][0]["pointer"], "/results/1/tool_call_id");
        }
        let twice = [result(&actions[0], "a"), result(&actions[0], "a")];
        give(&talk, &twice).await.problem(400, "invalid_request");
        give(&talk, &[]).await.problem(400, "invalid_request");
        let long = result(&actions[0], &"x".repeat(100_001));
        let problem = give(&talk, &[long]).await.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/results/0/output");
        assert_eq!(waiting_now(&talk).await, 2, "nothing of it was taken");

        let first = give(&talk, &[result(&actions[0], "seven")]).await.expect(200);
        let again = give(&talk, &[result(&actions[0], "seven")]).await.expect(200);
        assert_eq!(first, again);
        let other = [result(&actions[1], "eight"), result(&actions[0], "six")];
        let problem = give(&talk, &other).await.problem(409, "tool_call_settled");
        assert_eq!(problem["context"]["tool_call"]["result"], "seven");
        assert_eq!(waiting_now(&talk).await, 1);
        give(&talk, &[result(&actions[0], "seven"), result(&actions[1], "eight")])
            .await
            .expect(200);
        talk.events.until("turn.completed").await;
        let messages = owner.get(&talk.path("/messages")).await.expect(200);
        assert_eq!(results(&messages), ["seven", "eight"]);
        web.stop().await;
    });
}

async fn waiting_now(talk: &Talk) -> usize {
    let shown = talk.client.get(&talk.path("")).await.expect(200);
    shown["required_actions"].as_array().unwrap().len()
}

#[test]
fn a_call_that_is_not_handed_over_takes_no_result() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let script = format!("{}\n{CALLS}", terminal("git push --force origin main"));
        talk.say(&script).await;
        let proposed = talk.events.until("tool_call.proposed").await.data;
        let guarded = proposed["data"]["tool_call"]["id"].clone();
        let proposed = talk.events.until("tool_call.proposed").await.data;
        let behind = proposed["data"]["tool_call"]["id"].clone();
        talk.events.until("turn.waiting").await;
        for id in [guarded, behind] {
            let one = json!({"tool_call_id": id, "output": "x"});
            give(&talk, &[one]).await.problem(409, "tool_call_not_waiting");
        }
        web.stop().await;
    });
}

#[test]
fn a_cancelled_turn_takes_no_result_and_its_call_is_unknown() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let turn = talk.say(CALLS).await;
        let actions = waiting(&mut talk).await;
        owner
            .post(&talk.path(&format!("/turns/{turn}/cancel")), &json!({}))
            .await
            .expect(200);
        let unknown = talk.events.until("tool_call.unknown").await.data;
        assert_eq!(unknown["data"]["tool_call"]["id"], actions[0]["id"]);
        talk.events.until("turn.cancelled").await;
        give(&talk, &[result(&actions[0], "late")])
            .await
            .problem(409, "tool_call_settled");
        web.stop().await;
    });
}

#[test]
fn a_call_waits_through_a_restart() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        talk.say(CALLS).await;
        let actions = waiting(&mut talk).await;
        web.crash().await;
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::of(&web, &owner, &talk.session).await;
        let both = [result(&actions[0], "seven"), result(&actions[1], "eight")];
        give(&talk, &both).await.expect(200);
        talk.events.until("turn.completed").await;
        web.stop().await;
    });
}

#[test]
fn definitions_are_checked_shown_and_a_turns_come_first() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let shown = owner.get(&talk.path("")).await.expect(200);
        assert_eq!(shown["tools"], json!([tool("look_up")]));
        let offered = owner.get(&talk.path("/tools")).await.expect(200);
        let brought = offered["offered"].as_array().unwrap().iter();
        let brought: Vec<&Value> = brought.filter(|tool| tool["toolset"] == "client").collect();
        assert_eq!((brought.len(), &brought[0]["name"]), (1, &json!("look_up")));

        let mut text = tool("b");
        text["function"]["parameters"] = json!({"type": "string"});
        for (tools, pointer) in [
            (json!([tool("terminal")]), "/tools/0/function/name"),
            (json!([tool("a"), tool("b c")]), "/tools/1/function/name"),
            (json!([tool("a"), tool("a")]), "/tools/1/function/name"),
            (json!([text]), "/tools/0/function/parameters"),
        ] {
            let session = owner.post("/v1/sessions", &json!({"tools": tools})).await;
            let turn = owner
                .post(&talk.path("/turns"), &json!({"input": "x", "tools": tools}))
                .await;
            let patch = owner.patch(&talk.path(""), &json!({"tools": tools})).await;
            for answer in [session, turn, patch] {
                let problem = answer.problem(400, "invalid_request");
                assert_eq!(problem["errors"][0]["pointer"], pointer);
            }
        }
        let other = json!({"type": "function", "function": {"name": "other"}});
        let body = json!({"input": "/tool other {}\n/then\n/tool look_up {\"order\": 1}", "tools": [other]});
        owner.post(&talk.path("/turns"), &body).await.expect(202);
        for _ in 0..2 {
            let actions = waiting(&mut talk).await;
            give(&talk, &[result(&actions[0], "{}")]).await.expect(200);
        }
        talk.events.until("turn.completed").await;
        owner.patch(&talk.path(""), &json!({"tools": []})).await.expect(200);
        talk.say("/tool look_up {\"order\": 1}").await;
        talk.events.until("turn.completed").await;
        let messages = owner.get(&talk.path("/messages")).await.expect(200);
        let last = results(&messages).pop().unwrap();
        assert!(last.contains("Unknown tool: look_up"), "{last}");
        web.stop().await;
    });
}

#[test]
fn results_that_are_sent_again_under_their_key_are_answered_again() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        talk.say(CALLS).await;
        let actions = waiting(&mut talk).await;
        let send = async |output: &str| {
            let body = json!({"results": [result(&actions[0], output)]});
            let request = owner.request(Method::POST, &talk.path("/tool-results"));
            let sent = request.header("Idempotency-Key", "k").json(&body).send().await.unwrap();
            crate::harness::http::Answer::of(sent).await
        };
        let first = send("seven").await;
        let again = send("seven").await;
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(first.expect(200), again.expect(200));
        send("six").await.problem(422, "idempotency_key_reused");
        web.stop().await;
    });
}
