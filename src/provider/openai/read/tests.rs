//! Recorded streams of many kinds of servers. Each must mean the same whole, cut in
//! two anywhere, and byte by byte.

use super::*;
use crate::provider::{Finish, TokenUsage};

/// What a stream comes to, in one line: `reasoning | text | calls | finish`.
async fn parse(chunks: Vec<&[u8]>) -> (Result<Answer, Failed>, String) {
    let upstream = Upstream {
        origin: "http://127.0.0.1:1".to_owned(),
        secrets: Vec::new(),
    };
    let chunks: Vec<Result<Bytes, Broken>> = chunks
        .into_iter()
        .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
        .collect();
    let (mut text, mut reasoning) = (String::new(), String::new());
    let mut on_delta = |delta| match delta {
        Delta::Text(piece) => text.push_str(&piece),
        Delta::Reasoning(piece) => reasoning.push_str(&piece),
    };
    let result = read(futures::stream::iter(chunks).boxed(), &upstream, &mut on_delta).await;
    match &result {
        Ok(answer) => assert_eq!(
            (&answer.text, &answer.reasoning),
            (&text, &reasoning),
            "deltas join to the answer"
        ),
        Err(failed) => {
            let kept = failed.partial.clone().unwrap_or_default();
            assert_eq!(
                (kept.text, kept.reasoning),
                (text, reasoning),
                "deltas join to what is kept"
            );
        }
    }
    let line = match &result {
        Ok(answer) => line(answer),
        Err(failed) => format!("{:?} {:?} {:?}", failed.kind, failed.status, failed.partial),
    };
    (result, line)
}

fn line(answer: &Answer) -> String {
    let calls: Vec<String> = answer
        .calls
        .iter()
        .map(|call| format!("{} {} {}", call.id, call.name, call.arguments))
        .collect();
    format!(
        "{} | {} | {} | {:?}",
        answer.reasoning,
        answer.text,
        calls.join(", "),
        answer.finish
    )
}

/// The stream means `expected` whole, cut in two anywhere, and byte by byte.
async fn check(stream: &str, expected: &str) {
    let bytes = stream.as_bytes();
    assert_eq!(parse(vec![bytes]).await.1, expected, "{stream}");
    for at in 0..bytes.len() {
        let (first, second) = bytes.split_at(at);
        assert_eq!(parse(vec![first, second]).await.1, expected, "cut at {at}: {stream}");
    }
    assert_eq!(
        parse(bytes.chunks(1).collect()).await.1,
        expected,
        "byte by byte: {stream}"
    );
}

/// Each line of JSON as an event, then `[DONE]`.
fn events(chunks: &[&str]) -> String {
    chunks
        .iter()
        .chain(&["[DONE]"])
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect()
}

#[tokio::test]
async fn a_plain_answer_with_counts() {
    let stream = events(&[
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}"#,
        r#"{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"Grüß "},"finish_reason":null}],"usage":null}"#,
        r#"{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"Gott 한"},"finish_reason":null}],"usage":null}"#,
        r#"{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#,
        r#"{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":2}}}"#,
    ]);
    check(&stream, " | Grüß Gott 한 |  | Stop").await;
    let answer = parse(vec![stream.as_bytes()]).await.0.unwrap();
    assert_eq!(
        answer.usage,
        Some(TokenUsage {
            input: 9,
            output: 4,
            cached_input: 8,
            reasoning: 2
        })
    );
    assert_eq!(answer.response_id.as_deref(), Some("chatcmpl-1"));
}

