//! What agents want to write for good waits until a person lets it in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hermes_server::config::CronMode;
use hermes_server::model::principal::Scope;
use hermes_server::store::Fate;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_rest::{Talk, decision_of};
use crate::cases::{ended, messages, results};
use crate::harness::client::Client;
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;
use crate::jobs::runs;

const TALKS: [Scope; 4] = [
    Scope::SessionsRead,
    Scope::SessionsWrite,
    Scope::TurnsWrite,
    Scope::ApprovalsDecide,
];

const GREET: &str = "---\nname: greet\ndescription: How we say hello\n---\nSay hello.\n";

/// What a call came to, once its turn is over.
async fn told(talk: &Talk, tool: &str, arguments: &Value) -> Value {
    let turn = talk.say(&format!("/tool {tool} {arguments}")).await;
    ended(talk, &talk.path(&format!("/turns/{turn}"))).await;
    let said = messages(talk).await;
    serde_json::from_str(results(&said).last().unwrap()).unwrap()
}

async fn waiting(client: &Client, filter: &str) -> Vec<Value> {
    let listed = client.get(&format!("/v1/pending-writes{filter}")).await.expect(200);
    listed["data"].as_array().unwrap().clone()
}

async fn approve(client: &Client, id: &Value) -> Answer {
    let path = format!("/v1/pending-writes/{}/approve", id.as_str().unwrap());
    client.post(&path, &json!({})).await
}

async fn talk(web: &Web, client: &Client, settings: &Value) -> Talk {
    Talk::new(web, client, settings).await
}

#[test]
fn a_change_of_a_skill_waits_and_is_made_when_a_person_lets_it_in() {
    on_both(async |mut place| {
        place.config.skills.write_approval = true;
        let web = place.serve().await;
        let owner = web.owner().await;
        let talk = talk(&web, &owner, &json!({})).await;
        let create = json!({"action": "create", "name": "greet", "content": GREET});
        let staged = told(&talk, "skill_manage", &create).await;
        assert_eq!(
            (&staged["success"], &staged["staged"]),
            (&json!(true), &json!(true)),
            "{staged}"
        );
        owner.get("/v1/skills/greet").await.problem(404, "not_found");
        let listed = waiting(&owner, "?kind=skill").await;
        assert_eq!((listed.len(), &listed[0]["id"]), (1, &staged["pending_id"]));
        assert_eq!(
            (&listed[0]["subject"], &listed[0]["change"]["content"]),
            (&json!("create skill greet"), &json!(GREET))
        );
        assert_eq!(listed[0]["session_id"], json!(talk.session));
        assert!(waiting(&owner, "?kind=memory").await.is_empty());
        // Dangerous or not: whoever lets it in sees it.
        let made = approve(&owner, &staged["pending_id"]).await.expect(200);
        assert_eq!(made["message"], "the skill `greet` was created");
        assert_eq!(owner.get("/v1/skills/greet").await.expect(200)["content"], GREET);
        approve(&owner, &staged["pending_id"]).await.problem(404, "not_found");

        // What cannot be made any more waits on, until it is taken away.
        let again = told(&talk, "skill_manage", &create).await;
        approve(&owner, &again["pending_id"])
            .await
            .problem(400, "invalid_request");
        assert_eq!(waiting(&owner, "").await.len(), 1);
        let path = format!("/v1/pending-writes/{}", again["pending_id"].as_str().unwrap());
        assert_eq!(owner.get(&path).await.expect(200)["id"], again["pending_id"]);
        let gone = owner.request(Method::DELETE, &path).send().await.unwrap();
        assert_eq!(gone.status(), 204);
        owner.get(&path).await.problem(404, "not_found");

        // What could never be made does not wait.
        let bad = json!({"action": "create", "name": "x", "content": "no front matter"});
        assert_eq!(told(&talk, "skill_manage", &bad).await["success"], false);
        let file =
            json!({"action": "write_file", "name": "greet", "file_path": "references/w.md", "file_content": "hé"});
        let staged = told(&talk, "skill_manage", &file).await;
        approve(&owner, &staged["pending_id"]).await.expect(200);
        let read = owner.request(Method::GET, "/v1/skills/greet/files/references/w.md");
        assert_eq!(read.send().await.unwrap().text().await.unwrap(), "hé");
        // People are not asked whether they meant it.
        let put = owner
            .request(Method::PUT, "/v1/skills/own")
            .json(&json!({"content": GREET}));
        assert_eq!(put.send().await.unwrap().status(), 201);
        web.stop().await;
    });
}

