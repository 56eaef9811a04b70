//! The demo model's script: lines of a user's message that begin with a known
//! directive, cut into model steps. Pure; everything that is not a directive is
//! ordinary text and ignored.

use std::time::Duration;

use crate::provider::{ChatMessage, Part};

/// More would only measure the reader's patience.
const MOST_TOKENS: u64 = 1_000_000;

/// One thing the model does while it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Say(String),
    Reason(String),
    /// `rate` is in words a second; 0 means without pause.
    Tokens {
        count: u64,
        rate: u64,
    },
    Sleep(Duration),
    /// Fails the first `times` attempts, or every one.
    Error {
        status: u16,
        times: Option<u32>,
    },
}

/// A call the model makes, its arguments as the script has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolLine {
    pub name: String,
    pub arguments: String,
}

/// One model answer: what it does, then the calls it ends with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub acts: Vec<Act>,
    pub calls: Vec<ToolLine>,
}

/// Where the conversation stands in its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// No message holds a directive.
    NoScript,
    /// A directive cannot be read; the text says which and why.
    Unreadable(String),
    At(Step),
    Exhausted,
}

/// The script is the last user's text with directives, the step the number of
/// assistant messages after it. Texts of one message count one by one, so that
/// merging neighbouring messages does not join two scripts.
pub(super) fn place(messages: &[ChatMessage]) -> Place {
    let mut answered = 0;
    for message in messages.iter().rev() {
        match message {
            ChatMessage::Assistant { .. } => answered += 1,
            ChatMessage::User { parts } => {
                let mut texts = parts.iter().rev().filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    Part::ImageUrl(_) => None,
                });
                if let Some(script) = texts.find_map(parse) {
                    return match script {
                        Err(wrong) => Place::Unreadable(wrong),
                        Ok(steps) => steps.into_iter().nth(answered).map_or(Place::Exhausted, Place::At),
                    };
                }
            }
            ChatMessage::System { .. } | ChatMessage::Tool { .. } => {}
        }
    }
    Place::NoScript
}

/// The steps of a text, or `None` when it holds no directive. A step ends at
/// `/then`, and after a batch of calls: whatever follows a batch needs its
/// results first.
fn parse(text: &str) -> Option<Result<Vec<Step>, String>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut step = Step::default();
    let mut is_script = false;
    let mut previous_was_tool = false;
    for line in text.lines().map(str::trim) {
        let adjacent = std::mem::take(&mut previous_was_tool);
        let Some(directive) = directive(line) else { continue };
        is_script = true;
        match directive {
            Err(expected) => return Some(Err(format!("I cannot read the line `{line}`: {expected}."))),
            Ok(Line::Then) => steps.push(std::mem::take(&mut step)),
            Ok(Line::Tool(call)) => {
                if !step.calls.is_empty() && !adjacent {
                    steps.push(std::mem::take(&mut step));
                }
                step.calls.push(call);
                previous_was_tool = true;
            }
            Ok(Line::Act(act)) => {
                if !step.calls.is_empty() {
                    steps.push(std::mem::take(&mut step));
                }
                step.acts.push(act);
            }
        }
    }
    // Nothing follows a `/then` on the last line: no step, rather than an empty answer.
    if step != Step::default() {
        steps.push(step);
    }
    is_script.then_some(Ok(steps))
}

enum Line {
    Then,
    Tool(ToolLine),
    Act(Act),
}

/// Reads one trimmed line; the error says what was expected.
fn directive(line: &str) -> Option<Result<Line, &'static str>> {
    let (word, rest) = split_word(line);
    let act = |act: Option<Act>, expected| act.map(Line::Act).ok_or(expected);
    Some(match word {
        "/then" => Ok(Line::Then),
        "/tool" => tool(rest).map(Line::Tool).ok_or("expected `/tool NAME JSON`"),
        "/say" => Ok(Line::Act(Act::Say(rest.to_owned()))),
        "/reason" => Ok(Line::Act(Act::Reason(rest.to_owned()))),
        "/tokens" => act(tokens(rest), "expected `/tokens N [RATE]` with N up to 1000000"),
        "/sleep" => act(sleep(rest), "expected `/sleep MILLISECONDS`"),
        "/error" => act(
            error(rest),
            "expected `/error STATUS [TIMES]` with STATUS from 400 to 599",
        ),
        _ => return None,
    })
}

