//! Policies of a tenant: written as a whole under a name, in force from the next
//! judgement on, in turns that run as well.

use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use crate::harness::client::{Client, NewKey};
use crate::harness::http::Web;
use crate::harness::on_both;
use crate::harness::script::terminal;

const DEFAULT: &str = "/v1/policies/default";

async fn put(client: &Client, path: &str, policy: &Value) -> crate::harness::http::Answer {
    let request = client.request(reqwest::Method::PUT, path).json(policy);
    crate::harness::http::Answer::of(request.send().await.unwrap()).await
}

async fn verdict(client: &Client, command: &str) -> Value {
    let answer = client.post("/v1/guard/check", &json!({"command": command})).await;
    answer.expect(200)["verdict"].clone()
}

#[test]
fn a_policy_is_read_and_written_under_its_tag() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let empty = owner.get(DEFAULT).await;
        let tag = empty.header("etag").to_owned();
        let empty = empty.expect(200);
        assert_eq!(
            (&empty["name"], &empty["updated_at"]),
            (&json!("default"), &Value::Null)
        );
        assert_eq!(empty["policy"], json!({"mode": "patterns"}));

        let policy = json!({"mode": "rules", "default": "allow", "deny": ["curl"], "families_off": ["delete"]});
        let written = put(&owner, DEFAULT, &policy).await;
        let new = written.header("etag").to_owned();
        let written = written.expect(200);
        assert_eq!(written["policy"], policy);
        assert_ne!(tag, new);
        assert_eq!(owner.get(DEFAULT).await.expect(200), written);

        let stale = owner
            .request(reqwest::Method::PUT, DEFAULT)
            .header("if-match", &tag)
            .json(&json!({}))
            .send()
            .await
            .unwrap();
        assert_eq!(stale.status(), 412);
        let fresh = owner
            .request(reqwest::Method::PUT, DEFAULT)
            .header("if-match", &new)
            .json(&json!({"ask": ["ls"]}))
            .send()
            .await
            .unwrap();
        assert_eq!(fresh.status(), 200);
        let unchanged = owner
            .request(reqwest::Method::GET, DEFAULT)
            .header("if-none-match", fresh.headers()["etag"].clone());
        assert_eq!(unchanged.send().await.unwrap().status(), 304);

        let audit = owner.get("/v1/audit").await.expect(200);
        let changes: Vec<&Value> = audit["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["action"] == "policy.changed")
            .collect();
        assert_eq!(changes.len(), 2);
        assert_eq!(
            changes[1]["fields"],
            json!(["default", "mode", "default", "deny", "families_off"])
        );
        assert_eq!(changes[1]["actor"], "owner");
        web.stop().await;
    });
}

#[test]
fn what_is_wrong_in_a_policy_is_named_and_only_an_admin_writes() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        for (policy, pointer) in [
            (json!({"families_off": ["floor"]}), "/families_off/0"),
            (json!({"deny": ["x".repeat(1001)]}), "/deny/0"),
            (json!({"ask": vec!["x"; 501]}), "/ask"),
        ] {
            let problem = put(&owner, DEFAULT, &policy).await;
            let problem = problem.problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        }
        put(&owner, DEFAULT, &json!({"alow": []}))
            .await
            .problem(400, "invalid_request");
        put(&owner, &format!("/v1/policies/{}", "x".repeat(65)), &json!({}))
            .await
            .problem(404, "not_found");
        let scopes = [
            Scope::SessionsRead,
            Scope::SessionsWrite,
            Scope::GrantsWrite,
            Scope::TenantAll,
        ];
        let other = web.user("other", &scopes).await;
        put(&other, DEFAULT, &json!({})).await.problem(403, "forbidden");
        other.get(DEFAULT).await.expect(200);
        web.stop().await;
    });
}

#[test]
fn a_tenant_is_held_to_its_own_policy_alone() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        put(&owner, DEFAULT, &json!({"deny": ["curl"]})).await.expect(200);
        assert_eq!(verdict(&owner, "cu\"\"rl x").await, "deny");
        let tenant = web.tenant("another").await;
        let theirs = NewKey {
            tenant,
            user: "owner",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let other = web.with_key(theirs).await;
        assert_eq!(verdict(&other, "curl x").await, "allow");
        assert_eq!(other.get(DEFAULT).await.expect(200)["updated_at"], Value::Null);
        assert_eq!(other.get("/v1/policies").await.expect(200)["data"], json!([]));
        let gone = other.request(reqwest::Method::DELETE, DEFAULT).send().await.unwrap();
        assert_eq!(gone.status(), 404);
        let inline = json!({"command": "curl x", "policy": {"mode": "allowlist"}});
        assert_eq!(
            owner.post("/v1/guard/check", &inline).await.expect(200)["verdict"],
            "ask"
        );
        web.stop().await;
    });
}

/// The turn parks on a question of the built-in rules; what is written meanwhile
/// decides about its next calls.
#[test]
fn a_change_counts_in_a_turn_that_runs() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let session = owner.post("/v1/sessions", &json!({})).await.expect(201)["id"].clone();
        let session = format!("/v1/sessions/{}", session.as_str().unwrap());
        let script = format!("{}\n/then\n{}", terminal("rm -rf build"), terminal("echo second"));
        owner
            .post(&format!("{session}/turns"), &json!({"input": script}))
            .await
            .expect(202);
        let mut events = owner.stream(&web, &format!("{session}/stream")).await;
        events.until("turn.waiting").await;
        put(&owner, DEFAULT, &json!({"ask": ["echo second"]})).await.expect(200);
        decide(&owner, "once").await;
        events.until("turn.waiting").await;
        let asked = pending(&owner).await;
        assert_eq!(asked["findings"][0]["key"], "policy: echo second");
        assert_eq!(asked["findings"][0]["argv"], json!(["echo", "second"]));
        // What a person allowed is judged again when it starts.
        put(&owner, DEFAULT, &json!({"deny": ["echo"]})).await.expect(200);
        decide(&owner, "once").await;
        events.until("turn.completed").await;
        let calls = owner.get(&format!("{session}/messages")).await.expect(200).to_string();
        assert!(calls.contains("denied by the policy"), "{calls}");
        web.stop().await;
    });
}

