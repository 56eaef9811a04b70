//! Workspaces as they were before calls that could take something away: listed,
//! put back, undone, through the routes on both databases.

use std::path::{Path, PathBuf};

use hermes_server::model::checkpoint::{Checkpoint, CheckpointState};
use hermes_server::model::id::CheckpointId;
use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use super::{call, results};
use crate::api_rest::Talk;
use crate::harness::client::{Client, NewKey};
use crate::harness::http::Web;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::script::terminal;
use crate::harness::{Place, on_both};

/// Nobody is asked, so that only what is tested happens.
fn unasked() -> Value {
    json!({"approvals": {"mode": "off"}})
}

fn enable(place: &mut Place) {
    place.config.checkpoints.enabled = true;
}

async fn listed(talk: &Talk) -> Vec<Value> {
    let list = talk.client.get(&talk.path("/checkpoints")).await.expect(200);
    list["data"].as_array().unwrap().clone()
}

fn restore(talk: &Talk, checkpoint: &Value) -> String {
    talk.path(&format!("/checkpoints/{}/restore", checkpoint["id"].as_str().unwrap()))
}

/// Puts it back; the model is told in a turn of the past.
async fn restored(talk: &mut Talk, checkpoint: &Value) -> Value {
    let done = talk
        .client
        .post(&restore(talk, checkpoint), &Value::Null)
        .await
        .expect(200);
    let told = talk.events.until("checkpoint.restored").await.data;
    assert_eq!(told["data"]["restored"], done);
    talk.events.until("turn.completed").await;
    done
}

fn workspace(web: &Web, talk: &Talk) -> PathBuf {
    web.server.workspace(talk.session.parse().unwrap())
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn what_a_command_removed_is_put_back_and_that_can_be_undone() {
    on_both(async |mut place| {
        enable(&mut place);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &unasked()).await;
        let root = workspace(&web, &talk);
        results(
            &mut talk,
            &call("write_file", &json!({"path": "d/a.txt", "content": "one\n"})),
        )
        .await;
        results(
            &mut talk,
            &terminal("ln -s d/a.txt link; mkfifo pipe; printf x > $'d/odd \\n\\xff'; chmod 700 d"),
        )
        .await;
        results(&mut talk, &terminal("rm -rf d link; echo new > new.txt")).await;
        assert!(!root.join("d").exists());
        let all = listed(&talk).await;
        let tools: Vec<&str> = all.iter().map(|one| one["tool"].as_str().unwrap()).collect();
        assert_eq!(tools, ["terminal", "terminal", "write_file"]);
        let before = &all[0];
        assert_eq!((&before["state"], &before["files"]), (&json!("complete"), &json!(2)));
        let messages = client.get(&talk.path("/messages?limit=200")).await.expect(200);
        let mut calls = messages["data"].as_array().unwrap().iter();
        let last = calls.rfind(|message| message["tool_calls"][0].is_object()).unwrap();
        assert_eq!(before["tool_call_id"], last["tool_calls"][0]["id"]);
        assert_eq!(before["turn_id"], last["turn_id"]);

        let done = restored(&mut talk, before).await;
        assert_eq!(done["not_restored"], json!([]));
        assert_eq!((&done["written"], &done["removed"]), (&json!(4), &json!(1)));
        assert_eq!(read(root.join("link")), "one\n");
        assert_eq!(std::fs::read_link(root.join("link")).unwrap(), Path::new("d/a.txt"));
        assert_eq!(std::fs::read_dir(root.join("d")).unwrap().count(), 2);
        assert!(!root.join("new.txt").exists() && root.join("pipe").exists());
        let undo = listed(&talk).await[0].clone();
        assert_eq!(
            (&undo["id"], &undo["restores"]),
            (&done["undo_checkpoint_id"], &before["id"])
        );
        restored(&mut talk, &undo).await;
        assert!(!root.join("d").exists() && read(root.join("new.txt")) == "new\n");
        let strange = talk.path("/checkpoints/chk_00000000000000000000000000/restore");
        client.post(&strange, &Value::Null).await.problem(404, "not_found");
        web.stop().await;
    });
}

