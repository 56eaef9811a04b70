//! Sessions over HTTP.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::Answer;
use crate::harness::{Place, on_both};

#[test]
fn a_session_is_made_read_changed_and_deleted() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let body =
            json!({"title": "t", "external_id": "chat/1", "metadata": {"a": [1, null]}, "instructions": "be brief"});
        let made = web.post("/v1/sessions", body.clone()).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let path = made.header("location");
        assert_eq!(path, format!("/v1/sessions/{}", made.body["id"].as_str().unwrap()));
        assert_eq!(made.body["preset"], "hermes-api-server");
        assert_eq!(made.body["user_id"], "default");
        assert_eq!(made.body["metadata"], body["metadata"]);
        assert_eq!(web.get(&path).await.body, made.body);
        web.post("/v1/sessions", json!({"external_id": "chat/1"}))
            .await
            .is_problem(409, "external_id_taken");

        let patch = json!({"title": null, "metadata": {"b": 2}});
        let changed = Answer::of(web.request(Method::PATCH, &path).json(&patch).send().await.unwrap()).await;
        assert_eq!(changed.status, 200, "{}", changed.body);
        assert_eq!(
            (&changed.body["title"], &changed.body["metadata"]),
            (&Value::Null, &json!({"b": 2}))
        );
        assert_eq!(changed.body["instructions"], "be brief");
        for wrong in [
            json!({"preset": null}),
            json!({"preset": "nope"}),
            json!({"status": "idle"}),
        ] {
            let refused = web.request(Method::PATCH, &path).json(&wrong).send().await.unwrap();
            Answer::of(refused).await.is_problem(400, "invalid_request");
        }

        let found = web.get("/v1/sessions?external_id=chat%2F1").await;
        assert_eq!(found.body["data"][0]["id"], made.body["id"]);
        let gone = web.delete(&path).await;
        assert_eq!((gone.status, &gone.body), (204, &Value::Null));
        web.get(&path).await.is_problem(404, "not_found");
        web.delete(&path).await.is_problem(404, "not_found");
        web.stop().await;
    });
}

#[tokio::test]
async fn sessions_are_listed_newest_first_in_pages() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(web.session().await);
    }
    made.reverse();
    let mut seen = Vec::new();
    let mut path = "/v1/sessions?limit=2".to_owned();
    loop {
        let page = web.get(&path).await.body;
        let ids = page["data"].as_array().unwrap().iter();
        seen.extend(ids.map(|session| format!("/v1/sessions/{}", session["id"].as_str().unwrap())));
        let Some(next) = page["next_cursor"].as_str() else {
            assert_eq!(page["has_more"], false);
            break;
        };
        assert_eq!(page["has_more"], true);
        path = format!("/v1/sessions?limit=2&after={next}");
    }
    assert_eq!(seen, made);
    web.get("/v1/sessions?after=nonsense")
        .await
        .is_problem(400, "invalid_cursor");
    let refused = web.get("/v1/sessions?limit=201").await;
    refused.is_problem(400, "invalid_request");
    assert_eq!(refused.body["errors"][0]["pointer"], "limit");
    web.stop().await;
}

#[tokio::test]
async fn messages_and_events_are_read_on_from_where_a_page_ended() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let session = web.session().await;
    let say = async |text: &str| {
        let done = web
            .post(&format!("{session}/turns?wait=20"), json!({"input": text}))
            .await;
        assert_eq!(done.status, 200, "{}", done.body);
    };
    say("/say one").await;
    for what in ["messages", "events"] {
        let whole = web.get(&format!("{session}/{what}")).await.body;
        assert_eq!(whole["has_more"], false, "{what}");
        let first = web.get(&format!("{session}/{what}?limit=1")).await.body;
        assert_eq!(
            (&first["has_more"], &first["data"][0]),
            (&json!(true), &whole["data"][0])
        );
        let next = first["next_cursor"].as_str().unwrap();
        let second = web.get(&format!("{session}/{what}?limit=1&after={next}")).await.body;
        assert_eq!(second["data"][0], whole["data"][1], "{what}");
        let end = whole["next_cursor"].as_str().unwrap();
        let nothing = web.get(&format!("{session}/{what}?after={end}")).await.body;
        assert_eq!((&nothing["data"], &nothing["next_cursor"]), (&json!([]), &json!(end)));
        web.get(&format!("{session}/{what}?after=x.y"))
            .await
            .is_problem(400, "invalid_cursor");
    }
    let end = web.get(&format!("{session}/messages")).await.body["next_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    say("/say two").await;
    let later = web.get(&format!("{session}/messages?after={end}")).await.body;
    let roles: Vec<&str> = later["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant"]);
    web.stop().await;
}
