//! `coercion`: arguments brought to the types of their schema.

use hermes_server::tool::coerce::coerce;
use serde_json::{Value, json};

use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    let schema = json!({"type": "object", "properties": case.input["properties"]});
    let args = case.input["args"].as_object().unwrap().clone();
    case.check(Value::Object(coerce(&schema, args)))
}
