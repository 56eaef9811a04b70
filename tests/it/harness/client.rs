//! Callers of a server: keys of any tenant and user, made for a test, and
//! clients that send them.

use hermes_server::api::auth::api_key;
use hermes_server::model::id::{KeyId, TenantId};
use hermes_server::model::principal::Scope;
use hermes_server::store::keys::{self, KeyRecord};
use hermes_server::store::tenants;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::PATIENCE;
use super::http::{Answer, Events, Web};

/// What a key may do and see.
#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    pub tenant: TenantId,
    pub user: &'a str,
    pub scopes: &'a [Scope],
    pub tools: Option<&'a [&'a str]>,
}

/// Somebody who calls the server.
#[derive(Clone)]
pub struct Client {
    base: String,
    credential: Option<String>,
    /// Whose key it has, where that was made for it.
    pub tenant: Option<TenantId>,
    http: reqwest::Client,
}

impl Web {
    /// A client with this credential.
    pub fn client(&self, credential: &str) -> Client {
        Client {
            base: self.url(""),
            credential: Some(credential.to_owned()),
            tenant: None,
            http: reqwest::Client::new(),
        }
    }

    /// A client without any credential.
    pub fn anonymous(&self) -> Client {
        Client {
            credential: None,
            ..self.client("")
        }
    }

    /// A client that may do everything in the default tenant.
    pub async fn owner(&self) -> Client {
        self.user("owner", &[Scope::Admin]).await
    }

    /// A client of a user of the default tenant.
    pub async fn user(&self, user: &str, scopes: &[Scope]) -> Client {
        self.with_key(NewKey {
            tenant: self.server.app.default_tenant(),
            user,
            scopes,
            tools: None,
        })
        .await
    }

    /// A client with a key that is made for it.
    pub async fn with_key(&self, new: NewKey<'_>) -> Client {
        let (key, clock) = (api_key::generate().unwrap(), self.server.engine.clock());
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let record = KeyRecord {
            tenant_id: new.tenant,
            key_id: KeyId::new(clock),
            user_id: new.user.to_owned(),
            name: "test".to_owned(),
            hash: api_key::hash(key.expose()),
            scopes: new.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
            tools: new.tools.map(texts),
            created_at: clock.now(),
            expires_at: None,
            revoked_at: None,
        };
        keys::add(self.server.engine.store(), record).await.unwrap();
        Client {
            tenant: Some(new.tenant),
            ..self.client(key.expose())
        }
    }

    /// Another tenant.
    pub async fn tenant(&self, name: &str) -> TenantId {
        tenants::create(self.server.engine.store(), name)
            .await
            .unwrap()
            .tenant_id
    }
}

impl Client {
    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(body).send().await.unwrap()).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request(Method::PATCH, path).json(body).send().await.unwrap()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    /// A request to add headers or a body to, with the credential.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .timeout(PATIENCE);
        match &self.credential {
            Some(credential) => request.bearer_auth(credential),
            None => request,
        }
    }

    /// A stream of events, which has begun.
    pub async fn stream(&self, web: &Web, path: &str) -> Events {
        web.stream(self.request(Method::GET, path)).await
    }
}

impl Answer {
    /// The body, of an answer that has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }

    /// The problem, of an answer that is one of this status and code.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Value {
        self.is_problem(status, code);
        self.body
    }
}