#[test]
fn a_session_can_name_a_further_policy_and_one_that_is_missing_asks() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let new = json!({"approvals": {"policy": "strict"}});
        let session = owner.post("/v1/sessions", &new).await.expect(201)["id"].clone();
        let session = format!("/v1/sessions/{}", session.as_str().unwrap());
        run(&web, &owner, &session, "echo one", "turn.waiting").await;
        assert_eq!(pending(&owner).await["findings"][0]["rule"], "policy-unlisted");
        let allow = json!({"mode": "allowlist", "allow": ["echo *"]});
        put(&owner, "/v1/policies/strict", &allow).await.expect(200);
        decide(&owner, "deny").await;
        run(&web, &owner, &session, "echo two", "turn.completed").await;
        web.stop().await;
    });
}

#[test]
fn policies_are_listed_by_name_and_can_be_taken_away() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        assert_eq!(owner.get("/v1/policies").await.expect(200)["data"], json!([]));
        for name in ["strict", "default", "night"] {
            put(&owner, &format!("/v1/policies/{name}"), &json!({"deny": ["curl"]}))
                .await
                .expect(200);
        }
        let first = owner.get("/v1/policies?limit=2").await.expect(200);
        let names = |page: &Value| {
            let all = page["data"].as_array().unwrap().iter();
            all.map(|policy| policy["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&first), ["default", "night"]);
        let after = format!("/v1/policies?limit=2&after={}", first["next_cursor"].as_str().unwrap());
        assert_eq!(names(&owner.get(&after).await.expect(200)), ["strict"]);
        assert_eq!(verdict(&owner, "curl x").await, "deny");

        let tag = owner.get(DEFAULT).await.header("etag").to_owned();
        put(&owner, DEFAULT, &json!({"deny": ["wget"]})).await.expect(200);
        let delete = async |path: &str, tag: Option<&str>| {
            let mut request = owner.request(reqwest::Method::DELETE, path);
            if let Some(tag) = tag {
                request = request.header("if-match", tag);
            }
            request.send().await.unwrap().status().as_u16()
        };
        assert_eq!(delete(DEFAULT, Some(&tag)).await, 412);
        assert_eq!(delete(DEFAULT, None).await, 204);
        assert_eq!(delete(DEFAULT, None).await, 404);
        assert_eq!(owner.get(DEFAULT).await.expect(200)["updated_at"], Value::Null);
        assert_eq!(verdict(&owner, "curl x").await, "allow");
        let audit = owner.get("/v1/audit").await.expect(200);
        let told = audit["data"].as_array().unwrap().iter();
        let told: Vec<&Value> = told.filter(|entry| entry["action"] == "policy.deleted").collect();
        assert_eq!(told.len(), 1);
        assert_eq!(
            (&told[0]["fields"], &told[0]["actor"]),
            (&json!(["default"]), &json!("owner"))
        );

        let other = web.user("other", &[Scope::SessionsRead, Scope::SessionsWrite]).await;
        let refused = other.request(reqwest::Method::DELETE, "/v1/policies/strict");
        assert_eq!(refused.send().await.unwrap().status(), 403);
        assert_eq!(names(&other.get("/v1/policies").await.expect(200)), ["night", "strict"]);
        web.stop().await;
    });
}

/// A session that named a policy is not freed by its end.
#[test]
fn where_the_policy_that_a_session_names_was_taken_away_every_command_asks() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        put(&owner, "/v1/policies/strict", &json!({"deny": ["curl"]}))
            .await
            .expect(200);
        let new = json!({"approvals": {"policy": "strict"}});
        let session = owner.post("/v1/sessions", &new).await.expect(201)["id"].clone();
        let session = format!("/v1/sessions/{}", session.as_str().unwrap());
        run(&web, &owner, &session, "echo one", "turn.completed").await;
        let gone = owner.request(reqwest::Method::DELETE, "/v1/policies/strict");
        assert_eq!(gone.send().await.unwrap().status(), 204);
        run(&web, &owner, &session, "echo two", "turn.waiting").await;
        assert_eq!(pending(&owner).await["findings"][0]["rule"], "policy-unlisted");
        web.stop().await;
    });
}

async fn run(web: &Web, client: &Client, session: &str, command: &str, until: &str) {
    let turn = json!({"input": terminal(command), "on_busy": "enqueue"});
    client.post(&format!("{session}/turns"), &turn).await.expect(202);
    let mut events = client.stream(web, &format!("{session}/stream")).await;
    events.until(until).await;
}

async fn pending(client: &Client) -> Value {
    client.get("/v1/approvals?status=pending").await.expect(200)["data"][0].clone()
}

async fn decide(client: &Client, choice: &str) {
    let id = pending(client).await["id"].clone();
    let path = format!("/v1/approvals/{}/decision", id.as_str().unwrap());
    client.post(&path, &json!({"choice": choice})).await.expect(200);
}
