//! What a skill says that it calls: programs, which are looked for where commands
//! look for them, and tools, which it is not given by saying so.

use serde_json::{Value, json};

use super::counts::shared;
use super::{put, talk, told};
use crate::harness::client::Client;
use crate::harness::on_both;

/// A directory with something that calls itself a program.
fn program(directory: &std::path::Path, name: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join(name);
    std::fs::write(&path, "#!/bin/sh\necho ran\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

async fn shown(owner: &Client, name: &str, key: &str) -> Value {
    owner.get(&format!("/v1/skills/{name}")).await.expect(200)[key].clone()
}

#[test]
fn programs_that_commands_would_not_find_are_named() {
    on_both(async |mut place| {
        let (skills, inside, outside) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        program(inside.path(), "mine", 0o755);
        program(inside.path(), "plain", 0o644);
        program(outside.path(), "away", 0o755);
        std::os::unix::fs::symlink(outside.path().join("away"), inside.path().join("away")).unwrap();
        let secret = outside.path().join("away").to_string_lossy().into_owned();
        let wanted = json!([
            "bash",
            "mine",
            "plain",
            "away",
            "none-such",
            "../bin/bash",
            secret,
            "..",
            ""
        ]);
        shared(
            skills.path(),
            "build",
            &format!("prerequisites: {{commands: {wanted}}}\n"),
        );
        place.config.skills.external_dirs = vec![skills.path().to_owned()];
        place.config.terminal.readable_paths = vec![inside.path().to_owned()];
        place.config.terminal.env_passthrough = vec!["PATH".to_owned()];
        let path = format!("{}:/usr/bin:/bin", inside.path().canonicalize().unwrap().display());
        place.environment = vec![("PATH".to_owned(), path)];
        let web = place.serve().await;
        let owner = web.owner().await;
        let talk = talk(&web, &owner).await;
        let run = |name: &str| ("terminal", json!({"command": name}));
        let told = told(
            &talk,
            &[
                ("skill_view", json!({"name": "build"})),
                run("type bash > seen && echo ran"),
                run("mine"),
                run("plain"),
                run("away"),
            ],
        )
        .await;
        assert_eq!(told[0]["required_commands"], wanted, "{}", told[0]);
        assert_eq!(
            told[0]["missing_required_commands"],
            json!(["plain", "away", "none-such", "../bin/bash", secret, "..", ""]),
            "{}",
            told[0]
        );
        // As the original has it, programs are advice: what has to be set up is told apart.
        assert_eq!(
            (&told[0]["readiness_status"], &told[0]["setup_needed"]),
            (&json!("available"), &json!(false))
        );
        let ran: Vec<bool> = told[1..].iter().map(|told| told["output"] == "ran").collect();
        assert_eq!(ran, [true, true, false, false], "{told:?}");
        assert_eq!(shown(&owner, "build", "required_commands").await, wanted);
        web.stop().await;
    });
}

#[test]
fn tools_that_a_skill_says_it_may_use_are_shown_and_not_given() {
    on_both(async |mut place| {
        let directory = tempfile::tempdir().unwrap();
        let says = "allowed-tools: Bash(git add:*) terminal\n";
        shared(directory.path(), "ship", says);
        place.config.skills.external_dirs = vec![directory.path().to_owned()];
        let web = place.serve().await;
        let owner = web.owner().await;
        let own = format!("---\nname: own\ndescription: d\n{says}---\nDo.\n");
        put(&owner, "/v1/skills/own", &own).await.expect(201);
        let mut talk = talk(&web, &owner).await;
        for name in ["ship", "own"] {
            let tools = json!(["Bash(git add:*)", "terminal"]);
            let told = told(&talk, &[("skill_view", json!({"name": name}))]).await;
            assert_eq!(told[0]["allowed_tools"], tools);
            assert_eq!(shown(&owner, name, "allowed_tools").await, tools);
            // Having read it, the model is asked for consent as ever.
            let asked = talk.ask("/tool terminal {\"command\": \"rm -rf build\"}").await;
            assert_eq!(asked["tool"], "terminal", "{asked}");
            let decision = crate::api_rest::decision_of(&asked);
            owner.post(&decision, &json!({"choice": "deny"})).await.expect(200);
            talk.events.until("turn.completed").await;
        }
        web.stop().await;
    });
}
