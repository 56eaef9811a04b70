//! Field cases about approvals: who is asked, when, and what an answer changes.

use serde_json::{Value, json};

use super::{count, decide, ended, events, messages, results, talk};
use crate::api_rest::Talk;
use crate::harness::http::Web;
use crate::harness::script::{guarded, mark, terminal};
use crate::harness::{lines, on_both};

fn marks(web: &Web, talk: &Talk, file: &str) -> usize {
    lines(&web.server.workspace(talk.session.parse().unwrap()).join(file))
}

async fn pending(talk: &Talk) -> Vec<Value> {
    let path = format!("/v1/approvals?status=pending&session_id={}", talk.session);
    talk.client.get(&path).await.expect(200)["data"]
        .as_array()
        .unwrap()
        .clone()
}

/// Says something while an approval pends: neither way of saying it decides.
fn said_while_pending(words: &'static str) {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = talk(&web, json!({})).await;
        let approval = talk.ask(&format!("{}\n/then\n/say ok", guarded("ran"))).await;
        let refused = talk.client.post(&talk.path("/turns"), &json!({"input": words})).await;
        let problem = refused.problem(409, "session_busy");
        assert_eq!(problem["context"]["pending_approval_ids"], json!([approval["id"]]));
        let how = problem["detail"].as_str().unwrap();
        assert!(how.contains("POST /v1/approvals/{id}/decision"), "{how}");

        let queued = json!({"input": words, "on_busy": "enqueue"});
        let queued = talk.client.post(&talk.path("/turns"), &queued).await.expect(202);
        assert_eq!(queued["status"], "queued");
        assert_eq!(pending(&talk).await, std::slice::from_ref(&approval));
        assert_eq!(marks(&web, &talk, "ran"), 0);

        decide(&talk, &approval, "deny").await;
        let queued = talk.path(&format!("/turns/{}", queued["id"].as_str().unwrap()));
        assert_eq!(ended(&talk, &queued).await["status"], "completed");
        assert_eq!(count(&events(&talk).await, "approval.requested"), 1);
        assert_eq!(marks(&web, &talk, "ran"), 0);
        web.stop().await;
    });
}

#[test]
fn fc_028_a_message_that_withdraws_the_request_decides_nothing() {
    said_while_pending("stop, do not delete anything");
}

#[test]
fn fc_029_a_message_that_agrees_decides_nothing() {
    said_while_pending("yes, go ahead");
}

#[test]
fn fc_034_once_is_once() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = talk(&web, json!({})).await;
        let script = format!("{}\n/then\n{}\n/then\n/say ok", guarded("a"), guarded("b"));
        let first = talk.ask(&script).await;
        decide(&talk, &first, "once").await;
        let second = talk.asked().await;
        assert_eq!(second.len(), 1);
        assert_ne!(second[0]["id"], first["id"]);
        assert_eq!((marks(&web, &talk, "a"), marks(&web, &talk, "b")), (1, 0));
        assert_eq!(talk.client.get("/v1/grants").await.expect(200)["data"], json!([]));
        decide(&talk, &second[0], "deny").await;
        talk.events.until("turn.completed").await;
        assert_eq!(marks(&web, &talk, "b"), 0);
        web.stop().await;
    });
}

/// A turn that asks, is not answered, and would run another command then.
async fn unanswered(web: &Web, policy: Value) -> (Talk, Value) {
    let mut talk = talk(web, json!({"approvals": policy})).await;
    let approval = talk
        .ask(&format!("{}\n/then\n{}\n/then\n/say x", guarded("a"), mark("next")))
        .await;
    (talk, approval)
}

#[test]
fn fc_037_an_expired_approval_halts_the_turn_where_that_is_the_policy() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (mut talk, approval) = unanswered(&web, json!({"timeout_seconds": 1, "on_expiry": "halt"})).await;
        assert_eq!(approval["on_expiry"], "halt");
        let end = talk.events.until("turn.cancelled").await;
        assert_eq!(end.data["data"]["turn"]["stop_reason"], "approval_expired");
        assert_eq!((marks(&web, &talk, "a"), marks(&web, &talk, "next")), (0, 0));
        assert_eq!(
            results(&messages(&talk).await).len(),
            1,
            "the call has its result all the same"
        );
        web.stop().await;
    });
}

#[test]
fn fc_037_an_expired_approval_is_a_denial_that_the_model_hears_of() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (mut talk, _) = unanswered(&web, json!({"timeout_seconds": 1, "on_expiry": "deny"})).await;
        talk.events.until("approval.expired").await;
        talk.events.until("turn.completed").await;
        assert_eq!((marks(&web, &talk, "a"), marks(&web, &talk, "next")), (0, 1));
        let messages = messages(&talk).await;
        let told = results(&messages)[0].to_lowercase();
        assert!(
            told.contains("not approved") || told.contains("expired") || told.contains("nobody"),
            "{told}"
        );
        web.stop().await;
    });
}

