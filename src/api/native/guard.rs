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
use crate::base::aside;
use crate::guard::{self, Backend, Judgement, Setting};
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
}

/// Judge a command as the guard would; nothing runs.
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
    let host = state.engine.host();
    let (home, agent_home) = (host.home.to_string_lossy(), host.agent_home.to_string_lossy());
    let setting = Setting {
        backend: asked.backend,
        home: &home,
        agent_home: &agent_home,
        cwd: None,
        sudo_password: false,
    };
    let long = asked.command.len() > 4 * 1024;
    Ok(Json(aside::work(long, || guard::check(&asked.command, &setting))))
}
