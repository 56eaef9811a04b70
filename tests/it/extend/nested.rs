//! Hooks stand around the calls that programs make as around the model's own.

use std::time::Duration;

use hermes_server::config::HookPoint;
use serde_json::{Value, json};

use super::hooks::{hook, noted};
use super::{no_settings, results};
use crate::api_rest::{Talk, decision_of};
use crate::harness::{lines, on_both};

fn program(code: &str) -> String {
    format!("/tool execute_code {}", json!({"code": code}))
}

const JUDGE: &str = r#"in=$(cat); case $in in
    *forbidden*) echo '{"action": "block", "message": "not here"}';;
    *risky*) echo '{"decision": "approve", "message": "looks risky"}';;
    esac"#;
const RENAME: &str = r#"in=$(cat); case $in in
    *rename*) echo '{"arguments": {"command": "echo ran >> renamed"}, "reason": "so named here"}';;
    *erase*) echo '{"arguments": {"command": "rm -rf /"}}';;
    esac"#;

#[test]
fn a_programs_calls_are_refused_changed_and_told_of_like_the_models() {
    on_both(async |mut place| {
        let notes = place.directory.join("notes");
        hook(&mut place, HookPoint::ToolRequest, RENAME);
        hook(&mut place, HookPoint::PreToolCall, JUDGE);
        let note = format!("cat >> '{0}'; echo >> '{0}'", notes.display());
        hook(&mut place, HookPoint::PostToolCall, &note);
        let changed = r#"cat > /dev/null; echo '{"result": "{\"output\": \"changed\"}"}'"#;
        hook(&mut place, HookPoint::TransformToolResult, changed);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &json!({"approvals": {"mode": "off"}})).await;
        let code = "from hermes_tools import terminal\n\
            for name in ['forbidden', 'rename', 'plain', 'erase']:\n    print(terminal(f'echo ran >> {name}'))";
        let told = results(&mut talk, &program(code)).await;
        let told: Value = serde_json::from_str(&told[0]).unwrap();
        let said: Vec<&str> = told["output"].as_str().unwrap().lines().collect();
        assert_eq!(said.len(), 4, "{told}");
        assert_eq!(said[0], "{'error': 'not here'}");
        assert_eq!((said[1], said[2]), ("{'output': 'changed'}", "{'output': 'changed'}"));
        assert!(
            said[3].contains("never allowed"),
            "what a hook puts there is judged: {told}"
        );
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        assert_eq!(
            ["forbidden", "rename", "renamed", "plain"].map(|name| lines(&workspace.join(name))),
            [0, 0, 1, 1]
        );
        let all = noted(&notes, 4).await;
        let statuses: Vec<&Value> = all.iter().map(|told| &told["status"]).collect();
        assert_eq!(statuses, ["blocked", "ok", "ok", "blocked"]);
        let messages = client.get(&talk.path("/messages")).await.expect(200);
        let parent = &messages["data"][1]["tool_calls"][0]["id"];
        assert!(all.iter().all(|told| told["parent_tool_call_id"] == *parent), "{all:?}");
        assert_eq!(
            (&all[0]["error_type"], &all[0]["error_message"]),
            (&json!("plugin_block"), &json!("not here"))
        );
        let trace = &all[0]["middleware_trace"][0];
        assert_eq!(
            (&trace["source"], &trace["action"]),
            (&json!("pre_tool_call"), &json!("blocked"))
        );
        let trace = &all[1]["middleware_trace"][0];
        assert_eq!(
            (&trace["source"], &trace["action"], &trace["reason"]),
            (&json!("tool_request"), &json!("replaced"), &json!("so named here"))
        );
        assert_eq!(all[1]["args"], json!({"command": "echo ran >> renamed"}));
        assert_eq!(all[2]["middleware_trace"], json!([]));
        assert!(all[2]["result"].as_str().unwrap().contains("changed"), "{}", all[2]);
        web.stop().await;
    });
}

#[test]
fn a_person_decides_on_a_programs_call_where_a_hook_wants_it() {
    on_both(async |mut place| {
        place.config.code_execution.timeout = Duration::from_secs(20);
        hook(&mut place, HookPoint::PreToolCall, JUDGE);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &no_settings()).await;
        let code = "from hermes_tools import terminal\n\
            for _ in range(2): print(terminal('echo ran >> risky').get('status', 'ran'))";
        let asked = talk.ask(&program(code)).await;
        client
            .post(&decision_of(&asked), &json!({"choice": "once"}))
            .await
            .expect(200);
        for choice in ["once", "deny"] {
            let frame = talk.events.until("approval.requested").await;
            let asked = frame.data["data"]["approval"].clone();
            assert_eq!(
                (&asked["tool"], &asked["findings"][0]["description"]),
                (&json!("terminal"), &json!("looks risky"))
            );
            client
                .post(&decision_of(&asked), &json!({"choice": choice}))
                .await
                .expect(200);
        }
        talk.events.until("turn.completed").await;
        let messages = client.get(&talk.path("/messages")).await.expect(200);
        let told: Value = serde_json::from_str(messages["data"][2]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(told["output"], "ran\ndenied\n", "{told}");
        assert_eq!(
            lines(&web.server.workspace(talk.session.parse().unwrap()).join("risky")),
            1
        );
        web.stop().await;
    });
}

#[test]
fn a_program_that_ends_while_a_hook_is_asked_makes_no_call() {
    on_both(async |mut place| {
        place.config.code_execution.timeout = Duration::from_secs(1);
        hook(&mut place, HookPoint::PreToolCall, "cat > /dev/null; sleep 4");
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &json!({"approvals": {"mode": "off"}})).await;
        let code = "from hermes_tools import terminal\nterminal('echo ran >> late')";
        let told = results(&mut talk, &program(code)).await;
        let told: Value = serde_json::from_str(&told[0]).unwrap();
        assert_eq!(told["status"], "timeout", "{told}");
        let log = client.get(&talk.path("/events?limit=200")).await.expect(200);
        let proposed = log["data"].as_array().unwrap().iter();
        let proposed = proposed.filter(|event| event["type"] == "tool_call.proposed");
        assert_eq!(proposed.count(), 1, "the program alone");
        assert_eq!(
            lines(&web.server.workspace(talk.session.parse().unwrap()).join("late")),
            0
        );
        web.stop().await;
    });
}
