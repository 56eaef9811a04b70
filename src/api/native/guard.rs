//! What the guard says about a command, without running it.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::guard::policy::{Fault, Policy};
use crate::guard::{Backend, Judgement};
use crate::model::policy::DEFAULT;
use crate::model::principal::Scope;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(check_command))
}

/// A command to be judged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandCheck {
    command: String,
    /// Where it would run; `local` when absent.
    #[serde(default)]
    #[schema(required = false)]
    backend: Backend,
    /// Rules to judge by in place of the tenant's `default` policy, as they would
    /// be written.
    policy: Option<Policy>,
}

/// Judge a command as the guard would; nothing runs.
///
/// The server's rules and lists count, and the tenant's `default` policy. What
/// grants, answers and the mode of a session would settle does not.
#[utoipa::path(post, path = "/v1/guard/check", tag = "guard",
    request_body = CommandCheck,
    responses((status = 200, description = "The verdict, what led to it, and the commands that were found.",
        body = Judgement)))]
pub(super) async fn check_command(
    State(state): State<ApiState>,
    caller: Caller,
    payload: Payload,
) -> Result<Json<Judgement>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let asked: CommandCheck = payload.json().await?;
    let policy = match asked.policy {
        Some(policy) => policy,
        None => {
            let read = caller
                .scope
                .read(|mut rows| Box::pin(async move { rows.policy(DEFAULT).await }));
            read.await?.map(|found| found.policy).unwrap_or_default()
        }
    };
    let host = state.engine.host().clone();
    let judge = move || {
        let policy = policy.compile()?;
        Ok(host.judged(&asked.command, asked.backend, None, [&policy]))
    };
    // Long texts and lists take milliseconds, which are not the other requests' to wait.
    let judged: Result<Judgement, Fault> = tokio::task::spawn_blocking(judge).await.map_err(Failure::internal)?;
    judged
        .map(Json)
        .map_err(|fault| Failure::field(&format!("/policy{}", fault.pointer), fault.detail))
}
