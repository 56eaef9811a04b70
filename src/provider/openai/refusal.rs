//! What a refusal of the model server means: from its status, its error object
//! and, where servers say it only in prose, its wording. The text for the client
//! is made here too, without the key, credentials or a foreign page.

use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;

use crate::base::text::first_chars;
use crate::base::{Secret, Timestamp};
use crate::provider::{Failed, FailureKind};

/// A server's own words are shown up to this length.
const MOST_MESSAGE_CHARS: usize = 500;

/// What a failure's text needs to know about the server.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    /// Scheme, host and port, for messages.
    pub origin: String,
    /// Texts that must not be shown.
    pub secrets: Vec<Secret>,
}

/// The error object of a refusal.
#[derive(Debug, Default)]
struct Said {
    message: String,
    /// `code` and `type`, where they are words.
    words: String,
    /// `code` or `status`, where it is an HTTP status.
    status: Option<u16>,
}

/// A refusal by status.
pub(super) fn of_status(status: u16, body: &str, model: &str, upstream: &Upstream) -> Failed {
    let said = serde_json::from_str(body).map(|body| said(&body)).unwrap_or_default();
    let kind = kind(Some(status), &said);
    let shown = match shown(&said.message, upstream) {
        message if message.is_empty() => String::new(),
        message => format!(": {message}"),
    };
    let message = match kind {
        // Servers quote the key in these; their text is not shown.
        FailureKind::Unauthenticated if upstream.secrets.is_empty() => {
            format!("the model server answered {status}: it wants an API key, and none is configured")
        }
        FailureKind::Unauthenticated => format!("the model server answered {status}: it refuses the API key"),
        // A wrong address is a 404 as well.
        FailureKind::UnknownModel if !said.message.to_lowercase().contains("model") => {
            format!(
                "the model server answered {status}: it has no model `{model}`, or no chat completions at this address"
            )
        }
        FailureKind::UnknownModel => format!("the model server has no model `{model}` for this key{shown}"),
        _ if (300..400).contains(&status) => {
            format!("the model server answered {status}: it redirects elsewhere, which is not followed")
        }
        _ => format!("the model server answered {status}{shown}"),
    };
    Failed {
        status: Some(status),
        ..Failed::new(kind, message)
    }
}

/// An error object inside a stream that began with 200.
pub(super) fn in_stream(data: &str, upstream: &Upstream) -> Failed {
    let said = serde_json::from_str(data).map(|data| said(&data)).unwrap_or_default();
    let kind = kind(said.status, &said);
    let message = match shown(&said.message, upstream) {
        _ if kind == FailureKind::Unauthenticated => "the model server refuses the API key".to_owned(),
        message if message.is_empty() => "the model server reports an error".to_owned(),
        message => format!("the model server reports an error: {message}"),
    };
    Failed {
        status: said.status,
        ..Failed::new(kind, message)
    }
}

/// Finds message and code in any of the usual shapes.
fn said(body: &Value) -> Said {
    let body = match body {
        Value::Array(items) => items.first().unwrap_or(body),
        _ => body,
    };
    let error = match body.get("error") {
        Some(Value::String(message)) => {
            return Said {
                message: message.clone(),
                ..from_fields(body)
            };
        }
        Some(error @ Value::Object(_)) => error,
        _ => body,
    };
    from_fields(error)
}

fn from_fields(error: &Value) -> Said {
    let text = |field: &str| error.get(field).and_then(Value::as_str).unwrap_or_default();
    let message = ["message", "detail", "msg", "error_description"]
        .into_iter()
        .map(text)
        .find(|text| !text.is_empty());
    let number = |field: &str| {
        let value = error.get(field)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    };
    let status = ["code", "status", "status_code"]
        .into_iter()
        .filter_map(number)
        .find(|code| (400..600).contains(code));
    Said {
        message: message.unwrap_or_default().to_owned(),
        words: format!("{} {}", text("code"), text("type")),
        status: status.and_then(|status| u16::try_from(status).ok()),
    }
}

