//! What each surface can do by itself, and where what its turns wait for is given.
//! A test does each of these on each surface and compares: one that is not tried
//! fails it, and so does one that is told otherwise than it is.

use serde_json::{Value, json};

const DECISION: &str = "/v1/approvals/{approval_id}/decision";
const RUN_APPROVAL: &str = "/v1/runs/{run_id}/approval";
const ANSWER: &str = "/v1/questions/{question_id}/answer";
const RUN_ANSWER: &str = "/v1/runs/{run_id}/clarifications/{question_id}/respond";
const RESULTS: &str = "/v1/sessions/{session_id}/tool-results";
const RUN_RESULTS: &str = "/v1/runs/{run_id}/tool-results";
const RUN_STOP: &str = "/v1/runs/{run_id}/stop";
const RUN_EVENTS: &str = "/v1/runs/{run_id}/events";
const RESPONSES: &str = "/v1/responses";
const UI: &str = "/v1/ui/chat";

/// By surface. Of the flags: `whole_answer`, a request can be answered by what the
/// turn came to; `resume`, a stream goes on behind what was seen of it; `history`,
/// a request can bring what was said before; `client_tools`, it can bring
/// functions; `reasoning`, the model's is shown; `on_leave`, what becomes of a turn
/// that runs when its stream is left and nothing else is asked for. `reconnect`
/// takes a GET, but of chat completions the same request under its key; all other
/// paths take a POST.
pub(super) fn surfaces() -> Value {
    let choices = json!(["once", "session", "always", "deny"]);
    json!({
        "native": {
            "streaming": true, "whole_answer": true, "resume": true, "idempotency": true, "images": true,
            "history": false, "client_tools": true, "reasoning": true, "approvals": true, "questions": true,
            "approval_choices": choices, "on_leave": "continue", "decide": DECISION, "answer": ANSWER,
            "results": RESULTS, "stop": "/v1/sessions/{session_id}/turns/{turn_id}/cancel",
            "reconnect": "/v1/sessions/{session_id}/turns/{turn_id}/stream",
        },
        "chat_completions": {
            "streaming": true, "whole_answer": true, "resume": false, "idempotency": true, "images": true,
            "history": true, "client_tools": false, "reasoning": false, "approvals": true, "questions": true,
            "approval_choices": choices, "on_leave": "cancel", "decide": RUN_APPROVAL, "answer": ANSWER,
            "results": RESULTS, "stop": RUN_STOP, "reconnect": "/v1/chat/completions",
        },
        "responses": {
            "streaming": true, "whole_answer": true, "resume": true, "idempotency": true, "images": true,
            "history": true, "client_tools": true, "reasoning": false, "approvals": true, "questions": true,
            "approval_choices": choices, "on_leave": "cancel", "decide": RESPONSES, "answer": RESPONSES,
            "results": RESPONSES, "stop": "/v1/responses/{response_id}/cancel",
            "reconnect": "/v1/responses/{response_id}?stream=true",
        },
        "runs": {
            "streaming": true, "whole_answer": false, "resume": true, "idempotency": true, "images": true,
            "history": true, "client_tools": false, "reasoning": true, "approvals": true, "questions": true,
            "approval_choices": choices, "on_leave": "continue", "decide": RUN_APPROVAL, "answer": RUN_ANSWER,
            "results": RUN_RESULTS, "stop": RUN_STOP, "reconnect": RUN_EVENTS,
        },
        "session_chat": {
            "streaming": true, "whole_answer": true, "resume": false, "idempotency": true, "images": true,
            "history": false, "client_tools": false, "reasoning": true, "approvals": true, "questions": true,
            "approval_choices": choices, "on_leave": "continue", "decide": RUN_APPROVAL, "answer": RUN_ANSWER,
            "results": RUN_RESULTS, "stop": RUN_STOP, "reconnect": RUN_EVENTS,
        },
        "ui": {
            "streaming": true, "whole_answer": false, "resume": false, "idempotency": true, "images": true,
            "history": false, "client_tools": true, "reasoning": true, "approvals": true, "questions": true,
            "approval_choices": choices, "on_leave": "continue", "decide": UI, "answer": UI, "results": UI,
            "stop": RUN_STOP, "reconnect": "/v1/ui/chat/{chat_id}/stream",
        },
    })
}
