//! Bodies that are no JSON, no object, or not of the form.

use reqwest::Method;
use serde_json::{Value, json};

use super::samples::{self, Kind};
use super::{Stage, no_answer, no_problem, none};
use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::on_both;
use crate::isolation::{body, closed, filled};
use crate::openapi::{Operation, document};

fn with_body(document: &Value) -> Vec<Operation> {
    let mut all = closed(document);
    // A file may hold anything.
    all.retain(|operation| {
        operation.body["requestBody"].is_object() && media_type(operation) != "application/octet-stream"
    });
    assert!(8 < all.len(), "bodies are described in another way");
    all
}

fn schema(operation: &Operation) -> Option<&Value> {
    operation.body["requestBody"]["content"]["application/json"].get("schema")
}

fn media_type(operation: &Operation) -> &str {
    let kinds = operation.body["requestBody"]["content"].as_object().unwrap();
    kinds.keys().next().unwrap()
}

async fn sent(client: &Client, operation: &Operation, path: &str, body: Vec<u8>) -> Answer {
    let method = Method::from_bytes(operation.method.as_bytes()).unwrap();
    let request = client.request(method, path);
    let request = request.header("content-type", media_type(operation)).body(body);
    Answer::of(request.send().await.unwrap()).await
}

/// A good body as text.
fn good(document: &Value, operation: &Operation) -> String {
    match body(document, operation).unwrap() {
        Value::String(lines) => lines,
        body => body.to_string(),
    }
}

/// Bodies that are broken below the form, in the first line where there are many.
fn broken(good: &str) -> Vec<(&'static str, Vec<u8>)> {
    let (line, after) = good.split_once('\n').unwrap_or((good, ""));
    let fields = line.trim_start().strip_prefix('{').unwrap();
    let comma = if fields == "}" { "" } else { "," };
    let with = |field: &[u8]| {
        [
            b"{",
            field,
            comma.as_bytes(),
            fields.as_bytes(),
            b"\n",
            after.as_bytes(),
        ]
        .concat()
    };
    let deep = |open: &str, close: &str| format!(r#""x":{}1{}"#, open.repeat(2000), close.repeat(2000));
    vec![
        ("cut off", line.as_bytes()[..line.len() - 1].to_vec()),
        ("no JSON", b"{'x': 1}".to_vec()),
        ("two values", [line, line].concat().into_bytes()),
        ("a list", b"[]".to_vec()),
        ("a text", b"\"x\"".to_vec()),
        ("a number", b"1".to_vec()),
        ("null", b"null".to_vec()),
        ("empty", Vec::new()),
        ("a repeated key", with(br#""x":1,"x":2"#)),
        ("a repeated key inside", with(br#""x":[{"y":1,"y":2}]"#)),
        ("deep lists", with(deep("[", "]").as_bytes())),
        ("deep objects", with(deep(r#"{"y":"#, "}").as_bytes())),
        ("bad UTF-8", with(b"\"x\":\"\xff\"")),
        ("bad UTF-8 in a key", with(b"\"\xc3\x28\":1")),
        ("a lone surrogate", with(br#""x":"\ud800""#)),
        ("a bare control character", with(b"\"x\":\"\0\"")),
        ("a number out of range", with(br#""x":1e999"#)),
        ("UTF-16", line.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("a byte order mark", [b"\xef\xbb\xbf", line.as_bytes()].concat()),
    ]
}

#[test]
fn a_body_that_is_no_json_object_is_refused_by_every_operation() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (document, stage) = (document(), Stage::of(&web).await);
        let before = stage.seen(&document).await;
        let mut wrong = Vec::new();
        for operation in with_body(&document) {
            let path = filled(&operation, &stage.world.ids);
            for (what, body) in broken(&good(&document, &operation)) {
                let answer = sent(&stage.owner, &operation, &path, body).await;
                let is_refused = answer.status == 400 && answer.body["code"] == "invalid_request";
                let fault = no_problem(&operation, &answer).or((!is_refused).then(|| answer.body.to_string()));
                wrong.extend(fault.map(|fault| format!("{}, {what}: {fault}", operation.id)));
            }
        }
        none(&wrong);
        assert_eq!(stage.seen(&document).await, before);
        web.stop().await;
    });
}

#[test]
fn a_field_of_a_wrong_type_is_refused_and_pointed_at() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (document, stage) = (document(), Stage::of(&web).await);
        let before = stage.seen(&document).await;
        let (mut wrong, mut count) = (Vec::new(), 0);
        for operation in with_body(&document) {
            let Some(schema) = schema(&operation) else { continue };
            let path = filled(&operation, &stage.world.ids);
            for sample in samples::of(&document, schema, Kind::WrongType) {
                count += 1;
                let text = sample.body.to_string();
                let answer = sent(&stage.owner, &operation, &path, text.clone().into_bytes()).await;
                let pointer = answer.body["errors"][0]["pointer"].as_str();
                // Of a choice between forms no place inside can be told.
                let is_told = pointer.is_some_and(|pointer| sample.at.starts_with(pointer));
                let is_refused = answer.status == 400 && answer.body["code"] == "invalid_request" && is_told;
                let fault = no_problem(&operation, &answer).or((!is_refused).then(|| answer.body.to_string()));
                wrong.extend(fault.map(|fault| format!("{} at {}, {text:.300}: {fault}", operation.id, sample.at)));
            }
        }
        none(&wrong);
        assert!(300 < count, "fields are described in another way: {count}");
        assert_eq!(stage.seen(&document).await, before);
        web.stop().await;
    });
}

#[test]
fn an_unknown_field_is_refused_by_its_name() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (document, stage) = (document(), Stage::of(&web).await);
        let before = stage.seen(&document).await;
        for operation in with_body(&document) {
            let path = filled(&operation, &stage.world.ids);
            let Some(mut body) = body(&document, &operation).filter(Value::is_object) else {
                continue;
            };
            body["no_such_field"] = json!(1);
            let answer = sent(&stage.owner, &operation, &path, body.to_string().into_bytes()).await;
            let told = answer.body["errors"][0].to_string();
            assert!(told.contains("no_such_field"), "{}: {}", operation.id, answer.body);
            answer.problem(400, "invalid_request");
        }
        assert_eq!(stage.seen(&document).await, before);
        web.stop().await;
    });
}

/// U+0000 is replaced or refused; no store sees it, and no answer shows it.
#[test]
fn a_nul_in_any_text_is_no_fault_of_the_server() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let document = document();
        let (mut wrong, mut count) = (Vec::new(), 0);
        for (number, operation) in with_body(&document).iter().enumerate() {
            let Some(schema) = schema(operation) else { continue };
            let stage = Stage::apart(&web, &format!("t{number}")).await;
            let path = filled(operation, &stage.world.ids);
            for sample in samples::of(&document, schema, Kind::Nul) {
                count += 1;
                let text = sample.body.to_string();
                let answer = sent(&stage.owner, operation, &path, text.into_bytes()).await;
                let shown = answer.body.to_string().contains("\\u0000");
                let fault = no_answer(operation, &answer).or(shown.then(|| answer.body.to_string()));
                wrong.extend(fault.map(|fault| format!("{}: {fault}", sample.at)));
            }
            stage.seen(&document).await;
        }
        none(&wrong);
        assert!(15 < count, "texts are described in another way: {count}");
        web.stop().await;
    });
}
