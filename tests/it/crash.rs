//! The process dies, or the store fails, at every commit of scripted turns. It
//! is started again, and whatever point it was: the transcript is valid, no
//! effect happened twice, the log is gapless, each turn ends exactly once.

mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hermes_server::model::approval::ApprovalStatus;
use hermes_server::model::budget::{BudgetScope, BudgetUnit};
use hermes_server::model::call::CallStatus;
use hermes_server::model::event::EventBody;
use hermes_server::model::id::SessionId;
use hermes_server::model::message::{Message, Role, text_of};
use hermes_server::model::session::RequiredActionKind;
use hermes_server::model::turn::{OnBusy, TurnStatus};
use hermes_server::store::{Fate, Probe};
use hermes_server::turn::requests::{AnswerRequest, CreateSession, NewTurn};
use hermes_server::turn::step::ClientResult;
use tokio::sync::Notify;

use crate::harness::script::{check_log, check_transcript, guarded, mark};
use crate::harness::{PATIENCE, Place, Server, lines, new_session, new_turn};

/// Turns that together pass every kind of commit.
struct Script {
    name: &'static str,
    text: String,
    /// A second turn, queued behind the first.
    queued: Option<&'static str>,
    cancel: bool,
    /// A message for the turn while it runs, or a turn of its own behind it.
    steer: Option<&'static str>,
    /// The turn's budget; each time it is used up somebody grants more.
    max_tokens: Option<u64>,
    /// Files that count how often their command ran.
    marks: &'static [&'static str],
}

fn scripts() -> Vec<Script> {
    let plain = Script {
        name: "plain",
        text: String::new(),
        queued: None,
        cancel: false,
        steer: None,
        max_tokens: None,
        marks: &[],
    };
    let reads = "/tool read_file {\"path\": \"x\"}\n/tool read_file {\"path\": \"y\"}";
    vec![
        Script {
            text: "/reason hm\n/say hello".to_owned(),
            queued: Some("/say second"),
            ..plain
        },
        Script {
            name: "sequential",
            text: format!("{}\n{}\n/then\n{}\n/then\n/say done", mark("a"), mark("b"), mark("c")),
            marks: &["a", "b", "c"],
            ..scripts_base("sequential")
        },
        Script {
            name: "parallel",
            text: format!("{reads}\n{}\n/then\n/say done", mark("a")),
            marks: &["a"],
            ..scripts_base("parallel")
        },
        Script {
            name: "approvals",
            text: format!("{}\n{}\n{}\n/then\n/say done", guarded("a"), mark("b"), guarded("c")),
            queued: Some("/say second"),
            marks: &["a", "b", "c"],
            ..scripts_base("approvals")
        },
        Script {
            name: "parked",
            text: format!(
                "{}\n/tool look_up {{}}\n/tool look_up {{\"n\": 2}}\n/then\n/tool clarify {{\"question\": \"which?\"}}\n{}\n\
                 /then\n/say done",
                mark("a"),
                guarded("b")
            ),
            queued: Some("/say second"),
            marks: &["a", "b"],
            ..scripts_base("parked")
        },
        delegated(),
        program(),
        Script {
            name: "steered",
            text: format!("{}\n{}\n/then\n/say done", mark("a"), guarded("b")),
            steer: Some("and mind the gap"),
            marks: &["a", "b"],
            ..scripts_base("steered")
        },
        Script {
            name: "budget",
            text: format!("{}\n/then\n{}\n/then\n/say done", mark("a"), mark("b")),
            queued: Some("/say second"),
            max_tokens: Some(60),
            marks: &["a", "b"],
            ..scripts_base("budget")
        },
        Script {
            name: "cancel",
            text: format!("{}\n{}\n/then\n/sleep 60000\n/say never", mark("a"), mark("b")),
            cancel: true,
            marks: &["a", "b"],
            ..scripts_base("cancel")
        },
    ]
}