#[tokio::test]
async fn parallel_calls_in_fragments() {
    let stream = events(&[
        r#"{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read_file","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\": "}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"todo","arguments":"{}"}},{"index":0,"function":{"arguments":"\"a\"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    ]);
    check(&stream, r#" |  | c1 read_file {"path": "a"}, c2 todo {} | ToolCalls"#).await;
}

#[tokio::test]
async fn everything_in_one_chunk_with_finish_stop_and_no_ids() {
    let stream = events(&[
        r#"{"choices":[{"delta":{"role":"assistant","content":"on it","tool_calls":[{"function":{"name":"terminal","arguments":{"command":"ls"}}}]},"finish_reason":"stop"}]}"#,
    ]);
    check(&stream, r#" | on it | call_1 terminal {"command":"ls"} | ToolCalls"#).await;
}

#[tokio::test]
async fn comments_foreign_fields_crlf_and_a_byte_order_mark_pass() {
    let stream = "\u{feff}: OPENROUTER PROCESSING\r\n\r\nid: 7\r\nevent: message\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\n\
        : ping\r\n\r\ndata: \r\n\r\nretry: 5\r\n\r\ndata: {\"choices\":[{\"delta\":\r\ndata: {\"content\":\"b\"},\"finish_reason\":\"length\"}]}\r\n\r\ndata: [DONE]\r\n\r\n";
    check(stream, " | ab |  | Length").await;
    check(&stream.replace('\n', ""), " | ab |  | Length").await;
}

#[tokio::test]
async fn a_stream_may_end_without_done_and_without_its_last_line_end() {
    let finished = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    check(finished, " | a |  | Stop").await;
    check(
        &format!("{finished}\n\ndata: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1}}}}"),
        " | a |  | Stop",
    )
    .await;
    check(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]",
        " | a |  | Stop",
    )
    .await;
}

#[tokio::test]
async fn a_stream_without_an_end_is_interrupted_and_keeps_its_text() {
    let cut = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    check(cut, r#"Interrupted None Some(Partial { text: "half", reasoning: "" })"#).await;
    check("", "Interrupted None None").await;
    check(": nothing yet\n\n", "Interrupted None None").await;
    let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}}]}\n\n";
    check(call, r#"Interrupted None Some(Partial { text: "", reasoning: "" })"#).await;
}

#[tokio::test]
async fn an_error_in_the_stream_is_a_failure() {
    let begun = r#"data: {"choices":[{"delta":{"content":"ha"}}]}"#;
    let error = r#"data: {"error":{"message":"provider gone","code":502},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#;
    check(&format!("{error}\n\n"), "ServerError Some(502) None").await;
    check(
        &format!("{begun}\n\n{error}\n\n"),
        r#"ServerError Some(502) Some(Partial { text: "ha", reasoning: "" })"#,
    )
    .await;
    check(
        "event: error\ndata: {\"message\":\"overloaded\"}\n\n",
        "Overloaded None None",
    )
    .await;
    check(
        "{\"object\":\"error\",\"message\":\"the model x does not exist\",\"code\":404}",
        "UnknownModel Some(404) None",
    )
    .await;
    check(
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
        "ServerError None None",
    )
    .await;
}

#[tokio::test]
async fn one_json_object_instead_of_a_stream_is_an_answer() {
    let body = r#"{"id":"x","choices":[{"message":{"role":"assistant","content":"<think>hm</think>hi","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    check(body, "hm | hi | c f {} | ToolCalls").await;
    check(&format!("\u{feff}\n {body}\n"), "hm | hi | c f {} | ToolCalls").await;
    assert_eq!(
        parse(vec![b"{\"ok\": true}"]).await.0.unwrap_err().kind,
        FailureKind::Malformed
    );
}

/// FC-022.
#[tokio::test]
async fn reasoning_repeated_as_text_is_told_once() {
    let stream = events(&[
        r#"{"choices":[{"delta":{"reasoning_content":"think A"}}]}"#,
        r#"{"choices":[{"delta":{"content":"think A"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    ]);
    check(&stream, "think A |  |  | Stop").await;
}

/// FC-020.
#[tokio::test]
async fn a_call_written_as_text_is_text() {
    let stream = events(&[
        r#"{"choices":[{"delta":{"content":"{\"name\": \"terminal\", \"arguments\": {\"command\": \"echo hi\"}}"},"finish_reason":"stop"}]}"#,
    ]);
    check(
        &stream,
        r#" | {"name": "terminal", "arguments": {"command": "echo hi"}} |  | Stop"#,
    )
    .await;
}

#[tokio::test]
async fn reasoning_streams_on_its_own_channel() {
    let stream = events(&[
        r#"{"choices":[{"delta":{"reasoning":"let ","reasoning_details":[{"type":"reasoning.text","text":"let "}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"me","content":""}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":null,"content":"le"}}]}"#,
        r#"{"choices":[{"delta":{"content":"mon"},"finish_reason":"stop"}]}"#,
    ]);
    check(&stream, "let me | lemon |  | Stop").await;
}

#[tokio::test]
async fn a_refusal_is_text_that_ends_as_filtered() {
    let stream =
        events(&[r#"{"choices":[{"delta":{"content":null,"refusal":"I will not."},"finish_reason":"stop"}]}"#]);
    check(&stream, " | I will not. |  | ContentFilter").await;
}

#[tokio::test]
async fn what_is_no_answer_is_malformed() {
    for stream in [
        "data: {\"choices\": 7}\n\n",
        "data: maintenance\n\n",
        "<!doctype html><p>hi",
        "\n <html>",
        "{\"cut\": ",
    ] {
        let failed = parse(vec![stream.as_bytes()]).await.0.unwrap_err();
        assert_eq!(
            (failed.kind, failed.partial),
            (FailureKind::Malformed, None),
            "{stream}"
        );
    }
    let not_text = parse(vec![b"data: \xff\xff\n\n"]).await.0.unwrap_err();
    assert_eq!(not_text.kind, FailureKind::Malformed);
}

#[tokio::test]
async fn an_endless_line_and_an_endless_answer_are_cut_off() {
    let block = vec![b'a'; 1 << 20];
    let chunk = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "a".repeat(1 << 20)
    );
    for opening in [&b"data: "[..], b"{\"a\":\"", b": ", b"\n\n\n", b" "] {
        let chunks = std::iter::once(opening)
            .chain(std::iter::repeat_n(&block[..], 17))
            .collect();
        assert_eq!(parse(chunks).await.0.unwrap_err().kind, FailureKind::Malformed);
    }
    let failed = parse(vec![chunk.as_bytes(); 17]).await.0.unwrap_err();
    assert_eq!(failed.kind, FailureKind::Malformed);
    assert_eq!(failed.partial.unwrap().text.len(), 17 << 20);
}

#[tokio::test]
async fn a_server_that_keeps_a_finished_stream_open_is_not_waited_for() {
    let upstream = Upstream {
        origin: String::new(),
        secrets: Vec::new(),
    };
    let finished =
        Bytes::from_static(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n");
    let stream = futures::stream::iter([Ok(finished)])
        .chain(futures::stream::pending())
        .boxed();
    let answer = read(stream, &upstream, &mut |_| {}).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("a", Finish::Stop));
}

#[tokio::test]
async fn a_break_after_the_finish_reason_does_no_harm() {
    let upstream = Upstream {
        origin: String::new(),
        secrets: Vec::new(),
    };
    let finished =
        Bytes::from_static(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n");
    let stream = futures::stream::iter([Ok(finished), Err(Broken::Connection)]).boxed();
    assert_eq!(read(stream, &upstream, &mut |_| {}).await.unwrap().text, "a");
}
