//! `tirith`: scans one after another in one process.

use hermes_server::guard::tirith::{Action, Breaker, Ended, Scan};
use serde_json::{Value, json};

use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    let fail_open = case.input["fail_open"] != false;
    let mut breaker = Breaker::default();
    let calls = case.input["calls"].as_array().unwrap().iter();
    let scans = calls.map(|call| {
        // One that is switched off is not run.
        if case.input["enabled"] == false {
            return Scan::default();
        }
        let ended = ended(call, case.input["missing"] == true);
        breaker.judge(ended, call["stdout"].as_str().unwrap_or_default(), fail_open)
    });
    let expected = case.expect.as_array().unwrap();
    let told: Vec<Value> = scans
        .zip(expected)
        .map(|(scan, expected)| told(&scan, expected))
        .collect();
    case.check(told)
}

fn ended(call: &Value, missing: bool) -> Ended {
    match call["exit"].as_i64() {
        _ if missing => Ended::Missing,
        _ if call["spawn_error"] == true => Ended::Spawn,
        _ if call["timeout"] == true => Ended::Timeout,
        Some(code) if code < 0 => Ended::Signalled,
        code => Ended::Exited(i32::try_from(code.unwrap()).unwrap()),
    }
}

/// What the case speaks of.
fn told(scan: &Scan, expected: &Value) -> Value {
    let action = match scan.action {
        Action::Allow => "allow",
        Action::Warn => "warn",
        Action::Block => "block",
    };
    let mut told = json!({"action": action, "findings": scan.findings.len()});
    if expected.get("summary_length").is_some() {
        told["summary_length"] = json!(scan.summary.chars().count());
    }
    told
}
