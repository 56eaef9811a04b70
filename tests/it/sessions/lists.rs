//! Lists of sessions: filters, the archive, and what waits for a person.

use serde_json::{Value, json};

use super::{list, say, session, text};
use crate::harness::client::Client;
use crate::harness::http::{Answer, KEY};
use crate::harness::script::{guarded, mark};
use crate::harness::{Place, on_both};

async fn paths(client: &Client, query: &str) -> Vec<String> {
    let found = list(client, &format!("/v1/sessions?{query}")).await;
    let path = |session: &Value| format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    found.iter().map(path).collect()
}

#[test]
fn sessions_are_found_by_entries_of_their_metadata() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut made = Vec::new();
        for metadata in [
            json!({"env": "prod", "n": 5, "on": true, "키": "값"}),
            json!({"env": "prod", "n": "5", "on": "1", "a.b": "x", "deep": {"env": "prod"}}),
            json!({"env": "prod2", "n": 5.5, "on": null, "q\"']": "%"}),
        ] {
            made.push(session(&owner, &json!({ "metadata": metadata })).await);
        }
        let pick = |places: &[usize]| places.iter().map(|place| made[*place].clone()).collect::<Vec<_>>();
        for (query, expected) in [
            ("metadata.env=prod", pick(&[1, 0])),
            ("metadata[env]=prod2", pick(&[2])),
            ("metadata%5Benv%5D=prod&metadata.n=5", pick(&[1, 0])),
            ("metadata.n=5.5", pick(&[2])),
            ("metadata.on=true", pick(&[0])),
            ("metadata.on=1", pick(&[1])),
            ("metadata.on=null", pick(&[])),
            ("metadata.a.b=x", pick(&[1])),
            ("metadata.%ED%82%A4=%EA%B0%92", pick(&[0])),
            ("metadata.q%22'%5D=%25", pick(&[2])),
            ("metadata.env=%25", pick(&[])),
            ("metadata.deep=prod", pick(&[])),
            ("metadata.env=prod&status=running", pick(&[])),
            ("metadata.env=prod&status=idle", pick(&[1, 0])),
        ] {
            assert_eq!(paths(&owner, query).await, expected, "{query}");
        }
        // A cursor goes with its entries.
        let first = owner.get("/v1/sessions?metadata.env=prod&limit=1").await.expect(200);
        let after = text(&first["next_cursor"]);
        assert_eq!(
            paths(&owner, &format!("metadata[env]=prod&after={after}")).await,
            pick(&[0])
        );
        for query in [
            "",
            "metadata.env=prod2&",
            "metadata.env=prod&metadata.n=5&",
            "metadata.env=prod&status=idle&",
        ] {
            let refused = owner.get(&format!("/v1/sessions?{query}after={after}")).await;
            refused.problem(400, "invalid_cursor");
        }
        for query in ["metadata=x", "metadata.=x", "metadata.a=1&metadata[a]=2", "metdata.a=1"] {
            let refused = owner.get(&format!("/v1/sessions?{query}")).await;
            refused.problem(400, "invalid_request");
        }
        web.stop().await;
    });
}

#[test]
fn an_archived_session_is_left_out_and_works() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let kept = session(&owner, &json!({})).await;
        let away = session(&owner, &json!({"external_id": "chat", "title": "t"})).await;
        let first = owner.post(&format!("{away}/archive"), &json!({})).await.expect(200);
        assert!(first["archived_at"].is_string(), "{first}");
        // Twice is once.
        let again = owner.post(&format!("{away}/archive"), &json!({})).await.expect(200);
        assert_eq!(
            (&again["archived_at"], &again["head_seq"]),
            (&first["archived_at"], &first["head_seq"])
        );
        for (query, expected) in [
            ("", vec![&kept]),
            ("archived=false", vec![&kept]),
            ("archived=true", vec![&away]),
            ("archived=all", vec![&away, &kept]),
            ("external_id=chat", vec![&away]),
            ("external_id=chat&archived=false", vec![]),
        ] {
            assert_eq!(
                paths(&owner, query).await.iter().collect::<Vec<_>>(),
                expected,
                "{query}"
            );
        }
        say(&owner, &away, "/say still here").await;
        let back = owner.post(&format!("{away}/unarchive"), &json!({})).await.expect(200);
        assert_eq!(back["archived_at"], Value::Null);
        assert_eq!(paths(&owner, "").await, [away.clone(), kept]);
        let events = list(&owner, &format!("{away}/events?limit=200")).await;
        let told: Vec<(&str, bool)> = events
            .iter()
            .filter(|event| ["session.archived", "session.updated"].contains(&event["type"].as_str().unwrap()))
            .map(|event| {
                (
                    event["type"].as_str().unwrap(),
                    event["data"]["session"]["archived_at"].is_string(),
                )
            })
            .collect();
        assert_eq!(told, [("session.archived", true), ("session.updated", false)]);
        owner
            .get("/v1/sessions?archived=maybe")
            .await
            .problem(400, "invalid_request");
        web.stop().await;
    });
}

