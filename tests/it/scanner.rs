//! An external scanner beside the guard's own rules, played by a script.

use std::os::unix::fs::PermissionsExt;

use hermes_server::config::HookPoint;
use serde_json::{Value, json};

use crate::extend::hooks::hook;
use crate::harness::client::Client;
use crate::harness::http::Web;
use crate::harness::script::terminal;
use crate::harness::{Place, on_both};

const SCRIPT: &str = r#"#!/bin/sh
case "$*" in
*odd*) echo '{"findings": [{"rule_id": "homograph", "severity": "HIGH", "title": "look-alike", "description": "d"}]}'; exit 1;;
*broken*) exit 7;;
esac
exit 0
"#;

fn install(place: &mut Place, fail_open: bool) {
    std::fs::create_dir_all(&place.directory).unwrap();
    let path = place.directory.join("tirith");
    std::fs::write(&path, SCRIPT).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.config.security.tirith_path = path.to_str().unwrap().to_owned();
    place.config.security.tirith_fail_open = fail_open;
}

async fn session(client: &Client) -> String {
    let session = client.post("/v1/sessions", &json!({})).await.expect(201)["id"].clone();
    format!("/v1/sessions/{}", session.as_str().unwrap())
}

/// Runs a turn up to an event of it, and gives its id.
async fn run(web: &Web, client: &Client, session: &str, command: &str, until: &str) -> Value {
    let turn = json!({"input": terminal(command)});
    let turn = client.post(&format!("{session}/turns"), &turn).await.expect(202)["id"].clone();
    reached(web, client, session, &turn, until).await;
    turn
}

async fn reached(web: &Web, client: &Client, session: &str, turn: &Value, event: &str) {
    let mut events = client.stream(web, &format!("{session}/stream?after=0")).await;
    while events.until(event).await.data["turn_id"] != *turn {}
}

async fn pending(client: &Client) -> Value {
    client.get("/v1/approvals?status=pending").await.expect(200)["data"][0].clone()
}

async fn decide(client: &Client, choice: &str) -> crate::harness::http::Answer {
    let id = pending(client).await["id"].clone();
    let path = format!("/v1/approvals/{}/decision", id.as_str().unwrap());
    client.post(&path, &json!({"choice": choice})).await
}

#[test]
fn what_the_scanner_blocks_is_asked_and_never_allowed_for_good() {
    on_both(async |mut place| {
        install(&mut place, true);
        let web = place.serve().await;
        let owner = web.owner().await;
        let session = session(&owner).await;
        run(&web, &owner, &session, "echo even", "turn.completed").await;
        run(&web, &owner, &session, "echo broken", "turn.completed").await;
        let turn = run(&web, &owner, &session, "echo odd; rm -rf never-there", "turn.waiting").await;
        let approval = pending(&owner).await;
        let keys: Vec<&Value> = approval["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| &finding["key"])
            .collect();
        assert_eq!(keys[0], "tirith:homograph");
        assert!(keys.len() > 1, "{approval}");
        assert_eq!(approval["choices"], json!(["once", "session", "deny"]));
        decide(&owner, "always").await.problem(400, "choice_not_offered");
        decide(&owner, "session").await.expect(200);
        reached(&web, &owner, &session, &turn, "turn.completed").await;
        // The grant covers what the same scanner says of the next one.
        run(&web, &owner, &session, "echo odd again", "turn.completed").await;
        assert_eq!(pending(&owner).await, Value::Null);
        web.stop().await;
    });
}

#[test]
fn the_scanner_sees_what_a_hook_put_in_the_place_of_a_command_in_programs_too() {
    on_both(async |mut place| {
        install(&mut place, true);
        let change = r#"cat > /dev/null; echo '{"arguments": {"command": "echo odd"}}'"#;
        hook(&mut place, HookPoint::ToolRequest, change);
        let web = place.serve().await;
        let owner = web.owner().await;
        let session = session(&owner).await;
        run(&web, &owner, &session, "echo even", "turn.waiting").await;
        let approval = pending(&owner).await;
        assert_eq!(
            (&approval["findings"][0]["key"], &approval["arguments"]["command"]),
            (&json!("tirith:homograph"), &json!("echo odd"))
        );
        decide(&owner, "deny").await.expect(200);
        let code = "from hermes_tools import terminal\nprint(terminal('echo even').get('status', 'ran'))";
        let input = format!("/tool execute_code {}", json!({"code": code}));
        let turn = json!({"input": input, "on_busy": "enqueue"});
        owner.post(&format!("{session}/turns"), &turn).await.expect(202);
        let mut events = owner.stream(&web, &format!("{session}/stream?after=0")).await;
        for (tool, choice) in [
            ("terminal", None),
            ("execute_code", Some("once")),
            ("terminal", Some("deny")),
        ] {
            let asked = events.until("approval.requested").await.data["data"]["approval"].clone();
            assert_eq!(asked["tool"], tool);
            if let Some(choice) = choice {
                if tool == "terminal" {
                    assert_eq!(asked["findings"][0]["key"], "tirith:homograph");
                }
                let path = format!("/v1/approvals/{}/decision", asked["id"].as_str().unwrap());
                owner.post(&path, &json!({"choice": choice})).await.expect(200);
            }
        }
        web.stop().await;
    });
}

#[test]
fn a_scanner_that_fails_closed_asks() {
    on_both(async |mut place| {
        install(&mut place, false);
        let web = place.serve().await;
        let owner = web.owner().await;
        let session = session(&owner).await;
        run(&web, &owner, &session, "echo broken", "turn.waiting").await;
        assert_eq!(pending(&owner).await["findings"][0]["key"], "tirith:unknown");
        web.stop().await;
    });
}
