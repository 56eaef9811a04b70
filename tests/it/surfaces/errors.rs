//! Errors of the drop-in surfaces: one envelope, whatever refuses.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::client::{Client, NewKey};
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;
use hermes_server::model::principal::Scope;

fn is_error(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, &answer.body["error"]["code"]),
        (status, &json!(code)),
        "{}",
        answer.body
    );
    let error = answer.body["error"].as_object().unwrap();
    for name in ["message", "type", "param", "code"] {
        assert!(error.contains_key(name), "{name}: {}", answer.body);
    }
    assert!(!answer.header("x-request-id").is_empty());
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
}

#[test]
fn every_refusal_has_the_envelope_of_its_surface() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let stranger = web.anonymous();
        let chat = "/v1/chat/completions";
        for path in [chat, "/v1/runs"] {
            is_error(&stranger.post(path, &json!({})).await, 401, "invalid_api_key");
            is_error(
                &web.client("hsk_wrong").post(path, &json!({})).await,
                401,
                "invalid_api_key",
            );
            let raw = client.request(Method::POST, path).body("[1").send().await.unwrap();
            is_error(&Answer::of(raw).await, 400, "invalid_request");
            let raw = client.request(Method::POST, path).body("[]").send().await.unwrap();
            is_error(&Answer::of(raw).await, 400, "invalid_request");
        }
        is_error(&client.get(chat).await, 405, "method_not_allowed");
        is_error(&client.get("/v1/runs/run_nothing").await, 404, "run_not_found");
        is_error(&client.get("/api/nothing").await, 404, "not_found");
        is_error(
            &client.post(chat, &json!({"messages": ["hi"]})).await,
            400,
            "invalid_messages",
        );
        let file = json!({"messages": [{"role": "user", "content": [{"type": "file"}]}]});
        let refused = client.post(chat, &file).await;
        is_error(&refused, 400, "unsupported_content_type");
        assert_eq!(refused.body["error"]["param"], "messages[0].content[0]");
        let named = client.request(Method::POST, chat).header("x-hermes-session-id", "../x");
        let named = Answer::of(
            named
                .json(&json!({"messages": [{"role": "user", "content": "x"}]}))
                .send()
                .await
                .unwrap(),
        );
        is_error(&named.await, 400, "invalid_session_id");
        let reader = web.user("reader", &[Scope::SessionsRead]).await;
        is_error(&reader.post(chat, &json!({})).await, 403, "forbidden");
        web.stop().await;
    });
}

#[test]
fn a_path_that_serves_two_surfaces_answers_both() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let refused = web.anonymous().get("/v1/models").await;
        is_error(&refused, 401, "invalid_api_key");
        assert_eq!(refused.body["code"], "unauthenticated");
        let models = web.owner().await.get("/v1/models").await.expect(200);
        assert_eq!(
            (&models["object"], &models["data"][0]["object"]),
            (&json!("list"), &json!("model"))
        );
        let id = models["data"][0]["id"].as_str().unwrap();
        let one = web.owner().await.get(&format!("/v1/models/{id}")).await.expect(200);
        assert_eq!(one, models["data"][0]);
        web.stop().await;
    });
}

async fn elsewhere(web: &Web) -> Client {
    let tenant = web.tenant("another").await;
    let key = NewKey {
        tenant,
        user: "owner",
        scopes: &[Scope::Admin],
        tools: None,
    };
    web.with_key(key).await
}

#[test]
fn a_profile_is_its_tenants_and_nobody_elses() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (here, there) = (web.owner().await, elsewhere(&web).await);
        here.get("/p/default/v1/models").await.expect(200);
        there.get("/p/another/v1/models").await.expect(200);
        assert_eq!(web.anonymous().get("/p/whatever/health").await.status, 200);
        let said = json!({"messages": [{"role": "user", "content": "/say hi"}]});
        there.post("/p/another/v1/chat/completions", &said).await.expect(200);
        let foreign = here.post("/p/another/v1/chat/completions", &said).await;
        let unknown = here.post("/p/nobody/v1/chat/completions", &said).await;
        let plain = |answer: &Answer| answer.body.clone();
        assert_eq!((foreign.status, plain(&foreign)), (404, plain(&unknown)));
        assert_eq!(
            web.anonymous()
                .post("/p/another/v1/chat/completions", &said)
                .await
                .status,
            401
        );
        assert_eq!(here.get("/v1/sessions").await.expect(200)["data"], json!([]));
        assert_eq!(
            there.get("/v1/sessions").await.expect(200)["data"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        web.stop().await;
    });
}

