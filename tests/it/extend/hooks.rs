//! Hooks: who may refuse, ask and change; who is told; and what a failure does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermes_server::config::{Hook, HookAction, HookPoint};
use hermes_server::model::approval::Choice;
use hermes_server::store::Fate;
use serde_json::{Value, json};

use super::{no_settings, program, results};
use crate::api_rest::Talk;
use crate::cases::ended;
use crate::harness::script::{guarded, mark, terminal};
use crate::harness::{Place, lines, on_both, probe};

pub fn hook(place: &mut Place, point: HookPoint, script: &str) {
    let name = format!("{}-{}", point.name(), place.config.hooks.len());
    let path = program(&place.directory.join("hooks"), &name, script);
    place.config.hooks.push(Hook {
        point,
        name,
        action: HookAction::Command(vec![path.to_string_lossy().into_owned()]),
        matcher: Some("terminal".to_owned()),
        timeout: Duration::from_secs(5),
    });
}

/// What an observer noted, once it has noted as much.
pub async fn noted(path: &std::path::Path, count: usize) -> Vec<Value> {
    for _ in 0..400 {
        if count <= lines(path) {
            let text = std::fs::read_to_string(path).unwrap();
            return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the hook was not told: {}", lines(path));
}

#[test]
fn a_hook_refuses_a_call_changes_another_and_has_a_person_decide_a_third() {
    on_both(async |mut place| {
        let judge = r#"in=$(cat); case $in in
            *forbidden*) echo '{"action": "block", "message": "not here"}';;
            *risky*) echo '{"decision": "approve", "message": "looks risky"}';;
            esac"#;
        hook(&mut place, HookPoint::PreToolCall, judge);
        let change =
            r#"in=$(cat); case $in in *rename*) echo '{"arguments": {"command": "echo ran >> renamed"}}';; esac"#;
        hook(&mut place, HookPoint::ToolRequest, change);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &no_settings()).await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        let refused = results(&mut talk, &mark("forbidden")).await;
        assert_eq!(refused, [r#"{"error":"not here"}"#]);
        results(&mut talk, &mark("rename")).await;
        results(&mut talk, &mark("plain")).await;
        assert_eq!(
            ["forbidden", "rename", "renamed", "plain"].map(|name| lines(&workspace.join(name))),
            [0, 0, 1, 1]
        );
        let asked = talk.ask(&mark("risky")).await;
        assert_eq!(asked["findings"][0]["description"], "looks risky");
        assert_eq!(lines(&workspace.join("risky")), 0);
        let path = format!("/v1/approvals/{}/decision", asked["id"].as_str().unwrap());
        client.post(&path, &json!({"choice": Choice::Once})).await.expect(200);
        talk.events.until("turn.completed").await;
        assert_eq!(lines(&workspace.join("risky")), 1);
        web.stop().await;
    });
}

#[test]
fn what_a_hook_puts_in_the_place_of_arguments_is_judged_again() {
    on_both(async |mut place| {
        let change = r#"cat > /dev/null; echo '{"arguments": {"command": "rm -rf /"}}'"#;
        hook(&mut place, HookPoint::ToolRequest, change);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &no_settings()).await;
        let refused = results(&mut talk, &terminal("echo hi")).await;
        assert!(refused[0].contains("never allowed"), "{refused:?}");
        web.stop().await;
    });
}

#[test]
fn a_hook_that_fails_refuses_the_call_it_guards_and_disturbs_nothing_else() {
    on_both(async |mut place| {
        hook(&mut place, HookPoint::PreToolCall, "exit 3");
        hook(&mut place, HookPoint::PostToolCall, "exit 3");
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &no_settings()).await;
        let refused = results(&mut talk, &mark("a")).await;
        assert!(refused[0].contains("failed, so the call was refused"), "{refused:?}");
        assert_eq!(lines(&web.server.workspace(talk.session.parse().unwrap()).join("a")), 0);
        web.stop().await;
    });
}

