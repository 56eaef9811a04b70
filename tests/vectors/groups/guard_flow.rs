//! `guard_flow`: what becomes of a command from its judgement to the answer. The
//! person who answers is played here; everything before is the library's.

use std::collections::BTreeSet;

use hermes_server::guard::flow::{self, Mode, Offer, Step};
use hermes_server::guard::smart::{self, Answer};
use hermes_server::guard::standing::{ContainerGuard, DenyList, Standing, USER_DENY, check_under};
use hermes_server::guard::tirith::{Ended, Scan};
use hermes_server::guard::{Backend, Finding, Setting, Verdict};
use serde_json::{Map, Value, json};

use super::approval::setting;
use crate::case::{Case, strings};

pub fn judge(case: &Case) -> Result<(), String> {
    if case.input["notifier"] == "raises" {
        return case.unknown("a notifier that fails: an approval is a row, and nobody has to be reached");
    }
    let got = settled(case);
    for (field, expected) in case.expect.as_object().unwrap() {
        let given = got.get(field).cloned().unwrap_or_default();
        if !holds(expected, &given) {
            return Err(format!(
                "`{field}`: expected {expected}, got {given}; all: {}",
                json!(got)
            ));
        }
    }
    Ok(())
}

/// Of objects only the fields that are expected count.
fn holds(expected: &Value, given: &Value) -> bool {
    match expected.as_object() {
        Some(fields) => fields.iter().all(|(name, value)| given[name] == *value),
        None => expected == given,
    }
}

fn settled(case: &Case) -> Map<String, Value> {
    let input = &case.input;
    let backend: Backend = serde_json::from_value(input["backend"].clone()).unwrap_or_default();
    let (findings, denied) = findings(case, backend);
    if let Some(rule) = denied {
        let is_operators = rule == USER_DENY;
        return object(
            json!({"approved": false, "asked": false, "user_deny": is_operators, "hardline": !is_operators}),
        );
    }
    let approved: BTreeSet<String> = ["session_approved", "permanent_approved"]
        .iter()
        .flat_map(|field| strings(&input[*field]))
        .collect();
    let open: Vec<Finding> = findings
        .into_iter()
        .filter(|finding| !approved.contains(&finding.key))
        .collect();
    let run = |more: Value| {
        let mut all = object(json!({"approved": true, "asked": false}));
        all.extend(object(more));
        all
    };
    if open.is_empty() {
        return run(json!({}));
    }
    let mut flow = flow::Case {
        text: case.text("command"),
        findings: &open,
        mode: mode(input),
        unattended: input["surface"] == "cron" || input["surface"] == "none",
        allowlist: &strings(&input["allowlist"]),
        granted: false,
        review: None,
        allow_permanent: true,
    };
    let mut step = flow::decide(&flow);
    let called = step == Step::Review;
    if called {
        flow.review = Some(smart::answer(case.text("smart_answer")));
        step = flow::decide(&flow);
    }
    let mut all = match step {
        Step::Exempt(_) | Step::Granted => run(json!({})),
        Step::Reviewed => run(json!({"smart_approved": true})),
        Step::Unattended => object(
            json!({"approved": false, "asked": false, "pattern_key": open[0].key, "outcome": "blocked",
                "user_consent": false}),
        ),
        Step::Ask(offer) => asked(input, &open, offer, flow.review == Some(Answer::Deny)),
        Step::Review => unreachable!("the reviewer has answered"),
    };
    all.insert("smart_reviewer_called".to_owned(), json!(called));
    all
}

/// What the guard finds, and the rule that denies it for good.
fn findings(case: &Case, backend: Backend) -> (Vec<Finding>, Option<String>) {
    let input = &case.input;
    let mounts_host = input["host_mounts"] == true;
    if input["guard"] == "execute_code" {
        let asked = flow::of_code(case.text("code"), backend, mounts_host, ContainerGuard::Skip);
        return (asked.into_iter().collect(), None);
    }
    let deny = DenyList::new(&strings(&input["deny"])).unwrap();
    let standing = Standing {
        deny: Some(&deny),
        mounts_host,
        ..Standing::default()
    };
    let setting = Setting {
        backend,
        sudo_password: input["sudo_password_configured"] == true,
        ..setting("/home/alice", "/home/alice/.hermes")
    };
    let command = case.text("command");
    let judgement = check_under(command, &setting, &standing);
    if judgement.verdict == Verdict::Deny {
        return (
            Vec::new(),
            judgement.findings.first().map(|finding| finding.rule.clone()),
        );
    }
    if backend.is_isolated() && !mounts_host {
        return (Vec::new(), None);
    }
    let found = if judgement.verdict == Verdict::Ask {
        judgement.findings
    } else {
        Vec::new()
    };
    (
        scanned(&input["tirith"], command).into_iter().chain(found).collect(),
        None,
    )
}

fn scanned(scan: &Value, command: &str) -> Option<Finding> {
    let code = match scan["action"].as_str()? {
        "block" => 1,
        "warn" => 2,
        _ => 0,
    };
    Scan::read(Ended::Exited(code), &scan.to_string())?.finding(command)
}

fn mode(input: &Value) -> Mode {
    let bypassed = input["process_yolo"] == true || input["session_yolo"] == true;
    // A schedule whose owner wants its commands approved runs with asking off.
    let approves = input["surface"] == "cron" && input["cron_mode"] == "approve";
    match input["mode"].as_str().and_then(Mode::named) {
        _ if bypassed || approves => Mode::Off,
        mode => mode.unwrap_or(Mode::Manual),
    }
}

fn asked(input: &Value, findings: &[Finding], offer: Offer, smart_denied: bool) -> Map<String, Value> {
    let mut keys: Vec<&str> = Vec::new();
    for finding in findings {
        if !keys.contains(&finding.key.as_str()) {
            keys.push(&finding.key);
        }
    }
    let mut request = json!({"pattern_key": keys[0], "pattern_keys": keys, "allow_permanent": offer.always});
    if smart_denied {
        request["smart_denied"] = json!(true);
    }
    let mut all = object(
        json!({"approved": false, "asked": true, "pattern_key": keys[0], "request": request,
        "user_consent": false, "smart_denied": smart_denied}),
    );
    if input["notifier"] == false {
        // Nobody listens; the request waits.
        all.extend(object(
            json!({"asked": false, "status": "pending_approval", "approval_pending": true}),
        ));
        return all;
    }
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    // Only what is offered can be answered: the nearest is taken.
    let answer = match input["answer"].as_str() {
        Some("always") if !offer.always => Some("session"),
        answer => answer,
    };
    let answer = if answer == Some("session") && !offer.session {
        Some("once")
    } else {
        answer
    };
    let more = match answer {
        None => json!({"outcome": "timeout"}),
        Some("deny") => json!({"outcome": "denied", "deny_reason": input["answer_reason"]}),
        Some(answer) => {
            let mut more = json!({"approved": true, "user_approved": true});
            if answer != "once" {
                more["session_added"] = json!(sorted);
            }
            if answer == "always" {
                more["permanent_added"] = json!(sorted);
            }
            more
        }
    };
    all.extend(object(more));
    all
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}
