//! What agents want to write for good waits until a person lets it in.

use hermes_server::model::principal::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_rest::{Talk, decision_of};
use crate::cases::{ended, messages, results};
use crate::harness::client::Client;
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;

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
