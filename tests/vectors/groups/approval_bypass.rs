//! `approval-bypass`: published ways around command filters, with the verdicts
//! that are acceptable for each.

use serde_json::json;

use super::approval::judged;
use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    if !case.input["policy"].is_null() {
        return case.unknown("policy");
    }
    let judgement = judged(&json!({"command": case.input["command"]}));
    let verdict = json!(judgement.verdict);
    if case.input["accept"].as_array().unwrap().contains(&verdict) {
        return Ok(());
    }
    let keys: Vec<&str> = judgement.findings.iter().map(|finding| finding.key.as_str()).collect();
    Err(format!("accepted {}, got {verdict} {keys:?}", case.input["accept"]))
}
