//! Broken conversations and their repaired forms, and the property that whatever
//! comes in, a valid conversation comes out.

use proptest::prelude::*;

use super::*;

fn call(id: &str) -> Call {
    Call {
        id: id.to_owned(),
        name: "todo".to_owned(),
        arguments: "{}".to_owned(),
    }
}

fn asks(ids: &[&str]) -> ChatMessage {
    ChatMessage::Assistant {
        text: None,
        reasoning: None,
        calls: ids.iter().map(|id| call(id)).collect(),
    }
}

fn result(id: &str, content: &str) -> ChatMessage {
    ChatMessage::Tool {
        call_id: id.to_owned(),
        name: "todo".to_owned(),
        content: content.to_owned(),
    }
}

fn says(text: &str) -> ChatMessage {
    ChatMessage::Assistant {
        text: Some(text.to_owned()),
        reasoning: None,
        calls: Vec::new(),
    }
}

fn user(texts: &[&str]) -> ChatMessage {
    ChatMessage::User {
        parts: texts.iter().map(|text| Part::Text((*text).to_owned())).collect(),
    }
}

fn check(broken: &[ChatMessage], sound: &[ChatMessage]) {
    assert_eq!(repair(broken.to_vec()), sound);
}

#[test]
fn results_follow_their_calls_in_call_order() {
    check(
        &[
            user(&["go"]),
            asks(&["a", "b"]),
            result("b", "2"),
            user(&["steer"]),
            result("a", "1"),
        ],
        &[
            user(&["go"]),
            asks(&["a", "b"]),
            result("a", "1"),
            result("b", "2"),
            user(&["steer"]),
        ],
    );
    check(
        &[asks(&["a"]), asks(&["b"]), result("a", "1"), result("b", "2")],
        &[asks(&["a"]), result("a", "1"), asks(&["b"]), result("b", "2")],
    );
}

#[test]
fn results_without_a_call_go_and_calls_without_a_result_get_one() {
    check(
        &[
            result("x", "0"),
            user(&["go"]),
            asks(&["a"]),
            result("a", "1"),
            result("a", "again"),
            asks(&["b"]),
            says("end"),
        ],
        &[
            user(&["go"]),
            asks(&["a"]),
            result("a", "1"),
            asks(&["b"]),
            result("b", NO_RESULT),
            says("end"),
        ],
    );
}

#[test]
fn an_id_used_in_two_answers_pairs_within_each() {
    check(
        &[asks(&["a"]), result("a", "1"), asks(&["a"]), result("a", "2")],
        &[asks(&["a"]), result("a", "1"), asks(&["a"]), result("a", "2")],
    );
    check(
        &[asks(&["a"]), asks(&["a"]), result("a", "2")],
        &[asks(&["a"]), result("a", NO_RESULT), asks(&["a"]), result("a", "2")],
    );
}

#[test]
fn an_id_used_twice_in_one_answer_becomes_two() {
    check(
        &[
            asks(&["call_1", "call_1", ""]),
            result("call_1", "1"),
            result("call_1", "2"),
            result("", "3"),
        ],
        &[
            asks(&["call_1", "call_2", "call_3"]),
            result("call_1", "1"),
            result("call_2", "2"),
            result("call_3", "3"),
        ],
    );
}

#[test]
fn users_in_a_row_become_one_and_the_empty_go() {
    check(
        &[
            user(&["a"]),
            says(" "),
            user(&["", "b"]),
            asks(&[]),
            user(&[]),
            ChatMessage::System { text: "\n".to_owned() },
        ],
        &[user(&["a", "b"])],
    );
}

#[test]
fn calls_get_a_name_and_readable_arguments() {
    let broken = |arguments: &str| ChatMessage::Assistant {
        text: None,
        reasoning: None,
        calls: vec![Call {
            id: "a".to_owned(),
            name: " ".to_owned(),
            arguments: arguments.to_owned(),
        }],
    };
    for (arguments, sound) in [
        ("{\"a\": 1", "{}"),
        ("[1]", "{}"),
        ("", "{}"),
        (" {\"a\": 1}", " {\"a\": 1}"),
    ] {
        let repaired = repair(vec![broken(arguments)]);
        let ChatMessage::Assistant { calls, .. } = &repaired[0] else {
            panic!("an assistant")
        };
        assert_eq!((calls[0].name.as_str(), calls[0].arguments.as_str()), (NO_NAME, sound));
    }
}

