//! `args_repair`: the arguments a model wrote, read as an object.
//!
//! Recorded is also the empty object that stands for hopeless text; a call with
//! such text never runs, so there the right answer is an error. An answer that is
//! no object can be no call either, whatever it was mended to.

use hermes_server::tool::arguments::parse;
use serde_json::{Value, json};

use crate::case::{Case, Relation};

pub fn judge(case: &Case) -> Result<(), String> {
    let raw = case.text("raw");
    let expected = &case.expect["json"];
    let is_nothing = raw.trim().is_empty() || raw.trim() == "None";
    let is_valid = serde_json::from_str::<Value>(raw).is_ok();
    let stands_in = *expected == json!({}) && !is_nothing && !is_valid;
    match parse(raw) {
        Ok(read) if stands_in && !is_empty_object(raw) => {
            Err(format!("hopeless text was read as {}", Value::Object(read)))
        }
        Ok(read) => case.check_as(expected, Value::Object(read), |_, _| Relation::Unrelated),
        Err(_) if stands_in || !expected.is_object() => Ok(()),
        Err(error) => Err(format!("expected {expected}, got the error: {error}")),
    }
}

/// Text that does say the empty object, with blanks and surplus closers.
fn is_empty_object(raw: &str) -> bool {
    let rest: String = raw.chars().filter(|character| !character.is_whitespace()).collect();
    rest.starts_with('{') && rest.chars().skip(1).all(|character| "}],".contains(character))
}
