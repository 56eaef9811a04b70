//! `error_sanitise`: texts of failures, made harmless.

use hermes_server::tool::error_text::sanitise;
use serde_json::Value;

use crate::case::{Case, Relation};

pub fn judge(case: &Case) -> Result<(), String> {
    let got = sanitise(&case.long_text("text"));
    let Some(length) = case.expect["length"].as_u64() else {
        return case.check_by(got, removes_more);
    };
    let end = case.expect["ends_with"].as_str().unwrap_or_default();
    if got.chars().count() as u64 == length && got.ends_with(end) {
        return Ok(());
    }
    Err(format!(
        "expected {}, got {} characters",
        case.expect,
        got.chars().count()
    ))
}

/// Stricter is what holds nothing that the recorded answer has not, and less.
fn removes_more(expected: &Value, got: &Value) -> Relation {
    let (Some(expected), Some(got)) = (expected.as_str(), got.as_str()) else {
        return Relation::Unrelated;
    };
    let mut rest = expected.chars();
    if got.chars().all(|character| rest.any(|other| other == character)) {
        Relation::Stricter
    } else {
        Relation::Unrelated
    }
}
