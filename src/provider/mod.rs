//! Language-model clients: one streaming call, normalised. Each wire protocol
//! has its own file or folder; `demo` answers offline.
//!
//! [`Provider::attempt`] makes exactly one attempt and touches nothing but the
//! network: whoever calls it records retries (`retry` decides them) before the
//! next attempt starts.

pub mod demo;
pub mod openai;
pub mod repair;
pub mod retry;

mod answer;
mod failed;
mod request;

pub use answer::{Answer, Delta, Finish, Partial, TokenUsage};
pub use demo::Demo;
pub use failed::{Failed, FailureKind};
pub use openai::OpenAi;
pub use request::{Call, ChatMessage, Part, Request};

/// A language model behind one of the protocols.
#[derive(Clone, Debug)]
pub enum Provider {
    OpenAi(OpenAi),
    Demo(Demo),
}

impl Provider {
    /// Asks once. `attempt` counts from 1. Deltas arrive in order while the
    /// answer streams; dropping the future aborts the upstream request.
    pub async fn attempt(
        &self,
        request: &Request,
        attempt: u32,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Failed> {
        match self {
            Self::OpenAi(openai) => openai.attempt(request, on_delta).await,
            Self::Demo(demo) => demo.attempt(request, attempt, on_delta).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Clock;

    #[tokio::test]
    async fn a_model_that_recovers_is_asked_until_it_answers() {
        let provider = Provider::Demo(Demo::new(Clock::system()));
        let policy = retry::Policy {
            base: std::time::Duration::ZERO,
            ..retry::Policy::default()
        };
        // In a task of its own: attempts may move between threads.
        let asked = tokio::spawn(async move {
            let messages = repair::repair(vec![ChatMessage::user("/error 503 2\n/say at last")]);
            let request = Request {
                model: "demo".to_owned(),
                messages,
                tools: None,
                sampling: Default::default(),
            };
            let mut attempt = 1;
            loop {
                match provider.attempt(&request, attempt, &mut |_| {}).await {
                    Ok(answer) => return (answer.text, attempt),
                    Err(failed) => assert!(retry::decide(&failed, attempt, &policy, 0.0).is_some(), "{failed}"),
                }
                attempt += 1;
            }
        });
        assert_eq!(asked.await.unwrap(), ("at last".to_owned(), 3));
    }
}
