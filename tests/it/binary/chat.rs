//! A conversation in the terminal, with a real server.

use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::program::{Program, binary, err, out, workspace};
use crate::harness::script::guarded;
use crate::harness::{PATIENCE, Place, lines};

/// Runs `chat` against `url` with `typed` as its input.
pub(super) async fn chat(place: &Place, (url, key): (&str, &str), args: &[&str], typed: &str) -> Output {
    let mut command = binary();
    command
        .current_dir(&place.directory)
        .env("HERMES_API_KEY", key)
        .args(["chat", "--url", url])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(typed.as_bytes()).await.unwrap();
    drop(input);
    let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    ended.expect("an end in time").unwrap()
}

pub(super) fn session(said: &Output) -> String {
    let word = err(said).split_whitespace().find(|word| word.starts_with("ses_"));
    word.unwrap().trim_end_matches(';').to_owned()
}

#[tokio::test]
async fn a_query_puts_the_answer_alone_on_the_output_and_a_session_goes_on() {
    let place = Place::sqlite();
    let server = Program::start(&place).await;
    let to = (server.base.as_str(), server.key.as_str());
    let first = chat(&place, to, &["-q", "/reason hm\n/say one two"], "").await;
    assert_eq!(
        (first.status.code(), out(&first)),
        (Some(0), "one two\n"),
        "{}",
        err(&first)
    );
    let id = session(&first);
    assert_eq!(err(&first), format!("session {id}\n"));
    let second = chat(&place, to, &["-q", "/say three", "--session", &id], "").await;
    assert_eq!(
        (second.status.code(), out(&second)),
        (Some(0), "three\n"),
        "{}",
        err(&second)
    );
    assert_eq!(server.messages(&id).await.len(), 4);
    server.stop().await;
}

#[tokio::test]
async fn lines_are_messages_and_what_needs_an_approval_is_asked() {
    let place = Place::sqlite();
    let server = Program::start(&place).await;
    let to = (server.base.as_str(), server.key.as_str());
    let dangerous = |name: &str| format!("{}\\\n/then\\\n/say did {name}\n", guarded(name));
    let typed = format!("/say hello\n\n{}maybe\nonce\n{}deny\n", dangerous("a"), dangerous("b"));
    let said = chat(&place, to, &[], &typed).await;
    assert_eq!(said.status.code(), Some(0), "{}", err(&said));
    assert_eq!(out(&said), "hello\ndid a\ndid b\n");
    assert!(err(&said).contains("rm -rf never-there"), "{}", err(&said));
    assert_eq!(
        err(&said).matches("once / session / always / deny?").count(),
        3,
        "{}",
        err(&said)
    );
    let id = session(&said);
    let ran = |name: &str| lines(&workspace(&place, &id).join(name));
    assert_eq!((ran("a"), ran("b")), (1, 0));
    server.stop().await;
}

#[tokio::test]
async fn where_nobody_answers_the_turn_is_left_waiting() {
    let place = Place::sqlite();
    let server = Program::start(&place).await;
    let to = (server.base.as_str(), server.key.as_str());
    let said = chat(&place, to, &["-q", &guarded("a")], "").await;
    assert_eq!((said.status.code(), out(&said)), (Some(3), ""), "{}", err(&said));
    let pending = server.get("/v1/approvals?status=pending").await;
    let id = pending.body["data"][0]["id"].as_str().unwrap().to_owned();
    assert!(
        err(&said).contains(&format!("/v1/approvals/{id}/decision")),
        "{}",
        err(&said)
    );
    server.stop().await;
}

