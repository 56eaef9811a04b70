//! Chains around a call: what each kind of middleware makes of it, and that the
//! call runs once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::*;
use crate::base::Id;
use crate::tool::ToolWrites;
use crate::tool::hook::tests::{hooks, subject};
use crate::tool::testing::Bench;

fn standing(name: &str, run: Middleware) -> Hook {
    Hook {
        point: HookPoint::ToolExecution,
        name: name.to_owned(),
        action: Action::Around(run),
        matcher: None,
        timeout: Duration::from_millis(200),
    }
}

fn told(result: &str) -> Told {
    Told {
        result: result.to_owned(),
        ..Told::default()
    }
}

/// Runs a call within them: what came of it, how often it ran, and what was done.
async fn ran(all: Vec<Hook>) -> (Done, u32, Vec<(String, TraceAction)>) {
    let bench = Bench::new().await;
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let call = async move {
        counted.fetch_add(1, Ordering::Relaxed);
        Done {
            result: "ran".to_owned(),
            exit_code: Some(3),
            writes: ToolWrites {
                cwd: Some("/there".to_owned()),
                ..ToolWrites::default()
            },
            ..Done::default()
        }
    };
    let mut after = After {
        hooks: hooks(&bench, all),
        subject: subject(&bench),
        arguments: json!({"n": 1}),
        trace: Vec::new(),
    };
    let done = after.around("look", CancellationToken::new(), Box::pin(call)).await;
    assert_eq!(after.trace, done.writes.trace);
    let trace = after.trace.into_iter().map(|trace| (trace.name, trace.action));
    (done, count.load(Ordering::Relaxed), trace.collect())
}

#[tokio::test]
async fn the_outermost_comes_first_and_has_the_last_word() {
    let outer = standing("outer", |payload, next| {
        Box::pin(async move {
            assert_eq!(
                (&payload["args"]["n"], &payload["hook_event_name"]),
                (&json!(1), &json!("tool_execution"))
            );
            let came = next.call().await?;
            Ok(told(&format!("outer({})", came.result)))
        })
    });
    let plain = standing("plain", |_, next| Box::pin(next.call()));
    let inner = standing("inner", |_, next| {
        Box::pin(async move { Ok(told(&format!("inner({})", next.call().await?.result))) })
    });
    let (done, count, trace) = ran(vec![outer, plain, inner]).await;
    assert_eq!((done.result.as_str(), count), ("outer(inner(ran))", 1));
    // What the call did is not theirs to change.
    assert_eq!((done.exit_code, done.writes.cwd.as_deref()), (Some(3), Some("/there")));
    let replaced = |name: &str| (name.to_owned(), TraceAction::Replaced);
    assert_eq!(trace, [replaced("inner"), replaced("outer")]);
}

#[tokio::test]
async fn one_may_answer_in_the_place_of_the_call() {
    let answers = standing("cache", |_, _| Box::pin(async { Ok(told("kept")) }));
    let never = standing("never", |_, _| Box::pin(async { Err("asked".to_owned()) }));
    let (done, count, trace) = ran(vec![answers, never]).await;
    assert_eq!((done.result.as_str(), count, done.writes.cwd), ("kept", 0, None));
    assert_eq!(trace, [("cache".to_owned(), TraceAction::Answered)]);
}

#[tokio::test]
async fn one_that_fails_before_the_call_or_behind_it_counts_for_nothing() {
    let table: [(&str, Middleware); 6] = [
        ("error before", |_, _| Box::pin(async { Err("broken".to_owned()) })),
        ("panic before", |_, _| Box::pin(async { panic!("broken") })),
        ("late before", |_, next| {
            Box::pin(async move {
                std::future::pending::<()>().await;
                next.call().await
            })
        }),
        ("error behind", |_, next| {
            Box::pin(async move {
                next.call().await?;
                Err("broken".to_owned())
            })
        }),
        ("panic behind", |_, next| {
            Box::pin(async move {
                next.call().await?;
                panic!("broken")
            })
        }),
        ("late behind", |_, next| {
            Box::pin(async move {
                next.call().await?;
                std::future::pending().await
            })
        }),
    ];
    for (name, run) in table {
        let behind = standing("behind", |_, next| {
            Box::pin(async move { Ok(told(&format!("({})", next.call().await?.result))) })
        });
        let (done, count, trace) = ran(vec![standing(name, run), behind]).await;
        assert_eq!((done.result.as_str(), count), ("(ran)", 1), "{name}");
        assert!(
            trace.contains(&(name.to_owned(), TraceAction::Skipped)),
            "{name}: {trace:?}"
        );
    }
}

#[tokio::test]
async fn a_call_that_is_stopped_waits_for_nobody_around_it() {
    let bench = Bench::new().await;
    let slow = Hook {
        timeout: Duration::from_secs(60),
        ..standing("slow", |_, _| Box::pin(std::future::pending()))
    };
    let mut after = After {
        hooks: hooks(&bench, vec![slow]),
        subject: Subject {
            call_id: Some(Id::from_bits(7)),
            ..subject(&bench)
        },
        arguments: json!({}),
        trace: Vec::new(),
    };
    let cancel = CancellationToken::new();
    cancel.cancel();
    let done = after.around("look", cancel, Box::pin(async { Done::default() })).await;
    assert_eq!(done.writes.trace[0].action, TraceAction::Skipped);
}