/// Two children that work side by side, one of which has to ask.
fn delegated() -> Script {
    Script {
        name: "delegated",
        text: format!(
            "/tool delegate_task {}\n/then\n/say done",
            serde_json::json!({"tasks": [
                {"goal": format!("{}\n/then\n/say x", mark("a"))},
                {"goal": format!("{}\n/then\n/say y", guarded("b"))},
            ]})
        ),
        queued: Some("/say second"),
        marks: &["a", "b"],
        ..scripts_base("delegated")
    }
}

/// A program that calls tools, one of which has to be asked about.
fn program() -> Script {
    let code = "from hermes_tools import terminal\nterminal('echo ran >> a')\n\
        terminal('rm -rf never-there && echo ran >> b')\nopen('c', 'a').write('ran\\n')";
    Script {
        name: "program",
        text: format!(
            "/tool execute_code {}\n/then\n/say done",
            serde_json::json!({"code": code})
        ),
        queued: Some("/say second"),
        marks: &["a", "b", "c"],
        ..scripts_base("program")
    }
}

fn scripts_base(name: &'static str) -> Script {
    Script {
        name,
        text: String::new(),
        queued: None,
        cancel: false,
        steer: None,
        max_tokens: None,
        marks: &[],
    }
}

/// How the store behaves at the chosen commit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// That commit and all later ones fail: the process is as good as dead.
    Dies,
    Once(Fate),
}

/// A probe that lets `good` commits pass, and tells when it struck. The lease's
/// own commits do not count.
fn faulty(good: usize, fault: Fault) -> (Probe, Arc<Notify>, Arc<AtomicUsize>) {
    let (struck, count) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (told, counted) = (Arc::clone(&struck), Arc::clone(&count));
    let probe = move |label: &'static str| {
        if label.starts_with("process")
            || label.starts_with("tenant")
            || label.starts_with("audit")
            || label == "create_session"
        {
            return Fate::Go;
        }
        let number = counted.fetch_add(1, Ordering::SeqCst);
        match fault {
            Fault::Dies if good <= number => {
                told.notify_one();
                Fate::FailBefore
            }
            Fault::Once(fate) if good == number => fate,
            _ => Fate::Go,
        }
    };
    (Arc::new(probe), struck, count)
}

/// Plays a script until every turn of the session is over. Requests that fail
/// are made again, as a client would.
async fn play(server: &Server, session: SessionId, script: &Script) {
    if turns(server, session).await.is_empty() {
        let _sent = server.try_turn(session, &script.text).await;
    }
    let second = script.queued;
    loop {
        let all = turns(server, session).await;
        if all.is_empty() {
            let _sent = server.try_turn(session, &script.text).await;
        }
        if let Some(second) = second.filter(|_| all.len() == 1) {
            let new = NewTurn {
                on_busy: OnBusy::Enqueue,
                ..new_turn(second)
            };
            let _sent = server.engine.create_turn(&server.scope, session, new).await;
        }
        let heard = match script.steer {
            Some(text) => steer(server, session, text).await,
            None => true,
        };
        let wanted = if second.is_some() { 2 } else { 1 };
        if heard && wanted <= all.len() && all.iter().all(|(_, status)| status.is_terminal()) {
            return;
        }
        decide_all(server, session).await;
        give_all(server, session).await;
        if script.cancel
            && let Some((id, _)) = all.first()
        {
            let ran = server.messages(session).await.len() == 4;
            if ran {
                let _sent = server.engine.cancel_turn(&server.scope, session, *id).await;
            }
        }
        // The driver plays an impatient client: it looks again at every change.
        let mut bell = server.engine.store().bell().subscribe(session);
        let _changed = tokio::time::timeout(Duration::from_millis(20), bell.changed()).await;
    }
}