#[test]
fn a_note_is_asked_about_or_waits_where_nobody_can_be_asked() {
    on_both(async |mut place| {
        place.config.memory.write_approval = true;
        let web = place.serve().await;
        let ada = web.user("ada", &TALKS).await;
        let bob = web.user("bob", &TALKS).await;
        let note = json!({"target": "user", "action": "add", "content": "Likes tea"});
        let mut talked = talk(&web, &ada, &json!({})).await;
        let asked = talked.ask(&format!("/tool memory {note}")).await;
        assert_eq!(asked["findings"][0]["key"], "memory_write");
        ada.post(&decision_of(&asked), &json!({"choice": "deny"}))
            .await
            .expect(200);
        talked.events.until("turn.completed").await;
        let alone = talk(&web, &ada, &json!({"approvals": {"on_ask": "deny"}})).await;
        let staged = told(&alone, "memory", &note).await;
        assert_eq!(staged["staged"], true, "{staged}");
        assert_eq!(waiting(&ada, "?kind=memory").await.len(), 1);
        assert!(waiting(&bob, "").await.is_empty());
        approve(&bob, &staged["pending_id"]).await.problem(404, "not_found");
        let made = approve(&ada, &staged["pending_id"]).await.expect(200);
        assert_eq!(made["message"], "0% — 9/1375 chars");
        // Neither asked nor waiting is what would be refused anyway.
        let wrong = json!({"target": "user", "action": "dance"});
        assert_eq!(told(&alone, "memory", &wrong).await["success"], false);
        assert!(waiting(&ada, "").await.is_empty());
        web.stop().await;
    });
}

/// Modes say what becomes of dangerous commands; that a person sees what is kept
/// for good is said elsewhere, and no mode takes it back.
#[test]
fn no_mode_lets_a_note_pass_that_a_person_is_to_see() {
    on_both(async |mut place| {
        place.config.memory.write_approval = true;
        place.config.skills.write_approval = true;
        let web = place.serve().await;
        let ada = web.user("ada", &TALKS).await;
        let note = json!({"target": "user", "action": "add", "content": "Likes tea"});
        let create = json!({"action": "create", "name": "greet", "content": GREET});
        let off = talk(&web, &ada, &json!({"approvals": {"mode": "off"}})).await;
        let staged = told(&off, "memory", &note).await;
        assert_eq!(staged["staged"], true, "{staged}");
        assert_eq!(told(&off, "skill_manage", &create).await["staged"], true);
        assert_eq!(waiting(&ada, "").await.len(), 2);
        // Its commands are asked about by nobody.
        let ran = told(
            &off,
            "terminal",
            &json!({"command": "mkdir x && rm -rf x && echo gone"}),
        )
        .await;
        assert_eq!(ran["output"], "gone", "{ran}");

        let mut smart = talk(&web, &ada, &json!({"approvals": {"mode": "smart"}})).await;
        let asked = smart.ask(&format!("/tool memory {note}")).await;
        assert_eq!((&asked["reviewer"], &asked["review"]), (&json!("human"), &Value::Null));
        ada.post(&decision_of(&asked), &json!({"choice": "once"}))
            .await
            .expect(200);
        smart.events.until("turn.completed").await;
        let said = messages(&smart).await;
        let kept: Value = serde_json::from_str(results(&said).last().unwrap()).unwrap();
        assert_eq!(
            (&kept["success"], &kept["entry_count"]),
            (&json!(true), &json!(1)),
            "{kept}"
        );
        web.stop().await;
    });
}

