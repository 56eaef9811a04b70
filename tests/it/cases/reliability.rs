//! Field cases about what must hold whatever the model or a neighbour does.

use serde_json::json;

use super::{count, ended, events, held, let_go, messages, reached, results, talk};
use crate::harness::on_both;

/// The other half of the case, a repeated request with its key, needs the
/// `Idempotency-Key` header.
#[test]
fn fc_065_to_stop_a_finished_turn_changes_nothing() {
    on_both(async |mut place| {
        place.config.limits.server.executing_turns = Some(1);
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let turn = talk.path(&format!("/turns/{}", talk.say("/say ok").await));
        let done = ended(&talk, &turn).await;
        assert_eq!(done["status"], "completed");
        let events_before = events(&talk).await;
        let stopped = talk
            .client
            .post(&format!("{turn}/cancel"), &json!({}))
            .await
            .expect(200);
        assert_eq!(stopped, done);
        assert_eq!(talk.client.get(&turn).await.expect(200), done);
        assert_eq!(events(&talk).await, events_before);
        web.stop().await;
    });
}

#[test]
fn fc_068_a_call_that_cannot_be_made_is_answered_and_the_turn_goes_on() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let script = "/tool no_such_tool {\"x\": 1}\n/then\n/tool terminal {\"cmd\": 5}\n/then\n/say recovered";
        let turn = talk.path(&format!("/turns/{}", talk.say(script).await));
        assert_eq!(ended(&talk, &turn).await["status"], "completed");
        let messages = messages(&talk).await;
        let told = results(&messages);
        assert_eq!(told.len(), 2);
        assert!(
            told[0].contains("no_such_tool") && told[0].contains("error"),
            "{told:?}"
        );
        assert!(told[1].contains("command") && told[1].contains("error"), "{told:?}");
        assert_eq!(super::text(messages.last().unwrap()), "recovered");

        // Such calls do not make a turn deaf for being stopped.
        let script = format!("/tool no_such_tool {{}}\n/then\n{}", held("true"));
        let turn = talk.path(&format!("/turns/{}", talk.say(&script).await));
        polled_call(&talk).await;
        talk.client
            .post(&format!("{turn}/cancel"), &json!({}))
            .await
            .expect(202);
        assert_eq!(
            reached(&talk, &turn, "cancelled").await["stop_reason"],
            "cancelled_by_user"
        );
        web.stop().await;
    });
}

/// Waits until a call of the session runs.
async fn polled_call(talk: &crate::api_rest::Talk) {
    let started = async {
        while count(&events(talk).await, "tool_call.started") == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::harness::PATIENCE, started)
        .await
        .expect("a call starts");
}

/// Beside it on this machine, and on Postgres beside it in the same store.
#[test]
fn fc_086_a_server_that_starts_leaves_the_commands_of_another_alone() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = talk(&web, json!({})).await;
        let turn = talk.path(&format!("/turns/{}", talk.say(&held("echo alive")).await));
        talk.events.until("tool_call.started").await;

        let mut second = crate::harness::Place::sqlite();
        if place.is_postgres() {
            second.config.store.url = place.config.store.url.clone();
        }
        let other = second.serve().await;
        let theirs = super::talk(&other, json!({})).await;
        theirs
            .client
            .post(&theirs.path("/turns?wait=20"), &json!({"input": "/say here too"}))
            .await
            .expect(200);
        other.stop().await;

        assert_eq!(talk.client.get(&turn).await.expect(200)["status"], "running");
        let_go(&web, &talk.session);
        assert_eq!(ended(&talk, &turn).await["status"], "completed");
        assert!(results(&messages(&talk).await)[0].contains("alive"));
        assert_eq!(count(&events(&talk).await, "turn.resumed"), 0);
        web.stop().await;
    });
}
