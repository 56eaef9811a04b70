//! The subcommands that are no server.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::program::{Program, binary, err, finished, out, run, store_flags};
use crate::harness::{Place, on_both};

#[tokio::test]
async fn the_documents_are_the_same_every_time_and_a_difference_is_found() {
    let place = Place::sqlite();
    for directory in ["one", "two"] {
        let written = run(&place, &["openapi", "--output", directory]).await;
        assert!(written.status.success(), "{}", err(&written));
    }
    let file = place.directory.join("one/native.json");
    let one = std::fs::read(&file).unwrap();
    assert_eq!(one, std::fs::read(place.directory.join("two/native.json")).unwrap());
    assert_eq!(one, run(&place, &["openapi"]).await.stdout);
    let check = ["openapi", "--output", "one", "--check"];
    assert_eq!(run(&place, &check).await.status.code(), Some(0));

    std::fs::write(&file, [one.as_slice(), b" "].concat()).unwrap();
    let differs = run(&place, &check).await;
    assert_eq!(differs.status.code(), Some(1));
    assert!(err(&differs).contains("`one/native.json`"), "{}", err(&differs));
    assert_eq!(std::fs::read(&file).unwrap().len(), one.len() + 1);
    assert!(!place.directory.join("data").exists());
}

#[tokio::test]
async fn check_says_by_its_status_what_would_happen() {
    let place = Place::sqlite();
    for (args, code, verdict) in [
        (["check", "ls -l"].as_slice(), 0, "allow"),
        (&["check", "rm -rf build"], 2, "ask"),
        (&["check", "rm -rf /"], 3, "deny"),
    ] {
        let said = run(&place, args).await;
        assert_eq!(said.status.code(), Some(code), "{args:?}");
        assert_eq!(out(&said).lines().next(), Some(verdict));
        let said = run(&place, &[args, &["--json"]].concat()).await;
        assert_eq!(said.status.code(), Some(code), "{args:?}");
        let judgement: Value = serde_json::from_str(out(&said)).unwrap();
        assert_eq!(judgement["verdict"], verdict);
        assert_eq!(judgement["findings"].as_array().unwrap().is_empty(), verdict == "allow");
    }
    for args in [["check"].as_slice(), &["check", "ls", "--backend", "podman"]] {
        let refused = run(&place, args).await;
        assert_eq!((refused.status.code(), out(&refused)), (Some(2), ""), "{args:?}");
    }
}

