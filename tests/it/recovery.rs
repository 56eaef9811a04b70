//! A server dies while a command runs. Where the policy says so, a person is
//! asked what became of it, and the answer is carried out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermes_server::store::Fate;
use serde_json::{Value, json};

use crate::api_rest::{Talk, decision_of};
use crate::harness::client::Client;
use crate::harness::http::Web;
use crate::harness::script::terminal;
use crate::harness::{PATIENCE, Place, lines, on_both, probe};

/// Leaves a line, then waits until `go` is there.
const HOLD: &str = "echo ran >> a; while [ ! -e go ]; do sleep 0.02; done; echo over";

/// A server that came back after one died under a running command, and what it
/// asks.
struct Scene {
    web: Web,
    owner: Client,
    talk: Talk,
    approval: Value,
}

impl Scene {
    async fn after_death(place: &mut Place, command: &str, settings: &Value) -> Self {
        let session = interrupted(place, command, settings).await;
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::of(&web, &owner, &session).await;
        let mut asked = Vec::new();
        // A command that was allowed before has waited before, too.
        while asked.is_empty() {
            asked = talk.asked().await;
        }
        let approval = asked.remove(0);
        Self {
            web,
            owner,
            talk,
            approval,
        }
    }

    async fn answer(&mut self, body: &Value) -> Value {
        let decided = self.owner.post(&decision_of(&self.approval), body).await.expect(200);
        self.talk.events.until("turn.completed").await;
        decided
    }

    /// The call as it stands at the end.
    async fn call(&self) -> Value {
        let page = self.owner.get(&self.talk.path("/messages")).await.expect(200);
        let mut messages = page["data"].as_array().unwrap().iter();
        let calls = messages.find_map(|message| message["tool_calls"].get(0).cloned());
        calls.unwrap()
    }

    async fn result(&self) -> String {
        let page = self.owner.get(&self.talk.path("/messages")).await.expect(200);
        let mut messages = page["data"].as_array().unwrap().iter();
        let result = messages.find(|message| message["role"] == "tool").unwrap();
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    fn ran(&self) -> usize {
        lines(&workspace(&self.web, &self.talk.session).join("a"))
    }

    fn let_go(&self) {
        std::fs::write(workspace(&self.web, &self.talk.session).join("go"), "").unwrap();
    }
}

fn workspace(web: &Web, session: &str) -> std::path::PathBuf {
    web.server.workspace(session.parse().unwrap())
}

/// Starts a command and dies under it; the session.
async fn interrupted(place: &mut Place, command: &str, settings: &Value) -> String {
    let dead = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&dead);
    let web = place
        .serve_probed(probe(move |_| match seen.load(Ordering::SeqCst) {
            true => Fate::FailBefore,
            false => Fate::Go,
        }))
        .await;
    let owner = web.owner().await;
    let mut talk = Talk::new(&web, &owner, settings).await;
    talk.say(&format!("{}\n/then\n/say done", terminal(command))).await;
    if command.contains("rm -rf") {
        let asked = talk.asked().await;
        owner
            .post(&decision_of(&asked[0]), &json!({"choice": "once"}))
            .await
            .expect(200);
    }
    talk.events.until("tool_call.started").await;
    let file = workspace(&web, &talk.session).join("a");
    let began = async {
        while lines(&file) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, began).await.unwrap();
    dead.store(true, Ordering::SeqCst);
    web.crash().await;
    talk.session
}

fn ask() -> Value {
    json!({"approvals": {"recovery": "ask"}})
}

#[test]
fn a_call_whose_outcome_is_unknown_waits_and_runs_again_when_a_person_says_so() {
    on_both(async |mut place| {
        let mut scene = Scene::after_death(&mut place, HOLD, &ask()).await;
        let approval = scene.approval.clone();
        assert_eq!(
            (&approval["kind"], &approval["tool"]),
            (&json!("recovery"), &json!("terminal"))
        );
        assert_eq!(approval["choices"], json!(["retry", "skip", "mark_done"]));
        assert_eq!(approval["arguments"]["command"], HOLD);
        let session = scene.owner.get(&scene.talk.path("")).await.expect(200);
        assert_eq!(session["status"], "requires_action");
        assert_eq!(session["required_actions"][0]["id"], approval["id"]);
        for choice in ["once", "deny"] {
            let body = json!({"choice": choice});
            let refused = scene.owner.post(&decision_of(&approval), &body).await;
            refused.problem(400, "choice_not_offered");
        }
        assert_eq!(scene.ran(), 1);
        scene.let_go();
        let body = json!({"choice": "retry", "digest": approval["digest"]});
        assert_eq!(scene.answer(&body).await["status"], "allowed");
        assert_eq!(
            (scene.ran(), scene.call().await["status"].clone()),
            (2, json!("succeeded"))
        );
        assert!(scene.result().await.contains("over"));
        // The same answer again changes nothing.
        scene.owner.post(&decision_of(&approval), &body).await.expect(200);
        assert_eq!(scene.ran(), 2);
        scene.web.stop().await;
    });
}