#[test]
fn fc_037_an_approval_without_a_limit_waits_across_a_restart() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (talk_before, approval) = unanswered(&web, json!({"timeout_seconds": 0})).await;
        assert_eq!(approval["expires_at"], Value::Null);
        web.stop().await;
        let web = place.serve().await;
        let talk = Talk {
            client: web.owner().await,
            events: web.owner().await.stream(&web, &talk_before.path("/stream")).await,
            session: talk_before.session.clone(),
        };
        assert_eq!(pending(&talk).await, std::slice::from_ref(&approval));
        decide(&talk, &approval, "once").await;
        let turn = talk.path(&format!("/turns/{}", approval["turn_id"].as_str().unwrap()));
        assert_eq!(ended(&talk, &turn).await["status"], "completed");
        assert_eq!((marks(&web, &talk, "a"), marks(&web, &talk, "next")), (1, 1));
        web.stop().await;
    });
}

#[test]
fn fc_040_a_call_that_needs_nobody_does_not_wait_for_its_sibling() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = talk(&web, json!({})).await;
        let turn = talk
            .say(&format!("{}\n{}\n/then\n/say ok", mark("fast"), guarded("slow")))
            .await;
        let done = talk.events.until("tool_call.completed").await;
        let fast = &done.data["data"]["tool_call"];
        assert_eq!((&fast["index"], &fast["status"]), (&json!(0), &json!("succeeded")));
        assert_eq!(marks(&web, &talk, "fast"), 1);
        // Nobody has decided, and the result is stored.
        let session = talk.client.get(&talk.path("")).await.expect(200);
        assert_eq!(session["status"], "requires_action");
        let actions = session["required_actions"].as_array().unwrap();
        assert_eq!((actions.len(), &actions[0]["turn_id"]), (1, &json!(turn)));
        let waiting = pending(&talk).await;
        assert_eq!((waiting.len(), &waiting[0]["index"]), (1, &json!(1)));
        let messages = messages(&talk).await;
        let calls = messages
            .iter()
            .find_map(|message| message["tool_calls"].as_array())
            .unwrap();
        assert_eq!(
            (&calls[0]["status"], &calls[1]["status"]),
            (&json!("succeeded"), &json!("waiting"))
        );
        assert_eq!(results(&messages).len(), 1);
        decide(&talk, &waiting[0], "deny").await;
        talk.events.until("turn.completed").await;
        web.stop().await;
    });
}

#[test]
fn fc_041_an_unattended_turn_is_refused_and_never_waits() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let script = format!("{}\n/then\n/say refused", guarded("a"));
        let body = json!({"input": script, "approvals": {"on_ask": "deny"}});
        let done = talk.client.post(&talk.path("/turns?wait=20"), &body).await.expect(200);
        assert_eq!(
            (&done["turn"]["status"], &done["approvals"]),
            (&json!("completed"), &json!([]))
        );
        let events = events(&talk).await;
        assert_eq!(
            (count(&events, "turn.waiting"), count(&events, "tool_call.denied")),
            (0, 1)
        );
        assert_eq!(marks(&web, &talk, "a"), 0);
        let messages = messages(&talk).await;
        let told = results(&messages)[0].to_lowercase();
        assert!(
            told.contains("nobody") || told.contains("unattended") || told.contains("no one"),
            "{told}"
        );
        web.stop().await;
    });
}

#[test]
fn fc_046_a_decision_runs_nothing_again_and_is_not_asked_for_again() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = talk(&web, json!({})).await;
        let approval = talk
            .ask(&format!("{}\n{}\n/then\n/say ok", mark("log"), guarded("a")))
            .await;
        assert_eq!(marks(&web, &talk, "log"), 1);
        decide(&talk, &approval, "once").await;
        talk.events.until("turn.completed").await;
        assert_eq!((marks(&web, &talk, "log"), marks(&web, &talk, "a")), (1, 1));
        assert_eq!(count(&events(&talk).await, "approval.requested"), 1);
        web.stop().await;
    });
}

/// No policy asks for everything; a command that cannot be parsed has no rule,
/// and so a grant for it is its exact text.
#[test]
fn fc_047_a_grant_without_a_rule_is_the_exact_text() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = talk(&web, json!({})).await;
        let granted = terminal("grep -n \"a.*b\" page.html; echo \"open");
        let approval = talk.ask(&granted).await;
        decide(&talk, &approval, "always").await;
        talk.events.until("turn.completed").await;
        let other = talk
            .ask(&terminal("grep -n \"aXb; id; b\" page.html; echo \"open"))
            .await;
        decide(&talk, &other, "deny").await;
        talk.events.until("turn.completed").await;
        talk.say(&granted).await;
        talk.events.until("turn.completed").await;
        assert_eq!(
            count(&events(&talk).await, "approval.requested"),
            2,
            "the same text is not asked again"
        );
        web.stop().await;
    });
}
