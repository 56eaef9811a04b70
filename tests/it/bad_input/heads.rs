//! Heads and bodies that are too large, in each framing. The bare 431 and 400 of
//! the HTTP layer are fine here: a head that is not read has no request.

use futures::stream;
use reqwest::{Body, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Stage;
use crate::harness::http::{Answer, KEY, Web};
use crate::harness::{PATIENCE, Place, on_both};
use crate::openapi::document;

/// More than `server.max_body_bytes` where nobody set it.
const TOO_LARGE: usize = 11 << 20;

/// What is answered to a head that is sent as it is.
async fn told(web: &Web, head: &str) -> String {
    let mut link = TcpStream::connect(web.address).await.unwrap();
    // The server may stop reading in the middle.
    let _cut = link.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _reset = tokio::time::timeout(PATIENCE, link.read_to_end(&mut answer))
        .await
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn thousands_of_headers_are_refused_and_others_still_served() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let start = format!("POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n");
    let rest = "content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let many: String = (0..5000).map(|number| format!("x-{number}: 1\r\n")).collect();
    let same = "accept: */*\r\n".repeat(5000);
    let long = format!("x: {}\r\n", "y".repeat(1 << 20));
    let name = format!("{}: y\r\n", "x".repeat(70_000));
    for more in [&many, &same, &long, &name] {
        let answer = told(&web, &format!("{start}{more}{rest}")).await;
        let refused = ["HTTP/1.1 431 ", "HTTP/1.1 400 "];
        assert!(
            answer.is_empty() || refused.iter().any(|line| answer.starts_with(line)),
            "{more:.20}: {answer:.300}"
        );
    }
    assert_eq!(web.get("/v1/sessions").await.body["data"], serde_json::json!([]));
    // The counterpart: the same head without them is carried out.
    let answer = told(&web, &format!("{start}{rest}")).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    web.stop().await;
}

#[test]
fn eleven_megabytes_are_refused_stated_or_in_pieces() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (document, stage) = (document(), Stage::of(&web).await);
        let before = stage.seen(&document).await;
        let turns = format!("/v1/sessions/{}/turns", stage.world.ids["ses"]);
        for (path, kind) in [
            ("/v1/sessions", "application/json"),
            (&turns, "application/json"),
            ("/v1/sessions/import", "application/x-ndjson"),
        ] {
            for in_pieces in [false, true] {
                let large = format!(r#"{{"title":"{}"}}"#, "x".repeat(TOO_LARGE));
                let body = match in_pieces {
                    false => Body::from(large),
                    true => {
                        let pieces: Vec<_> = large.as_bytes().chunks(1 << 16).map(<[u8]>::to_vec).collect();
                        Body::wrap_stream(stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>)))
                    }
                };
                let request = stage.owner.request(Method::POST, path).header("content-type", kind);
                let answer = Answer::of(request.body(body).send().await.unwrap()).await;
                answer.is_problem(413, "payload_too_large");
            }
        }
        assert_eq!(stage.seen(&document).await, before);
        web.stop().await;
    });
}

/// A frame of HTTP/2 (RFC 9113, section 4.1) of the stream 1, or of none.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags, 0, 0, 0, stream];
    [&head, payload].concat()
}

/// So many fields `x: y`, not kept in any table (RFC 7541, section 6.2.2).
fn fields(count: usize) -> Vec<u8> {
    b"\x00\x01x\x01y".repeat(count)
}

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

#[tokio::test]
async fn a_head_that_goes_on_for_ever_ends_its_connection_and_no_other() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let other = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let live = async || {
        let request = other.get(web.url("/v1/sessions")).bearer_auth(KEY);
        assert_eq!(request.send().await.unwrap().status(), 200);
    };
    live().await;
    for (piece, what) in [(fields(3000), "much"), (Vec::new(), "nothing")] {
        let mut link = TcpStream::connect(web.address).await.unwrap();
        link.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        link.write_all(&frame(SETTINGS, 0, 0, b"")).await.unwrap();
        link.write_all(&frame(HEADERS, 0, 1, &fields(1))).await.unwrap();
        let (mut reading, mut writing) = link.split();
        let piece = frame(CONTINUATION, 0, 1, &piece);
        let flood = async {
            let mut sent = 0_usize;
            while sent < 64 << 20 && writing.write_all(&piece).await.is_ok() {
                sent += piece.len();
            }
            sent
        };
        let mut told = Vec::new();
        let (sent, _reset) =
            tokio::time::timeout(PATIENCE, async { tokio::join!(flood, reading.read_to_end(&mut told)) })
                .await
                .unwrap();
        assert!(sent < 64 << 20, "the server reads on after {sent} bytes of {what}");
        live().await;
    }
    web.stop().await;
}

#[tokio::test]
async fn thousands_of_headers_in_one_head_of_http_2_are_refused() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let request = |count: usize| {
        let many = (0..count).map(|number| {
            let name = reqwest::header::HeaderName::try_from(format!("x-{number}")).unwrap();
            (name, reqwest::header::HeaderValue::from_static("1"))
        });
        let request = client.post(web.url("/v1/sessions")).bearer_auth(KEY);
        request.headers(many.collect()).json(&serde_json::json!({})).send()
    };
    match request(5000).await {
        Ok(answer) => assert_eq!(answer.status(), 431),
        Err(error) => assert!(error.is_request(), "{error:?}"),
    }
    assert_eq!(web.get("/v1/sessions").await.body["data"], serde_json::json!([]));
    // The counterpart: as many as are allowed.
    assert_eq!(request(50).await.unwrap().status(), 201);
    web.stop().await;
}
