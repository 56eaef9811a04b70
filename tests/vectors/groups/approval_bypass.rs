//! `approval-bypass`: published ways around command filters, with the verdicts
//! that are acceptable for each; some under a policy of their own.

use hermes_server::guard::policy::Policy;
use serde_json::json;

use super::approval::{judged, setting};
use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    let command = case.text("command");
    let mut judgement = judged(&json!({"command": command}));
    if !case.input["policy"].is_null() {
        let policy: Policy = serde_json::from_value(case.input["policy"].clone()).map_err(|error| error.to_string())?;
        let policy = policy.compile().map_err(|fault| fault.to_string())?;
        judgement = policy.apply(command, judgement, &setting("/home/alice", "/home/alice/.hermes"));
    }
    let verdict = json!(judgement.verdict);
    if case.input["accept"].as_array().unwrap().contains(&verdict) {
        return Ok(());
    }
    let keys: Vec<&str> = judgement.findings.iter().map(|finding| finding.key.as_str()).collect();
    Err(format!("accepted {}, got {verdict} {keys:?}", case.input["accept"]))
}