/// In a run of a job nobody is there to be asked, whatever the operator lets its
/// commands do.
#[test]
fn a_note_of_a_jobs_run_waits() {
    on_both(async |mut place| {
        place.config.memory.write_approval = true;
        for (mode, count) in [(CronMode::Deny, 1), (CronMode::Approve, 2)] {
            place.config.approvals.cron_mode = mode;
            let web = place.serve().await;
            let owner = web.owner().await;
            let note = json!({"target": "user", "action": "add", "content": "Likes tea"});
            let body = json!({"prompt": format!("/tool memory {note}"), "schedule": "every 1h"});
            let job = owner.post("/v1/jobs", &body).await.expect(201);
            let trigger = format!("/v1/jobs/{}/trigger", job["id"].as_str().unwrap());
            owner.post(&trigger, &json!({})).await.expect(200);
            assert_eq!(runs(&owner, &job, 1).await[0]["status"], "completed");
            assert_eq!(waiting(&owner, "?kind=memory").await.len(), count, "{mode:?}");
            web.stop().await;
        }
    });
}

#[test]
fn what_a_person_allowed_for_good_is_noted_where_nobody_can_be_asked() {
    on_both(async |mut place| {
        place.config.memory.write_approval = true;
        let web = place.serve().await;
        let owner = web.owner().await;
        let note = |content: &str| json!({"target": "user", "action": "add", "content": content});
        let mut talked = talk(&web, &owner, &json!({})).await;
        let asked = talked.ask(&format!("/tool memory {}", note("Likes tea"))).await;
        owner
            .post(&decision_of(&asked), &json!({"choice": "always"}))
            .await
            .expect(200);
        talked.events.until("turn.completed").await;
        let alone = talk(&web, &owner, &json!({"approvals": {"on_ask": "deny"}})).await;
        let kept = told(&alone, "memory", &note("Likes cake")).await;
        assert_eq!(
            (&kept["staged"], &kept["entry_count"]),
            (&Value::Null, &json!(2)),
            "{kept}"
        );
        assert!(waiting(&owner, "").await.is_empty());
        web.stop().await;
    });
}

/// What was decided, as the audit trail has it.
async fn decided(owner: &Client) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for action in ["pending_write.approved", "pending_write.rejected"] {
        let listed = owner.get(&format!("/v1/audit?action={action}")).await.expect(200);
        for entry in listed["data"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            assert!(
                entry["tool_call_id"].is_string() && entry["session_id"].is_string(),
                "{entry}"
            );
            found.push((
                text(&entry["actor"]),
                text(&entry["decision"]),
                text(&entry["fields"][0]),
            ));
        }
    }
    found
}

#[test]
fn who_decides_what_waits_is_in_the_audit_trail() {
    on_both(async |mut place| {
        place.config.skills.write_approval = true;
        place.config.memory.write_approval = true;
        let web = place.serve().await;
        let owner = web.owner().await;
        let alone = talk(&web, &owner, &json!({"approvals": {"on_ask": "deny"}})).await;
        let create = json!({"action": "create", "name": "greet", "content": GREET});
        let skill = told(&alone, "skill_manage", &create).await;
        let again = told(&alone, "skill_manage", &create).await;
        let note = json!({"target": "user", "action": "add", "content": "Likes tea"});
        let note = told(&alone, "memory", &note).await;
        assert!(decided(&owner).await.is_empty());
        approve(&owner, &skill["pending_id"]).await.expect(200);
        approve(&owner, &note["pending_id"]).await.expect(200);
        // Neither one that cannot be made nor one that is not there is a decision.
        approve(&owner, &again["pending_id"])
            .await
            .problem(400, "invalid_request");
        approve(&owner, &skill["pending_id"]).await.problem(404, "not_found");
        let path = format!("/v1/pending-writes/{}", again["pending_id"].as_str().unwrap());
        assert_eq!(owner.delete(&path).await.status, 204);
        assert_eq!(owner.delete(&path).await.status, 404);
        let entry = |decision: &str, kind: &str| ("owner".to_owned(), decision.to_owned(), kind.to_owned());
        assert_eq!(
            decided(&owner).await,
            [
                entry("approve", "memory"),
                entry("approve", "skill"),
                entry("deny", "skill")
            ]
        );
        web.stop().await;
    });
}

