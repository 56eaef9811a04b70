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
