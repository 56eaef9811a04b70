//! Keys over HTTP: made, used, expired, revoked; nobody hands on more than they
//! may do.

use hermes_server::api::auth::jwt::{Claims, mint};
use hermes_server::base::{Secret, Timestamp};
use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use crate::harness::on_both;

#[test]
fn a_key_is_shown_once_works_and_stops_when_revoked() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let new = json!({"name": " ci ", "scopes": ["sessions:read", "sessions:read"], "tools": ["read_file"]});
        let made = owner.post("/v1/keys", &new).await.expect(201);
        let text = made["key"].as_str().unwrap();
        assert_eq!((&made["name"], &made["user_id"]), (&json!("ci"), &json!("owner")));
        assert_eq!(
            (&made["scopes"], &made["tools"]),
            (&json!(["sessions:read"]), &json!(["read_file"]))
        );
        let list = owner.get("/v1/keys").await.expect(200);
        assert_eq!(list["data"][0]["id"], made["id"], "newest first");
        assert!(!list.to_string().contains(text) && !list.to_string().contains("hash"));

        let client = web.client(text);
        client.get("/v1/sessions").await.expect(200);
        client.post("/v1/sessions", &json!({})).await.problem(403, "forbidden");
        let path = format!("/v1/keys/{}", made["id"].as_str().unwrap());
        for _ in 0..2 {
            assert_eq!(owner.delete(&path).await.status, 204);
            client.get("/v1/sessions").await.problem(401, "unauthenticated");
        }
        owner.get("/v1/sessions").await.expect(200);
        let list = owner.get("/v1/keys").await.expect(200);
        assert!(list["data"][0]["revoked_at"].is_string());
        web.stop().await;
    });
}

#[test]
fn a_key_works_until_it_expires() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (owner, clock) = (web.owner().await, web.server.engine.clock().clone());
        let expiry = Timestamp(clock.now().0 + 1000);
        let new = json!({"name": "short", "scopes": ["sessions:read"], "expires_at": expiry});
        let made = owner.post("/v1/keys", &new).await.expect(201);
        assert_eq!(made["expires_at"], expiry.to_string());
        let client = web.client(made["key"].as_str().unwrap());
        client.get("/v1/sessions").await.expect(200);
        clock.sleep_until(expiry).await;
        let problem = client.get("/v1/sessions").await.problem(401, "unauthenticated");
        assert!(problem["detail"].as_str().unwrap().contains("expired"));
        let past = json!({"name": "late", "scopes": ["sessions:read"], "expires_at": expiry});
        let problem = owner.post("/v1/keys", &past).await.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/expires_at");
        web.stop().await;
    });
}

#[test]
fn nobody_hands_on_more_than_they_may_do() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let keeper = web.user("keeper", &[Scope::KeysWrite, Scope::SessionsRead]).await;
        let with = |fields: Value| {
            let mut new = json!({"name": "n", "scopes": ["sessions:read"]});
            new.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            new
        };
        for scope in ["admin", "tenant:all", "turns:write"] {
            let new = with(json!({"scopes": ["sessions:read", scope]}));
            let problem = keeper.post("/v1/keys", &new).await.problem(403, "forbidden");
            assert!(problem["detail"].as_str().unwrap().contains(scope));
        }
        keeper
            .post("/v1/keys", &with(json!({"user_id": "owner"})))
            .await
            .problem(403, "forbidden");
        let owner = web.owner().await;
        let foreign = owner.post("/v1/keys", &with(json!({}))).await.expect(201);
        let own = keeper.post("/v1/keys", &with(json!({}))).await.expect(201);
        let list = keeper.get("/v1/keys").await.expect(200).to_string();
        assert!(list.contains(own["id"].as_str().unwrap()) && !list.contains(foreign["id"].as_str().unwrap()));
        let path = format!("/v1/keys/{}", foreign["id"].as_str().unwrap());
        keeper.delete(&path).await.problem(404, "not_found");
        web.client(foreign["key"].as_str().unwrap())
            .get("/v1/sessions")
            .await
            .expect(200);
        web.stop().await;
    });
}

#[test]
fn a_key_ends_with_the_credential_that_made_it() {
    on_both(async |mut place| {
        place.config.auth.jwt.hs256_secret = Some(Secret::new("0123456789abcdef0123456789abcdef"));
        let web = place.serve().await;
        let (owner, clock) = (web.owner().await, web.server.engine.clock().clone());
        let end = Timestamp((clock.now().0 / 1000 + 600) * 1000);
        let short = json!({"name": "short", "scopes": ["keys:write", "sessions:read"], "expires_at": end});
        let short = owner.post("/v1/keys", &short).await.expect(201);
        let claims = Claims {
            tenant: "default".to_owned(),
            user: "owner".to_owned(),
            scopes: [Scope::KeysWrite, Scope::SessionsRead].into_iter().collect(),
            expires_at: end,
        };
        let token = mint(&place.config.auth.jwt, &claims, clock.now()).unwrap();
        for credential in [short["key"].as_str().unwrap(), token.expose()] {
            let client = web.client(credential);
            let silent = json!({"name": "heir", "scopes": ["sessions:read"]});
            let heir = client.post("/v1/keys", &silent).await.expect(201);
            assert_eq!(heir["expires_at"], end.to_string());
            let mut longer = silent;
            longer["expires_at"] = json!(Timestamp(end.0 + 1));
            let problem = client.post("/v1/keys", &longer).await.problem(403, "forbidden");
            assert!(problem["detail"].as_str().unwrap().contains("outlive"), "{problem}");
        }
        web.stop().await;
    });
}

#[test]
fn a_wrong_key_request_names_what_is_wrong() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let count = owner.get("/v1/keys").await.expect(200)["data"]
            .as_array()
            .unwrap()
            .len();
        for (body, pointer) in [
            (json!({"scopes": ["admin"]}), ""),
            (json!({"name": "", "scopes": ["admin"]}), "/name"),
            (json!({"name": "n", "scopes": []}), "/scopes"),
            (json!({"name": "n", "scopes": ["root"]}), "/scopes/0"),
            (
                json!({"name": "n", "scopes": ["admin"], "expires_at": "tomorrow"}),
                "/expires_at",
            ),
            (json!({"name": "n", "scopes": ["admin"], "tenant": "other"}), "/tenant"),
        ] {
            let problem = owner.post("/v1/keys", &body).await.problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
        }
        let list = owner.get("/v1/keys").await.expect(200);
        assert_eq!(list["data"].as_array().unwrap().len(), count);
        web.stop().await;
    });
}
