//! Approvals over HTTP: what is shown, who may answer, which answer wins.

use std::path::Path;

use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use super::{Talk, decision_of};
use crate::harness::http::Web;
use crate::harness::script::{guarded, terminal};
use crate::harness::{lines, on_both};

/// How often a command of a session left its mark.
fn marks(web: &Web, session: &str, file: &str) -> usize {
    lines(&web.server.workspace(session.parse().unwrap()).join(file))
}

#[test]
fn fc_044_who_may_write_may_not_decide_and_the_decider_is_recorded() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let ada = web
            .user("ada", &[Scope::SessionsRead, Scope::SessionsWrite, Scope::TurnsWrite])
            .await;
        let boss = web.user("boss", &[Scope::ApprovalsDecide, Scope::TenantAll]).await;
        let mut talk = Talk::new(&web, &ada, &json!({})).await;
        let approval = talk.ask(&guarded("a")).await;
        let once = json!({"choice": "once"});
        ada.post(&decision_of(&approval), &once).await.problem(403, "forbidden");
        let path = format!("/v1/approvals/{}", approval["id"].as_str().unwrap());
        assert_eq!(ada.get(&path).await.expect(200)["status"], "pending");
        let decided = boss.post(&decision_of(&approval), &once).await.expect(200);
        assert_eq!(
            (&decided["status"], &decided["decision"]["by"]),
            (&json!("allowed"), &json!("boss"))
        );
        assert_eq!(decided["requester"], "ada");
        talk.events.until("turn.completed").await;
        assert_eq!(marks(&web, &talk.session, "a"), 1);
        assert_eq!(ada.get(&path).await.expect(200), decided);
        web.stop().await;
    });
}

#[test]
fn who_may_not_decide_cannot_have_nobody_asked() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let write = [Scope::SessionsRead, Scope::SessionsWrite, Scope::TurnsWrite];
        let ada = web.user("ada", &write).await;
        let off = json!({"approvals": {"mode": "off"}});
        ada.post("/v1/sessions", &off).await.problem(403, "forbidden");
        let made = ada
            .post("/v1/sessions", &json!({"approvals": {"mode": "manual"}}))
            .await
            .expect(201);
        let path = format!("/v1/sessions/{}", made["id"].as_str().unwrap());
        ada.patch(&path, &off).await.problem(403, "forbidden");
        let boss = web.user("boss", &[Scope::SessionsWrite, Scope::ApprovalsDecide]).await;
        assert_eq!(
            boss.post("/v1/sessions", &off).await.expect(201)["approvals"],
            off["approvals"]
        );
        web.stop().await;
    });
}

#[test]
fn fc_026_an_answer_after_the_time_gets_the_final_state_and_nothing_runs() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({"approvals": {"timeout_seconds": 1}})).await;
        let approval = talk.ask(&guarded("a")).await;
        talk.events.until("approval.expired").await;
        talk.events.until("turn.completed").await;
        let answer = owner.post(&decision_of(&approval), &json!({"choice": "once"})).await;
        let problem = answer.problem(409, "approval_expired");
        let shown = &problem["context"]["approval"];
        assert_eq!((&shown["id"], &shown["status"]), (&approval["id"], &json!("expired")));
        assert_eq!(marks(&web, &talk.session, "a"), 0);
        web.stop().await;
    });
}

#[test]
fn fc_035_a_choice_that_is_not_offered_is_refused_and_leaves_it_pending() {
    on_both(async |mut place| {
        place.config.approvals.allow_permanent = false;
        let web = place.serve().await;
        let owner = web.owner().await;
        let approval = Talk::new(&web, &owner, &json!({})).await.ask(&guarded("a")).await;
        assert_eq!(approval["choices"], json!(["once", "session", "deny"]));
        let answer = owner.post(&decision_of(&approval), &json!({"choice": "always"})).await;
        let problem = answer.problem(400, "choice_not_offered");
        assert_eq!(problem["errors"][0]["pointer"], "/choice");
        for wrong in [
            json!({"choice": "yes"}),
            json!({}),
            json!({"choice": "once", "stop_turn": true}),
        ] {
            owner
                .post(&decision_of(&approval), &wrong)
                .await
                .problem(400, "invalid_request");
        }
        let path = format!("/v1/approvals/{}", approval["id"].as_str().unwrap());
        assert_eq!(owner.get(&path).await.expect(200), approval);
        web.stop().await;
    });
}