#[test]
fn observers_are_told_of_calls_sessions_and_approvals_with_their_ids() {
    on_both(async |mut place| {
        let notes = place.directory.join("notes");
        let note = format!("cat >> '{0}'; echo >> '{0}'", notes.display());
        for point in [
            HookPoint::PostToolCall,
            HookPoint::OnSessionStart,
            HookPoint::OnSessionEnd,
            HookPoint::PreApproval,
            HookPoint::PostApproval,
        ] {
            hook(&mut place, point, &note);
        }
        hook(
            &mut place,
            HookPoint::TransformToolResult,
            r#"cat > /dev/null; echo '{"result": "changed"}'"#,
        );
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &no_settings()).await;
        let begun = noted(&notes, 1).await;
        assert_eq!(
            (&begun[0]["hook_event_name"], &begun[0]["session_id"]),
            (&json!("on_session_start"), &json!(talk.session))
        );
        let asked = talk.ask(&guarded("x")).await;
        let path = format!("/v1/approvals/{}/decision", asked["id"].as_str().unwrap());
        client.post(&path, &json!({"choice": "once"})).await.expect(200);
        talk.events.until("turn.completed").await;
        let all = noted(&notes, 4).await;
        let of = |point: &str| {
            all.iter()
                .find(|note| note["hook_event_name"] == point)
                .unwrap()
                .clone()
        };
        assert_eq!(of("pre_approval")["approval"]["id"], asked["id"]);
        assert_eq!(
            (&of("post_approval")["approval_id"], &of("post_approval")["status"]),
            (&asked["id"], &json!("allowed"))
        );
        let call = of("post_tool_call");
        assert_eq!(
            (&call["tool_name"], &call["status"]),
            (&json!("terminal"), &json!("ok"))
        );
        assert_eq!(call["tool_call_id"], asked["tool_call_id"]);
        for id in ["tenant_id", "turn_id", "api_request_id"] {
            assert!(call[id].is_string(), "{id}: {call}");
        }
        let messages = client.get(&talk.path("/messages")).await.expect(200);
        assert_eq!(messages["data"][2]["content"][0]["text"], "changed");
        client.delete(&talk.path("")).await.expect(204);
        let all = noted(&notes, 5).await;
        assert_eq!(all[4]["hook_event_name"], "on_session_end");
        web.stop().await;
    });
}

#[test]
fn of_a_call_that_a_crash_interrupted_observers_hear_once_and_from_the_successor() {
    on_both(async |mut place| {
        let notes = place.directory.join("notes");
        let note = format!("cat >> '{0}'; echo >> '{0}'", notes.display());
        hook(&mut place, HookPoint::PostToolCall, &note);
        let dead = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&dead);
        let dies = probe(move |_| match seen.load(Ordering::SeqCst) {
            true => Fate::FailBefore,
            false => Fate::Go,
        });
        let web = place.serve_probed(dies).await;
        let mut talk = Talk::new(&web, &web.owner().await, &no_settings()).await;
        let session = talk.session.clone();
        results(&mut talk, &mark("whole")).await;
        let turn = talk.say(&terminal("sleep 300")).await;
        while talk.events.until("tool_call.started").await.data["turn_id"] != turn.as_str() {}
        noted(&notes, 1).await;
        dead.store(true, Ordering::SeqCst);
        web.crash().await;
        let web = place.serve().await;
        let talk = Talk::of(&web, &web.owner().await, &session).await;
        assert_eq!(
            ended(&talk, &talk.path(&format!("/turns/{turn}"))).await["status"],
            "completed"
        );
        let all = noted(&notes, 2).await;
        let told: Vec<(&Value, &Value)> = all.iter().map(|note| (&note["status"], &note["turn_id"])).collect();
        assert_eq!((told[0].0, told[1]), (&json!("ok"), (&json!("unknown"), &json!(turn))));
        web.stop().await;
        assert_eq!(lines(&notes), 2);
    });
}
