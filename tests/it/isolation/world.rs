//! What an owner has of everything: one thing of each kind, whose ids the
//! operations of the document are asked for.

use std::collections::BTreeMap;

use hermes_server::base::Id;
use hermes_server::model::id::PendingWriteId;
use hermes_server::model::pending::{PendingKind, PendingWrite};
use reqwest::Method;
use serde_json::json;

use crate::extend::artifacts::planted;
use crate::extend::checkpoints;
use crate::harness::client::Client;
use crate::harness::http::Web;
use crate::harness::script::{guarded, terminal};

/// Text forms of ids by prefix.
pub type Ids = BTreeMap<&'static str, String>;

/// One thing of each kind, all of one user.
pub struct World {
    pub ids: Ids,
    /// Text that only this user knows.
    secret: &'static str,
}

/// A skill of the tenant, and a file of it: all users of the tenant see it.
pub const SKILL: &str = "/v1/skills/greet";
pub const SKILL_FILE: &str = "references/words.md";

pub const SECRET: &str = "the-owner-wrote-this";

impl World {
    /// A session with a grant in force and a turn that waits for an approval.
    pub async fn of(web: &Web, owner: &Client) -> Self {
        let tool = json!({"type": "function", "function": {"name": "look_up"}});
        let new = json!({"title": SECRET, "external_id": SECRET, "tools": [tool]});
        let session = owner.post("/v1/sessions", &new).await.expect(201)["id"].clone();
        let session = session.as_str().unwrap().to_owned();
        let process = json!({"command": format!("echo {SECRET}; cat"), "background": true, "pty": true});
        let script = format!(
            "/tool terminal {process}\n/then\n{}\n/then\n/tool look_up {{}}\n{}",
            guarded(SECRET),
            terminal("git push --force origin main")
        );
        let turns = format!("/v1/sessions/{session}/turns");
        let turn = owner.post(&turns, &json!({"input": script})).await.expect(202)["id"].clone();
        let turn = turn.as_str().unwrap().to_owned();
        let first = pending(web, owner, &session).await;
        let answer = json!({"choice": "session"});
        let decided = owner
            .post(&format!("/v1/approvals/{first}/decision"), &answer)
            .await
            .expect(200);
        let grant = decided["decision"]["grant_id"].as_str().unwrap().to_owned();
        let approval = pending(web, owner, &session).await;
        let waits = owner.get(&format!("/v1/sessions/{session}")).await.expect(200);
        let mut waits = waits["required_actions"].as_array().unwrap().iter();
        let call = waits.find(|action| action["type"] == "client_tool").unwrap()["id"].clone();
        let question = question_asked(web, owner).await;
        let processes = owner
            .get(&format!("/v1/sessions/{session}/processes"))
            .await
            .expect(200);
        let process = processes["data"][0]["id"].as_str().unwrap().to_owned();
        // Its name is what stands in the document where a path belongs.
        let file = owner.request(Method::PUT, &format!("/v1/sessions/{session}/files/%7Bpath%7D"));
        let put = file.body(SECRET).send().await.unwrap();
        assert_eq!(put.status(), 201);
        let job = json!({"prompt": format!("/say {SECRET}"), "schedule": "every 1d"});
        let job = owner.post("/v1/jobs", &job).await.expect(201)["id"].clone();
        let skill = json!({"content": "---\nname: greet\ndescription: How we say hello\n---\nSay hello.\n"});
        let put = owner.request(Method::PUT, SKILL).json(&skill).send().await.unwrap();
        assert!(put.status().is_success());
        let put = owner.request(Method::PUT, &format!("{SKILL}/files/{SKILL_FILE}"));
        assert!(put.body("hello").send().await.unwrap().status().is_success());
        let key = json!({"name": SECRET, "scopes": ["sessions:read"]});
        let key = owner.post("/v1/keys", &key).await.expect(201)["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let pending = Id::new(web.server.engine.clock());
        waiting_write(web, owner, pending).await;
        let artifact = planted(web, owner, &session, SECRET).await;
        let checkpoint = Id::new(web.server.engine.clock());
        checkpoints::planted(web, owner, &session, checkpoint).await;
        Self {
            ids: Ids::from([
                ("ses", session),
                ("turn", turn),
                ("apr", approval),
                ("grant", grant),
                ("key", key),
                ("call", call.as_str().unwrap().to_owned()),
                ("qst", question),
                ("proc", process),
                ("job", job.as_str().unwrap().to_owned()),
                ("art", artifact),
                ("pend", pending.to_string()),
                ("chk", checkpoint.to_string()),
            ]),
            secret: SECRET,
        }
    }

    pub fn is_in(&self, text: &str) -> bool {
        text.contains(self.secret) || self.ids.values().any(|id| text.contains(id.as_str()))
    }
}

/// A change that waits for the owner.
pub async fn waiting_write(web: &Web, owner: &Client, id: PendingWriteId) {
    let clock = web.server.engine.clock();
    let pending = PendingWrite {
        id,
        user_id: "owner".to_owned(),
        session_id: Id::new(clock),
        turn_id: Id::new(clock),
        tool_call_id: Id::new(clock),
        kind: PendingKind::Memory,
        subject: SECRET.to_owned(),
        change: json!({"target": "memory", "operations": [{"action": "add", "content": "likes tea"}]}),
        created_at: clock.now(),
    };
    let tenant = owner.tenant.unwrap_or_else(|| web.server.app.default_tenant());
    let scope = web.server.engine.store().scope(tenant);
    let added = scope.write("test", move |mut rows| {
        Box::pin(async move { rows.add_pending_write(&pending).await })
    });
    added.await.unwrap();
}

/// The approval that the session's turn waits for, once it does.
pub async fn pending(web: &Web, client: &Client, session: &str) -> String {
    let mut events = client.stream(web, &format!("/v1/sessions/{session}/stream")).await;
    let path = format!("/v1/approvals?status=pending&session_id={session}");
    loop {
        events.until("turn.waiting").await;
        let found = client.get(&path).await.expect(200)["data"].clone();
        if let Some(approval) = found.as_array().unwrap().first() {
            return approval["id"].as_str().unwrap().to_owned();
        }
    }
}

/// A question that waits, in a session of its own.
pub async fn question_asked(web: &Web, client: &Client) -> String {
    let new = json!({"title": SECRET, "toolsets": {"enabled": ["clarify"]}});
    let session = client.post("/v1/sessions", &new).await.expect(201)["id"].clone();
    let session = session.as_str().unwrap();
    let turn = json!({"input": format!("/tool clarify {{\"question\": \"{SECRET}\"}}")});
    client
        .post(&format!("/v1/sessions/{session}/turns"), &turn)
        .await
        .expect(202);
    let mut events = client.stream(web, &format!("/v1/sessions/{session}/stream")).await;
    let asked = events.until("question.asked").await.data;
    events.until("turn.waiting").await;
    asked["data"]["question"]["id"].as_str().unwrap().to_owned()
}