const POLICY: &[&str] = &[
    "content_policy",
    "content_filter",
    "content policy",
    "content management policy",
    "moderation",
];
const CONTEXT: &[&str] = &[
    "context_length",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "reduce the length",
];
const MODEL: &[&str] = &[
    "model_not_found",
    "unknown model",
    "no such model",
    "invalid model",
    "not a valid model",
    "model not found",
];
const BILLING: &[&str] = &[
    "insufficient_quota",
    "insufficient credit",
    "insufficient balance",
    "billing",
    "payment",
    "out of credit",
];
const PASSES: &[&str] = &["try again", "retry", "resets at", "reset in"];
const LIMIT: &[&str] = &["rate_limit", "rate limit", "too many requests", "usage limit"];
const LOAD: &[&str] = &["overloaded", "at capacity", "unavailable"];
const KEY: &[&str] = &[
    "invalid_api_key",
    "authentication",
    "unauthorized",
    "incorrect api key",
    "permission_denied",
];

/// The status decides where it is precise; elsewhere the words do.
fn kind(status: Option<u16>, said: &Said) -> FailureKind {
    use FailureKind::*;
    let text = format!("{} {}", said.words, said.message).to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let names_no_model =
        has(MODEL) || (text.contains("model") && has(&["does not exist", "not found", "is not supported"]));
    match status {
        Some(402) if has(LIMIT) && has(PASSES) => RateLimited,
        Some(403) if has(POLICY) => ContentFiltered,
        Some(403) if has(BILLING) => Billing,
        Some(429) if has(BILLING) && !has(PASSES) => Billing,
        Some(429) if has(LOAD) => Overloaded,
        Some(status @ (401..=404 | 408 | 409 | 413 | 425 | 429)) => FailureKind::of_status(status),
        Some(status @ 500..=599) if has(CONTEXT) => match status {
            503 | 529 => Overloaded,
            _ => ContextTooLong,
        },
        Some(status @ 500..=599) => FailureKind::of_status(status),
        _ if has(POLICY) => ContentFiltered,
        _ if has(CONTEXT) => ContextTooLong,
        _ if names_no_model => UnknownModel,
        _ if has(BILLING) => Billing,
        _ if has(KEY) => Unauthenticated,
        Some(status) => FailureKind::of_status(status),
        None if has(LIMIT) => RateLimited,
        None if has(LOAD) => Overloaded,
        None if has(&["invalid_request", "bad request"]) => InvalidRequest,
        None => ServerError,
    }
}

/// The server's words, fit for a client.
fn shown(message: &str, upstream: &Upstream) -> String {
    let mut text: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    for secret in upstream
        .secrets
        .iter()
        .map(Secret::expose)
        .filter(|secret| !secret.is_empty())
    {
        text = text.replace(secret, "[secret]");
    }
    first_chars(text.trim(), MOST_MESSAGE_CHARS).to_owned()
}

