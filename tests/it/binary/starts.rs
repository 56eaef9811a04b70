//! What a start makes, says and keeps to itself.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::program::{Program, data_dir, finished, log, out};
use crate::harness::http::Answer;
use crate::harness::{PATIENCE, on_both};

#[test]
fn the_first_start_prints_and_stores_a_key_and_the_second_does_not_print_it() {
    on_both(|place| async move {
        let first = Program::start(&place).await;
        assert!(first.key.starts_with("hsk_"));
        assert!(first.greeting.contains(&first.key));
        assert_eq!(first.get("/v1/sessions").await.status, 200);
        let bare = reqwest::get(format!("{}/v1/sessions", first.base)).await.unwrap();
        Answer::of(bare).await.is_problem(401, "unauthenticated");
        let key = first.key.clone();
        first.stop().await;

        let second = Program::start(&place).await;
        assert!(!second.greeting.contains("hsk_"), "{}", second.greeting);
        assert_eq!(second.key, key);
        assert_eq!(second.get("/v1/sessions").await.status, 200);
        second.stop().await;
    });
}

#[test]
fn a_key_file_of_a_start_that_died_half_way_is_taken_over() {
    on_both(|place| async move {
        let key = "hsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        std::fs::create_dir(data_dir(&place)).unwrap();
        std::fs::write(data_dir(&place).join("api-key"), key).unwrap();
        let program = Program::start(&place).await;
        assert_eq!(program.key, key);
        assert!(program.greeting.contains(key));
        assert_eq!(program.get("/v1/sessions").await.status, 200);
        assert_eq!(mode(&data_dir(&place).join("api-key")), 0o600);
        program.stop().await;
    });
}

#[test]
fn with_a_configured_key_none_is_made() {
    on_both(|place| async move {
        let configured = [("HERMES_API_KEY", "0123456789abcdef-configured")];
        let program = Program::start_with(&place, &configured).await;
        assert!(!data_dir(&place).join("api-key").exists());
        assert!(!program.greeting.contains(configured[0].1));
        assert!(program.greeting.contains("Bearer $HERMES_API_KEY"));
        assert_eq!(program.get("/v1/sessions").await.status, 200);
        program.stop().await;
    });
}

#[test]
fn the_lines_of_the_greeting_work_when_they_are_pasted() {
    on_both(|place| async move {
        let program = Program::start(&place).await;
        let lines: Vec<&str> = program.greeting.lines().filter(|line| line.contains("curl ")).collect();
        let [hello, asks, decide] = lines[..] else {
            panic!("{}", program.greeting)
        };
        let paste = |line: &str| {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", line])
                .current_dir(&place.directory)
                .kill_on_drop(true);
            shell
        };
        let said = finished(&mut paste(hello)).await;
        assert!(out(&said).contains("event: turn.completed"), "{}", out(&said));

        let mut waiting = paste(asks).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(waiting.stdout.take().unwrap()).lines();
        let mut seen = Vec::new();
        let watched = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if line == "event: turn.waiting" {
                    let decided = finished(&mut paste(decide)).await;
                    assert!(out(&decided).contains(r#""status":"allowed""#), "{}", out(&decided));
                }
                seen.push(line);
            }
        };
        tokio::time::timeout(PATIENCE, watched).await.unwrap();
        assert!(seen.iter().any(|line| line == "event: turn.completed"), "{seen:?}");
        program.stop().await;
    });
}

/// FC-094: the embedded database, the key, lock files and what sessions leave
/// are their owner's alone, whatever the umask. Directories above a workspace
/// may be passed through, for sandboxes that run as another user, never listed.
#[test]
fn files_of_the_data_directory_are_their_owners_alone() {
    on_both(|place| async move {
        let mut command = Command::new("sh");
        command.args(["-c", r#"umask 0; exec "$0" "$@""#, env!("CARGO_BIN_EXE_hermes-server")]);
        command.env_clear().env("PATH", "/usr/bin:/bin").kill_on_drop(true);
        let program = Program::start_command(&place, command).await;
        let session = program.session().await;
        let mut events = program.follow(&session, "0.0").await;
        program
            .turn(&session, r#"/tool write_file {"path": "a/b.txt", "content": "x"}"#)
            .await;
        events.until("turn.completed").await;
        assert_eq!(mode(&data_dir(&place)), 0o700);
        let passage = data_dir(&place).join("workspaces");
        let mut seen = 0;
        for path in owned(&data_dir(&place)) {
            let is_closed = !path.starts_with(&passage) || is_session_directory(&path);
            let allowed = if is_closed { 0o700 } else { 0o711 };
            assert_eq!(mode(&path) & !allowed, 0, "{} {:o}", path.display(), mode(&path));
            seen += 1;
        }
        assert!(6 <= seen, "only {seen} files");
        program.stop().await;
    });
}

/// Closes what a session wrote to others, whatever modes that has.
fn is_session_directory(path: &Path) -> bool {
    path.is_dir() && (path.ends_with("work") || path.ends_with("tmp"))
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Everything below a directory but what sessions wrote.
fn owned(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !is_session_directory(&path) {
            found.extend(owned(&path));
        }
        found.push(path);
    }
    found
}

/// FC-095: neither keys nor what people write reach the log or an error, also
/// where the log says all it can.
#[test]
fn the_log_and_errors_hold_no_key_and_no_prompt() {
    on_both(|place| async move {
        let (key, provider, wrong) = (
            "right-key-0123456789abcdef",
            "sk-provider-0123456789",
            "wrong-key-0123456789abcdef",
        );
        let variables = [
            ("HERMES_API_KEY", key),
            ("OPENAI_API_KEY", provider),
            ("HERMES__LOG__LEVEL", "trace"),
            ("HERMES__LOG__FORMAT", "json"),
        ];
        let program = Program::start_with(&place, &variables).await;
        let session = program.session().await;
        let mut events = program.follow(&session, "0.0").await;
        let input = "my-private-prompt\n/tool terminal {\"command\": \"echo my-private-output\"}\n/then\n/error 401";
        program.turn(&session, input).await;
        events.until("turn.failed").await;
        let refused = program.request(Method::GET, "/v1/sessions").bearer_auth(wrong);
        let refused = Answer::of(refused.send().await.unwrap()).await;
        let twice = program
            .post("/v1/sessions", json!({"title": 5, "instructions": "my-private-prompt"}))
            .await;
        assert_eq!(twice.status, 400, "{}", twice.body);
        let id = session;
        let session = program.get(&format!("/v1/sessions/{id}/events")).await.body.to_string();
        program.stop().await;
        let log = log(&place);
        let of_turn = |line: &&str| {
            ["\"tenant\":\"ten_", "\"turn\":\"turn_", &id]
                .iter()
                .all(|part| line.contains(part))
        };
        assert!(log.lines().any(|line| of_turn(&line)), "a turn's lines name it: {log}");
        // The tests' user is a superuser.
        let warnings = log.matches("bypasses row-level security").count();
        assert_eq!(warnings, usize::from(place.is_postgres()));
        assert!(
            log.lines()
                .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()),
            "{log}"
        );
        assert!(log.contains("ready"));
        for hidden in [key, provider, wrong] {
            assert!(!log.contains(hidden), "the log holds {hidden}");
            assert!(!refused.body.to_string().contains(hidden) && !session.contains(hidden));
        }
        for hidden in ["my-private-prompt", "my-private-output"] {
            assert!(!log.contains(hidden), "the log holds {hidden}");
        }
        if let Some(url) = &place.config.store.url {
            assert!(!log.contains(url.expose()));
        }
    });
}