/// The tenant's skills on the disk.
fn skills_of(place: &crate::harness::Place, web: &Web) -> PathBuf {
    let tenant = web.server.scope.tenant().to_string();
    place.config.server.data_dir.join("skills").join(tenant)
}

fn text_of(skills: &Path) -> Option<String> {
    std::fs::read_to_string(skills.join("greet/SKILL.md")).ok()
}

#[test]
fn a_change_that_was_let_in_is_made_once_wherever_the_server_ends() {
    on_both(async |mut place| {
        place.config.skills.write_approval = true;
        let bye = GREET.replace("hello.", "hello. Say hello.");
        let create = json!({"action": "create", "name": "greet", "content": GREET});
        // Made twice it would leave more than once.
        let patch = json!({"action": "patch", "name": "greet", "old_string": "Say hello.", "new_string": "Say hello. Say hello."});
        let delete = json!({"action": "delete", "name": "greet"});
        for (change, before, after) in [
            (create, None, Some(GREET.to_owned())),
            (patch, Some(GREET.to_owned()), Some(bye)),
            (delete, Some(GREET.to_owned()), None),
        ] {
            // The commit that lets it in, and the one that takes it off the list; the
            // latter with the disk as it is between them, and as it was before.
            for (label, is_undone) in [
                ("approve_write", false),
                ("approved_write", false),
                ("approved_write", true),
            ] {
                let what = format!("{} {label} {is_undone}", change["action"]);
                let armed = Arc::new(AtomicBool::new(false));
                let fails = Arc::clone(&armed);
                let probe = move |now: &'static str| match now == label && fails.load(Ordering::SeqCst) {
                    true => Fate::FailBefore,
                    false => Fate::Go,
                };
                let web = place.serve_probed(Some(Arc::new(probe))).await;
                let skills = skills_of(&place, &web);
                let lay_out = |text: &Option<String>| {
                    let _gone = std::fs::remove_dir_all(skills.join("greet"));
                    if let Some(text) = text {
                        std::fs::create_dir_all(skills.join("greet")).unwrap();
                        std::fs::write(skills.join("greet/SKILL.md"), text).unwrap();
                    }
                };
                lay_out(&before);
                let owner = web.owner().await;
                let talk = talk(&web, &owner, &json!({})).await;
                let staged = told(&talk, "skill_manage", &change).await;
                let earlier = decided(&owner).await.len();
                armed.store(true, Ordering::SeqCst);
                let answer = approve(&owner, &staged["pending_id"]).await;
                web.crash().await;
                if label == "approve_write" {
                    assert_ne!(answer.status, 200, "{what}");
                    assert_eq!(text_of(&skills), before, "{what}");
                } else {
                    answer.expect(200);
                    assert_eq!(text_of(&skills), after, "{what}");
                    if is_undone {
                        lay_out(&before);
                    }
                }

                let web = place.serve().await;
                let owner = web.owner().await;
                assert!(web.server.engine.finish_approved_writes().await.unwrap(), "{what}");
                if label == "approve_write" {
                    assert_eq!(waiting(&owner, "").await.len(), 1, "{what}");
                    approve(&owner, &staged["pending_id"]).await.expect(200);
                }
                assert_eq!(text_of(&skills), after, "{what}");
                assert!(waiting(&owner, "").await.is_empty(), "{what}");
                assert_eq!(decided(&owner).await.len(), earlier + 1, "{what}");
                approve(&owner, &staged["pending_id"]).await.problem(404, "not_found");
                // Nothing is left that could be made again.
                lay_out(&before);
                assert!(web.server.engine.finish_approved_writes().await.unwrap(), "{what}");
                assert_eq!(text_of(&skills), before, "{what}");
                web.stop().await;
            }
        }
    });
}