/// The rules of the header, read off a conversation.
fn assert_valid(messages: &[ChatMessage]) {
    let mut waiting: VecDeque<String> = VecDeque::new();
    let mut follows_user = false;
    for message in messages {
        if let ChatMessage::Tool { call_id, .. } = message {
            assert_eq!(
                waiting.pop_front().as_ref(),
                Some(call_id),
                "results follow their calls"
            );
            continue;
        }
        assert!(waiting.is_empty(), "every call has its result before anything else");
        match message {
            ChatMessage::User { parts } => {
                assert!(!follows_user, "two users in a row");
                assert!(!parts.is_empty());
                assert!(
                    parts
                        .iter()
                        .all(|part| !matches!(part, Part::Text(text) if text.trim().is_empty()))
                );
            }
            ChatMessage::Assistant { text, calls, .. } => {
                assert!(!calls.is_empty() || text.as_deref().is_some_and(|text| !text.trim().is_empty()));
                let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
                assert_eq!(ids.len(), calls.len(), "ids are unique in an answer");
                assert!(!ids.contains(""));
                assert!(
                    calls
                        .iter()
                        .all(|call| is_object(&call.arguments) && !call.name.is_empty())
                );
                waiting.extend(calls.iter().map(|call| call.id.clone()));
            }
            ChatMessage::System { text } => assert!(!text.is_empty()),
            ChatMessage::Tool { .. } => {}
        }
        follows_user = matches!(message, ChatMessage::User { .. });
    }
    assert!(waiting.is_empty(), "the last calls have results too");
}

fn message() -> impl Strategy<Value = ChatMessage> {
    let id = || prop::sample::select(vec!["", "a", "b", "c", "call_1", "call_2"]);
    let text = || prop::sample::select(vec!["", " ", "x", "y"]);
    let calls = prop::collection::vec(
        (id(), text(), prop::sample::select(vec!["", "{}", "{\"a\":", "[]"])),
        0..4,
    );
    let part = prop_oneof![
        text().prop_map(|text| Part::Text(text.to_owned())),
        Just(Part::ImageUrl("data:,".to_owned()))
    ];
    prop_oneof![
        text().prop_map(|text| ChatMessage::System { text: text.to_owned() }),
        prop::collection::vec(part, 0..3).prop_map(|parts| ChatMessage::User { parts }),
        (prop::option::of(text()), calls).prop_map(|(text, calls)| ChatMessage::Assistant {
            text: text.map(str::to_owned),
            reasoning: None,
            calls: calls
                .into_iter()
                .map(|(id, name, arguments)| Call {
                    id: id.to_owned(),
                    name: name.to_owned(),
                    arguments: arguments.to_owned()
                })
                .collect(),
        }),
        (id(), "[a-z]{1,3}").prop_map(|(id, content)| ChatMessage::Tool {
            call_id: id.to_owned(),
            name: String::new(),
            content
        }),
    ]
}

/// What a reader would miss: users' and assistants' words, and how many calls.
fn substance(messages: &[ChatMessage]) -> (Vec<String>, usize) {
    let mut texts = Vec::new();
    let mut n_calls = 0;
    for message in messages {
        match message {
            ChatMessage::System { text } => texts.push(text.clone()),
            ChatMessage::User { parts } => texts.extend(parts.iter().map(|part| match part {
                Part::Text(text) | Part::ImageUrl(text) => text.clone(),
            })),
            ChatMessage::Assistant { text, calls, .. } => {
                texts.extend(text.clone());
                n_calls += calls.len();
            }
            ChatMessage::Tool { .. } => {}
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    (texts, n_calls)
}

proptest! {
    #[test]
    fn whatever_comes_in_a_valid_conversation_comes_out(messages in prop::collection::vec(message(), 0..24)) {
        let repaired = repair(messages.clone());
        assert_valid(&repaired);
        prop_assert_eq!(substance(&repaired), substance(&messages), "nothing said is lost");
        prop_assert_eq!(repair(repaired.clone()), repaired, "repairing twice changes nothing");
    }
}
