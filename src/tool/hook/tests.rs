//! Hooks as functions: what their answers mean, and what a failure does.

use serde_json::Map;

use super::before::{Directive, directive};
use super::*;
use crate::base::Id;
use crate::model::trace::TraceAction;
use crate::tool::testing::Bench;

pub(super) fn hooks(bench: &Bench, all: Vec<Hook>) -> Hooks {
    let hooks = Hooks::new(&[], Arc::clone(&bench.host), Documents::new().unwrap());
    let inner = Inner {
        all,
        host: Arc::clone(&bench.host),
        documents: Documents::new().unwrap(),
        observers: Arc::clone(&hooks.0.observers),
        tasks: TaskTracker::new(),
        stopping: CancellationToken::new(),
    };
    Hooks(Arc::new(inner))
}

inventory::submit!(CompiledHook {
    name: "part of the binary",
    point: HookPoint::OnSessionEnd,
    run: |_| Box::pin(async { Ok(json!({})) }),
});

#[tokio::test]
async fn what_is_part_of_the_binary_stands_beside_what_is_configured() {
    let bench = Bench::new().await;
    let configured = config::Hook {
        point: HookPoint::OnSessionEnd,
        name: "configured".to_owned(),
        action: config::HookAction::Command(vec!["true".to_owned()]),
        matcher: None,
        timeout: Duration::from_secs(1),
    };
    let hooks = Hooks::new(&[configured], Arc::clone(&bench.host), Documents::new().unwrap());
    let names: Vec<String> = hooks
        .at(HookPoint::OnSessionEnd, None)
        .into_iter()
        .map(|hook| hook.name)
        .collect();
    assert_eq!(names, ["configured", "part of the binary"]);
    assert!(!hooks.has(HookPoint::PreToolCall));
}

#[test]
fn a_lasting_permission_covers_what_the_hook_names_or_the_tool() {
    for (answer, key) in [
        (json!({"action": "approve"}), "plugin_rule:look"),
        (json!({"action": "approve", "rule_key": "prod"}), "plugin_rule:prod"),
    ] {
        let hook = hook(HookPoint::PreToolCall, |_| Box::pin(std::future::pending()));
        let Directive::Ask(finding) = directive(&hook, "look", Ok(answer)) else {
            panic!("it asks")
        };
        assert_eq!(finding.key, key);
    }
}

fn hook(point: HookPoint, run: fn(Value) -> BoxFuture<'static, Result<Value, String>>) -> Hook {
    Hook {
        point,
        name: "test".to_owned(),
        action: Action::Compiled(run),
        matcher: None,
        timeout: Duration::from_millis(200),
    }
}

pub(super) fn subject(bench: &Bench) -> Subject {
    Subject {
        tenant_id: bench.tenant,
        session_id: bench.session,
        turn_id: Some(Id::from_bits(1)),
        call_id: Some(Id::from_bits(2)),
        answer_id: Some(Id::from_bits(3)),
        parent_call_id: None,
    }
}

fn arguments() -> Map<String, Value> {
    Map::from_iter([("n".to_owned(), json!(1))])
}

#[tokio::test]
async fn arguments_are_replaced_one_after_another_and_judged_by_the_last() {
    let bench = Bench::new().await;
    let all = vec![
        hook(HookPoint::ToolRequest, |payload| {
            Box::pin(async move { Ok(json!({"arguments": {"n": payload["args"]["n"].as_i64().unwrap() + 1}})) })
        }),
        hook(HookPoint::ToolRequest, |_| Box::pin(async { Err("broken".to_owned()) })),
        hook(HookPoint::ToolRequest, |payload| {
            Box::pin(async move { Ok(json!({"arguments": {"n": payload["args"]["n"].as_i64().unwrap() * 10}})) })
        }),
        hook(HookPoint::PreToolCall, |payload| {
            Box::pin(async move { Ok(json!({"action": "block", "message": payload["args"].to_string()})) })
        }),
    ];
    let before = hooks(&bench, all)
        .before_call(subject(&bench), "look", &arguments())
        .await;
    assert_eq!(before.arguments, Some(Map::from_iter([("n".to_owned(), json!(20))])));
    assert_eq!(before.blocked.as_deref(), Some("{\"n\":20}"));
    let did: Vec<TraceAction> = before.trace.iter().map(|trace| trace.action).collect();
    let expected = [
        TraceAction::Replaced,
        TraceAction::Skipped,
        TraceAction::Replaced,
        TraceAction::Blocked,
    ];
    assert_eq!(did, expected);
    assert_eq!(before.trace[1].reason.as_deref(), Some("broken"));
}