/// Sends the message unless it is there already; whether it is in the transcript.
async fn steer(server: &Server, session: SessionId, text: &str) -> bool {
    if times_said(server, session, text).await == 1 {
        return true;
    }
    let log = server.log(session).await;
    let seen = |body: &EventBody| matches!(body, EventBody::TurnSteered(_));
    if !log.iter().any(|event| seen(&event.body)) {
        let new = NewTurn {
            on_busy: OnBusy::Steer,
            ..new_turn(text)
        };
        let _sent = server.engine.create_turn(&server.scope, session, new).await;
    }
    false
}

async fn times_said(server: &Server, session: SessionId, text: &str) -> usize {
    let messages = server.messages(session).await;
    let said = |message: &&Message| message.role == Role::User && text_of(&message.content) == text;
    messages.iter().filter(said).count()
}

async fn turns(server: &Server, session: SessionId) -> Vec<(hermes_server::model::id::TurnId, TurnStatus)> {
    let read = server
        .scope
        .read(move |mut rows| Box::pin(async move { rows.turns(session, None, None, 10).await }));
    read.await
        .unwrap()
        .into_iter()
        .map(|turn| (turn.turn_id, turn.status))
        .collect()
}

async fn decide_all(server: &Server, session: SessionId) {
    let read = server.scope.read(move |mut rows| {
        Box::pin(async move {
            rows.approvals(Some(session), Some(ApprovalStatus::Pending), None, 10)
                .await
        })
    });
    for approval in read.await.unwrap() {
        let answer = AnswerRequest {
            choice: approval.choices[0],
            digest: Some(approval.digest),
            reason: None,
            stop_turn: false,
            arguments: None,
            grant: None,
            by: "tester".to_owned(),
        };
        let _sent = server.engine.decide(&server.scope, approval.id, answer).await;
    }
}

/// Answers every question and gives every call of the client its result.
async fn give_all(server: &Server, session: SessionId) {
    for action in server.session_now(session).await.required_actions {
        match action.kind {
            RequiredActionKind::Approval => {}
            RequiredActionKind::Question => {
                let (id, by) = (action.id.parse().unwrap(), "tester".to_owned());
                let _sent = server
                    .engine
                    .answer_question(&server.scope, id, "that one".to_owned(), by)
                    .await;
            }
            RequiredActionKind::ClientTool => {
                let result = ClientResult {
                    call_id: action.id.parse().unwrap(),
                    output: "found".to_owned(),
                    is_error: false,
                };
                let _sent = server.engine.tool_results(&server.scope, session, vec![result]).await;
            }
        }
    }
}

/// A session that has all that the scripts call.
async fn new(server: &Server) -> SessionId {
    let tool = serde_json::json!({"type": "function", "function": {"name": "look_up"}});
    let new = CreateSession {
        tools: vec![serde_json::from_value(tool).unwrap()],
        toolsets: serde_json::from_value(serde_json::json!({"enabled": ["clarify"]})).unwrap(),
        ..new_session()
    };
    server.engine.create_session(&server.scope, new).await.unwrap().id
}

async fn check(server: &Server, session: SessionId, script: &Script, what: &str) {
    let messages = server.messages(session).await;
    check_transcript(&messages);
    let log = server.log(session).await;
    check_log(&log);
    let ended = crate::harness::script::terminal_events(&log);
    match script.steer {
        // A message that comes too late is a turn of its own.
        Some(text) => {
            assert_eq!(ended, turns(server, session).await.len(), "{what}");
            assert_eq!(times_said(server, session, text).await, 1, "{what}");
        }
        None => assert_eq!(ended, if script.queued.is_some() { 2 } else { 1 }, "{what}"),
    }
    for name in script.marks {
        let ran = lines(&server.workspace(session).join(name));
        assert!(ran <= 1, "{what}: `{name}` ran {ran} times");
    }
    // What was spent stands in rows and sums alike, each call once.
    let usage = server.session_now(session).await.usage;
    let spent = crate::budgets::spent(server).await;
    assert_eq!(
        (spent.calls, spent.tokens),
        (u64::from(usage.steps), usage.of(BudgetUnit::Tokens)),
        "{what}"
    );
    assert_eq!(spent.tenant, spent.tokens, "{what}");
    // What is reported as done was done.
    for call in messages.iter().flat_map(|message| &message.tool_calls) {
        let Some(command) = call.arguments["command"].as_str() else {
            continue;
        };
        let file = command.rsplit(' ').next().unwrap();
        if call.status == CallStatus::Succeeded {
            assert_eq!(lines(&server.workspace(session).join(file)), 1, "{what}: {command}");
        }
    }
}

