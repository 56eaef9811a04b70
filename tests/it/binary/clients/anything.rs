//! Whatever the documents allow, and much that they do not, sent by
//! schemathesis: no answer that a document does not tell of, and no fault of
//! the server. The four operations of the native surface whose answer stays open are left out: who asks
//! for one has no answer to judge before it ends.

use super::super::program::{Program, out};
use super::workshop::{Workshop, talk_at_length};
use crate::harness::Place;
use crate::openapi::{Operation, document, operations};

/// What is left out; `tests/it/streams` has them.
const OPEN: [&str; 4] = ["stream_session", "stream_turn", "stream_lists", "stream_approvals"];
const FILES: [&str; 2] = ["requirements.txt", "hooks.py"];
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

/// Tries a document on a server of its own; what the tool said.
async fn tried(document: &str, left_out: &[&str]) -> Option<String> {
    let workshop = Workshop::of("tests/data/schemathesis", &FILES);
    if !workshop.has_python().await {
        return None;
    }
    let place = Place::sqlite();
    let server = Program::start(&place).await;
    let bearer = format!("Authorization: Bearer {}", server.key);
    let file = format!("{}/openapi/{document}", env!("CARGO_MANIFEST_DIR"));
    let mut command = workshop.command(".venv/bin/schemathesis", &["run", &file, "--url", &server.base]);
    for open in left_out {
        command.args(["--exclude-operation-id", open]);
    }
    command
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", ".")
        .args(["--header", &bearer, "--checks", CHECKS])
        .args(["--phases", "coverage,fuzzing,stateful", "--max-examples", "8"])
        // The same requests each time.
        .args(["--generation-deterministic"])
        .args(["--request-timeout", "20", "--warnings", "off", "--no-color"]);
    let tried = talk_at_length(command).await;
    let said = out(&tried).to_owned();
    assert_eq!(tried.status.code(), Some(0), "{said}");
    assert_eq!(server.get("/health/ready").await.status, 200);
    server.stop().await;
    Some(said)
}

fn cases(said: &str) -> u32 {
    let cases = said
        .split(" generated, ")
        .next()
        .and_then(|text| text.rsplit(' ').next());
    cases.unwrap().parse().unwrap()
}

#[tokio::test]
async fn no_request_of_a_drop_in_surface_gets_an_answer_that_its_document_does_not_tell_of() {
    for (document, least) in [("openai.json", 50), ("hermes.json", 300)] {
        // One that follows a run stays open, as long as that runs.
        let open: &[&str] = if document == "hermes.json" {
            &["stream_run"]
        } else {
            &[]
        };
        let Some(said) = tried(document, open).await else {
            return;
        };
        assert!(least < cases(&said), "{document}: {said}");
    }
}

#[tokio::test]
async fn no_request_gets_an_answer_that_the_document_does_not_tell_of() {
    let Some(said) = tried("native.json", &OPEN).await else {
        return;
    };
    assert!(cases(&said) > 1000, "{said}");
    let all = operations(&document());
    // All that are read as a stream of events, and nothing else.
    let stays_open = |operation: &&Operation| {
        let content = &operation.body["responses"]["200"]["content"];
        operation.method == "GET" && content["text/event-stream"].is_object()
    };
    let open: Vec<&str> = all
        .iter()
        .filter(stays_open)
        .map(|operation| operation.id.as_str())
        .collect();
    assert_eq!(open, OPEN);
    let selected = format!("{} selected / {} total", all.len() - open.len(), all.len());
    assert!(said.contains(&selected), "{said}");
}
