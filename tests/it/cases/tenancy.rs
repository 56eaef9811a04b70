//! Field cases about who can reach what.

use std::collections::BTreeSet;

use hermes_server::model::principal::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{ended, held, let_go, talk};
use crate::harness::client::NewKey;
use crate::harness::http::{Answer, KEY, Web};
use crate::harness::{PATIENCE, on_both};

#[test]
fn fc_089_a_foreign_page_reaches_nothing() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let evil = "https://evil.example";
        let preflight = web.bare(Method::OPTIONS, "/v1/sessions").header("origin", evil);
        let preflight = preflight.header("access-control-request-method", "POST");
        let preflight = preflight.header("access-control-request-headers", "content-type");
        let preflight = Answer::of(preflight.send().await.unwrap()).await;
        assert_eq!(
            preflight.header("access-control-allow-origin"),
            "",
            "the browser sends nothing more"
        );
        let answers = [
            web.bare(Method::POST, "/v1/sessions").header("origin", evil).body("{}"),
            web.bare(Method::POST, "/v1/sessions")
                .header("origin", "null")
                .body("{}"),
        ];
        for request in answers {
            let answer = Answer::of(request.send().await.unwrap()).await;
            assert!([401, 403].contains(&answer.status), "{answer:?}");
            for name in ["access-control-allow-origin", "access-control-allow-credentials"] {
                assert_eq!(answer.header(name), "");
            }
        }
        let bare = web.bare(Method::POST, "/v1/sessions").body("{}");
        Answer::of(bare.send().await.unwrap())
            .await
            .is_problem(401, "unauthenticated");
        assert_eq!(
            web.owner().await.get("/v1/sessions").await.expect(200)["data"],
            json!([])
        );
        web.stop().await;
    });
}

/// The problem without what differs between any two requests.
fn plain(answer: Answer) -> Value {
    let mut body = answer.problem(404, "not_found");
    for field in ["request_id", "instance"] {
        body.as_object_mut().unwrap().remove(field);
    }
    body
}

#[test]
fn fc_091_to_another_tenant_a_running_turn_does_not_exist() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut a = talk(&web, json!({})).await;
        let turn = a.say(&held("echo went on")).await;
        a.events.until("tool_call.started").await;
        let new = NewKey {
            tenant: web.tenant("b").await,
            user: "bea",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let b = web.with_key(new).await;
        let nobody = "ses_00000000000000000000000000";
        for (method, rest) in [
            (Method::POST, format!("/turns/{turn}/cancel")),
            (Method::GET, format!("/turns/{turn}")),
            (Method::GET, format!("/turns/{turn}/stream")),
            (Method::DELETE, String::new()),
            (Method::GET, String::new()),
            (Method::GET, "/events".to_owned()),
            (Method::GET, "/stream".to_owned()),
            (Method::GET, "/messages".to_owned()),
        ] {
            let answered = async |session: &str| {
                let path = format!("/v1/sessions/{session}{rest}");
                plain(Answer::of(b.request(method.clone(), &path).send().await.unwrap()).await)
            };
            assert_eq!(answered(&a.session).await, answered(nobody).await, "{method} {rest}");
        }
        let listed = b.get(&format!("/v1/approvals?session_id={}", a.session)).await;
        let unknown = b.get(&format!("/v1/approvals?session_id={nobody}")).await;
        assert_eq!((listed.status, listed.body), (unknown.status, unknown.body));
        let turn = a.path(&format!("/turns/{turn}"));
        assert_eq!(a.client.get(&turn).await.expect(200)["status"], "running");
        let_go(&web, &a.session);
        assert_eq!(ended(&a, &turn).await["status"], "completed");
        web.stop().await;
    });
}

/// The status of a request whose target goes over the wire as it stands; a
/// client library would tidy it up.
async fn raw(web: &Web, target: &str) -> u16 {
    let mut link = TcpStream::connect(web.address).await.unwrap();
    let head =
        format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n");
    link.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, link.read_to_end(&mut answer))
        .await
        .unwrap()
        .unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Names in a directory and, one level down, in those that a session would get.
fn names(directory: &std::path::Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn fc_092_ids_that_are_none_reach_no_file_and_break_nothing() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let (before, above) = (
            names(&place.directory),
            place.directory.parent().unwrap().join("passwd"),
        );
        let long = "a".repeat(300);
        let raw_ids = [
            "../../etc/passwd",
            "..%2f..%2fetc%2fpasswd",
            "%2e%2e%2f",
            "%00",
            "a%00b",
            "%ff%fe",
            &long,
            "%F0%9F%98%80",
        ];
        for id in raw_ids {
            for rest in ["", "/messages", "/stream", "/turns/x"] {
                let status = raw(&web, &format!("/v1/sessions/{id}{rest}")).await;
                assert!([400, 404].contains(&status), "{id}{rest}: {status}");
            }
            let status = raw(&web, &format!("/v1/approvals?session_id={id}")).await;
            assert!([200, 400, 404].contains(&status), "{id} as a filter: {status}");
        }
        let session = web.session().await;
        for id in ["../../etc/passwd", "%2e%2e%2f", &long, "😀"] {
            let request = web.request(Method::GET, &format!("{session}/stream"));
            let header = request.header("last-event-id", id.as_bytes());
            Answer::of(header.send().await.unwrap())
                .await
                .is_problem(400, "invalid_cursor");
        }
        owner
            .post("/v1/sessions", &json!({"external_id": long}))
            .await
            .problem(400, "invalid_request");
        for id in ["../../etc/passwd", "%2e%2e%2f", "a\0b", "😀"] {
            // Any short text is a name for the client's own use; no path is made of it.
            let talk = talk(&web, json!({"external_id": id})).await;
            let turn = talk.path(&format!(
                "/turns/{}",
                talk.say("/tool write_file {\"path\": \"f\", \"content\": \"x\"}").await
            ));
            assert_eq!(ended(&talk, &turn).await["status"], "completed");
            assert!(web.server.workspace(talk.session.parse().unwrap()).join("f").exists());
        }
        assert_eq!((names(&place.directory), above.exists()), (before, false));
        web.stop().await;
    });
}