#[test]
fn the_model_is_told_before_its_next_answer_and_the_transcript_stays() {
    on_both(async |mut place| {
        enable(&mut place);
        let function = json!({"name": "write_file",
            "arguments": json!({"path": "a.txt", "content": "one"}).to_string()});
        let calls = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]});
        let replies = vec![
            Reply::stream(&[calls], "tool_calls"),
            Reply::say("Written."),
            Reply::say("I see."),
        ];
        let model = ModelServer::start(replies).await;
        place.config.openai.base_url = Some(model.base_url.clone());
        place.config.model = Some("scripted".to_owned());
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &unasked()).await;
        results(&mut talk, "write it").await;
        let [only] = listed(&talk).await.try_into().unwrap();
        restored(&mut talk, &only).await;
        assert!(!workspace(&web, &talk).join("a.txt").exists());
        results(&mut talk, "go on").await;
        let sent = model.asked().last().unwrap()["messages"].to_string();
        assert!(
            sent.contains("Written.") && sent.contains("put back to an earlier state"),
            "{sent}"
        );
        web.stop().await;
    });
}

#[test]
fn by_default_there_are_none_and_calls_that_take_nothing_away_make_none() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &unasked()).await;
        results(&mut talk, &terminal("rm -rf x; echo 1 > y")).await;
        assert!(listed(&talk).await.is_empty());
        let kept = place.config.server.data_dir.join("checkpoints");
        assert!(!kept.exists());
        web.stop().await;
        enable(&mut place);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &unasked()).await;
        results(&mut talk, &terminal("ls; echo a >> log")).await;
        results(&mut talk, &call("search_files", &json!({"pattern": "a"}))).await;
        assert!(listed(&talk).await.is_empty());
        web.stop().await;
    });
}

#[test]
fn an_answer_with_several_calls_has_one_and_so_has_a_program() {
    on_both(async |mut place| {
        enable(&mut place);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &unasked()).await;
        let write = |name: &str| call("write_file", &json!({"path": name, "content": "x"}));
        results(
            &mut talk,
            &[write("a"), write("b"), terminal("rm -f a"), write("c")].join("\n"),
        )
        .await;
        let all = listed(&talk).await;
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0]["files"], 0, "before the first of them ran");
        let code = "from hermes_tools import write_file, terminal\nwrite_file('d', '1')\nterminal('rm -f b')\nprint(1)";
        results(&mut talk, &call("execute_code", &json!({"code": code}))).await;
        let all = listed(&talk).await;
        assert_eq!((all.len(), &all[0]["tool"]), (2, &json!("write_file")));
        restored(&mut talk, &all[1]).await;
        assert_eq!(std::fs::read_dir(workspace(&web, &talk)).unwrap().count(), 0);
        web.stop().await;
    });
}

