//! The budget that a session is made with or gets later: all its turns share it,
//! and it is judged beside what the server allows.

use hermes_server::model::budget::{BudgetScope, MAX_CEILING};
use reqwest::Method;
use serde_json::{Value, json};

use super::{looks, scripted};
use crate::api_rest::{Talk, decision_of};
use crate::harness::http::{Answer, Web};
use crate::harness::model_server::Reply;
use crate::harness::on_both;

async fn talk(web: &Web, new: &Value) -> Talk {
    Talk::new(web, &web.owner().await, new).await
}

async fn budget(talk: &Talk, budget: Value) -> Answer {
    let request = talk.client.request(Method::PATCH, &talk.path(""));
    Answer::of(request.json(&json!({"budget": budget})).send().await.unwrap()).await
}

async fn whole(talk: &Talk, text: &str) {
    let turns = talk.path("/turns?wait=20");
    let done = talk.client.post(&turns, &json!({"input": text})).await.expect(200);
    assert_eq!(done["turn"]["status"], "completed", "{done}");
}

#[test]
fn the_turns_of_a_session_share_the_budget_that_it_was_made_with() {
    on_both(async |mut place| {
        let replies = vec![
            Reply::say("one").taking(600, 10),
            looks(600, 10),
            Reply::say("two").taking(700, 1),
        ];
        let model = scripted(&mut place, replies).await;
        let web = place.serve().await;
        let mut talk = talk(&web, &json!({"budget": {"max_tokens": 1000}})).await;
        let shown = talk.client.get(&talk.path("")).await.expect(200);
        assert_eq!(shown["budget"], json!({"max_tokens": 1000}));
        whole(&talk, "go").await;
        // The second one begins below the line and comes to it.
        let turn = talk.say("go on").await;
        let approval = talk.asked().await.remove(0);
        let stated = json!({"scope": "session", "unit": "tokens", "limit": 1000, "spent": 1220, "add": 1320});
        assert_eq!(approval["arguments"]["budgets"], json!([stated]));
        assert_eq!(model.asked().len(), 2, "nothing is sent before the answer");
        let answer = json!({"choice": "grant_more", "digest": approval["digest"]});
        talk.client.post(&decision_of(&approval), &answer).await.expect(200);
        talk.events.until("turn.completed").await;
        let turn = talk.client.get(&talk.path(&format!("/turns/{turn}"))).await.expect(200);
        assert_eq!((&turn["stop_reason"], model.asked().len()), (&json!("end_turn"), 3));
        web.stop().await;
    });
}

#[test]
fn a_budget_that_is_set_later_holds_from_the_next_model_call_on() {
    on_both(async |mut place| {
        let replies = vec![Reply::say("one").taking(600, 10), Reply::say("two").taking(600, 10)];
        let model = scripted(&mut place, replies).await;
        let web = place.serve().await;
        let mut talk = talk(&web, &json!({})).await;
        whole(&talk, "go").await;
        let changed = budget(&talk, json!({"max_tokens": 600, "max_cost_nanos": 5})).await;
        assert_eq!(
            changed.expect(200)["budget"],
            json!({"max_tokens": 600, "max_cost_nanos": 5})
        );
        let told = talk.events.until("session.updated").await.data;
        assert_eq!(
            told["data"]["session"]["budget"],
            json!({"max_tokens": 600, "max_cost_nanos": 5})
        );
        talk.say("go on").await;
        let approval = talk.asked().await.remove(0);
        let budgets = approval["arguments"]["budgets"].as_array().unwrap();
        assert_eq!(
            (budgets.len(), &budgets[0]["scope"]),
            (1, &json!("session")),
            "{budgets:?}"
        );
        assert_eq!(model.asked().len(), 1, "nothing is sent over the line");
        let stop = json!({"choice": "stop"});
        talk.client.post(&decision_of(&approval), &stop).await.expect(200);
        talk.events.until("turn.completed").await;
        // Without one nobody is asked again.
        assert_eq!(budget(&talk, json!({})).await.expect(200)["budget"], json!({}));
        whole(&talk, "go on").await;
        assert_eq!(model.asked().len(), 2);
        let audit = talk
            .client
            .get("/v1/audit?action=session.policy_changed")
            .await
            .expect(200);
        let fields: Vec<&Value> = audit["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| &entry["fields"])
            .collect();
        assert_eq!(fields, [&json!(["budget"]), &json!(["budget"])]);
        web.stop().await;
    });
}

#[test]
fn of_a_session_and_its_server_the_narrower_budget_holds() {
    on_both(async |mut place| {
        let replies = vec![Reply::say("one").taking(600, 10)];
        let model = scripted(&mut place, replies).await;
        place.config.budgets.narrow(BudgetScope::Session, Some(600), None);
        let web = place.serve().await;
        let mut talk = talk(&web, &json!({"budget": {"max_tokens": 1_000_000}})).await;
        whole(&talk, "go").await;
        talk.say("go on").await;
        let approval = talk.asked().await.remove(0);
        assert_eq!(approval["arguments"]["budgets"][0]["limit"], 600);
        assert_eq!(model.asked().len(), 1);
        web.stop().await;
    });
}

#[test]
fn a_fork_has_the_budget_and_spends_it_anew() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, &json!({"budget": {"max_tokens": 100_000}})).await;
        whole(&talk, "/say x").await;
        let fork = talk.client.post(&talk.path("/fork"), &json!({})).await.expect(201);
        assert_eq!(fork["budget"], json!({"max_tokens": 100_000}));
        assert_eq!(fork["usage"]["input_tokens"], 0);
        web.stop().await;
    });
}

#[test]
fn what_is_no_budget_is_refused_by_its_place() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, &json!({})).await;
        for (wrong, pointer) in [
            (json!({"max_tokens": 0}), "/budget/max_tokens"),
            (json!({"max_tokens": -1}), "/budget/max_tokens"),
            (json!({"max_tokens": 1.5}), "/budget/max_tokens"),
            (json!({"max_cost_nanos": MAX_CEILING + 1}), "/budget/max_cost_nanos"),
            (json!({"max_steps": 1}), "/budget/max_steps"),
            (json!([]), "/budget"),
            (json!(null), "/budget"),
        ] {
            for answer in [
                budget(&talk, wrong.clone()).await,
                talk.client.post("/v1/sessions", &json!({"budget": wrong})).await,
            ] {
                let problem = answer.problem(400, "invalid_request");
                assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
            }
        }
        assert_eq!(talk.client.get(&talk.path("")).await.expect(200)["budget"], json!({}));
        web.stop().await;
    });
}
