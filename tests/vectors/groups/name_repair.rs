//! `name_repair`: the tool that a name which does not exist most likely means.

use hermes_server::tool::name_repair::repair;
use serde_json::json;

use crate::case::{Case, strings};

pub fn judge(case: &Case) -> Result<(), String> {
    let known = strings(&case.input["known"]);
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    case.check(json!(repair(case.text("name"), &known)))
}
