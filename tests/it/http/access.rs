//! Who may call, by which name, from which page, and what every answer carries.

use hermes_server::api::auth::api_key;
use hermes_server::base::Timestamp;
use hermes_server::model::id::{KeyId, TenantId};
use hermes_server::store::keys::{self, KeyRecord};
use hermes_server::store::tenants;
use reqwest::Method;
use serde_json::json;

use crate::harness::Place;
use crate::harness::http::{Answer, KEY, Web};

struct NewKey<'a> {
    tenant: TenantId,
    user: &'a str,
    scopes: &'a [&'a str],
    expires_at: Option<Timestamp>,
}

/// Stores a key and gives its text.
async fn key(web: &Web, new: NewKey<'_>) -> String {
    let text = api_key::generate().unwrap().expose().to_owned();
    let store = web.server.engine.store();
    let record = KeyRecord {
        tenant_id: new.tenant,
        key_id: KeyId::new(store.clock()),
        user_id: new.user.to_owned(),
        name: "test".to_owned(),
        hash: api_key::hash(&text),
        scopes: new.scopes.iter().map(|&scope| scope.to_owned()).collect(),
        tools: None,
        created_at: store.clock().now(),
        expires_at: new.expires_at,
        revoked_at: None,
    };
    keys::add(store, record).await.unwrap();
    text
}

async fn get_as(web: &Web, key: &str, path: &str) -> Answer {
    let request = web.bare(Method::GET, path).bearer_auth(key);
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn health_is_open_and_nothing_else_is() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    for path in ["/health/live", "/health/ready"] {
        let answer = Answer::of(web.bare(Method::GET, path).send().await.unwrap()).await;
        assert_eq!((answer.status, &answer.body["status"]), (200, &json!("ok")), "{path}");
    }
    for key in [None, Some("wrong"), Some("hsk_wrong"), Some("a.b.c"), Some("")] {
        let mut request = web.bare(Method::GET, "/v1/sessions");
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let answer = Answer::of(request.send().await.unwrap()).await;
        answer.is_problem(401, "unauthenticated");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    // A key in the address would end up in logs.
    let answer = Answer::of(
        web.bare(Method::GET, &format!("/health/live?api_key={KEY}"))
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(answer.status, 200);
    web.stop().await;
}

#[tokio::test]
async fn a_key_lives_until_it_expires_or_is_revoked() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let store = web.server.engine.store().clone();
    let tenant = tenants::default_id();
    let new = |expires_at| NewKey {
        tenant,
        user: "ada",
        scopes: &["sessions:read"],
        expires_at,
    };
    let past = Timestamp(store.clock().now().0 - 1);
    let expired = key(&web, new(Some(past))).await;
    get_as(&web, &expired, "/v1/sessions")
        .await
        .is_problem(401, "unauthenticated");
    let living = key(&web, new(None)).await;
    assert_eq!(get_as(&web, &living, "/v1/sessions").await.status, 200);
    for record in keys::list(&store, tenant, None, 10).await.unwrap() {
        keys::revoke(&store, tenant, record.key_id).await.unwrap();
    }
    get_as(&web, &living, "/v1/sessions")
        .await
        .is_problem(401, "unauthenticated");
    web.stop().await;
}

#[tokio::test]
async fn tenants_and_users_do_not_meet_and_scopes_are_named() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let store = web.server.engine.store().clone();
    let other = tenants::create(&store, "other").await.unwrap().tenant_id;
    let own = tenants::default_id();
    let all = ["sessions:read", "sessions:write", "turns:write"];
    let new = |tenant, user, scopes| NewKey {
        tenant,
        user,
        scopes,
        expires_at: None,
    };
    let foreign = key(&web, new(other, "default", &["admin"])).await;
    let neighbour = key(&web, new(own, "eve", &all)).await;
    let lead = key(&web, new(own, "eve", &["sessions:read", "tenant:all"])).await;

    // The environment's key is user `default` of the default tenant.
    let session = web.session().await;
    let unknown = get_as(&web, KEY, "/v1/sessions/ses_00000000000000000000000000").await;
    for key in [&foreign, &neighbour] {
        for path in [
            session.clone(),
            format!("{session}/messages"),
            format!("{session}/events"),
        ] {
            let answer = get_as(&web, key, &path).await;
            answer.is_problem(404, "not_found");
            assert_eq!(answer.body["detail"], unknown.body["detail"]);
        }
        for path in [format!("{session}/turns"), format!("{session}/stream")] {
            get_as(&web, key, &path).await.is_problem(404, "not_found");
        }
        assert_eq!(get_as(&web, key, "/v1/sessions").await.body["data"], json!([]));
    }
    assert_eq!(get_as(&web, &lead, &session).await.status, 200);
    let made = web
        .bare(Method::POST, "/v1/sessions")
        .bearer_auth(&lead)
        .body("not even JSON");
    let refused = Answer::of(made.send().await.unwrap()).await;
    refused.is_problem(403, "forbidden");
    assert!(refused.body["detail"].as_str().unwrap().contains("`sessions:write`"));
    web.stop().await;
}

