//! `guardrail`: turns that go round in circles, and results that say they failed.

use hermes_server::model::guardrail::{Action, Guardrail, Limits, Signature, Thresholds, says_failed};
use serde_json::{Value, json};

use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    let classify = &case.input["classify"];
    if let Some(tool) = classify["tool"].as_str() {
        return case.check(says_failed(tool, classify["result"].as_str().unwrap()));
    }
    let limits = limits(&case.input["config"]);
    let mut turn = Guardrail::default();
    let steps = case.input["steps"].as_array().unwrap().iter();
    let got: Vec<Value> = steps.map(|step| stepped(&mut turn, step, &limits)).collect();
    case.check(got)
}

fn stepped(turn: &mut Guardrail, step: &Value, limits: &Limits) -> Value {
    if step["new_turn"] == true {
        *turn = Guardrail::default();
        return json!({"reset": true});
    }
    let call = Signature::of(step["tool"].as_str().unwrap(), &step["args"]);
    let before = turn.before(&call, limits);
    if before.action != Action::Allow {
        return json!({"before": before.action, "code": before.code, "count": before.count});
    }
    let result = step["result"].as_str().unwrap_or_default();
    let after = turn.after(&call, step["failed"] == true, result, limits);
    match after.action {
        Action::Allow => json!({"after": after.action, "count": after.count}),
        _ => json!({"after": after.action, "code": after.code, "count": after.count}),
    }
}

fn limits(config: &Value) -> Limits {
    let default = Limits::default();
    let flag = |name: &str, default| config[name].as_bool().unwrap_or(default);
    Limits {
        warns: flag("warnings_enabled", default.warns),
        stops: flag("hard_stop_enabled", default.stops),
        warn_after: thresholds(&config["warn_after"], default.warn_after),
        stop_after: thresholds(&config["hard_stop_after"], default.stop_after),
    }
}

fn thresholds(config: &Value, default: Thresholds) -> Thresholds {
    let number = |name: &str, default: u32| {
        config[name]
            .as_u64()
            .map_or(default, |given| u32::try_from(given).unwrap())
    };
    Thresholds {
        exact_failure: number("exact_failure", default.exact_failure),
        same_tool_failure: number("same_tool_failure", default.same_tool_failure),
        idempotent_no_progress: number("idempotent_no_progress", default.idempotent_no_progress),
    }
}
