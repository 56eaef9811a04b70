//! Sessions that go on from a point of another.

use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use super::{list, messages, say, session, text};
use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::script::{guarded, mark};
use crate::harness::{Place, on_both};

async fn fork(client: &Client, session: &str, body: &Value) -> (String, Value) {
    let made = client.post(&format!("{session}/fork"), body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    (made.header("location"), made.body)
}

/// What was said, without ids and times.
fn said(messages: &[Value]) -> Vec<Value> {
    let plain = |message: &Value| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls: Vec<Value> = calls
            .map(|call| json!([call["name"], call["arguments"], call["status"]]))
            .collect();
        json!([message["role"], message["content"], calls])
    };
    messages.iter().map(plain).collect()
}

fn ids(values: &[Value]) -> Vec<String> {
    values.iter().map(|value| text(&value["id"])).collect()
}

#[test]
fn a_fork_goes_on_from_a_point_and_the_other_stays() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let new = json!({"title": "t", "external_id": "x", "instructions": "be brief", "temperature": 0.5,
            "metadata": {"a": 1}});
        let path = session(&owner, &new).await;
        say(&owner, &path, &format!("{}\n/then\n/say one", mark("log"))).await;
        let second = say(&owner, &path, "/say two").await;
        say(&owner, &path, "/say three").await;
        let all = messages(&owner, &path).await;
        let before = owner.get(&path).await.expect(200);
        // user, assistant with call, result, assistant, and two of two.
        assert_eq!(all.len(), 8);

        let (whole, body) = fork(&owner, &path, &json!({})).await;
        assert_eq!(said(&messages(&owner, &whole).await), said(&all));
        assert_eq!(
            (
                &body["title"],
                &body["external_id"],
                &body["instructions"],
                &body["temperature"],
                &body["metadata"]
            ),
            (
                &json!("t"),
                &Value::Null,
                &json!("be brief"),
                &json!(0.5),
                &json!({"a": 1})
            )
        );
        assert_eq!(
            body["parent"],
            json!({"session_id": before["id"], "message_id": all[7]["id"]})
        );
        assert_eq!((&body["status"], &body["usage"]["steps"]), (&json!("idle"), &json!(0)));

        let point = json!({"after_turn": second["turn"]["id"], "title": "u", "metadata": {}});
        let (upto, body) = fork(&owner, &path, &point).await;
        assert_eq!(said(&messages(&owner, &upto).await), said(&all[..6]));
        assert_eq!((&body["title"], &body["metadata"]), (&json!("u"), &json!({})));
        let (cut, _) = fork(&owner, &path, &json!({"after_message": all[2]["id"]})).await;
        assert_eq!(said(&messages(&owner, &cut).await), said(&all[..3]));
        let turns = list(&owner, &format!("{cut}/turns")).await;
        assert_eq!((turns.len(), &turns[0]["status"]), (1, &json!("interrupted")));

        // Ids are its own, and each message's turn is one of the fork.
        let theirs = messages(&owner, &whole).await;
        assert!(ids(&theirs).iter().all(|id| !ids(&all).contains(id)));
        let turns = ids(&list(&owner, &format!("{whole}/turns")).await);
        assert!(theirs.iter().all(|message| turns.contains(&text(&message["turn_id"]))));
        assert_eq!(turns.len(), 3);
        // It goes on, and neither knows of the other.
        say(&owner, &upto, "/say four").await;
        assert_eq!(messages(&owner, &upto).await.len(), 8);
        assert_eq!(owner.get(&path).await.expect(200), before);
        assert_eq!(messages(&owner, &path).await, all);
        // A fork outlives what it was forked from.
        owner.delete(&path).await;
        assert_eq!(said(&messages(&owner, &whole).await), said(&all));
        web.stop().await;
    });
}

/// Whoever follows the fork from its first event sees the past as if it had been
/// there.
#[test]
fn the_log_of_a_fork_tells_the_past() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        say(&owner, &path, &format!("{}\n/then\n/say one", mark("log"))).await;
        say(&owner, &path, "/say two").await;
        let (forked, body) = fork(&owner, &path, &json!({})).await;
        let events = list(&owner, &format!("{forked}/events?limit=200")).await;
        let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            [
                "session.created",
                "turn.started",
                "message.completed",
                "message.completed",
                "tool_call.completed",
                "message.completed",
                "turn.completed",
                "turn.started",
                "message.completed",
                "message.completed",
                "turn.completed",
            ]
        );
        let numbers: Vec<i64> = events.iter().map(|event| event["seq"].as_i64().unwrap()).collect();
        assert_eq!(numbers, (1..=11).collect::<Vec<_>>());
        assert_eq!(body["head_seq"], 11);
        assert_eq!(events[4]["data"]["tool_call"]["status"], "succeeded");
        for turn in ids(&list(&owner, &format!("{forked}/turns")).await) {
            let stream = owner.stream(&web, &format!("{forked}/turns/{turn}/stream")).await;
            let frames = stream.rest().await;
            assert_eq!(frames.last().unwrap().event, "turn.completed");
            let end = frames.last().unwrap().id.clone().unwrap();
            let over = owner.get(&format!("{forked}/turns/{turn}/stream?after={end}")).await;
            assert_eq!(over.status, 204, "{}", over.body);
        }
        web.stop().await;
    });
}