/// How long the server asks to wait: milliseconds, seconds, or a date, which
/// counts from the server's own clock where it tells the time.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |text: &str, unit: f64| Duration::try_from_secs_f64(text.parse::<f64>().ok()? * unit).ok();
    if let Some(wait) = text("retry-after-ms").and_then(|text| seconds(text, 0.001)) {
        return Some(wait);
    }
    let wish = text("retry-after")?;
    let date = |text: &str| {
        chrono::DateTime::parse_from_rfc2822(text)
            .ok()
            .map(|at| Timestamp(at.timestamp_millis()))
    };
    seconds(wish, 1.0).or_else(|| Some(date(wish)?.since(text("date").and_then(date).unwrap_or(now))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream() -> Upstream {
        Upstream {
            origin: "http://127.0.0.1:1".to_owned(),
            secrets: vec![Secret::new("sk-12345")],
        }
    }

    #[test]
    fn status_and_words_give_the_kind() {
        use FailureKind::*;
        let cases: &[(u16, &str, FailureKind)] = &[
            (
                400,
                r#"{"error": {"message": "no", "code": "context_length_exceeded"}}"#,
                ContextTooLong,
            ),
            (
                400,
                r#"{"error": {"message": "This model's maximum context length is 4096 tokens", "code": 400}}"#,
                ContextTooLong,
            ),
            (
                400,
                r#"{"error": {"message": "blocked", "code": "content_filter"}}"#,
                ContentFiltered,
            ),
            (
                400,
                r#"{"error": {"message": "x is not a valid model ID", "code": 400}}"#,
                UnknownModel,
            ),
            (
                400,
                r#"{"error": {"message": "temperature too high", "type": "invalid_request_error"}}"#,
                InvalidRequest,
            ),
            (400, "<html>", InvalidRequest),
            (401, "", Unauthenticated),
            (402, r#"{"error": {"message": "insufficient credits"}}"#, Billing),
            (
                402,
                r#"{"error": "usage limit reached, try again in 5 minutes"}"#,
                RateLimited,
            ),
            (403, r#"{"error": {"message": "billing is not active"}}"#, Billing),
            (403, "", Unauthenticated),
            (
                404,
                r#"{"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}"#,
                UnknownModel,
            ),
            (404, "", UnknownModel),
            (408, "", Timeout),
            (409, "", Overloaded),
            (413, "", ContextTooLong),
            (422, r#"{"detail": "model 'x' not found"}"#, UnknownModel),
            (429, r#"{"error": {"message": "slow down"}}"#, RateLimited),
            (
                429,
                r#"{"error": {"code": "insufficient_quota", "message": "check your plan and billing details"}}"#,
                Billing,
            ),
            (
                429,
                r#"[{"error": {"message": "quota, check billing. Please retry in 20s"}}]"#,
                RateLimited,
            ),
            (429, r#"{"error": {"message": "the model is overloaded"}}"#, Overloaded),
            (500, "", ServerError),
            (502, "<html>bad gateway", ServerError),
            (503, "", Overloaded),
            (529, "", Overloaded),
            (301, "", InvalidRequest),
        ];
        for (status, body, kind) in cases {
            let failed = of_status(*status, body, "x", &upstream());
            assert_eq!((failed.kind, failed.status), (*kind, Some(*status)), "{status} {body}");
            assert!(!failed.message.contains("html"), "{}", failed.message);
        }
    }

    #[test]
    fn an_error_in_a_stream_has_a_kind_too() {
        use FailureKind::*;
        let cases = [
            (
                r#"{"error": {"code": 429, "message": "slow down"}}"#,
                RateLimited,
                Some(429),
            ),
            (
                r#"{"error": {"code": "502", "message": "provider gone"}}"#,
                ServerError,
                Some(502),
            ),
            (
                r#"{"error": {"type": "overloaded_error", "message": "later"}}"#,
                Overloaded,
                None,
            ),
            (r#"{"error": {"type": "rate_limit_exceeded"}}"#, RateLimited, None),
            (
                r#"{"error": {"type": "invalid_request_error", "message": "no"}}"#,
                InvalidRequest,
                None,
            ),
            (
                r#"{"object": "error", "message": "context length", "code": 40303}"#,
                ContextTooLong,
                None,
            ),
            (r#"{"error": "boom"}"#, ServerError, None),
            (r#"{"error": true}"#, ServerError, None),
        ];
        for (data, kind, status) in cases {
            let failed = in_stream(data, &upstream());
            assert_eq!((failed.kind, failed.status), (kind, status), "{data}");
        }
    }

    #[test]
    fn messages_hide_the_key_and_stay_short() {
        let body = format!(r#"{{"error": {{"message": "bad sk-12345\n{}"}}}}"#, "x".repeat(9000));
        for status in [400, 401, 402, 404, 500] {
            let failed = of_status(status, &body, "m", &upstream());
            assert!(
                !failed.message.contains("sk-12345") && failed.message.len() < 700,
                "{}",
                failed.message
            );
        }
        let open = Upstream {
            secrets: Vec::new(),
            ..upstream()
        };
        assert!(of_status(401, "", "m", &open).message.contains("none is configured"));
        for body in ["", r#"{"detail": "Not Found"}"#] {
            let message = of_status(404, body, "gpt-x", &open).message;
            assert!(message.contains("`gpt-x`") && message.contains("address"), "{message}");
        }
    }

    #[test]
    fn every_form_of_retry_after_is_read() {
        let wait = |pairs: &[(&'static str, &'static str)]| {
            let headers: HeaderMap = pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect();
            // 2015-10-21T07:27:50Z, ten seconds before the date below.
            retry_after(&headers, Timestamp(1_445_412_470_000)).map(|wait| wait.as_millis())
        };
        assert_eq!(wait(&[("retry-after", "7")]), Some(7000));
        assert_eq!(wait(&[("retry-after", " 1.5 ")]), Some(1500));
        assert_eq!(wait(&[("retry-after-ms", "250"), ("retry-after", "7")]), Some(250));
        assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), Some(10_000));
        let skewed = [
            ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
            ("date", "Wed, 21 Oct 2015 07:27:57 GMT"),
        ];
        assert_eq!(wait(&skewed), Some(3000));
        assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT")]), Some(0));
        for nonsense in ["", "soon", "-3", "NaN", "1e300"] {
            assert_eq!(wait(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(wait(&[]), None);
    }
}
