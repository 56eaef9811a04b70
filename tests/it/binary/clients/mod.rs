//! The programs in `examples/` as a reader runs them: clients are generated from
//! the committed document, then they do the main job with a real server. And
//! what a stranger might send it.

mod anything;
mod curl;
mod python;
mod surfaces;
mod typescript;
mod workshop;

use serde_json::Value;
use tokio::process::Command;

use self::workshop::{talk, talk_as};
use super::program::{Program, err, out};
use crate::harness::Place;

/// The main job by a program whose input is the person and whose output is what
/// it was told in events.
async fn does_the_main_job(program: impl Fn() -> Command) {
    let place = Place::sqlite();
    let server = Program::start(&place).await;
    let allowed = "[once by admin]\n[approval allowed]\n[terminal runs]\n[terminal: succeeded]\n";
    decides(&server, program(), "maybe\nonce\n", allowed).await;
    let denied = "[deny by admin]\n[approval denied]\n[terminal: denied]\n";
    decides(&server, program(), "deny\n", denied).await;

    let mut greeting = program();
    greeting.arg("/reason hm\n/say one two");
    let said = talk(&server, greeting, "").await;
    assert_eq!(said.status.code(), Some(0), "{}", err(&said));
    let (_, behind) = out(&said).split_once('\n').unwrap();
    assert_eq!(behind, "one two\n[turn completed, 3 tokens]\n");

    let refused = talk_as(&server, "hsk_unknown", program(), "").await;
    assert_ne!(refused.status.code(), Some(0));
    assert!(err(&refused).contains("401 unauthenticated"), "{}", err(&refused));
    server.stop().await;
}

/// The program asks until `typed` holds an answer, and shows what comes of it.
async fn decides(server: &Program, program: Command, typed: &str, expected: &str) {
    let said = talk(server, program, typed).await;
    assert_eq!(said.status.code(), Some(0), "{}", err(&said));
    let asked = err(&said).matches("once / session / always / deny? ").count();
    assert_eq!(asked, typed.lines().count(), "{}", err(&said));
    assert!(err(&said).starts_with("terminal: rm -rf build\n"), "{}", err(&said));
    let (session, behind) = out(&said).split_once('\n').unwrap();
    let around = format!("I clean up.\n{expected}That was all.\n[turn completed, 10 tokens]\n");
    assert_eq!(behind, around);

    let seen = server.get(&format!("/v1/sessions/{session}")).await;
    assert_eq!(seen.body["status"], "idle");
    let choice = typed.lines().last().unwrap();
    let approvals = server.get(&format!("/v1/approvals?session_id={session}")).await;
    let choices = approvals.body["data"].as_array().unwrap().iter();
    let choices: Vec<&Value> = choices.map(|approval| &approval["decision"]["choice"]).collect();
    assert_eq!(choices, [choice]);
}
