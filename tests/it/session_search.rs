//! Looking back into earlier sessions: what the model finds, how it goes on from
//! there, and what it can never reach.

use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use crate::api_rest::Talk;
use crate::cases::{ended, messages, results};
use crate::harness::client::{Client, NewKey};
use crate::harness::http::Web;
use crate::harness::on_both;

const TALKS: [Scope; 3] = [Scope::SessionsRead, Scope::SessionsWrite, Scope::TurnsWrite];

async fn titled(web: &Web, client: &Client, title: &str, said: &[&str]) -> Talk {
    let talk = Talk::new(web, client, &json!({"title": title})).await;
    for text in said {
        told(&talk, text).await;
    }
    talk
}

/// Runs one turn to its end and gives the results of the session's calls so far.
async fn told(talk: &Talk, text: &str) -> Vec<Value> {
    let turn = talk.path(&format!("/turns/{}", talk.say(text).await));
    assert_eq!(ended(talk, &turn).await["status"], "completed");
    let messages = messages(talk).await;
    let results = results(&messages);
    results.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// What a call in a session answers.
async fn looked(talk: &Talk, arguments: &Value) -> Value {
    told(talk, &format!("/tool session_search {arguments}"))
        .await
        .pop()
        .unwrap()
}

fn ids(found: &Value) -> Vec<&str> {
    let results = found["results"].as_array().unwrap();
    results
        .iter()
        .map(|result| result["session_id"].as_str().unwrap())
        .collect()
}

#[test]
fn words_are_found_in_other_sessions_of_the_user_only() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let ada = web.user("ada", &TALKS).await;
        let namesake = web
            .with_key(NewKey {
                tenant: web.tenant("elsewhere").await,
                user: "ada",
                scopes: &TALKS,
                tools: None,
            })
            .await;
        for client in [&web.user("bob", &TALKS).await, &namesake] {
            titled(&web, client, "theirs", &["the zebra is ours"]).await;
        }
        let old = titled(&web, &ada, "first", &["we deploy the zebra with docker", "thanks"]).await;
        let korean = titled(&web, &ada, "둘째", &["서울의 봄은 짧다"]).await;
        let here = titled(&web, &ada, "now", &["the zebra again"]).await;

        let found = looked(&here, &json!({"query": "zebra"})).await;
        assert_eq!(
            (ids(&found), &found["mode"]),
            (vec![old.session.as_str()], &json!("discover"))
        );
        let result = &found["results"][0];
        assert_eq!(
            (&result["matched_role"], &result["title"]),
            (&json!("user"), &json!("first"))
        );
        assert!(result["snippet"].as_str().unwrap().contains("zebra"), "{result}");
        let anchored: Vec<&Value> = result["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["anchor"] == true)
            .collect();
        assert_eq!(anchored.len(), 1);
        assert_eq!(anchored[0]["id"], result["match_message_id"]);

        for (query, expected) in [
            ("zebra NOT docker", vec![]),
            ("nothing OR 봄", vec![korean.session.as_str()]),
            ("dock*", vec![old.session.as_str()]),
            ("\"zebra deploy\"", vec![]),
            ("둘째", vec![korean.session.as_str()]),
        ] {
            assert_eq!(ids(&looked(&here, &json!({"query": query})).await), expected, "{query}");
        }
        let theirs = looked(&here, &json!({"query": "ours"})).await;
        assert_eq!(theirs["count"], 0, "{theirs}");
        web.stop().await;
    });
}

#[test]
fn a_session_is_read_in_part_and_the_rest_is_reached_from_a_message() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let ada = web.user("ada", &TALKS).await;
        let said: Vec<String> = (0..20).map(|number| format!("line {number}")).collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let old = titled(&web, &ada, "long", &said).await;
        let here = titled(&web, &ada, "now", &[]).await;

        let read = looked(&here, &json!({"session_id": old.session})).await;
        assert_eq!((&read["message_count"], &read["truncated"]), (&json!(40), &json!(true)));
        let shown = read["messages"].as_array().unwrap();
        assert_eq!(shown.len(), 30);
        assert_eq!(
            (&shown[0]["content"], &shown[28]["content"]),
            (&json!("line 0"), &json!("line 19"))
        );

        let around = json!({"session_id": old.session, "around_message_id": shown[19]["id"], "window": 2});
        let scrolled = looked(&here, &around).await;
        let shown: Vec<&str> = scrolled["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["role"] == "user")
            .map(|one| one["content"].as_str().unwrap())
            .collect();
        assert_eq!(shown, ["line 9", "line 10"]);
        assert_eq!(
            (&scrolled["messages_before"], &scrolled["messages_after"]),
            (&json!(17), &json!(18))
        );

        let browsed = looked(&here, &json!({})).await;
        assert_eq!(
            (ids(&browsed), &browsed["results"][0]["preview"]),
            (vec![old.session.as_str()], &json!("line 0"))
        );
        web.stop().await;
    });
}

#[test]
fn the_own_line_foreign_sessions_and_unclear_requests_are_refused() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (ada, bob) = (web.user("ada", &TALKS).await, web.user("bob", &TALKS).await);
        let here = titled(&web, &ada, "now", &["the zebra"]).await;
        let fork = ada.post(&here.path("/fork"), &json!({})).await.expect(201);
        let fork = Talk::of(&web, &ada, fork["id"].as_str().unwrap()).await;
        let theirs = titled(&web, &bob, "theirs", &["secret"]).await;
        let first = messages(&here).await[0]["id"].clone();

        assert_eq!(
            looked(&fork, &json!({"query": "zebra"})).await["count"],
            0,
            "a fork knows its past"
        );
        let own = json!({"session_id": here.session, "around_message_id": first});
        for (arguments, why) in [
            (own, "this session"),
            (json!({"session_id": theirs.session}), "no such session"),
            (json!({"session_id": "ses_7"}), "`ses_7`"),
            (json!({"query": "NOT x"}), "`query`"),
        ] {
            let refused = looked(&fork, &arguments).await;
            assert_eq!(refused["success"], false, "{refused}");
            assert!(refused["error"].as_str().unwrap().contains(why), "{refused}");
        }
        web.stop().await;
    });
}

#[test]
fn what_jobs_said_comes_behind_what_people_talked_about() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        titled(&web, &owner, "Walk", &["/say the harbour was quiet"]).await;
        let body = json!({"prompt": "/say harbour harbour harbour", "schedule": "every 1h", "name": "harbour"});
        let job = owner.post("/v1/jobs", &body).await.expect(201);
        let trigger = format!("/v1/jobs/{}/trigger", job["id"].as_str().unwrap());
        owner.post(&trigger, &json!({})).await.expect(200);
        crate::jobs::runs(&owner, &job, 1).await;
        let here = Talk::new(&web, &owner, &json!({})).await;
        let found = looked(&here, &json!({"query": "harbour"})).await;
        let sources: Vec<&str> = found["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["source"].as_str().unwrap())
            .collect();
        assert_eq!(sources, ["api", "cron"], "{found}");
        let first = looked(&here, &json!({"query": "harbour", "limit": 1})).await;
        assert_eq!(first["results"][0]["source"], "api");
        web.stop().await;
    });
}