#[test]
fn fc_043_an_approval_shows_everything_that_is_decided_on() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let command = format!("cd sub && rm -rf build && echo a-very-long-tail-{}", "x".repeat(600));
        let mut talk = Talk::new(&web, &owner, &json!({"approvals": {"timeout_seconds": 3600}})).await;
        let approval = talk.ask(&terminal(&command)).await;
        assert_eq!(approval["tool"], "terminal");
        assert_eq!(approval["arguments"]["command"], command.as_str());
        assert_eq!(approval["backend"], "local");
        let cwd = approval["cwd"].as_str().unwrap();
        assert_eq!(Path::new(cwd), web.server.workspace(talk.session.parse().unwrap()));
        let finding = &approval["findings"][0];
        for field in ["rule", "key", "description", "severity"] {
            assert!(!finding[field].as_str().unwrap().is_empty(), "{finding}");
        }
        let (start, end) = (
            finding["span"]["start"].as_u64().unwrap(),
            finding["span"]["end"].as_u64().unwrap(),
        );
        let evidence = &command[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()];
        assert!(evidence.contains("rm"), "{evidence}");
        assert_eq!(approval["choices"], json!(["once", "session", "always", "deny"]));
        let at = |field: &str| approval[field].as_str().unwrap().to_owned();
        assert!(at("requested_at") < at("expires_at"));
        assert_eq!(at("digest").len(), 64);
        web.stop().await;
    });
}

#[test]
fn the_first_answer_wins_and_the_same_again_is_no_error() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (owner, other) = (web.owner().await, web.user("other", &[Scope::Admin]).await);
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let approval = talk.ask(&guarded("a")).await;
        let (deny, once) = (
            json!({"choice": "deny", "reason": "not today"}),
            json!({"choice": "once"}),
        );
        let first = owner.post(&decision_of(&approval), &deny).await.expect(200);
        talk.events.until("turn.completed").await;
        assert_eq!(owner.post(&decision_of(&approval), &deny).await.expect(200), first);
        for (client, answer) in [(&owner, &once), (&other, &once), (&other, &deny)] {
            let problem = client
                .post(&decision_of(&approval), answer)
                .await
                .problem(409, "approval_resolved");
            assert_eq!(problem["context"]["approval"], first);
        }
        let told = owner.get(&talk.path("/messages")).await.expect(200).to_string();
        assert!(told.contains("not today"), "{told}");
        assert_eq!(marks(&web, &talk.session, "a"), 0);
        web.stop().await;
    });
}

#[test]
fn an_answer_to_something_else_than_was_shown_is_refused() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let approval = talk.ask(&guarded("a")).await;
        let stale = json!({"choice": "once", "digest": "0".repeat(64)});
        let problem = owner
            .post(&decision_of(&approval), &stale)
            .await
            .problem(409, "approval_stale");
        assert_eq!(problem["context"]["approval"], approval);
        let exact = json!({"choice": "once", "digest": approval["digest"]});
        assert_eq!(
            owner.post(&decision_of(&approval), &exact).await.expect(200)["status"],
            "allowed"
        );
        talk.events.until("turn.completed").await;
        assert_eq!(marks(&web, &talk.session, "a"), 1);
        web.stop().await;
    });
}