#[tokio::test]
async fn the_first_that_says_something_wins_and_a_failure_refuses() {
    let bench = Bench::new().await;
    type Run = fn(Value) -> BoxFuture<'static, Result<Value, String>>;
    let table: [(Run, &str, usize); 6] = [
        (|_| Box::pin(async { Ok(json!({})) }), "", 0),
        (
            |_| Box::pin(async { Ok(json!({"decision": "approve", "message": "look first"})) }),
            "",
            1,
        ),
        (
            |_| Box::pin(async { Ok(json!({"decision": "block", "reason": "no"})) }),
            "no",
            0,
        ),
        (
            |_| Box::pin(async { Ok(json!({"action": "dance"})) }),
            "means nothing here",
            0,
        ),
        (
            |_| Box::pin(async { Err("broken".to_owned()) }),
            "the hook `test` failed",
            0,
        ),
        (|_| Box::pin(std::future::pending()), "the hook `test` failed", 0),
    ];
    for (run, blocked, asks) in table {
        let never: Run = |_| Box::pin(async { Ok(json!({"action": "block", "message": "the second"})) });
        let mut all = vec![hook(HookPoint::PreToolCall, run)];
        if asks == 1 {
            all.push(hook(HookPoint::PreToolCall, never));
        }
        let before = hooks(&bench, all)
            .before_call(subject(&bench), "look", &arguments())
            .await;
        assert_eq!(before.asks.len(), asks);
        assert!(before.blocked.unwrap_or_default().contains(blocked));
    }
}

#[tokio::test]
async fn a_matcher_fits_whole_names() {
    let bench = Bench::new().await;
    let refuse = hook(HookPoint::PreToolCall, |_| {
        Box::pin(async { Ok(json!({"action": "block"})) })
    });
    let refuse = Hook {
        matcher: Some(Regex::new("^(?:terminal|mcp_.*)$").unwrap()),
        ..refuse
    };
    let hooks = hooks(&bench, vec![refuse]);
    for (tool, refused) in [
        ("terminal", true),
        ("mcp_x", true),
        ("terminals", false),
        ("look", false),
    ] {
        let before = hooks.before_call(subject(&bench), tool, &arguments()).await;
        assert_eq!(before.blocked.is_some(), refused, "{tool}");
    }
}

#[tokio::test]
async fn the_first_text_takes_the_place_of_a_result() {
    let bench = Bench::new().await;
    let all = vec![
        hook(HookPoint::TransformToolResult, |_| {
            Box::pin(async { Err("broken".to_owned()) })
        }),
        hook(HookPoint::TransformToolResult, |_| {
            Box::pin(async { Ok(json!({"result": 5})) })
        }),
        hook(HookPoint::TransformToolResult, |payload| {
            Box::pin(async move { Ok(json!({"result": payload["result"].as_str().unwrap().to_uppercase()})) })
        }),
        hook(HookPoint::TransformToolResult, |_| {
            Box::pin(async { Ok(json!({"result": "late"})) })
        }),
    ];
    let told = json!({"tool_name": "look", "result": "seen"});
    let hooks = hooks(&bench, all);
    assert_eq!(hooks.transformed(subject(&bench), &told).await.as_deref(), Some("SEEN"));
}