#[test]
fn what_is_too_much_is_told_and_hinders_no_call() {
    on_both(async |mut place| {
        enable(&mut place);
        (
            place.config.checkpoints.max_files,
            place.config.checkpoints.max_snapshots,
        ) = (50, 3);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &unasked()).await;
        let root = workspace(&web, &talk);
        // 11 MB, where 10 are held.
        results(
            &mut talk,
            &terminal("head -c 11534336 /dev/zero > large; echo 1 > small"),
        )
        .await;
        results(&mut talk, &terminal("rm small; echo new > large")).await;
        let partial = listed(&talk).await[0].clone();
        assert_eq!((&partial["state"], &partial["files"]), (&json!("partial"), &json!(1)));
        assert_eq!(partial["reason"], "left out: 1 longer than 10 MB");
        let done = restored(&mut talk, &partial).await;
        assert_eq!(
            (read(root.join("small")), read(root.join("large"))),
            ("1\n".to_owned(), "new\n".to_owned())
        );
        assert_eq!(
            done["not_restored"],
            json!([]),
            "what is there is as good as nothing known"
        );
        // A tree that is too large; what was held before stays.
        results(&mut talk, &terminal("for n in $(seq 60); do echo > f$n; done")).await;
        for _ in 0..4 {
            let told = results(&mut talk, &terminal("rm f1; echo > f1")).await;
            assert!(told[0].contains("\"exit_code\":0"), "{}", told[0]);
        }
        let all = listed(&talk).await;
        assert_eq!(
            (&all[0]["state"], &all[0]["reason"]),
            (&json!("skipped"), &json!("the workspace has more than 50 names"))
        );
        let states: Vec<&str> = all.iter().map(|one| one["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["skipped", "complete", "complete", "partial"]);
        client
            .post(&restore(&talk, &all[0]), &Value::Null)
            .await
            .problem(409, "checkpoint_not_restorable");
        client
            .post(&restore(&talk, &all[1]), &Value::Null)
            .await
            .problem(409, "checkpoint_not_restorable");
        web.stop().await;
    });
}

#[test]
fn the_oldest_go_with_what_nobody_names_and_all_go_with_the_session() {
    on_both(async |mut place| {
        enable(&mut place);
        place.config.checkpoints.max_snapshots = 2;
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &unasked()).await;
        for number in 0..5 {
            let write = json!({"path": "a.txt", "content": format!("number {number}")});
            results(&mut talk, &call("write_file", &write)).await;
        }
        let all = listed(&talk).await;
        assert_eq!(all.len(), 2);
        let kept = place.config.server.data_dir.join("checkpoints");
        let own = kept.join(web.server.scope.tenant().to_string()).join(&talk.session);
        assert_eq!(contents(&own.join("held")), 2, "the states before the last two calls");
        restored(&mut talk, &all[1]).await;
        assert_eq!(read(workspace(&web, &talk).join("a.txt")), "number 2");
        assert_eq!(listed(&talk).await.len(), 2);
        client.delete(&talk.path("")).await;
        let gone = async {
            while own.exists() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(crate::harness::PATIENCE, gone).await.unwrap();
        web.stop().await;
    });
}

fn contents(held: &Path) -> usize {
    let all = std::fs::read_dir(held).unwrap();
    all.map(|above| std::fs::read_dir(above.unwrap().path()).unwrap().count())
        .sum()
}

#[test]
fn while_a_turn_runs_or_waits_nothing_is_put_back() {
    on_both(async |mut place| {
        enable(&mut place);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &json!({})).await;
        results(&mut talk, &call("write_file", &json!({"path": "a", "content": "x"}))).await;
        let [only] = listed(&talk).await.try_into().unwrap();
        let approval = talk.ask(&terminal("rm -rf a")).await;
        client
            .post(&restore(&talk, &only), &Value::Null)
            .await
            .problem(409, "session_busy");
        // Nothing is made for a call before somebody lets it run.
        assert_eq!(listed(&talk).await.len(), 1);
        client
            .post(&crate::api_rest::decision_of(&approval), &json!({"choice": "once"}))
            .await
            .expect(200);
        talk.events.until("turn.completed").await;
        assert_eq!(listed(&talk).await.len(), 2);
        restored(&mut talk, &only).await;
        web.stop().await;
    });
}

#[test]
fn a_server_that_dies_between_the_checkpoint_and_the_end_of_the_call_leaves_it_usable() {
    on_both(async |mut place| {
        enable(&mut place);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &unasked()).await;
        let root = workspace(&web, &talk);
        results(&mut talk, &call("write_file", &json!({"path": "d/a", "content": "x"}))).await;
        talk.say(&terminal("rm -rf d; sleep 300")).await;
        talk.events.until("tool_call.started").await;
        let removed = async {
            while root.join("d").exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(crate::harness::PATIENCE, removed).await.unwrap();
        web.crash().await;
        // What another one left half-made is no checkpoint.
        let own = place.config.server.data_dir.join("checkpoints");
        let own = std::fs::read_dir(own).unwrap().next().unwrap().unwrap().path();
        let own = own.join(&talk.session);
        std::fs::write(own.join("chk_7zzzzzzzzzzzzzzzzzzzzzzzzz.names"), "{\"began\":0}\n{").unwrap();
        std::fs::write(own.join("chk_7zzzzzzzzzzzzzzzzzzzzzzzzz.new"), "{").unwrap();
        std::fs::write(own.join("coming/new"), "half").unwrap();
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::of(&web, &client, &talk.session.clone()).await;
        for _ in 0..2 {
            talk.events.until("turn.completed").await;
        }
        let all = listed(&talk).await;
        assert_eq!(all.len(), 2, "{all:?}");
        restored(&mut talk, &all[0]).await;
        assert_eq!(read(root.join("d/a")), "x");
        web.stop().await;
    });
}

