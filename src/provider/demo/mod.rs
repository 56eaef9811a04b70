//! The built-in model: offline, deterministic, driven by directives in the
//! user's message (`docs/demo-model.md`). It lets streams, tools and approvals be
//! tried before any account exists, and it is the model of our own tests.
//!
//! Its sleeps go through the clock; it touches nothing else.

mod script;

use std::time::Duration;

use self::script::{Act, Place, Step};
use super::{Answer, Call, ChatMessage, Delta, Failed, FailureKind, Finish, Part, Partial, Request, TokenUsage};
use crate::base::Clock;

/// Words said between two chances for other tasks of the thread.
const WORDS_AT_ONCE: u64 = 64;

const INTRODUCTION: &str = "\
I am the demo model. I work offline and do what the lines of your message say, so that you can try streams, tools and \
approvals before you connect a real model. For example:

/tool terminal {\"command\": \"ls -la\"}
/tool terminal {\"command\": \"rm -rf build\"}
/tokens 40 10

The first calls a tool, the second one that needs your approval, the third streams 40 words, 10 a second. I also know \
/say TEXT, /reason TEXT, /sleep MS, /error STATUS and /then, which begins my next answer. Set OPENAI_BASE_URL, \
OPENAI_API_KEY and HERMES_MODEL to talk to a real model.";

/// The demo model.
#[derive(Clone, Debug)]
pub struct Demo {
    clock: Clock,
}

impl Demo {
    pub fn new(clock: Clock) -> Self {
        Self { clock }
    }

    /// Plays the step of the script at which the conversation stands.
    pub(super) async fn attempt(
        &self,
        request: &Request,
        attempt: u32,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Failed> {
        let step = due(request);
        let mut play = Play {
            clock: &self.clock,
            on_delta,
            text: String::new(),
            reasoning: String::new(),
        };
        for act in &step.acts {
            if let Act::Error { status, times } = act {
                if times.is_none_or(|times| attempt <= times) {
                    return Err(play.fail(*status));
                }
            } else {
                play.act(act).await;
            }
        }
        Ok(play.finish(&step, request))
    }
}

/// The step to play: the script's, or a few words where it has none.
fn due(request: &Request) -> Step {
    let say = |text: String| Step {
        acts: vec![Act::Say(text)],
        calls: Vec::new(),
    };
    match script::place(&request.messages) {
        Place::NoScript => say(INTRODUCTION.to_owned()),
        Place::Unreadable(wrong) => say(wrong),
        // Without tools the model can only put into words that it would call one.
        Place::At(step) if request.tools.is_none() && !step.calls.is_empty() => {
            say("I stop here: my script goes on with tool calls, and I was given no tools.".to_owned())
        }
        Place::At(step) => step,
        Place::Exhausted if matches!(request.messages.last(), Some(ChatMessage::User { .. })) => {
            say(INTRODUCTION.to_owned())
        }
        Place::Exhausted => say("Done.".to_owned()),
    }
}

/// An answer in the making.
struct Play<'a> {
    clock: &'a Clock,
    on_delta: &'a mut (dyn FnMut(Delta) + Send),
    text: String,
    reasoning: String,
}

impl Play<'_> {
    async fn act(&mut self, act: &Act) {
        match act {
            Act::Say(text) => {
                self.begin_line();
                self.say(text.split_inclusive(char::is_whitespace)).await;
            }
            Act::Tokens { count, rate } => {
                self.begin_line();
                self.tokens(*count, *rate).await;
            }
            Act::Reason(text) => {
                if !self.reasoning.is_empty() {
                    self.reason("\n");
                }
                for word in text.split_inclusive(char::is_whitespace) {
                    self.reason(word);
                }
            }
            Act::Sleep(span) => self.clock.sleep(*span).await,
            // The caller fails before it comes to this.
            Act::Error { .. } => {}
        }
    }

    /// What is said after something else stands on its own line.
    fn begin_line(&mut self) {
        if !self.text.is_empty() {
            self.word("\n");
        }
    }

    async fn say(&mut self, words: impl Iterator<Item = &str>) {
        for (said, word) in (1..).zip(words) {
            self.word(word);
            if said % WORDS_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// `word1 word2 …`, each due at its own instant, so that waits do not add up.
    async fn tokens(&mut self, count: u64, rate: u64) {
        let start = self.clock.now();
        for number in 1..=count {
            if let Some(millis) = number.saturating_mul(1000).checked_div(rate) {
                self.clock.sleep_until(start.after(Duration::from_millis(millis))).await;
            } else if number % WORDS_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
            let space = if number == 1 { "" } else { " " };
            self.word(&format!("{space}word{number}"));
        }
    }

    fn word(&mut self, word: &str) {
        self.text.push_str(word);
        (self.on_delta)(Delta::Text(word.to_owned()));
    }

    fn reason(&mut self, word: &str) {
        self.reasoning.push_str(word);
        (self.on_delta)(Delta::Reasoning(word.to_owned()));
    }

    fn fail(self, status: u16) -> Failed {
        let began = !self.text.is_empty() || !self.reasoning.is_empty();
        let message = format!("the demo model was told to fail with status {status}");
        Failed {
            status: Some(status),
            partial: began.then(|| {
                Box::new(Partial {
                    text: self.text,
                    reasoning: self.reasoning,
                })
            }),
            ..Failed::new(FailureKind::of_status(status), message)
        }
    }

    fn finish(self, step: &Step, request: &Request) -> Answer {
        // The length of the conversation makes ids differ between its answers.
        let place = request.messages.len();
        let calls: Vec<Call> = (1..)
            .zip(&step.calls)
            .map(|(number, call): (usize, _)| Call {
                id: format!("call_demo_{place}_{number}"),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            })
            .collect();
        let reasoning = words(&self.reasoning);
        let written = calls
            .iter()
            .map(|call| words(&call.name) + words(&call.arguments))
            .sum::<u64>();
        let usage = TokenUsage {
            input: request.messages.iter().map(message_words).sum(),
            output: words(&self.text) + reasoning + written,
            cached_input: 0,
            reasoning,
        };
        Answer {
            text: self.text,
            reasoning: self.reasoning,
            finish: if calls.is_empty() {
                Finish::Stop
            } else {
                Finish::ToolCalls
            },
            calls,
            usage: Some(usage),
            response_id: None,
        }
    }
}

/// The demo model counts words where others count tokens.
fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

fn message_words(message: &ChatMessage) -> u64 {
    match message {
        ChatMessage::System { text } | ChatMessage::Tool { content: text, .. } => words(text),
        ChatMessage::User { parts } => parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => words(text),
                Part::ImageUrl(_) => 1,
            })
            .sum(),
        ChatMessage::Assistant { text, calls, .. } => {
            let written = calls
                .iter()
                .map(|call| words(&call.name) + words(&call.arguments))
                .sum::<u64>();
            text.as_deref().map_or(0, words) + written
        }
    }
}

#[cfg(test)]
mod tests;