#[test]
fn fc_025_decisions_bind_to_ids_and_not_to_the_order_of_asking() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        talk.say(&format!("{}\n{}\n/then\n/say ok", guarded("keep"), guarded("drop")))
            .await;
        let asked = talk.asked().await;
        assert_eq!(
            (asked.len(), &asked[0]["index"], &asked[1]["index"]),
            (2, &json!(0), &json!(1))
        );
        assert_eq!(asked[0]["batch_id"], asked[1]["batch_id"]);
        owner
            .post(&decision_of(&asked[1]), &json!({"choice": "once"}))
            .await
            .expect(200);
        owner
            .post(&decision_of(&asked[0]), &json!({"choice": "deny"}))
            .await
            .expect(200);
        talk.events.until("turn.completed").await;
        assert_eq!(
            (marks(&web, &talk.session, "keep"), marks(&web, &talk.session, "drop")),
            (0, 1)
        );
        web.stop().await;
    });
}

#[test]
fn a_denial_can_end_the_turn_and_a_cancelled_turn_takes_no_answer() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let approval = talk.ask(&guarded("a")).await;
        let stop = json!({"choice": "deny", "stop_turn": true});
        owner.post(&decision_of(&approval), &stop).await.expect(200);
        let ended = talk.events.until("turn.cancelled").await;
        assert_eq!(ended.data["data"]["turn"]["stop_reason"], "denied");

        let turn = talk.say(&guarded("b")).await;
        let approval = talk.asked().await[0].clone();
        owner
            .post(&talk.path(&format!("/turns/{turn}/cancel")), &json!({}))
            .await
            .expect(200);
        let answer = owner.post(&decision_of(&approval), &json!({"choice": "once"})).await;
        let problem = answer.problem(409, "approval_resolved");
        assert_eq!(problem["context"]["approval"]["status"], "cancelled");
        assert_eq!(marks(&web, &talk.session, "b"), 0);
        web.stop().await;
    });
}

#[test]
fn an_approval_outlives_its_server_and_is_gone_with_its_session() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let approval = talk.ask(&guarded("a")).await;
        web.stop().await;
        let web = place.serve().await;
        let owner = web.owner().await;
        let decided = owner
            .post(&decision_of(&approval), &json!({"choice": "once"}))
            .await
            .expect(200);
        assert_eq!(decided["status"], "allowed");
        let mut events = owner.stream(&web, &talk.path("/stream")).await;
        events.until("turn.completed").await;
        assert_eq!(marks(&web, &talk.session, "a"), 1);
        assert_eq!(owner.delete(&talk.path("")).await.status, 204);
        let path = format!("/v1/approvals/{}", approval["id"].as_str().unwrap());
        owner.get(&path).await.problem(404, "not_found");
        web.stop().await;
    });
}

#[test]
fn the_list_is_newest_first_in_pages_and_filtered() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let (mut one, mut two) = (
            Talk::new(&web, &owner, &json!({})).await,
            Talk::new(&web, &owner, &json!({})).await,
        );
        one.say(&format!("{}\n{}", guarded("a"), guarded("b"))).await;
        let mut expected = one.asked().await;
        expected.push(two.ask(&guarded("c")).await);
        expected.reverse();
        let mut found: Vec<Value> = Vec::new();
        let mut path = "/v1/approvals?limit=1".to_owned();
        loop {
            let page = owner.get(&path).await.expect(200);
            found.extend(page["data"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next_cursor"].as_str() else {
                assert_eq!(page["has_more"], false);
                break;
            };
            path = format!("/v1/approvals?limit=1&after={next}");
        }
        assert_eq!(found, expected);
        let list = async |query: &str| owner.get(&format!("/v1/approvals?{query}")).await.expect(200)["data"].clone();
        assert_eq!(list(&format!("session_id={}", two.session)).await, json!([expected[0]]));
        owner
            .post(&decision_of(&expected[0]), &json!({"choice": "deny"}))
            .await
            .expect(200);
        assert_eq!(list("status=pending").await, json!(expected[1..]));
        assert_eq!(list("status=denied").await[0]["id"], expected[0]["id"]);
        owner
            .get("/v1/approvals?after=nonsense")
            .await
            .problem(400, "invalid_cursor");
        owner
            .get("/v1/approvals?status=open")
            .await
            .problem(400, "invalid_request");
        web.stop().await;
    });
}