#[test]
fn what_delegated_work_takes_away_is_put_back_at_the_root() {
    on_both(async |mut place| {
        enable(&mut place);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &unasked()).await;
        results(&mut talk, &call("write_file", &json!({"path": "a", "content": "x"}))).await;
        let goal = json!({"goal": terminal("rm -f a; true")});
        results(&mut talk, &call("delegate_task", &goal)).await;
        assert!(!workspace(&web, &talk).join("a").exists());
        let all = listed(&talk).await;
        let child = all[0]["session_id"].as_str().unwrap().to_owned();
        assert_ne!(child, talk.session);
        let seen = client
            .get(&format!("/v1/sessions/{child}/checkpoints"))
            .await
            .expect(200);
        assert_eq!(seen["data"], json!(all));
        let at_child = format!(
            "/v1/sessions/{child}/checkpoints/{}/restore",
            all[0]["id"].as_str().unwrap()
        );
        client
            .post(&at_child, &Value::Null)
            .await
            .problem(409, "session_is_child");
        restored(&mut talk, &all[0]).await;
        assert_eq!(read(workspace(&web, &talk).join("a")), "x");
        web.stop().await;
    });
}

#[test]
fn the_same_words_of_two_tenants_are_kept_apart() {
    on_both(async |mut place| {
        enable(&mut place);
        let web = place.serve().await;
        let mut kept = Vec::new();
        for name in ["one", "two"] {
            let key = NewKey {
                tenant: web.tenant(name).await,
                user: "owner",
                scopes: &[Scope::Admin],
                tools: None,
            };
            let client = web.with_key(key).await;
            let mut talk = Talk::new(&web, &client, &unasked()).await;
            results(&mut talk, &call("write_file", &json!({"path": "a", "content": "same"}))).await;
            results(&mut talk, &terminal("rm -f a; true")).await;
            kept.push(talk);
        }
        let [first, second] = kept.try_into().unwrap_or_else(|_| panic!("two"));
        let all = listed(&first).await;
        let theirs = restore(&first, &all[0]);
        second
            .client
            .post(&theirs, &Value::Null)
            .await
            .problem(404, "not_found");
        second
            .client
            .get(&first.path("/checkpoints"))
            .await
            .problem(404, "not_found");
        // In one's own session another's checkpoint is none.
        second
            .client
            .post(&restore(&second, &all[0]), &Value::Null)
            .await
            .problem(404, "not_found");
        let data = &place.config.server.data_dir;
        for talk in [&first, &second] {
            let tenant = talk.client.tenant.unwrap().to_string();
            let own = data.join("checkpoints").join(tenant).join(&talk.session);
            assert_eq!(contents(&own.join("held")), 1, "each has its own");
        }
        web.stop().await;
    });
}

const LEAVES_ALL: &str = r#"{"began":0}
{"path":"","is":"left_out","why":"named"}
"#;

/// A checkpoint whose workspace stays as it is.
pub async fn planted(web: &Web, owner: &Client, session: &str, id: CheckpointId) {
    let clock = web.server.engine.clock();
    let head = Checkpoint {
        id,
        session_id: session.parse().unwrap(),
        turn_id: None,
        message_id: None,
        tool_call_id: None,
        tool: None,
        restores: None,
        state: CheckpointState::Complete,
        reason: None,
        files: 0,
        bytes: 0,
        created_at: clock.now(),
    };
    let tenant = owner.tenant.unwrap();
    let workspace = web.server.engine.workspace_path(tenant, head.session_id);
    let data = workspace.ancestors().nth(4).unwrap();
    let own = data.join("checkpoints").join(tenant.to_string()).join(session);
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join(format!("{id}.names")), LEAVES_ALL).unwrap();
    let head = serde_json::to_vec(&head).unwrap();
    std::fs::write(own.join(format!("{id}.json")), head).unwrap();
}
