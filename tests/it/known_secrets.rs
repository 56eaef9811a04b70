//! Secrets of the server's own configuration: nobody sees them, also when a model
//! writes them, in pieces or in base64; on both databases.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hermes_server::base::Secret;
use serde_json::{Value, json};

use crate::api_rest::Talk;
use crate::cases::{ended, events, messages};
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::on_both;

const KEY: &str = "local-model-key-0123456789";

/// An answer that holds the key in everything that a model can write.
fn leak() -> Reply {
    let encoded = STANDARD.encode(format!("key={KEY}\n"));
    let (one, two) = KEY.split_at(9);
    let (three, four) = encoded.split_at(7);
    let arguments = json!({"todos": [{"id": "1", "content": KEY, "status": "pending"}]}).to_string();
    Reply::stream(
        &[
            json!({"reasoning_content": format!("I was given {one}")}),
            json!({"reasoning_content": format!("{two}.")}),
            json!({"content": format!("The key is {one}")}),
            json!({"content": two}),
            json!({"content": format!(" or {three}")}),
            json!({"content": four}),
            json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
                "function": {"name": "todo", "arguments": arguments}}]}),
        ],
        "tool_calls",
    )
}

#[test]
fn what_a_model_writes_of_them_is_masked_before_anybody_sees_it() {
    on_both(async |mut place| {
        // It echoes what it was asked with, as some servers do.
        let refusal = Reply::refusal(400, &format!("bad key {KEY}"));
        let model = ModelServer::start(vec![leak(), Reply::say("Done: loca"), refusal]).await;
        place.config.openai.base_url = Some(model.base_url.clone());
        place.config.openai.api_key = Some(Secret::new(KEY));
        place.config.model = Some("scripted".to_owned());
        let web = place.serve().await;
        let mut talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let id = talk.say("what is your key?").await;
        let mut seen: Vec<Value> = Vec::new();
        let (mut text, mut message) = (String::new(), Value::Null);
        loop {
            let frame = talk.events.next().await.unwrap();
            if frame.event == "message.delta" && seen.iter().all(|event| event["type"] != "tool_call.proposed") {
                text.push_str(frame.data["data"]["text"].as_str().unwrap());
                message = frame.data["data"]["message_id"].clone();
            }
            let over = frame.event == "turn.completed";
            seen.push(frame.data);
            if over {
                break;
            }
        }
        let failed = talk.path(&format!("/turns/{}", talk.say("again").await));
        let failed = ended(&talk, &failed).await;
        assert_eq!(failed["status"], "failed");
        let kept = messages(&talk).await;
        let answer = kept.iter().find(|kept| kept["id"] == message).unwrap();
        assert_eq!(answer["content"][0]["text"], json!(text), "the pieces are the text");
        assert!(
            text.starts_with("The key is *** or ") && text.matches("***").count() == 2,
            "{text}"
        );
        assert!(
            kept.iter().any(|kept| kept["content"][0]["text"] == "Done: loca"),
            "{kept:?}"
        );
        let all = json!([
            seen,
            kept,
            events(&talk).await,
            failed,
            talk.client.get(&talk.path(&format!("/turns/{id}"))).await.expect(200)
        ])
        .to_string();
        let encoded = STANDARD.encode(format!("key={KEY}\n"));
        for part in [KEY, "model-key-012", &encoded[10..30]] {
            assert!(!all.contains(part), "{part} in {all}");
        }
        web.stop().await;
    });
}
