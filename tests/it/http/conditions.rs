//! Conditional requests: a read that is answered only if there is news, a change
//! that is made only to what its author saw.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::client::Client;
use crate::harness::http::{Answer, Web};
use crate::harness::script::guarded;
use crate::harness::{Place, on_both};

/// A request under one condition.
async fn under(
    client: &Client,
    (name, value): (&str, &str),
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Answer {
    let mut request = client.request(method, path).header(name, value);
    if let Some(body) = body {
        request = request.json(&body);
    }
    Answer::of(request.send().await.unwrap()).await
}

async fn patch_if(client: &Client, tag: &str, path: &str, body: Value) -> Answer {
    under(client, ("If-Match", tag), Method::PATCH, path, Some(body)).await
}

async fn delete_if(client: &Client, tag: &str, path: &str) -> Answer {
    under(client, ("If-Match", tag), Method::DELETE, path, None).await
}

async fn get_unless(client: &Client, tag: &str, path: &str) -> Answer {
    under(client, ("If-None-Match", tag), Method::GET, path, None).await
}

/// The refusal tells the present tag, in the header and in the body.
#[track_caller]
fn assert_failed(refused: &Answer, present: &str) {
    refused.is_problem(412, "precondition_failed");
    assert_eq!(refused.header("etag"), present);
    assert_eq!(refused.body["context"]["etag"], present);
}

async fn tag(client: &Client, path: &str) -> String {
    let read = client.get(path).await;
    let tag = read.header("etag");
    assert!(read.status == 200 && tag.starts_with('"') && tag.ends_with('"') && 2 < tag.len());
    tag
}

async fn session(client: &Client) -> Answer {
    let made = client.post("/v1/sessions", &json!({"title": "a"})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made
}

async fn run(client: &Client, session: &str) {
    let turns = format!("{session}/turns?wait=20");
    client.post(&turns, &json!({"input": "/say x"})).await.expect(200);
}

/// A turn that waits for a person, and the path of one behind it.
async fn queued(client: &Client, session: &str) -> Answer {
    let turns = format!("{session}/turns");
    client
        .post(&format!("{turns}?wait=20"), &json!({"input": guarded("a")}))
        .await
        .expect(200);
    let body = json!({"input": "/say old", "on_busy": "enqueue"});
    let taken = client.post(&turns, &body).await;
    assert_eq!((taken.status, &taken.body["status"]), (202, &json!("queued")));
    taken
}

#[test]
fn a_read_is_answered_only_if_there_is_news() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let made = session(&owner).await;
        let path = made.header("location");
        let first = tag(&owner, &path).await;
        assert_eq!(made.header("etag"), first, "the tag of what was made");
        for known in [
            first.clone(),
            format!("W/{first}"),
            format!("\"x\", {first}"),
            "*".to_owned(),
        ] {
            let same = get_unless(&owner, &known, &path).await;
            assert_eq!((same.status, same.header("etag")), (304, first.clone()), "{known}");
            assert_eq!((same.body, same.headers.get("content-type")), (Value::Null, None));
        }
        run(&owner, &path).await;
        let news = get_unless(&owner, &first, &path).await;
        assert_eq!((news.status, &news.body["title"]), (200, &json!("a")));
        assert_ne!(news.header("etag"), first);
        assert_eq!(news.header("etag"), tag(&owner, &path).await);
        // A read may ask for one version too.
        let present = news.header("etag");
        let read = |tag: String| under(&owner, ("If-Match", tag.leak()), Method::GET, &path, None);
        read(present.clone()).await.expect(200);
        assert_failed(&read(first).await, &present);
        assert_failed(&read(format!("W/{present}")).await, &present);

        let turn = queued(&owner, &path).await;
        let place = turn.header("location");
        assert_eq!(turn.header("etag"), tag(&owner, &place).await);
        let same = get_unless(&owner, &turn.header("etag"), &place).await;
        assert_eq!((same.status, same.header("etag")), (304, turn.header("etag")));
        web.stop().await;
    });
}

#[test]
fn a_change_of_a_session_is_made_to_the_settings_that_were_seen() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner).await.header("location");
        let seen = tag(&owner, &path).await;
        // Turns come and go, one waits: nobody has changed the settings.
        run(&owner, &path).await;
        queued(&owner, &path).await;
        let changed = patch_if(&owner, &seen, &path, json!({"title": "b"})).await;
        assert_eq!((changed.status, &changed.body["title"]), (200, &json!("b")));
        let present = tag(&owner, &path).await;
        assert_eq!(changed.header("etag"), present);

        for stale in [
            seen.clone(),
            format!("W/{present}"),
            "\"x\"".to_owned(),
            "\"-\"".to_owned(),
        ] {
            let refused = patch_if(&owner, &stale, &path, json!({"title": "c"})).await;
            assert_failed(&refused, &present);
        }
        let none = under(
            &owner,
            ("If-None-Match", "*"),
            Method::PATCH,
            &path,
            Some(json!({"title": "c"})),
        );
        assert_failed(&none.await, &present);
        let shown = owner.get(&path).await;
        assert_eq!(
            (&shown.body["title"], shown.header("etag")),
            (&json!("b"), present.clone())
        );

        let either = format!("\"x\", {present}");
        patch_if(&owner, &either, &path, json!({"metadata": {"k": 1}}))
            .await
            .expect(200);
        patch_if(&owner, "*", &path, json!({"metadata": {}})).await.expect(200);
        // The settings are again what they were, and so is their part of the tag.
        patch_if(&owner, &present, &path, json!({"title": "d"}))
            .await
            .expect(200);
        web.stop().await;
    });
}