#[test]
fn what_one_tenant_did_does_not_exist_for_another() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (here, there) = (web.owner().await, elsewhere(&web).await);
        let begun = here
            .post("/v1/runs", &json!({"input": "/say mine", "session_id": "shared-name"}))
            .await
            .expect(202);
        let run = begun["run_id"].as_str().unwrap();
        here.get_stream(&format!("/v1/runs/{run}/events")).await.rest().await;
        for (method, path) in [
            (Method::GET, format!("/v1/runs/{run}")),
            (Method::GET, format!("/v1/runs/{run}/events")),
            (Method::POST, format!("/v1/runs/{run}/stop")),
            (Method::POST, format!("/v1/runs/{run}/cancel")),
        ] {
            let answer = Answer::of(there.request(method.clone(), &path).send().await.unwrap()).await;
            is_error(&answer, 404, "run_not_found");
        }
        for (path, body) in [
            ("approval", json!({"choice": "once"})),
            ("steer", json!({"input": "x"})),
        ] {
            is_error(
                &there.post(&format!("/v1/runs/{run}/{path}"), &body).await,
                404,
                "run_not_found",
            );
        }
        // A name is the tenant's own.
        let other = there
            .post(
                "/v1/runs",
                &json!({"input": "/say theirs", "session_id": "shared-name"}),
            )
            .await
            .expect(202);
        let other = other["run_id"].as_str().unwrap();
        there.get_stream(&format!("/v1/runs/{other}/events")).await.rest().await;
        let messages = there.get("/v1/sessions").await.expect(200);
        assert!(!messages.to_string().contains("mine"));
        assert_eq!(Value::from(messages["data"].as_array().unwrap().len()), json!(1));
        web.stop().await;
    });
}

#[test]
fn a_name_that_a_colleague_uses_is_free_and_leads_nowhere() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (ada, bob) = (
            web.user("ada", &Scope::ALL[..6]).await,
            web.user("bob", &Scope::ALL[..6]).await,
        );
        let named = json!({"id": "talk", "title": "Plan"});
        ada.post("/api/sessions", &named).await.expect(201);
        let said = json!({"message": "/say only ada"});
        ada.post("/api/sessions/talk/chat", &said).await.expect(200);
        is_error(&bob.get("/api/sessions/talk").await, 404, "session_not_found");
        bob.post("/api/sessions", &named).await.expect(201);
        assert_eq!(
            bob.get("/api/sessions/talk/messages").await.expect(200)["data"],
            json!([])
        );
        is_error(&ada.post("/api/sessions", &named).await, 400, "invalid_title");
        let again = json!({"id": "talk"});
        is_error(&ada.post("/api/sessions", &again).await, 409, "session_exists");
        // Who sees all sessions reads what is there, and talks in their own.
        let owner = web.owner().await;
        assert_eq!(
            owner.get("/api/sessions/talk").await.expect(200)["session"]["user_id"],
            "bob",
            "the newest of that name"
        );
        let run = json!({"input": "/say only the owner", "session_id": "talk"});
        let run = owner.post("/v1/runs", &run).await.expect(202)["run_id"].clone();
        let events = format!("/v1/runs/{}/events", run.as_str().unwrap());
        owner.get_stream(&events).await.rest().await;
        let own = owner.get("/api/sessions/talk").await.expect(200);
        assert_eq!(own["session"]["user_id"], "owner");
        for client in [&ada, &bob] {
            let messages = client.get("/api/sessions/talk/messages").await.expect(200);
            assert!(!messages.to_string().contains("only the owner"));
        }
        web.stop().await;
    });
}
