//! `clarify`: asks the user a question. The call parks its turn; what a person
//! answers, or that nobody did, is its result.

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::base::text::first_chars;
use crate::model::call::{Effect, Execution, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::park::{Ask, Park, not_here};
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool, error_text};

inventory::submit!(Registered(&Clarify));

/// What a person takes in at a glance (Hermes: 4).
const MAX_CHOICES: usize = 4;
/// A question is read by a person; what is longer is a document.
const MAX_QUESTION_CHARS: usize = 8_000;
const MAX_CHOICE_CHARS: usize = 500;

struct Clarify;

impl Tool for Clarify {
    fn spec(&self) -> Spec {
        Spec {
            name: "clarify",
            toolset: "clarify",
            emoji: "❓",
            description: "Asks the user a question and waits for the answer. Use it when what is wanted is unclear \
                and a wrong guess would cost more than asking, or when a choice is the user's to make. With `choices` \
                the user can pick one of up to four, or answer in other words. It is not for permission to run a \
                command: that is asked by itself.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "What to ask, whole and by itself understandable."},
                "choices": {
                    "type": "array",
                    "items": {"type": "string"},
                    "maxItems": MAX_CHOICES,
                    "description": "Up to four answers to pick from; leave it out for an open question.",
                },
            },
            "required": ["question"],
        })
    }

    fn example(&self) -> Value {
        json!({"question": "Which notes do you mean?", "choices": ["all", "those of today"]})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Internal
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    fn subject(&self, arguments: &Value) -> String {
        arguments["question"].as_str().unwrap_or_default().to_owned()
    }

    fn execution(&self) -> Execution {
        Execution::Person
    }

    fn park(&self, arguments: &Value) -> Result<Park, String> {
        ask(arguments).map(Park::Question)
    }

    fn run(&self, _call: Call) -> BoxFuture<'static, Done> {
        Box::pin(std::future::ready(Done::failure(not_here("clarify"))))
    }
}

fn ask(arguments: &Value) -> Result<Ask, String> {
    let question = arguments["question"].as_str().unwrap_or_default().trim();
    if question.is_empty() {
        return Err(error_text::envelope("Question text is required."));
    }
    if MAX_QUESTION_CHARS < question.chars().count() {
        let text = format!("The question is longer than {MAX_QUESTION_CHARS} characters.");
        return Err(error_text::envelope(&text));
    }
    let choices = match &arguments["choices"] {
        Value::Null => Vec::new(),
        Value::Array(choices) => choices.iter().filter_map(choice).take(MAX_CHOICES).collect(),
        _ => return Err(error_text::envelope("choices must be a list of strings.")),
    };
    Ok(Ask {
        question: question.to_owned(),
        choices,
    })
}

/// The words of a choice; models also write objects.
fn choice(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => label(fields)?.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        Value::Null | Value::Array(_) => return None,
    };
    let text = first_chars(text.trim(), MAX_CHOICE_CHARS);
    (!text.is_empty()).then(|| text.to_owned())
}

fn label(fields: &Map<String, Value>) -> Option<&str> {
    let keys = ["label", "description", "text", "title"];
    let mut texts = keys.iter().filter_map(|key| fields.get(*key)?.as_str());
    texts.find(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::testing::Bench;

    fn asked(arguments: &Value) -> Ask {
        match Clarify.park(arguments) {
            Ok(Park::Question(ask)) => ask,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn choices_are_words_and_few() {
        let ask = asked(
            &json!({"question": " Which? ", "choices": ["a", {"label": "b", "value": 2}, "", " ", {"x": 1},
            {"description": "c"}, 4, "e"]}),
        );
        assert_eq!(ask.question, "Which?");
        assert_eq!(ask.choices, ["a", "b", "c", "4"]);
        assert!(asked(&json!({"question": "Which?"})).choices.is_empty());
        let many: Vec<String> = (0..1_000).map(|number| number.to_string().repeat(1_000)).collect();
        let ask = asked(&json!({"question": "Which?", "choices": many}));
        let longest = ask.choices.iter().map(String::len).max();
        assert_eq!((ask.choices.len(), longest), (MAX_CHOICES, Some(MAX_CHOICE_CHARS)));
    }

    #[test]
    fn what_is_no_question_is_refused() {
        for arguments in [
            json!({}),
            json!({"question": "  "}),
            json!({"question": "?", "choices": "a"}),
        ] {
            let text = Clarify.park(&arguments).unwrap_err();
            assert!(text.contains("error"), "{arguments}: {text}");
        }
    }

    #[tokio::test]
    async fn where_nothing_can_wait_it_says_so() {
        let bench = Bench::new().await;
        let done = bench.run(&Clarify, json!({"question": "?"})).await;
        assert!(done.failed && done.result.contains("clarify must be handled by the agent loop"));
    }
}
