//! Recorded verdicts of the original and public bypass collections.
//!
//! `tests/data/guard_known_differences.txt` lists the rows on which we differ
//! on purpose, each with its reason. The list must be exact: a new difference
//! and one that has gone both fail.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::guard::{Backend, Judgement, Setting, Verdict, check};

fn read(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn known_differences() -> BTreeMap<String, String> {
    let text = read("guard_known_differences.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (id, reason) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}` has no reason"));
            (id.to_owned(), reason.to_owned())
        })
        .collect()
}

fn command_of(input: &Value) -> String {
    if let Some(text) = input["command"].as_str() {
        return text.to_owned();
    }
    let generate = &input["generate"];
    let times = usize::try_from(generate["times"].as_u64().unwrap()).unwrap();
    generate["repeat"].as_str().unwrap().repeat(times)
}

fn judge(input: &Value) -> Judgement {
    let variable = |name: &str, default: &str| input["env"][name].as_str().unwrap_or(default).to_owned();
    let home = variable("HOME", "/home/alice");
    let agent_home = variable("HERMES_HOME", "/home/alice/.hermes");
    let setting = Setting {
        backend: Backend::Local,
        home: &home,
        agent_home: &agent_home,
        cwd: None,
        sudo_password: input["env"]["SUDO_PASSWORD"].is_string(),
    };
    check(&command_of(input), &setting)
}

/// None when the judgement is what the row expects or tolerates.
fn difference(case: &Value) -> Option<String> {
    let judgement = judge(&case["input"]);
    let expect = &case["expect"];
    let denied = expect["hardline"] == true || expect["sudo_guard"] == true;
    let expected = match (denied, expect["dangerous"] == true) {
        (true, _) => Verdict::Deny,
        (false, true) => Verdict::Ask,
        (false, false) => Verdict::Allow,
    };
    let tolerance = case["drift"]["tolerance"].as_str().unwrap_or_default();
    let tolerated = match tolerance {
        "stricter_ok" => judgement.verdict >= expected,
        "looser_ok" => judgement.verdict <= expected,
        "either" => true,
        _ => judgement.verdict == expected,
    };
    let keys: Vec<&str> = judgement.findings.iter().map(|finding| finding.key.as_str()).collect();
    if !tolerated {
        return Some(format!("expected {expected:?}, got {:?} {keys:?}", judgement.verdict));
    }
    let key = if expect["hardline"] == true {
        &expect["hardline_key"]
    } else {
        &expect["key"]
    };
    match key.as_str() {
        Some(key) if tolerance.is_empty() && !keys.contains(&key) => {
            Some(format!("expected key {key:?}, got {keys:?}"))
        }
        _ => None,
    }
}

fn bypass_difference(case: &Value) -> Option<String> {
    let command = case["command"].as_str().unwrap();
    let judgement = judge(&serde_json::json!({ "command": command }));
    let verdict = serde_json::to_value(judgement.verdict).unwrap();
    let accepted = case["accept"].as_array().unwrap().contains(&verdict);
    let keys: Vec<&str> = judgement.findings.iter().map(|finding| finding.key.as_str()).collect();
    (!accepted).then(|| format!("accepts {}, got {verdict} {keys:?}", case["accept"]))
}

#[test]
fn recorded_verdicts_hold_except_for_the_known_differences() {
    let mut known = known_differences();
    let mut report = String::new();
    let mut wrong = Vec::new();
    let mut tally = |file: &str, cases: &[Value], differ: fn(&Value) -> Option<String>| {
        let mut passed = 0;
        for case in cases {
            let id = case["id"].as_str().unwrap();
            match (differ(case), known.remove(id)) {
                (None, None) => passed += 1,
                (Some(_), Some(_)) => {}
                (Some(difference), None) => {
                    let shown = case["input"]["command"]
                        .as_str()
                        .or(case["command"].as_str())
                        .unwrap_or_default();
                    let shown: String = shown.chars().take(120).collect();
                    wrong.push(format!("{id} {difference} for {shown:?}"));
                }
                (None, Some(_)) => wrong.push(format!("{id} agrees now: take it off the list")),
            }
        }
        writeln!(report, "{file}: {passed} of {}", cases.len()).unwrap();
    };
    for file in ["approval_dangerous", "approval_hardline", "approval_later_history"] {
        let text: Value = serde_json::from_str(&read(&format!("vectors/{file}.json"))).unwrap();
        tally(file, text["cases"].as_array().unwrap(), difference);
    }
    let text: Value = serde_json::from_str(&read("vectors/approval-bypass.json")).unwrap();
    // Rows that bring a policy of their own are about policies.
    let own = text
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| case["policy"].is_null())
        .cloned();
    tally("approval-bypass", &own.collect::<Vec<_>>(), bypass_difference);
    println!("{report}");
    wrong.extend(
        known
            .keys()
            .map(|id| format!("{id} is on the list but no such row exists")),
    );
    assert!(wrong.is_empty(), "{report}{}", wrong.join("\n"));
}