#[tokio::test]
async fn what_is_wrong_is_said_in_a_sentence() {
    let place = Place::sqlite();
    let server = Program::start(&place).await;
    let (base, key) = (server.base.clone(), server.key.clone());
    let failed = chat(&place, (&base, &key), &["-q", "/error 400"], "").await;
    assert_eq!((failed.status.code(), out(&failed)), (Some(1), ""));
    assert!(err(&failed).contains("the turn failed: "), "{}", err(&failed));
    let unknown = ["-q", "hi", "--session", "ses_01jz8m4s7ye2tv6m0c9w3kq5rd"];
    for (to, args, code, expected) in [
        (
            (base.as_str(), "hsk_wrong-but-long-enough"),
            ["-q", "hi"].as_slice(),
            1,
            "key",
        ),
        ((base.as_str(), key.as_str()), &unknown, 1, "session"),
        (("ftp://a.example", key.as_str()), &["-q", "hi"], 2, "`--url`"),
        (("http://127.0.0.1:1", key.as_str()), &["-q", "hi"], 1, "is it running?"),
    ] {
        let said = chat(&place, to, args, "").await;
        assert_eq!(
            (said.status.code(), out(&said)),
            (Some(code), ""),
            "{to:?}: {}",
            err(&said)
        );
        assert!(
            err(&said).contains(expected) && !err(&said).contains(&key),
            "{to:?}: {}",
            err(&said)
        );
    }
    server.stop().await;
}

/// Passes connections on; the first two are cut after some bytes of answer.
async fn shaky(listener: TcpListener, target: String) {
    for number in 0.. {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut upstream = TcpStream::connect(&target).await.unwrap();
        let budget = if number < 2 { 6_000 } else { u64::MAX };
        tokio::spawn(async move {
            let (mut from, mut to) = client.split();
            let (read, mut write) = upstream.split();
            let mut answer = read.take(budget);
            tokio::select! {
                _ = tokio::io::copy(&mut from, &mut write) => {}
                _ = tokio::io::copy(&mut answer, &mut to) => {}
            }
        });
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_made_again_where_it_broke() {
    let place = Place::sqlite();
    let server = Program::start(&place).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let proxy = tokio::spawn(shaky(listener, server.base.trim_start_matches("http://").to_owned()));
    let typed = "/tokens 300 600\n";
    let said = chat(&place, (&base, &server.key), &[], typed).await;
    assert_eq!(said.status.code(), Some(0), "{}", err(&said));
    assert!(err(&said).contains("the connection broke"), "{}", err(&said));
    let stored = &server.messages(&session(&said)).await[1];
    let text = stored["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        out(&said),
        format!("{text}\n"),
        "nothing is missing and nothing doubled"
    );
    proxy.abort();
    server.stop().await;
}

#[tokio::test]
async fn doctor_says_what_works_and_what_to_do_about_the_rest() {
    let place = Place::sqlite();
    let run = async |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = binary();
        command.current_dir(&place.directory).envs(variables.iter().copied());
        super::program::finished(command.arg("doctor").args(args)).await
    };
    let well = run(&[], &[]).await;
    assert_eq!(well.status.code(), Some(0), "{}{}", out(&well), err(&well));
    for check in ["configuration", "store", "model", "sandbox", "scanner"] {
        assert!(
            out(&well).lines().any(|line| line.contains(check)),
            "{check}: {}",
            out(&well)
        );
    }
    assert!(!place.directory.join("data/api-key").exists(), "it changes nothing");

    let wrong = [
        ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1"),
        ("OPENAI_API_KEY", "sk-secret-of-nobody"),
        ("HERMES_MODEL", "m"),
        ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none"),
    ];
    let ill = run(&wrong, &["--json"]).await;
    assert_eq!(ill.status.code(), Some(1), "{}", err(&ill));
    assert!(!out(&ill).contains("sk-secret"), "{}", out(&ill));
    let report: Value = serde_json::from_str(out(&ill)).unwrap();
    let of = |name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap().clone()
    };
    assert_eq!(
        (of("configuration")["state"].as_str(), of("store")["state"].as_str()),
        (Some("ok"), Some("failed"))
    );
    assert_eq!(of("model")["state"], "failed");
    assert!(of("model")["remedy"].as_str().unwrap().contains("OPENAI_BASE_URL"));

    let broken = run(&[("HERMES__SERVER__HEARTBEAT_SECONDS", "never")], &[]).await;
    assert_eq!(broken.status.code(), Some(1));
    assert!(out(&broken).contains("server.heartbeat_seconds"), "{}", out(&broken));
}