#[tokio::test]
async fn check_reads_a_script_from_its_input() {
    let place = Place::sqlite();
    let mut command = binary();
    command.current_dir(&place.directory).args(["check", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"cd /tmp\nls\nrm -rf build\n")
        .await
        .unwrap();
    let said = child.wait_with_output().await.unwrap();
    assert_eq!(said.status.code(), Some(2), "{}", out(&said));
}

#[tokio::test]
async fn check_answers_line_by_line_with_policies_and_backends() {
    let place = Place::sqlite();
    let lines = [
        json!("ls -l"),
        json!("cd x\nrm -rf build"),
        json!({"command": "yarn test", "policy": {"mode": "rules", "default": "allow", "deny": ["yarn"]}}),
        json!({"command": "cat x", "policy": {"mode": "allowlist", "allow": ["echo *"]}}),
        json!({"command": "rm -rf build", "backend": "docker"}),
        json!({"command": "ls", "polcy": {}}),
        json!({"command": "ls", "policy": {"families_off": ["floor"]}}),
        json!(5),
    ];
    let mut command = binary();
    command
        .current_dir(&place.directory)
        .args(["check", "--stdin", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    let said = child.wait_with_output().await.unwrap();
    let answers: Vec<Value> = out(&said)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let verdicts: Vec<&str> = answers
        .iter()
        .map(|answer| answer["verdict"].as_str().unwrap_or("-"))
        .collect();
    assert_eq!(verdicts, ["allow", "ask", "deny", "ask", "allow", "-", "-", "-"]);
    assert_eq!(said.status.code(), Some(1));
    let finding = &answers[1]["findings"][0];
    assert_eq!(finding["argv"], json!(["rm", "-rf", "build"]));
    let (start, end) = (
        finding["span"]["start"].as_u64().unwrap(),
        finding["span"]["end"].as_u64().unwrap(),
    );
    assert!(start < end && end <= 17, "{finding}");
    for field in ["rule", "key", "description", "severity"] {
        assert!(finding[field].is_string(), "{finding}");
    }
    assert_eq!(answers[1]["commands"][1]["program"], "rm");
    for (answer, why) in [(5, "polcy"), (6, "families_off"), (7, "expected a text")] {
        let error = answers[answer]["error"].as_str().unwrap();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_key_made_by_hand_opens_the_server_until_it_is_revoked() {
    on_both(|place| async move {
        let first = key(&place, &["create", "--name", "laptop", "--scope", "sessions:read"]).await;
        assert!(first.status.success(), "{}", err(&first));
        let secret = out(&first).trim().to_owned();
        assert!(secret.starts_with("hsk_") && out(&first).lines().count() == 1);
        let id = err(&first).split_whitespace().next().unwrap().to_owned();

        let listed = key(&place, &["list"]).await;
        assert!(
            out(&listed).contains(&id) && !out(&listed).contains("hsk_"),
            "{}",
            out(&listed)
        );
        let mut program = Program::start(&place).await;
        // There is a key already, so none is made.
        assert!(program.key.is_empty() && !program.greeting.contains("hsk_"));
        program.key = secret;
        assert_eq!(program.get("/v1/sessions").await.status, 200);
        program
            .post("/v1/sessions", serde_json::json!({}))
            .await
            .is_problem(403, "forbidden");
        let revoke = ["revoke", id.as_str()];
        if place.is_postgres() {
            assert!(key(&place, &revoke).await.status.success());
        } else {
            let refused = key(&place, &revoke).await;
            assert_eq!(refused.status.code(), Some(1));
            assert!(err(&refused).contains("hermes.db.lock"), "{}", err(&refused));
            let secret = program.key.clone();
            program.stop().await;
            assert!(key(&place, &revoke).await.status.success());
            program = Program::start(&place).await;
            program.key = secret;
        }
        program.get("/v1/sessions").await.is_problem(401, "unauthenticated");
        program.stop().await;

        let listed = key(&place, &["list", "--json"]).await;
        let listed: Value = serde_json::from_str(out(&listed)).unwrap();
        assert_eq!(
            (listed[0]["id"].as_str(), listed[0]["name"].as_str()),
            (Some(id.as_str()), Some("laptop"))
        );
        assert!(listed[0]["revoked_at"].is_string());
        let unknown = key(&place, &["revoke", "key_01jz8m4s7ye2tv6m0c9w3kq5rd"]).await;
        assert_eq!(unknown.status.code(), Some(1));
    });
}

#[test]
fn a_signed_token_opens_the_tenant_it_names() {
    on_both(|place| async move {
        let secret = [("HERMES__AUTH__JWT__HS256_SECRET", "0123456789abcdef0123456789abcdef")];
        let made = key(&place, &["create", "--name", "x", "--tenant", "acme"]).await;
        assert!(made.status.success(), "{}", err(&made));
        let mut command = binary();
        command.current_dir(&place.directory).envs(secret);
        let token = finished(command.args(["token", "--tenant", "acme", "--user", "ada"])).await;
        assert!(token.status.success(), "{}", err(&token));
        let mut program = Program::start_with(&place, &secret).await;
        out(&token).trim().clone_into(&mut program.key);
        let session = program.session().await;
        let shown = program.get(&format!("/v1/sessions/{session}")).await;
        assert_eq!(shown.body["user_id"], "ada");
        program.stop().await;
        let unsigned = run(&place, &["token", "--tenant", "acme", "--user", "ada"]).await;
        assert_eq!(unsigned.status.code(), Some(1));
        assert!(err(&unsigned).contains("`auth.jwt.hs256_secret`"));
    });
}

#[test]
fn migrate_can_be_repeated_and_leaves_a_store_that_serves() {
    on_both(|place| async move {
        for _ in 0..2 {
            let flags = store_flags(&place);
            let args: Vec<&str> = ["migrate"]
                .into_iter()
                .chain(flags.iter().map(String::as_str))
                .collect();
            let done = run(&place, &args).await;
            assert!(done.status.success(), "{}", err(&done));
            assert!(out(&done).contains("up to date"));
        }
        let program = Program::start(&place).await;
        assert!(program.key.starts_with("hsk_"));
        program.stop().await;
    });
}

#[tokio::test]
async fn tools_lists_what_a_session_gets_and_why_others_are_absent() {
    let place = Place::sqlite();
    let said = run(&place, &["tools", "--all", "--json"]).await;
    assert!(said.status.success(), "{}", err(&said));
    let tools: Value = serde_json::from_str(out(&said)).unwrap();
    let names: Vec<&str> = tools["offered"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    for name in ["read_file", "terminal", "todo", "write_file"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let absent = tools["absent"].as_array().unwrap();
    assert!(absent.iter().all(|tool| !tool["reason"].as_str().unwrap().is_empty()));
    let unknown = run(&place, &["tools", "--preset", "hermes-api-sever"]).await;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        err(&unknown).contains("did you mean `hermes-api-server`?"),
        "{}",
        err(&unknown)
    );
}

async fn key(place: &Place, args: &[&str]) -> std::process::Output {
    let flags = store_flags(place);
    let args: Vec<&str> = ["key"]
        .into_iter()
        .chain(args.iter().copied())
        .chain(flags.iter().map(String::as_str))
        .collect();
    run(place, &args).await
}
