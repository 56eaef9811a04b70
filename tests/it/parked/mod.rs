//! Turns that wait for something else than a decision, as a client meets them,
//! on both databases.

mod client_tools;
mod delegation;
mod delegation_bounds;
mod delegation_model;
mod questions;

use serde_json::{Value, json};

/// A session's tool that its client carries out.
fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "Looks an order up.",
        "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}}})
}

/// The texts of the results that the model was given, in order.
fn results(messages: &Value) -> Vec<String> {
    let all = messages["data"].as_array().unwrap().iter();
    let results = all.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"][0]["text"].as_str().unwrap().to_owned())
        .collect()
}
