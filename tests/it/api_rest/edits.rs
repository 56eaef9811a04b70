//! Arguments edited in an answer, over HTTP.

use serde_json::{Value, json};

use super::{Talk, decision_of};
use crate::harness::http::Web;
use crate::harness::script::guarded;
use crate::harness::{lines, on_both};

fn edited(command: &str) -> Value {
    json!({"choice": "once", "arguments": {"command": command}})
}

fn marks(web: &Web, session: &str, file: &str) -> usize {
    lines(&web.server.workspace(session.parse().unwrap()).join(file))
}

#[test]
fn an_edited_command_runs_in_place_of_the_asked_one_and_everybody_sees_which() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let asked = talk.ask(&format!("{}\n/then\n/say done", guarded("asked"))).await;
        let command = "rm -rf also-never-there && echo ran >> edited";
        let decided = owner.post(&decision_of(&asked), &edited(command)).await.expect(200);
        assert_eq!(
            (&decided["status"], &decided["decision"]["edited"]),
            (&json!("allowed"), &json!(true))
        );
        assert_eq!(
            (&decided["arguments"], &decided["digest"]),
            (&asked["arguments"], &asked["digest"])
        );
        let started = talk.events.until("tool_call.started").await;
        assert_eq!(
            started.data["data"]["tool_call"]["arguments"],
            json!({"command": command})
        );
        talk.events.until("turn.completed").await;
        assert_eq!(
            (
                marks(&web, &talk.session, "asked"),
                marks(&web, &talk.session, "edited")
            ),
            (0, 1)
        );
        let messages = owner.get(&talk.path("/messages")).await.expect(200);
        assert_eq!(
            messages["data"][1]["tool_calls"][0]["arguments"],
            json!({"command": command})
        );
        let told = messages["data"][2]["content"][0]["text"].as_str().unwrap();
        let note: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
        assert_eq!(note["arguments"], json!({"command": command}));
        // The same again is no error, another is.
        assert_eq!(
            owner.post(&decision_of(&asked), &edited(command)).await.expect(200),
            decided
        );
        for other in [edited("echo other"), json!({"choice": "once"})] {
            owner
                .post(&decision_of(&asked), &other)
                .await
                .problem(409, "approval_resolved");
        }
        web.stop().await;
    });
}

#[test]
fn an_edit_that_may_not_run_or_does_not_fit_leaves_the_approval_pending() {
    on_both(async |mut place| {
        place.config.approvals.deny = vec!["*forbidden*".to_owned()];
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let asked = talk.ask(&guarded("a")).await;
        for command in ["rm -rf /", "echo forbidden"] {
            let answer = owner.post(&decision_of(&asked), &edited(command)).await;
            answer.problem(422, "edit_not_allowed");
        }
        for (arguments, pointer) in [
            (json!({}), "/arguments/command"),
            (json!({"command": "ls", "timeout": "soon"}), "/arguments/timeout"),
            (json!({"command": ["ls"]}), "/arguments/command"),
        ] {
            let answer = json!({"choice": "once", "arguments": arguments});
            let problem = owner
                .post(&decision_of(&asked), &answer)
                .await
                .problem(422, "edit_invalid");
            assert_eq!(problem["errors"][0]["pointer"], pointer);
        }
        for wrong in [
            json!({"choice": "session", "arguments": {"command": "ls"}}),
            json!({"choice": "deny", "arguments": {"command": "ls"}}),
            json!({"choice": "once", "arguments": ["ls"]}),
        ] {
            owner
                .post(&decision_of(&asked), &wrong)
                .await
                .problem(400, "invalid_request");
        }
        let path = format!("/v1/approvals/{}", asked["id"].as_str().unwrap());
        assert_eq!(owner.get(&path).await.expect(200), asked);
        owner
            .post(&decision_of(&asked), &edited("echo ran >> b"))
            .await
            .expect(200);
        talk.events.until("turn.completed").await;
        assert_eq!(
            (marks(&web, &talk.session, "a"), marks(&web, &talk.session, "b")),
            (0, 1)
        );
        web.stop().await;
    });
}

#[test]
fn an_edit_outlives_the_server_that_took_it() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        talk.say(&format!("{}\n{}", guarded("first"), guarded("second"))).await;
        let asked = talk.asked().await;
        // The second waits for the first, parked, with its edit.
        owner
            .post(&decision_of(&asked[1]), &edited("echo ran >> edited"))
            .await
            .expect(200);
        web.stop().await;
        let web = place.serve().await;
        let owner = web.owner().await;
        owner
            .post(&decision_of(&asked[0]), &json!({"choice": "once"}))
            .await
            .expect(200);
        let mut events = owner.stream(&web, &talk.path("/stream")).await;
        events.until("turn.completed").await;
        let made = ["first", "second", "edited"].map(|file| marks(&web, &talk.session, file));
        assert_eq!(made, [1, 0, 1]);
        web.stop().await;
    });
}
