//! Many answers in one request, over HTTP.

use reqwest::Method;
use serde_json::{Value, json};

use super::Talk;
use crate::harness::script::guarded;
use crate::harness::{lines, on_both};

fn one(approval: &Value, choice: &str) -> Value {
    json!({"approval_id": approval["id"], "choice": choice})
}

#[test]
fn each_answer_has_its_outcome_and_those_that_fail_change_nothing() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        talk.say(&["a", "b", "c"].map(guarded).join("\n")).await;
        let asked = talk.asked().await;
        let mut edit = one(&asked[0], "once");
        edit["arguments"] = json!({"command": "echo ran >> edited"});
        let mut floor = one(&asked[1], "once");
        floor["arguments"] = json!({"command": "rm -rf /"});
        let stranger = json!({"approval_id": format!("apr_{}", "0".repeat(26)), "choice": "once"});
        let decisions = json!([edit, floor, stranger, one(&asked[2], "deny")]);
        let body = json!({"mode": "each", "decisions": decisions});
        let answer = owner.post(&talk.path("/approvals/decisions"), &body).await.expect(200);
        let outcomes = answer["outcomes"].as_array().unwrap();
        assert_eq!(outcomes[0]["approval"]["decision"]["edited"], true);
        assert_eq!(outcomes[1]["problem"]["code"], "edit_not_allowed");
        assert_eq!(outcomes[1]["problem"]["errors"][0]["pointer"], "/decisions/1/arguments");
        assert_eq!(outcomes[2]["problem"]["code"], "not_found");
        assert_eq!(outcomes[3]["approval"]["status"], "denied");
        let body = json!({"mode": "atomic", "decisions": [one(&asked[1], "deny")]});
        owner.post(&talk.path("/approvals/decisions"), &body).await.expect(200);
        talk.events.until("turn.completed").await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        let made = ["a", "b", "c", "edited"].map(|file| lines(&workspace.join(file)));
        assert_eq!(made, [0, 0, 0, 1]);
        web.stop().await;
    });
}

#[test]
fn all_or_nothing_names_the_first_that_fails() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        talk.say(&["a", "b"].map(guarded).join("\n")).await;
        let asked = talk.asked().await;
        let mut misfit = one(&asked[1], "once");
        misfit["arguments"] = json!({});
        let body = json!({"mode": "atomic", "decisions": [one(&asked[0], "once"), misfit]});
        let problem = owner
            .post(&talk.path("/approvals/decisions"), &body)
            .await
            .problem(422, "edit_invalid");
        assert_eq!(problem["context"]["index"], 1);
        assert_eq!(problem["context"]["approval_id"], asked[1]["id"]);
        assert_eq!(problem["errors"][0]["pointer"], "/decisions/1/arguments/command");
        let path = format!("/v1/approvals?status=pending&session_id={}", talk.session);
        let pending = owner.get(&path).await.expect(200);
        assert_eq!(pending["data"].as_array().unwrap().len(), 2);
        web.stop().await;
    });
}

#[test]
fn a_batch_that_is_no_batch_is_refused_as_a_whole() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let asked = talk.ask(&guarded("a")).await;
        let path = talk.path("/approvals/decisions");
        let many: Vec<Value> = vec![one(&asked, "once"); 51];
        for (decisions, pointer) in [
            (json!([]), "/decisions"),
            (json!(many), "/decisions"),
            (json!(many[..2]), "/decisions/1/approval_id"),
        ] {
            let body = json!({"mode": "each", "decisions": decisions});
            let problem = owner.post(&path, &body).await.problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], pointer);
        }
        let mut long = one(&asked, "deny");
        long["reason"] = json!("x".repeat(4001));
        for body in [
            json!({"mode": "each", "decisions": [long]}),
            json!({"decisions": [one(&asked, "once")]}),
            json!({"mode": "some", "decisions": [one(&asked, "once")]}),
        ] {
            owner.post(&path, &body).await.problem(400, "invalid_request");
        }
        let path = format!("/v1/approvals/{}", asked["id"].as_str().unwrap());
        assert_eq!(owner.get(&path).await.expect(200), asked);
        web.stop().await;
    });
}

#[test]
fn a_batch_that_is_sent_again_under_its_key_gets_the_first_outcomes() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        talk.say(&["a", "b"].map(guarded).join("\n")).await;
        let asked = talk.asked().await;
        let send = async |choice: &str| {
            let body = json!({"mode": "each", "decisions": [one(&asked[0], "deny"), one(&asked[1], choice)]});
            let request = owner.request(Method::POST, &talk.path("/approvals/decisions"));
            let sent = request
                .header("Idempotency-Key", "batch")
                .json(&body)
                .send()
                .await
                .unwrap();
            let replayed = sent.headers().contains_key("idempotency-replayed");
            (sent.status().as_u16(), replayed, sent.json::<Value>().await.unwrap())
        };
        let first = send("once").await;
        assert_eq!((first.0, first.1), (200, false));
        let again = send("once").await;
        assert_eq!((again.0, again.1), (200, true));
        assert_eq!(again.2, first.2);
        let other = send("deny").await;
        assert_eq!((other.0, &other.2["code"]), (422, &json!("idempotency_key_reused")));
        talk.events.until("turn.completed").await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        assert_eq!(["a", "b"].map(|file| lines(&workspace.join(file))), [0, 1]);
        web.stop().await;
    });
}