#[test]
fn what_a_person_says_of_it_is_what_the_model_reads() {
    on_both(async |mut place| {
        place.config.approvals.recovery = hermes_server::config::Recovery::Ask;
        let mut done = Scene::after_death(&mut place, HOLD, &json!({})).await;
        let body = json!({"choice": "mark_done", "reason": "the file is there"});
        assert_eq!(done.answer(&body).await["status"], "allowed");
        assert_eq!(
            (done.ran(), done.call().await["status"].clone()),
            (1, json!("succeeded"))
        );
        let result = done.result().await;
        assert!(
            result.contains("confirmed") && result.contains("the file is there"),
            "{result}"
        );
        done.web.stop().await;

        // In a batch, and after one more restart.
        let skipped = Scene::after_death(&mut place, HOLD, &json!({})).await;
        let (session, approval) = (skipped.talk.session.clone(), skipped.approval.clone());
        skipped.web.stop().await;
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::of(&web, &owner, &session).await;
        let again = owner
            .get(&format!("/v1/approvals/{}", approval["id"].as_str().unwrap()))
            .await
            .expect(200);
        assert_eq!(again, approval);
        let one = json!({"approval_id": approval["id"], "choice": "skip"});
        let batch = json!({"mode": "atomic", "decisions": [one]});
        let outcome = owner.post(&talk.path("/approvals/decisions"), &batch).await.expect(200);
        assert_eq!(outcome["outcomes"][0]["approval"]["status"], "denied");
        talk.events.until("turn.completed").await;
        let skipped = Scene {
            web,
            owner,
            talk,
            approval,
        };
        assert_eq!(
            (skipped.ran(), skipped.call().await["status"].clone()),
            (1, json!("unknown"))
        );
        assert!(skipped.result().await.contains("effect is unknown"));
        skipped.web.stop().await;
    });
}

#[test]
fn a_dangerous_call_is_judged_again_and_shown_with_its_findings_once() {
    on_both(async |mut place| {
        let command = format!("rm -rf never-there; {HOLD}");
        let mut scene = Scene::after_death(&mut place, &command, &ask()).await;
        assert_eq!(scene.approval["kind"], "recovery");
        assert!(!scene.approval["findings"].as_array().unwrap().is_empty());
        scene.let_go();
        scene.answer(&json!({"choice": "retry"})).await;
        assert_eq!(scene.ran(), 2);
        scene.web.stop().await;

        // What the operator forbids by now is not offered to be run again.
        let session = interrupted(&mut place, &command, &ask()).await;
        place.config.approvals.deny = vec!["rm*".to_owned()];
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::of(&web, &owner, &session).await;
        let mut asked = Vec::new();
        while asked.is_empty() {
            asked = talk.asked().await;
        }
        assert_eq!(asked[0]["choices"], json!(["skip", "mark_done"]));
        web.stop().await;
    });
}

#[test]
fn nobody_says_that_it_did_not_run_when_the_question_ends_without_an_answer() {
    on_both(async |mut place| {
        let mut expiring = ask();
        expiring["approvals"]["timeout_seconds"] = json!(1);
        let mut scene = Scene::after_death(&mut place, HOLD, &expiring).await;
        scene.talk.events.until("approval.expired").await;
        scene.talk.events.until("turn.completed").await;
        assert_eq!(
            (scene.ran(), scene.call().await["status"].clone()),
            (1, json!("unknown"))
        );
        scene.web.stop().await;

        for interrupts in [false, true] {
            let mut scene = Scene::after_death(&mut place, HOLD, &ask()).await;
            if interrupts {
                let body = json!({"input": "/say other", "on_busy": "interrupt"});
                scene.owner.post(&scene.talk.path("/turns"), &body).await.expect(202);
                scene.talk.events.until("approval.superseded").await;
                scene.talk.events.until("turn.completed").await;
            } else {
                let turn = scene.approval["turn_id"].as_str().unwrap();
                let cancel = scene.talk.path(&format!("/turns/{turn}/cancel"));
                let cancelled = scene.owner.post(&cancel, &json!({})).await;
                assert!(cancelled.status < 300, "{}", cancelled.body);
                scene.talk.events.until("turn.cancelled").await;
            }
            assert_eq!(scene.call().await["status"], "unknown");
            assert!(scene.result().await.contains("unknown"));
            scene.web.stop().await;
        }
    });
}

#[test]
fn without_the_policy_or_without_anybody_there_the_turn_goes_on() {
    on_both(async |mut place| {
        for settings in [json!({}), json!({"approvals": {"recovery": "ask", "on_ask": "deny"}})] {
            let session = interrupted(&mut place, HOLD, &settings).await;
            let web = place.serve().await;
            let owner = web.owner().await;
            let mut talk = Talk::of(&web, &owner, &session).await;
            talk.events.until("tool_call.unknown").await;
            talk.events.until("turn.completed").await;
            web.stop().await;
        }
    });
}