#[tokio::test]
async fn without_isolation_only_the_default_tenant_is_served() {
    let mut place = Place::sqlite();
    place.config.terminal.isolation = hermes_server::config::Isolation::None;
    let web = place.serve().await;
    let other = tenants::create(web.server.engine.store(), "other")
        .await
        .unwrap()
        .tenant_id;
    let new = NewKey {
        tenant: other,
        user: "ada",
        scopes: &["admin"],
        expires_at: None,
    };
    let foreign = key(&web, new).await;
    let refused = get_as(&web, &foreign, "/v1/sessions").await;
    refused.is_problem(403, "forbidden");
    assert!(refused.body["detail"].as_str().unwrap().contains("terminal.isolation"));
    assert_eq!(web.get("/v1/sessions").await.status, 200);
    web.stop().await;
}

#[tokio::test]
async fn other_hosts_and_origins_are_refused() {
    let mut place = Place::sqlite();
    place.config.server.allowed_hosts = vec!["hermes.example".to_owned()];
    place.config.server.allowed_origins = vec!["https://app.example".to_owned()];
    let web = place.serve().await;
    let with = async |name: &str, value: &str| {
        let request = web
            .request(Method::GET, "/v1/sessions")
            .header(name.to_owned(), value.to_owned());
        Answer::of(request.send().await.unwrap()).await
    };
    let refused = with("host", "evil.example").await;
    refused.is_problem(403, "host_not_allowed");
    assert!(
        refused.body["detail"]
            .as_str()
            .unwrap()
            .contains("server.allowed_hosts")
    );
    assert_eq!(with("host", "HERMES.example:9").await.status, 200);

    let refused = with("origin", "https://evil.example").await;
    refused.is_problem(403, "origin_not_allowed");
    assert_eq!(refused.header("access-control-allow-origin"), "");
    let allowed = with("origin", "https://app.example").await;
    assert_eq!(allowed.status, 200);
    assert_eq!(allowed.header("access-control-allow-origin"), "https://app.example");
    let own = with("origin", &format!("http://{}", web.address)).await;
    assert_eq!(
        (own.status, own.header("access-control-allow-origin").as_str()),
        (200, "")
    );

    let preflight = |origin: &'static str| {
        let request = web.bare(Method::OPTIONS, "/v1/sessions").header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "authorization,content-type")
    };
    let answer = Answer::of(preflight("https://app.example").send().await.unwrap()).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin").as_str()),
        (200, "https://app.example")
    );
    assert!(answer.header("access-control-allow-headers").contains("authorization"));
    let answer = Answer::of(preflight("https://evil.example").send().await.unwrap()).await;
    assert_eq!(answer.header("access-control-allow-origin"), "");
    web.stop().await;
}

#[tokio::test]
async fn every_answer_carries_its_id_and_is_locked_down() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    for path in ["/health/live", "/v1/sessions", "/nowhere", "/v1/sessions/x"] {
        let answer = web.get(path).await;
        assert!(answer.header("x-request-id").starts_with("req_"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert!(
            answer
                .header("content-security-policy")
                .contains("frame-ancestors 'none'")
        );
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    let with = async |id: &str| {
        let request = web
            .request(Method::GET, "/nowhere")
            .header("x-request-id", id.to_owned());
        Answer::of(request.send().await.unwrap()).await
    };
    let answer = with("trace-7").await;
    answer.is_problem(404, "not_found");
    assert_eq!(answer.header("x-request-id"), "trace-7");
    assert!(with("has space").await.header("x-request-id").starts_with("req_"));

    let answer = web.delete("/v1/sessions").await;
    answer.is_problem(405, "method_not_allowed");
    let allowed = answer.header("allow");
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
    web.stop().await;
}

#[tokio::test]
async fn a_server_that_shuts_down_takes_no_new_work_and_ends_its_streams() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let session = web.session().await;
    let mut stream = web.stream(web.request(Method::GET, &format!("{session}/stream"))).await;
    stream.until("session.created").await;
    let engine = web.server.engine.clone();
    engine.drain(std::time::Duration::ZERO).await;
    for (path, body) in [
        ("/v1/sessions", json!({})),
        (&format!("{session}/turns"), json!({"input": "hi"})),
    ] {
        let refused = web.post(path, body).await;
        refused.is_problem(503, "draining");
        assert_eq!(refused.header("retry-after"), "5");
    }
    web.get("/health/ready").await.is_problem(503, "draining");
    assert_eq!(web.get("/health/live").await.status, 200);
    assert_eq!(web.get(&session).await.status, 200);
    web.closing.cancel();
    assert_eq!(stream.rest().await, []);
    web.stop().await;
}