/// Runs a script with a fault after `good` commits. Answers whether the fault
/// came into play.
async fn run(place: &Place, script: &Script, good: usize, fault: Fault) -> bool {
    let what = format!("{}: {fault:?} after {good}", script.name);
    let (probe, struck, count) = faulty(good, fault);
    let server = place.start_probed(Some(probe)).await;
    let session = new(&server).await;
    let played = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            () = play(&server, session, script) => false,
            () = struck.notified() => true,
        }
    });
    let died = played.await.unwrap_or_else(|_| panic!("{what}: the turns do not end"));
    if !died {
        check(&server, session, script, &what).await;
        let came_into_play = good < count.load(Ordering::SeqCst);
        if !came_into_play && !script.cancel {
            // Undisturbed, the script does what it says: the check above bites.
            for name in script.marks {
                assert_eq!(lines(&server.workspace(session).join(name)), 1, "{what}: {name}");
            }
        }
        server.stop().await;
        return came_into_play;
    }
    server.crash().await;
    let server = place.start().await;
    let played = tokio::time::timeout(PATIENCE, play(&server, session, script));
    played
        .await
        .unwrap_or_else(|_| panic!("{what}: the turns do not end after the restart"));
    check(&server, session, script, &what).await;
    server.stop().await;
    true
}

/// Every point of every script, until the fault does not come into play.
async fn at_every_commit(place: impl AsyncFn() -> Option<Place>, fault: Fault) {
    for script in scripts() {
        for good in 0.. {
            let Some(mut place) = place().await else {
                eprintln!("skipped on Postgres: TEST_DATABASE_URL is not set");
                return;
            };
            let budgets = &mut place.config.budgets;
            budgets.narrow(BudgetScope::Turn, script.max_tokens, None);
            if !run(&place, &script, good, fault).await {
                break;
            }
            assert!(good < 100, "the fault always comes into play");
        }
    }
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}

#[test]
fn the_process_dies_after_every_commit_on_sqlite() {
    block_on(at_every_commit(async || Some(Place::sqlite()), Fault::Dies));
}

#[test]
fn the_process_dies_after_every_commit_on_postgres() {
    block_on(at_every_commit(Place::postgres, Fault::Dies));
}

#[test]
fn every_commit_fails_once_on_sqlite() {
    block_on(at_every_commit(
        async || Some(Place::sqlite()),
        Fault::Once(Fate::FailBefore),
    ));
}

#[test]
fn every_commit_is_unclear_and_undone_on_sqlite() {
    block_on(at_every_commit(
        async || Some(Place::sqlite()),
        Fault::Once(Fate::UnclearRolledBack),
    ));
}

#[test]
fn every_commit_is_unclear_and_done_on_sqlite() {
    block_on(at_every_commit(
        async || Some(Place::sqlite()),
        Fault::Once(Fate::UnclearCommitted),
    ));
}

#[test]
fn every_commit_is_unclear_and_done_on_postgres() {
    block_on(at_every_commit(Place::postgres, Fault::Once(Fate::UnclearCommitted)));
}

#[test]
fn every_commit_fails_once_on_postgres() {
    block_on(at_every_commit(Place::postgres, Fault::Once(Fate::FailBefore)));
}

#[test]
fn every_commit_is_unclear_and_undone_on_postgres() {
    block_on(at_every_commit(Place::postgres, Fault::Once(Fate::UnclearRolledBack)));
}