#[test]
fn a_fork_never_parts_a_call_from_its_result() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        say(&owner, &path, "/say one").await;
        say(
            &owner,
            &path,
            &format!("{}\n{}\n/then\n/say done", mark("a"), mark("b")),
        )
        .await;
        let all = messages(&owner, &path).await;
        // user, assistant; user, two calls, result, result, assistant.
        for (place, next) in [(3, 5), (4, 5)] {
            let refused = owner
                .post(&format!("{path}/fork"), &json!({"after_message": all[place]["id"]}))
                .await
                .problem(400, "invalid_request");
            assert_eq!(refused["errors"][0]["pointer"], "/after_message");
            assert!(
                refused["detail"]
                    .as_str()
                    .unwrap()
                    .contains(all[next]["id"].as_str().unwrap()),
                "{refused}"
            );
        }
        for place in [0, 1, 2, 5, 6] {
            let (forked, _) = fork(&owner, &path, &json!({"after_message": all[place]["id"]})).await;
            assert_eq!(said(&messages(&owner, &forked).await), said(&all[..=place]));
            say(&owner, &forked, "/say more").await;
        }
        let other = session(&owner, &json!({})).await;
        let foreign = text(&say(&owner, &other, "/say x").await["turn"]["id"]);
        for (body, pointer) in [
            (
                json!({"after_message": "msg_00000000000000000000000000"}),
                "/after_message",
            ),
            (json!({"after_turn": foreign}), "/after_turn"),
            (json!({"after_turn": "x"}), "/after_turn"),
            (
                json!({"after_message": all[0]["id"], "after_turn": foreign}),
                "/after_turn",
            ),
            (json!({"at": 1}), "/at"),
        ] {
            let refused = owner.post(&format!("{path}/fork"), &body).await;
            let problem = refused.problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
        }
        web.stop().await;
    });
}

#[test]
fn a_fork_of_a_busy_session_takes_what_is_over() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        say(&owner, &path, "/say one").await;
        let waits = say(&owner, &path, &guarded("log")).await;
        let turn = &waits["turn"]["id"];
        let answer = json!({"choice": "session"});
        let (forked, body) = fork(&owner, &path, &json!({})).await;
        assert_eq!(messages(&owner, &forked).await.len(), 2);
        assert_eq!(
            (&body["status"], &body["required_actions"]),
            (&json!("idle"), &json!([]))
        );
        let refused = owner.post(&format!("{path}/fork"), &json!({"after_turn": turn})).await;
        refused.problem(409, "session_busy");
        let all = messages(&owner, &path).await;
        let refused = owner
            .post(&format!("{path}/fork"), &json!({"after_message": all[3]["id"]}))
            .await;
        refused.problem(400, "invalid_request");
        // Grants of the session are not the fork's.
        let approval = text(&waits["approvals"][0]["id"]);
        owner
            .post(&format!("/v1/approvals/{approval}/decision"), &answer)
            .await
            .expect(200);
        let stream = format!("{path}/turns/{}/stream", turn.as_str().unwrap());
        owner.stream(&web, &stream).await.until("turn.completed").await;
        let free = say(&owner, &path, &guarded("log")).await;
        assert_eq!(free["turn"]["status"], "completed", "{free}");
        let (forked, _) = fork(&owner, &path, &json!({})).await;
        let asks = say(&owner, &forked, &guarded("log")).await;
        assert_eq!(asks["turn"]["status"], "waiting", "{asks}");
        // Nor are its files.
        let id = forked.rsplit('/').next().unwrap().parse().unwrap();
        assert!(!web.server.workspace(id).join("log").exists());
        web.stop().await;
    });
}

#[test]
fn a_fork_is_made_once_under_its_key_and_by_who_may() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({"approvals": {"mode": "off"}})).await;
        say(&owner, &path, "/say one").await;
        let forked = async |client: &Client| {
            let request = client.request(reqwest::Method::POST, &format!("{path}/fork"));
            let request = request
                .header("Idempotency-Key", "k")
                .json(&json!({"external_id": "f"}));
            Answer::of(request.send().await.unwrap()).await
        };
        let lesser = web.user("owner", &[Scope::SessionsWrite]).await;
        forked(&lesser).await.problem(403, "forbidden");
        let (one, two) = (forked(&owner).await, forked(&owner).await);
        assert_eq!((one.status, two.status), (201, 201), "{}", two.body);
        assert_eq!(
            (&one.body, two.header("idempotency-replayed").as_str()),
            (&two.body, "true")
        );
        assert_eq!(list(&owner, "/v1/sessions").await.len(), 2);
        let taken = owner.post(&format!("{path}/fork"), &json!({"external_id": "f"})).await;
        taken.problem(409, "external_id_taken");
        web.stop().await;
    });
}
