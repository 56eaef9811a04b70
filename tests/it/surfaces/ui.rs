//! The stream of UI messages: parts of a turn, found again by a page that was
//! opened anew, with answers to approvals in the chat.

use reqwest::Method;
use serde_json::{Value, json};

use super::wire::{Frame, Stream};
use crate::harness::on_both;
use crate::harness::script::{guarded, mark};

const PATH: &str = "/v1/ui/chat";

fn says(text: &str) -> Value {
    json!({"id": "chat-1", "trigger": "submit-message", "messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": text}]}]})
}

fn types(frames: &[Frame]) -> Vec<String> {
    let (last, parts) = frames.split_last().unwrap();
    assert_eq!(last.data, "[DONE]");
    let mut types: Vec<String> = parts
        .iter()
        .map(|part| part.json()["type"].as_str().unwrap().to_owned())
        .collect();
    types.dedup();
    types
}

fn text(frames: &[Frame]) -> String {
    let parts = frames.iter().filter(|frame| frame.data != "[DONE]").map(Frame::json);
    parts
        .filter(|part| part["type"] == "text-delta")
        .filter_map(|part| part["delta"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn a_turn_is_parts_of_a_message_on_each_way_to_ask_for_them() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let script = format!("/say I look.\n{}\n/then\n/say done", mark("x"));
        let stream = client.post_stream(PATH, &says(&script)).await;
        assert_eq!(stream.headers["x-vercel-ai-ui-message-stream"], "v1");
        let frames = stream.rest().await;
        let expected = [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "tool-input-start",
            "tool-input-available",
            "tool-output-available",
            "finish-step",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish",
        ];
        assert_eq!(types(&frames), expected);
        assert_eq!(text(&frames), "I look.done");

        let session = client.get("/v1/sessions?external_id=chat-1").await.expect(200)["data"][0]["id"].clone();
        let turns = format!("/v1/sessions/{}/turns", session.as_str().unwrap());
        let turn = client.get(&turns).await.expect(200)["data"][0]["id"].clone();
        let again = client
            .get_stream(&format!("{turns}/{}/stream?protocol=ui", turn.as_str().unwrap()))
            .await
            .rest()
            .await;
        assert_eq!(text(&again), text(&frames));
        let accept = "text/event-stream; protocol=ui-message-stream";
        let request = client
            .request(Method::POST, &turns)
            .header("accept", accept)
            .json(&json!({"input": "/say native"}));
        assert_eq!(text(&Stream::open(request).await.rest().await), "native");
        web.stop().await;
    });
}

#[test]
fn a_page_that_comes_back_finds_what_is_under_way_and_nothing_else() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let resume = format!("{PATH}/chat-1/stream");
        assert_eq!(client.get(&resume).await.status, 204);
        let mut stream = client.post_stream(PATH, &says("/say begun\n/tokens 100000 200")).await;
        stream.until(|frame| frame.data.contains("text-delta")).await;
        drop(stream);
        let mut again = client.get_stream(&resume).await;
        let seen = again.until(|frame| frame.data.contains("text-delta")).await;
        assert_eq!(seen[0].json()["type"], "start");
        let turn = seen[0].json()["messageMetadata"].clone();
        let cancel = format!(
            "/v1/sessions/{}/turns/{}/cancel",
            turn["session_id"].as_str().unwrap(),
            turn["turn_id"].as_str().unwrap()
        );
        client.post(&cancel, &json!({})).await;
        assert!(types(&again.rest().await).contains(&"abort".to_owned()));
        assert_eq!(client.get(&resume).await.status, 204);
        web.stop().await;
    });
}

#[test]
fn an_approval_is_answered_in_the_chat_which_goes_on_in_the_same_message() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        for (approved, outcome) in [(true, "tool-output-available"), (false, "tool-output-denied")] {
            let mut stream = client
                .post_stream(PATH, &says(&format!("{}\n/then\n/say after", guarded("x"))))
                .await;
            let frames = stream.until(|frame| frame.data.contains("tool-approval-request")).await;
            let asked = frames.last().unwrap().json();
            let part = json!({"type": "dynamic-tool", "toolName": "terminal", "toolCallId": asked["toolCallId"],
                "state": "approval-responded", "approval": {"id": asked["approvalId"], "approved": approved}});
            let body = json!({"id": "chat-1", "messages": [{"id": "a1", "role": "assistant", "parts": [part]}]});
            let next = client.post_stream(PATH, &body).await.rest().await;
            assert_eq!(next[0].json()["messageId"], "a1");
            assert!(types(&next).contains(&outcome.to_owned()), "{next:?}");
            assert_eq!(text(&next), "after");
            // The page that stayed sees the same.
            assert_eq!(text(&stream.rest().await), "after");
        }
        web.stop().await;
    });
}

#[test]
fn an_approval_may_hold_for_the_session_by_a_choice_beside_the_messages() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let script = format!("{}\n/then\n{}\n/then\n/say after", guarded("x"), guarded("x"));
        let mut stream = client.post_stream(PATH, &says(&script)).await;
        let frames = stream.until(|frame| frame.data.contains("data-approval")).await;
        let asked = frames.last().unwrap().json()["data"].clone();
        assert!(
            asked["choices"].as_array().unwrap().contains(&json!("session")),
            "{asked}"
        );
        let id = asked["approval_id"].as_str().unwrap();
        let answers = |approved: bool, choice: &str| {
            let part = json!({"type": "dynamic-tool", "state": "approval-responded",
                "approval": {"id": id, "approved": approved}});
            json!({"id": "chat-1", "messages": [{"id": "a1", "role": "assistant", "parts": [part]}],
                "choices": {id: choice}})
        };
        for (approved, choice) in [(false, "session"), (true, "deny"), (true, "perhaps")] {
            let refused = client.post(PATH, &answers(approved, choice)).await;
            assert_eq!(
                (refused.status, &refused.body["error"]["code"]),
                (400, &json!("invalid_approval_choice"))
            );
        }
        let rest = client.post_stream(PATH, &answers(true, "session")).await.rest().await;
        assert_eq!(text(&rest), "after");
        assert!(
            !types(&rest).contains(&"tool-approval-request".to_owned()),
            "it holds for the second"
        );
        let session = client.get("/v1/sessions").await.expect(200)["data"][0]["id"].clone();
        let grants = client.get("/v1/grants").await.expect(200);
        assert_eq!(grants["data"][0]["session_id"], session);
        web.stop().await;
    });
}

#[test]
fn a_failure_is_an_error_part() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let frames = client.post_stream(PATH, &says("/error 401")).await.rest().await;
        assert_eq!(types(&frames), ["start", "error", "finish"]);
        let wrong = client.post(PATH, &json!({"id": "chat-1", "messages": []})).await;
        assert_eq!((wrong.status, wrong.body["error"]["message"].is_string()), (400, true));
        web.stop().await;
    });
}
