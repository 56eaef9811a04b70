//! The demo model, asked as the turn engine asks it: scripts to their end, errors,
//! words on the clock.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::*;
use crate::base::Timestamp;

fn request(messages: Vec<ChatMessage>) -> Request {
    let tools: Arc<RawValue> = Arc::from(RawValue::from_string("[]".to_owned()).unwrap());
    Request {
        model: "demo".to_owned(),
        messages,
        tools: Some(tools),
        sampling: Default::default(),
    }
}

async fn ask(request: &Request, attempt: u32) -> (Result<Answer, Failed>, Vec<Delta>) {
    let demo = Demo::new(Clock::system());
    let mut deltas = Vec::new();
    let answer = demo.attempt(request, attempt, &mut |delta| deltas.push(delta)).await;
    (answer, deltas)
}

async fn answer(messages: Vec<ChatMessage>) -> Answer {
    ask(&request(messages), 1).await.0.unwrap()
}

/// The message that records an answer, with a result for each call.
fn recorded(answer: &Answer) -> Vec<ChatMessage> {
    let assistant = ChatMessage::Assistant {
        text: Some(answer.text.clone()),
        reasoning: None,
        calls: answer.calls.clone(),
    };
    let result = |call: &Call| ChatMessage::Tool {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: "{}".to_owned(),
    };
    std::iter::once(assistant)
        .chain(answer.calls.iter().map(result))
        .collect()
}

#[tokio::test]
async fn without_directives_it_introduces_itself() {
    for text in ["hello", ""] {
        let answer = answer(vec![ChatMessage::user(text)]).await;
        assert!(
            answer.text.contains("demo model") && answer.text.contains("/tool terminal"),
            "{}",
            answer.text
        );
        assert_eq!(answer.finish, Finish::Stop);
    }
}

#[tokio::test]
async fn a_script_is_played_step_by_step_to_its_end() {
    let mut messages = vec![ChatMessage::user(
        "/say looking\n/tool read_file {\"path\": \"a\"}\n/tool read_file {\"path\": \"b\"}\n/then\n/say finished",
    )];
    let first = answer(messages.clone()).await;
    assert_eq!(
        (first.text.as_str(), first.finish.clone()),
        ("looking", Finish::ToolCalls)
    );
    assert_eq!(
        first
            .calls
            .iter()
            .map(|call| call.arguments.as_str())
            .collect::<Vec<_>>(),
        ["{\"path\": \"a\"}", "{\"path\": \"b\"}"]
    );
    messages.extend(recorded(&first));
    let second = answer(messages.clone()).await;
    assert_eq!(
        (second.text.as_str(), second.finish.clone()),
        ("finished", Finish::Stop)
    );
    messages.extend(recorded(&second));
    messages.push(ChatMessage::user("thanks"));
    assert_eq!(answer(messages).await.text, INTRODUCTION);
}

#[tokio::test]
async fn a_script_that_ends_with_calls_is_summed_up() {
    let mut messages = vec![ChatMessage::user("/tool todo")];
    let first = answer(messages.clone()).await;
    messages.extend(recorded(&first));
    assert_eq!(answer(messages).await.text, "Done.");
}

#[tokio::test]
async fn call_ids_differ_between_answers_and_repeat_between_runs() {
    let mut messages = vec![ChatMessage::user("/tool a\n/then\n/tool b")];
    let first = answer(messages.clone()).await;
    assert_eq!(first, answer(messages.clone()).await);
    messages.extend(recorded(&first));
    assert_ne!(answer(messages).await.calls[0].id, first.calls[0].id);
}

#[tokio::test]
async fn words_stream_one_by_one_and_join_to_the_answer() {
    let (answer, deltas) = ask(
        &request(vec![ChatMessage::user(
            "/reason let me  see\n/say a b\n/tokens 3\n/say c",
        )]),
        1,
    )
    .await;
    let answer = answer.unwrap();
    let (mut text, mut reasoning) = (String::new(), String::new());
    for delta in &deltas {
        match delta {
            Delta::Text(word) => text.push_str(word),
            Delta::Reasoning(word) => reasoning.push_str(word),
        }
    }
    assert_eq!(
        (text.as_str(), reasoning.as_str()),
        (answer.text.as_str(), answer.reasoning.as_str())
    );
    assert_eq!(answer.text, "a b\nword1 word2 word3\nc");
    assert_eq!(answer.reasoning, "let me  see");
    assert_eq!(
        deltas
            .iter()
            .filter(|delta| matches!(delta, Delta::Text(word) if word != "\n"))
            .count(),
        6
    );
    assert_eq!(
        answer.usage,
        Some(TokenUsage {
            input: 11,
            output: 9,
            cached_input: 0,
            reasoning: 3
        })
    );
}

#[tokio::test]
async fn errors_come_with_the_kind_of_their_status() {
    let (failed, deltas) = ask(&request(vec![ChatMessage::user("/error 402\n/say never")]), 9).await;
    let failed = failed.unwrap_err();
    assert_eq!(
        (failed.kind, failed.status, failed.partial),
        (FailureKind::Billing, Some(402), None)
    );
    assert!(deltas.is_empty());
}

#[tokio::test]
async fn an_error_may_hold_for_the_first_attempts_only() {
    let request = request(vec![ChatMessage::user("/error 503 2\n/say at last")]);
    assert_eq!(ask(&request, 2).await.0.unwrap_err().kind, FailureKind::Overloaded);
    assert_eq!(ask(&request, 3).await.0.unwrap().text, "at last");
}

#[tokio::test]
async fn an_error_after_words_keeps_them() {
    let (failed, _) = ask(&request(vec![ChatMessage::user("/say half an\n/error 500")]), 1).await;
    assert_eq!(failed.unwrap_err().partial.unwrap().text, "half an");
}

#[tokio::test]
async fn without_tools_it_calls_none() {
    let request = Request {
        tools: None,
        ..request(vec![ChatMessage::user("/tool todo")])
    };
    let answer = ask(&request, 1).await.0.unwrap();
    assert!(answer.calls.is_empty() && !answer.text.is_empty());
}

#[tokio::test]
async fn words_and_sleeps_follow_the_clock() {
    let clock = Clock::stepped(Timestamp(0));
    let demo = Demo::new(clock.clone());
    let (sender, mut words) = tokio::sync::mpsc::unbounded_channel();
    let request = request(vec![ChatMessage::user("/sleep 50\n/tokens 2 10")]);
    let task = tokio::spawn(async move {
        demo.attempt(&request, 1, &mut |delta| sender.send(delta).unwrap())
            .await
            .unwrap();
    });
    let mut seen = Vec::new();
    for millis in [0, 49, 1, 99, 1, 99, 1] {
        clock.step(Duration::from_millis(millis));
        // The task runs until it sleeps again: this thread has no other.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        seen.push(std::iter::from_fn(|| words.try_recv().ok()).count());
    }
    task.await.unwrap();
    assert_eq!(seen, [0, 0, 0, 0, 1, 0, 1]);
}
