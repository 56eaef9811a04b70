//! What an error looks like: the form follows from the path, since a request that
//! is refused before it reaches a route has nothing else. Clients of the drop-in
//! surfaces read `error`; where a path serves both, the problem has it as one
//! member more.

use serde_json::{Value, json};

use crate::api::compat::object::set;
use crate::model::problem::{Problem, ProblemCode};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) enum Envelope {
    /// RFC 9457.
    Problem,
    /// `{"error": {message, type, param, code}}`.
    Error,
    /// `{"error": "text"}`, which clients of jobs print.
    Bare,
    /// A problem that has an `error` as well.
    Both,
}

/// Beginnings of paths that are a drop-in surface's alone.
const OWN: [&str; 7] = [
    "/v1/chat/",
    "/v1/responses",
    "/v1/runs",
    "/v1/capabilities",
    "/v1/health",
    "/v1/ui/",
    "/api/",
];
const SHARED: [&str; 3] = ["/v1/models", "/v1/toolsets", "/v1/skills"];

impl Envelope {
    pub(in crate::api) fn of(path: &str) -> Self {
        let path = without_profile(path).map_or(path, |(_, rest)| rest);
        if path == "/api/jobs" || path.starts_with("/api/jobs/") {
            Self::Bare
        } else if OWN.iter().any(|own| path.starts_with(own)) || ["/health", "/health/detailed"].contains(&path) {
            Self::Error
        } else if SHARED.iter().any(|shared| path.starts_with(shared)) {
            Self::Both
        } else {
            Self::Problem
        }
    }

    pub(in crate::api) fn kind(self) -> &'static str {
        match self {
            Self::Error | Self::Bare => "application/json",
            Self::Problem | Self::Both => "application/problem+json",
        }
    }

    pub(in crate::api) fn body(self, problem: &Problem, known_as: Option<&str>) -> Value {
        match self {
            Self::Problem => json!(problem),
            Self::Error => error(problem, known_as),
            Self::Bare => json!({"error": problem.detail}),
            Self::Both => {
                let mut body = json!(problem);
                set(&mut body, "error", detail(problem, known_as));
                body
            }
        }
    }
}

/// The profile in front of a path, and the path behind it.
pub(in crate::api) fn without_profile(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/p/")?;
    let end = rest.find('/')?;
    Some((rest.get(..end)?, rest.get(end..)?))
}

/// The fields that every client of these surfaces reads are always there.
pub(in crate::api) fn error(problem: &Problem, known_as: Option<&str>) -> Value {
    json!({"error": detail(problem, known_as)})
}

fn detail(problem: &Problem, known_as: Option<&str>) -> Value {
    let mut detail = json!({
        "message": problem.detail,
        "type": kind(problem),
        "param": problem.errors.first().map(|field| param(&field.pointer)),
        "code": known_as.map_or_else(|| code(problem.code), |code| json!(code)),
    });
    if let Some(context) = &problem.context {
        set(&mut detail, "hermes", context.clone());
    }
    detail
}

fn kind(problem: &Problem) -> &'static str {
    match problem.status {
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

/// The original's names where it has one.
fn code(code: ProblemCode) -> Value {
    use ProblemCode::*;
    match code {
        Unauthenticated => json!("invalid_api_key"),
        PayloadTooLarge => json!("body_too_large"),
        KeyTurnLimit | TenantTurnLimit | ServerTurnLimit | KeyRateLimit | TenantRateLimit | ServerRateLimit
        | QueueFull => json!("rate_limit_exceeded"),
        Draining => json!("gateway_draining"),
        IdempotencyKeyReused => json!("idempotency_key_conflict"),
        other => json!(other),
    }
}

/// `/messages/0/content` as these clients write it: `messages[0].content`.
fn param(pointer: &str) -> String {
    let mut text = String::new();
    for segment in pointer.split('/').filter(|segment| !segment.is_empty()) {
        if segment.bytes().all(|byte| byte.is_ascii_digit()) {
            text.push_str(&format!("[{segment}]"));
        } else {
            text.push_str(if text.is_empty() { "" } else { "." });
            text.push_str(segment);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_from_the_path() {
        for (path, form) in [
            ("/v1/sessions", Envelope::Problem),
            ("/v1/chat/completions", Envelope::Error),
            ("/v1/runs/run_1/events", Envelope::Error),
            ("/api/nothing", Envelope::Error),
            ("/api/jobs", Envelope::Bare),
            ("/p/acme/api/jobs/job_1/run", Envelope::Bare),
            ("/api/jobsite", Envelope::Error),
            ("/health", Envelope::Error),
            ("/health/ready", Envelope::Problem),
            ("/v1/models", Envelope::Both),
            ("/p/acme/v1/responses", Envelope::Error),
            ("/p/acme/v1/sessions", Envelope::Problem),
            ("/p/acme", Envelope::Problem),
        ] {
            assert_eq!(Envelope::of(path), form, "{path}");
        }
    }

    #[test]
    fn an_error_has_its_four_fields_whatever_it_is() {
        let problem = Problem::new(ProblemCode::InvalidRequest, "no").with_field("/messages/0/content", "no");
        let expected = json!({"error": {"message": "no", "type": "invalid_request_error",
            "param": "messages[0].content", "code": "invalid_image_url"}});
        assert_eq!(error(&problem, Some("invalid_image_url")), expected);
        let plain = error(&Problem::new(ProblemCode::Draining, "bye"), None);
        let expected = json!({"error": {"message": "bye", "type": "server_error", "param": null,
            "code": "gateway_draining"}});
        assert_eq!(plain, expected);
    }
}
