//! `approval_dangerous`, `approval_hardline`, `approval_later_history`: the
//! verdict on one command, and the key of the finding behind it.

use hermes_server::guard::{Backend, Judgement, Setting, Verdict, check};
use serde_json::{Value, json};

use crate::case::{Case, Relation, count};

pub fn judge(case: &Case) -> Result<(), String> {
    let judgement = judged(&case.input);
    let expect = &case.expect;
    let is_denied = expect["hardline"] == true || expect["sudo_guard"] == true;
    let expected = match (is_denied, expect["dangerous"] == true) {
        (true, _) => Verdict::Deny,
        (false, true) => Verdict::Ask,
        (false, false) => Verdict::Allow,
    };
    let keys: Vec<&str> = judgement.findings.iter().map(|finding| finding.key.as_str()).collect();
    case.check_as(&json!(expected), json!(judgement.verdict), |_, _| {
        match judgement.verdict.cmp(&expected) {
            std::cmp::Ordering::Greater => Relation::Stricter,
            std::cmp::Ordering::Less => Relation::Looser,
            std::cmp::Ordering::Equal => Relation::Unrelated,
        }
    })
    .map_err(|fault| format!("{fault} {keys:?}"))?;
    let key = if expect["hardline"] == true {
        &expect["hardline_key"]
    } else {
        &expect["key"]
    };
    match key.as_str() {
        Some(key) if case.is_exact() && !keys.contains(&key) => Err(format!("expected the key {key:?}, got {keys:?}")),
        _ => Ok(()),
    }
}

/// What the guard says of a command, in the environment that the input names.
pub fn judged(input: &Value) -> Judgement {
    let generate = &input["generate"];
    let command = match (input["command"].as_str(), generate["repeat"].as_str()) {
        (Some(text), _) => text.to_owned(),
        (None, unit) => unit.unwrap().repeat(count(&generate["times"])),
    };
    let variable = |name: &str, default: &str| input["env"][name].as_str().unwrap_or(default).to_owned();
    let home = variable("HOME", "/home/alice");
    let agent_home = variable("HERMES_HOME", "/home/alice/.hermes");
    let setting = Setting {
        sudo_password: input["env"]["SUDO_PASSWORD"].is_string(),
        ..setting(&home, &agent_home)
    };
    check(&command, &setting)
}

pub fn setting<'s>(home: &'s str, agent_home: &'s str) -> Setting<'s> {
    Setting {
        backend: Backend::Local,
        home,
        agent_home,
        cwd: None,
        sudo_password: false,
    }
}