#[test]
fn of_two_changes_to_what_both_saw_one_is_made() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner).await.header("location");
        for round in 0..5 {
            let seen = tag(&owner, &path).await;
            let titled = |title: String| patch_if(&owner, &seen, &path, json!({ "title": title }));
            let (one, two) = tokio::join!(titled(format!("{round} one")), titled(format!("{round} two")));
            let mut statuses = [one.status, two.status];
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 412]);
            let (won, lost) = if one.status == 200 { (one, two) } else { (two, one) };
            assert_eq!(owner.get(&path).await.body["title"], won.body["title"]);
            assert_failed(&lost, &won.header("etag"));
        }
        web.stop().await;
    });
}

#[test]
fn a_session_is_deleted_as_it_was_seen() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner).await.header("location");
        let seen = tag(&owner, &path).await;
        run(&owner, &path).await;
        let present = tag(&owner, &path).await;
        assert_failed(&delete_if(&owner, &seen, &path).await, &present);
        owner.get(&path).await.expect(200);
        assert_eq!(delete_if(&owner, &present, &path).await.status, 204);
        // Where there is nothing, no condition makes it another answer.
        for condition in [present.as_str(), "*", "\"x\""] {
            delete_if(&owner, condition, &path).await.problem(404, "not_found");
            get_unless(&owner, condition, &path).await.problem(404, "not_found");
        }
        web.stop().await;
    });
}

#[test]
fn a_queued_turn_is_changed_and_withdrawn_as_it_was_seen() {
    on_both(async |mut place: Place| {
        let web: Web = place.serve().await;
        let owner = web.owner().await;
        let session = session(&owner).await.header("location");
        let taken = queued(&owner, &session).await;
        let (turn, first) = (taken.header("location"), taken.header("etag"));
        let changed = patch_if(&owner, &first, &turn, json!({"input": "/say new"})).await;
        assert_eq!(changed.status, 200, "{}", changed.body);
        let second = changed.header("etag");
        assert!(second != first && second == tag(&owner, &turn).await);

        let stale = patch_if(&owner, &first, &turn, json!({"input": "/say lost"})).await;
        assert_failed(&stale, &second);
        assert_failed(&delete_if(&owner, &first, &turn).await, &second);
        let shown = owner.get(&turn).await.body;
        assert_eq!(
            (&shown["status"], &shown["input"][0]["text"]),
            (&json!("queued"), &json!("/say new"))
        );
        let gone = delete_if(&owner, &second, &turn).await;
        assert_eq!((gone.status, &gone.body["status"]), (200, &json!("cancelled")));
        assert_eq!(gone.header("etag"), tag(&owner, &turn).await);
        // What is refused anyway is refused for its own reason.
        patch_if(&owner, &first, &turn, json!({"input": "x"}))
            .await
            .problem(409, "turn_not_active");
        delete_if(&owner, &first, &turn).await.problem(409, "turn_not_active");
        web.stop().await;
    });
}

#[test]
fn a_session_is_put_away_and_taken_back_as_it_was_seen() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner).await.header("location");
        let first = tag(&owner, &path).await;
        run(&owner, &path).await;
        let post_if = |tag: String, verb: &str| {
            let path = format!("{path}/{verb}");
            let owner = owner.clone();
            async move { under(&owner, ("If-Match", &tag), Method::POST, &path, None).await }
        };
        // The settings are as they were seen.
        let away = post_if(first.clone(), "archive").await;
        assert_eq!((away.status, away.header("etag")), (200, tag(&owner, &path).await));
        let second = away.header("etag");
        for verb in ["archive", "unarchive"] {
            assert_failed(&post_if(first.clone(), verb).await, &second);
        }
        assert!(owner.get(&path).await.body["archived_at"].is_string());
        let back = post_if(second, "unarchive").await;
        assert_eq!((back.status, &back.body["archived_at"]), (200, &Value::Null));
        web.stop().await;
    });
}

#[test]
fn a_turn_is_cancelled_as_it_was_seen() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let session = session(&owner).await.header("location");
        let taken = queued(&owner, &session).await;
        let (turn, first) = (taken.header("location"), taken.header("etag"));
        let second = patch_if(&owner, &first, &turn, json!({"input": "/say new"}))
            .await
            .header("etag");
        let cancel = format!("{turn}/cancel");
        let stale = under(&owner, ("If-Match", &first), Method::POST, &cancel, None).await;
        assert_failed(&stale, &second);
        assert_eq!(owner.get(&turn).await.body["status"], "queued");
        let over = under(&owner, ("If-Match", &second), Method::POST, &cancel, None).await;
        assert_eq!((over.status, &over.body["status"]), (200, &json!("cancelled")));
        assert_eq!(over.header("etag"), tag(&owner, &turn).await);
        web.stop().await;
    });
}

#[test]
fn what_is_no_condition_is_refused_and_changes_nothing() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner).await.header("location");
        let turn = queued(&owner, &path).await.header("location");
        let before = (tag(&owner, &path).await, tag(&owner, &turn).await);
        for name in ["If-Match", "If-None-Match"] {
            for value in ["", "x", "\"x", "*, \"x\"", "\"a\" \"b\"", "w/\"x\""] {
                for (thing, body) in [(&path, json!({"title": "z"})), (&turn, json!({"input": "z"}))] {
                    for (method, body) in [(Method::GET, None), (Method::PATCH, Some(body)), (Method::DELETE, None)] {
                        let refused = under(&owner, (name, value), method, thing, body).await;
                        let problem = refused.problem(400, "invalid_request");
                        assert_eq!(problem["errors"][0]["pointer"], name, "{value}");
                    }
                }
            }
        }
        assert_eq!((tag(&owner, &path).await, tag(&owner, &turn).await), before);
        web.stop().await;
    });
}