fn tool(rest: &str) -> Option<ToolLine> {
    let (name, arguments) = split_word(rest);
    let arguments = if arguments.is_empty() { "{}" } else { arguments };
    (!name.is_empty()).then(|| ToolLine {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

fn tokens(rest: &str) -> Option<Act> {
    let (count, rate) = split_word(rest);
    let count = count.parse().ok().filter(|count| *count <= MOST_TOKENS)?;
    let rate = if rate.is_empty() { 0 } else { rate.parse().ok()? };
    Some(Act::Tokens { count, rate })
}

fn sleep(rest: &str) -> Option<Act> {
    rest.parse().ok().map(Duration::from_millis).map(Act::Sleep)
}

fn error(rest: &str) -> Option<Act> {
    let (status, times) = split_word(rest);
    let status = status.parse().ok().filter(|status| (400..600).contains(status))?;
    let times = if times.is_empty() {
        None
    } else {
        Some(times.parse().ok()?)
    };
    Some(Act::Error { status, times })
}

/// The first word and the trimmed rest.
fn split_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One character an act, one letter a call: enough to see the shape.
    fn shape(text: &str) -> Option<String> {
        let steps = parse(text)?.unwrap();
        let steps: Vec<String> = steps
            .iter()
            .map(|step| {
                let acts = step.acts.iter().map(|act| match act {
                    Act::Say(_) => "s",
                    Act::Reason(_) => "r",
                    Act::Tokens { .. } => "t",
                    Act::Sleep(_) => "z",
                    Act::Error { .. } => "e",
                });
                acts.chain(step.calls.iter().map(|call| call.name.as_str())).collect()
            })
            .collect();
        Some(steps.join("|"))
    }

    #[test]
    fn a_script_is_cut_into_steps() {
        let cases = [
            ("/say hi", "s"),
            ("/tool A {}\n/tool B {}", "AB"),
            ("/tool A {}\n\n/tool B {}", "A|B"),
            ("/tool A {}\nthen\n/tool B {}", "A|B"),
            ("/tool A {}\n/then\n/tool B {}", "A|B"),
            ("/tool A {}\n/say done", "A|s"),
            ("/tool A {}\n/then\n/say done", "A|s"),
            ("/reason hm\n/say so\n/sleep 5\n/tool A", "rszA"),
            ("/say a\n/then\n/then\n/say b", "s||s"),
            ("/then\n/tokens 3 2", "|t"),
            ("/say a\n/then", "s"),
            ("please\r\n  /error 503 2  \r\n/say ok", "es"),
        ];
        for (text, steps) in cases {
            assert_eq!(shape(text).as_deref(), Some(steps), "{text:?}");
        }
        for text in ["", "hello", "/help", "/sayings", "say /say x", "//tool a"] {
            assert_eq!(shape(text), None, "{text:?}");
        }
    }

    #[test]
    fn arguments_stay_as_they_were_written() {
        let Some(Ok(steps)) = parse("/tool  write_file   {\"a\":  1} x \n/tool t") else {
            panic!("a script")
        };
        assert_eq!(
            steps[0].calls[0],
            ToolLine {
                name: "write_file".into(),
                arguments: "{\"a\":  1} x".into()
            }
        );
        assert_eq!(steps[0].calls[1].arguments, "{}");
    }

    #[test]
    fn numbers_are_read_or_refused() {
        assert_eq!(tokens("7 50"), Some(Act::Tokens { count: 7, rate: 50 }));
        assert_eq!(tokens("7"), Some(Act::Tokens { count: 7, rate: 0 }));
        assert_eq!(
            error("503"),
            Some(Act::Error {
                status: 503,
                times: None
            })
        );
        assert_eq!(
            error("429 2"),
            Some(Act::Error {
                status: 429,
                times: Some(2)
            })
        );
        assert_eq!(sleep("20"), Some(Act::Sleep(Duration::from_millis(20))));
        for line in [
            "/tool",
            "/tokens",
            "/tokens x",
            "/tokens 1000001",
            "/tokens 1 -2",
            "/sleep",
            "/sleep 1s",
            "/error",
            "/error 200",
            "/error 500 x",
        ] {
            let wrong = parse(line).unwrap().unwrap_err();
            assert!(wrong.contains(line) && wrong.contains("expected"), "{line}: {wrong}");
        }
    }

    #[test]
    fn the_last_script_counts_from_its_own_message() {
        let said = || ChatMessage::Assistant {
            text: Some("x".into()),
            reasoning: None,
            calls: Vec::new(),
        };
        let say = |text: &str| {
            Place::At(Step {
                acts: vec![Act::Say(text.into())],
                calls: Vec::new(),
            })
        };
        let mut messages = vec![
            ChatMessage::user("/say old\n/then\n/say older"),
            said(),
            ChatMessage::user("/say a\n/then\n/say b"),
        ];
        assert_eq!(place(&messages), say("a"));
        messages.push(said());
        messages.push(ChatMessage::user("no directive here"));
        assert_eq!(place(&messages), say("b"));
        messages.push(said());
        assert_eq!(place(&messages), Place::Exhausted);
        messages.push(ChatMessage::User {
            parts: vec![Part::Text("/error 500".into()), Part::Text("/say c".into())],
        });
        assert_eq!(
            place(&messages),
            say("c"),
            "the last text of a merged message is the script"
        );
        assert_eq!(place(&[ChatMessage::user("hi"), said()]), Place::NoScript);
    }

    #[test]
    fn the_page_about_the_demo_model_shows_scripts_that_can_be_read() {
        let page = include_str!("../../../docs/demo-model.md");
        let examples: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
        assert!(examples.len() > 3);
        for example in examples {
            assert!(
                matches!(parse(example), Some(Ok(steps)) if !steps.is_empty()),
                "{example}"
            );
        }
        for word in ["/say", "/tokens", "/reason", "/sleep", "/tool", "/then", "/error"] {
            assert!(
                directive(word).is_some() && page.contains(&format!("| `{word}")),
                "{word}"
            );
        }
    }
}
