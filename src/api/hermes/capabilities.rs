//! What this server can do, as clients of the original ask before they do it. A
//! flag is true only if a test does what it promises. `features` are the server's,
//! under the original's names; what each surface can do by itself is `surfaces`.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::abilities;
use super::health::PLATFORM;
use crate::api::caller::MaybeCaller;
use crate::api::failure::Failure;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::principal::Scope;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(get_capabilities))
}

/// Read what this server can do. Without a credential it is told all the same,
/// since what needs one has to be known before; one that is wrong is refused.
#[utoipa::path(get, path = "/v1/capabilities", tag = "capabilities",
    responses((status = 200, description = "Features of the server, what each of its surfaces can do, and endpoints.", body = Value)))]
pub(super) async fn get_capabilities(
    State(state): State<ApiState>,
    MaybeCaller(caller): MaybeCaller,
) -> Result<Json<Value>, Failure> {
    if let Some(caller) = caller {
        caller.require(Scope::SessionsRead)?;
    }
    Ok(Json(json!({
        "object": "hermes.api_server.capabilities",
        "platform": PLATFORM,
        "version": env!("CARGO_PKG_VERSION"),
        "model": state.engine.settings().model,
        "auth": {"type": "bearer", "required": true},
        "runtime": {"mode": "server_agent", "tool_execution": "server", "split_runtime": false,
            "description": "The server's agent runs the tools; clients send messages and decide approvals."},
        "features": features(!state.origins.is_empty()),
        "surfaces": abilities::surfaces(),
        "endpoints": endpoints(),
    })))
}

fn features(cors: bool) -> Value {
    json!({
        "chat_completions": true,
        "chat_completions_streaming": true,
        "responses_api": true,
        "responses_streaming": true,
        "run_submission": true,
        "run_status": true,
        "run_events_sse": true,
        "run_stop": true,
        "run_steer": true,
        "run_approval_response": true,
        "tool_progress_events": true,
        "approval_events": true,
        "session_resources": true,
        "session_chat": true,
        "session_chat_streaming": true,
        "session_fork": true,
        "skills_api": true,
        "jobs_admin": true,
        "admin_config_rw": false,
        "memory_write_api": false,
        "audio_api": false,
        "realtime_voice": false,
        "model_options": false,
        "session_model_lock": false,
        "reasoning_streaming": false,
        "browser_extension_control": {"supported": false},
        "runs_idempotency": {"supported": true, "durable": true, "retention_seconds": 86_400},
        "session_continuity_header": "X-Hermes-Session-Id",
        "session_key_header": "X-Hermes-Session-Key",
        "cors": cors,
        "approval_ids": true,
        "chat_approvals": true,
        "responses_background": true,
        "responses_approvals": true,
        "responses_function_tools": true,
        "run_clarifications": true,
        "run_tool_results": true,
        "run_events_resume": true,
        "session_search": true,
        "profiles": true,
        "ui_message_stream": true,
    })
}

const ENDPOINTS: &[(&str, &str, &str)] = &[
    ("health", "GET", "/health"),
    ("health_detailed", "GET", "/health/detailed"),
    ("models", "GET", "/v1/models"),
    ("capabilities", "GET", "/v1/capabilities"),
    ("skills", "GET", "/v1/skills"),
    ("toolsets", "GET", "/v1/toolsets"),
    ("chat_completions", "POST", "/v1/chat/completions"),
    ("runs", "POST", "/v1/runs"),
    ("run_status", "GET", "/v1/runs/{run_id}"),
    ("run_events", "GET", "/v1/runs/{run_id}/events"),
    ("run_approval", "POST", "/v1/runs/{run_id}/approval"),
    ("run_stop", "POST", "/v1/runs/{run_id}/stop"),
    ("run_steer", "POST", "/v1/runs/{run_id}/steer"),
    (
        "run_clarification",
        "POST",
        "/v1/runs/{run_id}/clarifications/{clarification_id}/respond",
    ),
    ("run_tool_results", "POST", "/v1/runs/{run_id}/tool-results"),
    ("responses", "POST", "/v1/responses"),
    ("response", "GET", "/v1/responses/{response_id}"),
    ("response_delete", "DELETE", "/v1/responses/{response_id}"),
    ("response_cancel", "POST", "/v1/responses/{response_id}/cancel"),
    ("response_input_items", "GET", "/v1/responses/{response_id}/input_items"),
    ("sessions", "GET", "/api/sessions"),
    ("session_create", "POST", "/api/sessions"),
    ("session_search", "GET", "/api/sessions/search"),
    ("session", "GET", "/api/sessions/{session_id}"),
    ("session_update", "PATCH", "/api/sessions/{session_id}"),
    ("session_delete", "DELETE", "/api/sessions/{session_id}"),
    ("session_messages", "GET", "/api/sessions/{session_id}/messages"),
    ("session_fork", "POST", "/api/sessions/{session_id}/fork"),
    ("session_chat", "POST", "/api/sessions/{session_id}/chat"),
    ("session_chat_stream", "POST", "/api/sessions/{session_id}/chat/stream"),
    ("jobs", "GET", "/api/jobs"),
    ("job_create", "POST", "/api/jobs"),
    ("job", "GET", "/api/jobs/{job_id}"),
    ("job_update", "PATCH", "/api/jobs/{job_id}"),
    ("job_delete", "DELETE", "/api/jobs/{job_id}"),
    ("job_pause", "POST", "/api/jobs/{job_id}/pause"),
    ("job_resume", "POST", "/api/jobs/{job_id}/resume"),
    ("job_run", "POST", "/api/jobs/{job_id}/run"),
    ("ui_chat", "POST", "/v1/ui/chat"),
    ("ui_chat_stream", "GET", "/v1/ui/chat/{chat_id}/stream"),
    ("approvals", "GET", "/v1/approvals"),
    ("approval_decision", "POST", "/v1/approvals/{id}/decision"),
];

fn endpoints() -> Value {
    let all = ENDPOINTS
        .iter()
        .map(|(name, method, path)| ((*name).to_owned(), json!({"method": method, "path": path})));
    Value::Object(all.collect())
}
