//! What a body may be: kind, size, time, form.

use futures::stream;
use reqwest::{Body, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::http::{Answer, KEY, SECOND, Web};
use crate::harness::{PATIENCE, Place};

async fn posted(web: &Web, body: impl Into<Body>, kind: Option<&str>) -> Answer {
    let mut request = web.request(Method::POST, "/v1/sessions").body(body);
    if let Some(kind) = kind {
        request = request.header("content-type", kind);
    }
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn only_json_that_says_what_is_known_is_taken() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let json_type = Some("application/json");
    posted(&web, "{}", None).await.is_problem(415, "unsupported_media_type");
    posted(&web, "{}", Some("text/plain"))
        .await
        .is_problem(415, "unsupported_media_type");
    for (body, pointer) in [
        ("", ""),
        ("{", ""),
        (r#"["title"]"#, ""),
        (r#"{"environment": {"backend": "docker"}}"#, "/environment/backend"),
        (r#"{"titel": "x"}"#, "/titel"),
        (r#"{"title": 5}"#, "/title"),
        (r#"{"title": "a", "title": "b"}"#, ""),
        (r#"{"approvals": {"mode": "never"}}"#, "/approvals/mode"),
        (r#"{"environment": {"backend": 1}}"#, "/environment/backend"),
        (r#"{"external_id": ""}"#, "/external_id"),
    ] {
        let refused = posted(&web, body, json_type).await;
        refused.is_problem(400, "invalid_request");
        assert_eq!(
            refused.body["errors"][0]["pointer"], pointer,
            "{body}: {}",
            refused.body
        );
        assert!(!refused.body["errors"][0]["detail"].as_str().unwrap().is_empty());
    }
    let made = posted(
        &web,
        r#"{"title": "a\u0000b"}"#,
        Some("application/json; charset=utf-8"),
    )
    .await;
    assert_eq!((made.status, &made.body["title"]), (201, &json!("a\u{fffd}b")));
    web.stop().await;
}

#[tokio::test]
async fn a_large_body_is_refused_however_it_comes() {
    let mut place = Place::sqlite();
    place.config.server.max_body_bytes = 2048;
    let web = place.serve().await;
    let large = format!(r#"{{"instructions": "{}"}}"#, "x".repeat(4000));
    let json_type = Some("application/json");
    posted(&web, large.clone(), json_type)
        .await
        .is_problem(413, "payload_too_large");
    let pieces: Vec<Result<String, std::io::Error>> = large
        .as_bytes()
        .chunks(100)
        .map(|piece| Ok(String::from_utf8(piece.to_vec()).unwrap()))
        .collect();
    let chunked = Body::wrap_stream(stream::iter(pieces));
    posted(&web, chunked, json_type)
        .await
        .is_problem(413, "payload_too_large");
    let small = format!(r#"{{"instructions": "{}"}}"#, "x".repeat(1000));
    assert_eq!(posted(&web, small, json_type).await.status, 201);
    web.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let mut place = Place::sqlite();
    place.config.server.body_timeout = SECOND;
    let web = place.serve().await;
    let mut link = TcpStream::connect(web.address).await.unwrap();
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{{"
    );
    link.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(PATIENCE, link.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["code"], "request_timeout");
    web.stop().await;
}

#[tokio::test]
async fn http_2_is_spoken_on_the_same_port() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let response = client
        .get(web.url("/v1/sessions"))
        .bearer_auth(KEY)
        .send()
        .await
        .unwrap();
    assert_eq!(
        (response.version(), response.status().as_u16()),
        (reqwest::Version::HTTP_2, 200)
    );
    drop((response, client));
    web.stop().await;
}
