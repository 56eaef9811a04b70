//! The process dies at every commit of a turn that calls one tool, for each tool:
//! the turn ends once, the call has one result, and what it leaves is there once,
//! whole, or not at all.

use std::path::Path;

use futures::StreamExt;
use hermes_server::model::call::CallStatus;
use hermes_server::model::id::SessionId;
use hermes_server::model::message::{Role, text_of};
use serde_json::{Value, json};

use super::{Fault, Script, block_on, faulty, new, play, scripts_base};
use crate::harness::client::Client;
use crate::harness::http::Web;
use crate::harness::script::{check_log, check_transcript, terminal_events};
use crate::harness::{PATIENCE, Place, lines};

/// What a call leaves behind.
enum Leaves {
    Nothing,
    /// A file with this text.
    File(&'static str, &'static str),
    /// A process behind its call, with its number in this file, and its record.
    Process(&'static str),
    /// A line for each time that it ran.
    Line(&'static str),
    Job,
    Note(&'static str),
    /// A skill of this name, whole, or none.
    Skill(&'static str),
    /// The skill that was there, with one of these texts.
    Changed([&'static str; 2]),
}

const SKILL: &str = "---\nname: greet\ndescription: How we say hello\n---\nSay hello.\n";

/// The text of a tenant's skill, whole; nothing where there is none.
async fn skill(owner: &Client, name: &str) -> Option<String> {
    let answer = owner.get(&format!("/v1/skills/{name}")).await;
    (answer.status == 200).then(|| answer.expect(200)["content"].as_str().unwrap().to_owned())
}

/// A call of a tool, and what it leaves.
fn calls() -> Vec<(&'static str, Value, Leaves)> {
    let line = "echo ran >> ran";
    vec![
        ("read_file", json!({"path": "there.txt"}), Leaves::Nothing),
        ("search_files", json!({"pattern": "old"}), Leaves::Nothing),
        (
            "write_file",
            json!({"path": "new.txt", "content": "whole\n"}),
            Leaves::File("new.txt", "whole\n"),
        ),
        (
            "patch",
            json!({"path": "there.txt", "old_string": "old", "new_string": "new"}),
            Leaves::File("there.txt", "new\n"),
        ),
        ("terminal", json!({"command": line}), Leaves::Line("ran")),
        (
            "terminal",
            json!({"command": "echo $$ >> pids; sleep 300", "background": true}),
            Leaves::Process("pids"),
        ),
        ("process", json!({"action": "list"}), Leaves::Nothing),
        (
            "todo",
            json!({"todos": [{"id": "1", "content": "x", "status": "pending"}]}),
            Leaves::Nothing,
        ),
        (
            "memory",
            json!({"target": "memory", "action": "add", "content": "likes tea"}),
            Leaves::Note("likes tea"),
        ),
        ("session_search", json!({"query": "anything"}), Leaves::Nothing),
        (
            "cronjob",
            json!({"action": "create", "schedule": "every 1d", "prompt": "x"}),
            Leaves::Job,
        ),
        ("skills_list", json!({}), Leaves::Nothing),
        ("skill_view", json!({"name": "there"}), Leaves::Nothing),
        (
            "skill_manage",
            json!({"action": "create", "name": "fresh", "content": SKILL}),
            Leaves::Skill("fresh"),
        ),
        (
            "skill_manage",
            json!({"action": "patch", "name": "there", "old_string": "Say hello.", "new_string": "Say good day."}),
            Leaves::Changed(["Say hello.\n", "Say good day.\n"]),
        ),
        (
            "execute_code",
            json!({"code": "from hermes_tools import terminal\nterminal('echo ran >> ran')"}),
            Leaves::Line("ran"),
        ),
        ("delegate_task", json!({"goal": "/say found"}), Leaves::Nothing),
        ("clarify", json!({"question": "which?"}), Leaves::Nothing),
    ]
}

async fn check(web: &Web, owner: &Client, session: SessionId, leaves: &Leaves, what: &str) {
    let messages = web.server.messages(session).await;
    check_transcript(&messages);
    let log = web.server.log(session).await;
    check_log(&log);
    assert_eq!(terminal_events(&log), 1, "{what}");
    let call = messages.iter().flat_map(|message| &message.tool_calls).next();
    let succeeded = call.is_some_and(|call| call.status == CallStatus::Succeeded);
    let workspace = web.server.workspace(session);
    match leaves {
        Leaves::Nothing => {}
        Leaves::File(name, text) => {
            let found = std::fs::read_to_string(workspace.join(name)).ok();
            let untouched = [None, Some("old\n".to_owned())].contains(&found) && !succeeded;
            assert!(untouched || found.as_deref() == Some(*text), "{what}: {found:?}");
        }
        Leaves::Process(pids) => process(web, owner, session, &workspace.join(pids), what).await,
        Leaves::Line(name) => {
            let ran = lines(&workspace.join(name));
            assert!(ran <= 1 && (!succeeded || ran == 1), "{what}: ran {ran} times");
        }
        Leaves::Job => {
            let jobs = owner.get("/v1/jobs").await.expect(200);
            let count = jobs["data"].as_array().unwrap().len();
            assert_eq!(count, usize::from(succeeded), "{what}");
        }
        Leaves::Skill(name) => {
            let found = skill(owner, name).await;
            assert!(found.as_deref().is_none_or(|text| text == SKILL), "{what}: {found:?}");
            assert!(!succeeded || found.is_some(), "{what}");
        }
        Leaves::Changed([before, after]) => {
            let found = skill(owner, "there").await.unwrap();
            let is_whole = |end: &str| found == SKILL.replace("Say hello.\n", end);
            assert!(is_whole(after) || (is_whole(before) && !succeeded), "{what}: {found}");
        }
        Leaves::Note(text) => {
            let user = web.server.session_now(session).await.user_id;
            let read = web
                .server
                .scope
                .read(move |mut rows| Box::pin(async move { rows.memories(&user).await }));
            let noted = read.await.unwrap().memory;
            let expected: &[&str] = if succeeded { &[*text] } else { &[] };
            assert_eq!(noted, expected, "{what}");
        }
    }
}

/// A call that is known to have succeeded has one process, which runs now or is
/// known to be lost with its server; of one whose end nobody knows the model is
/// told so, and nothing runs. None ever began twice.
async fn process(web: &Web, owner: &Client, session: SessionId, pids: &Path, what: &str) {
    let messages = web.server.messages(session).await;
    let call = messages.iter().flat_map(|message| &message.tool_calls).next();
    let status = call.expect("the turn is over").status;
    let told = messages.iter().find(|message| message.role == Role::Tool);
    let told = told.map(|message| text_of(&message.content)).unwrap_or_default();
    let at = format!("/v1/sessions/{session}/processes");
    let look = async {
        loop {
            let known = owner.get(&at).await.expect(200)["data"].clone();
            let known = known.as_array().unwrap().clone();
            let runs = known.iter().any(|one| one["status"] == "running");
            let began = std::fs::read_to_string(pids).unwrap_or_default();
            let alive = began.lines().any(|pid| Path::new("/proc").join(pid).exists());
            assert!(began.lines().count() <= 1, "{what}: it began again");
            // What runs may be about to write its number; what is lost is about to be told.
            let is_settled = runs == alive && (runs || known.iter().all(|one| one["completion_reason"] == "lost"));
            if is_settled {
                return known;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let known = tokio::time::timeout(PATIENCE, look)
        .await
        .unwrap_or_else(|_| panic!("{what}: runs unknown"));
    match status {
        CallStatus::Succeeded => {
            assert_eq!(known.len(), 1, "{what}: {known:?}");
            assert!(told.contains(known[0]["id"].as_str().unwrap()), "{what}: {told}");
        }
        CallStatus::Unknown => {
            assert!(known.is_empty(), "{what}: {known:?}");
            assert!(told.contains("may have"), "{what}: {told}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

/// Whether the fault came into play.
async fn run(place: &mut Place, good: usize, (tool, arguments, leaves): &(&'static str, Value, Leaves)) -> bool {
    let what = format!("{tool} dies after {good}");
    let script = Script {
        text: format!("/tool {tool} {arguments}\n/then\n/say done"),
        ..scripts_base(tool)
    };
    let (probe, struck, _) = faulty(good, Fault::Dies);
    let web = place.serve_probed(Some(probe)).await;
    let session = new(&web.server).await;
    let workspace = web.server.workspace(session);
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("there.txt"), "old\n").unwrap();
    let skills = place
        .config
        .server
        .data_dir
        .join("skills")
        .join(web.server.scope.tenant().to_string());
    std::fs::create_dir_all(skills.join("there")).unwrap();
    std::fs::write(skills.join("there/SKILL.md"), SKILL).unwrap();
    let died = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            () = play(&web.server, session, &script) => false,
            () = struck.notified() => true,
        }
    });
    let died = died.await.unwrap_or_else(|_| panic!("{what}: the turn does not end"));
    web.crash().await;
    let web = place.serve().await;
    let owner = web.owner().await;
    let played = tokio::time::timeout(PATIENCE, play(&web.server, session, &script));
    played
        .await
        .unwrap_or_else(|_| panic!("{what}: the turn does not end after the restart"));
    check(&web, &owner, session, leaves, &what).await;
    web.stop().await;
    died
}

/// `beside` tools at once: most of the time a server waits for its start or its
/// end. A server that starts a process holds the embedded database of the one
/// beside it open for a moment, so there they follow one another.
async fn each_tool_at_every_commit(beside: usize, place: impl AsyncFn() -> Option<Place>) {
    let calls = calls();
    let at_every_commit = async |call: &(&'static str, Value, Leaves)| {
        for good in 0.. {
            let Some(mut place) = place().await else {
                eprintln!("skipped on Postgres: TEST_DATABASE_URL is not set");
                return;
            };
            if !run(&mut place, good, call).await {
                break;
            }
            assert!(good < 20, "the fault always comes into play");
        }
    };
    futures::stream::iter(&calls)
        .for_each_concurrent(beside, at_every_commit)
        .await;
}

#[test]
fn the_process_dies_around_each_tool_on_sqlite() {
    block_on(each_tool_at_every_commit(1, async || Some(Place::sqlite())));
}

#[test]
fn the_process_dies_around_each_tool_on_postgres() {
    block_on(each_tool_at_every_commit(4, Place::postgres));
}