#[test]
fn archiving_again_under_its_key_is_answered_as_before() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        let archive = async || {
            let request = owner.request(reqwest::Method::POST, &format!("{path}/archive"));
            Answer::of(request.header("Idempotency-Key", "k").send().await.unwrap()).await
        };
        let first = archive().await;
        owner.post(&format!("{path}/unarchive"), &json!({})).await.expect(200);
        let second = archive().await;
        assert_eq!(second.header("idempotency-replayed"), "true");
        assert_eq!(second.body, first.body);
        assert_eq!(owner.get(&path).await.expect(200)["archived_at"], Value::Null);
        web.stop().await;
    });
}

/// The session as it is read, as the list shows it.
async fn actions(client: &Client, path: &str) -> Vec<String> {
    let seen = client.get(path).await.expect(200);
    let found = list(client, "/v1/sessions?archived=all").await;
    let listed = found.iter().find(|session| session["id"] == seen["id"]).unwrap();
    assert_eq!(listed["required_actions"], seen["required_actions"]);
    let actions = seen["required_actions"].as_array().unwrap();
    assert_eq!(seen["status"] == "requires_action", !actions.is_empty(), "{seen}");
    for action in actions {
        let approval = client.get(action["href"].as_str().unwrap()).await.expect(200);
        assert_eq!(
            (
                &approval["id"],
                &approval["status"],
                &approval["turn_id"],
                &approval["title"]
            ),
            (&action["id"], &json!("pending"), &action["turn_id"], &action["summary"])
        );
    }
    actions.iter().map(|action| text(&action["id"])).collect()
}

#[test]
fn what_a_session_requires_is_true_at_every_moment() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.client(KEY);
        let path = session(&owner, &json!({})).await;
        assert_eq!(actions(&owner, &path).await, [""; 0]);
        let both = format!("{}\n{}", guarded("one"), guarded("two"));
        let waits = say(&owner, &path, &both).await;
        assert_eq!(waits["turn"]["status"], "waiting", "{waits}");
        let mut asked = actions(&owner, &path).await;
        assert_eq!(asked.len(), 2);
        // It survives the server.
        web.stop().await;
        let web = place.serve().await;
        let owner = web.client(KEY);
        assert_eq!(actions(&owner, &path).await, asked);
        // One of two is decided.
        let decided = asked.remove(0);
        let decision = format!("/v1/approvals/{decided}/decision");
        owner.post(&decision, &json!({"choice": "deny"})).await.expect(200);
        assert_eq!(actions(&owner, &path).await, asked);
        // The turn ends with the other open.
        let turn = text(&waits["turn"]["id"]);
        let cancel = format!("{path}/turns/{turn}/cancel");
        assert!(owner.post(&cancel, &json!({})).await.status < 300);
        assert_eq!(actions(&owner, &path).await, [""; 0]);
        let done = say(&owner, &path, &mark("log")).await;
        assert_eq!(done["turn"]["status"], "completed", "{done}");
        assert_eq!(actions(&owner, &path).await, [""; 0]);
        // The log told each state as it was.
        let events = list(&owner, &format!("{path}/events?limit=200")).await;
        let told: Vec<usize> = events
            .iter()
            .filter(|event| event["type"] == "session.status")
            .map(|event| event["data"]["session"]["required_actions"].as_array().unwrap().len())
            .collect();
        assert!(told.contains(&2) && told.last() == Some(&0), "{told:?}");
        web.stop().await;
    });
}
