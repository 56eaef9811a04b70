//! Grants over HTTP: made by an answer, counted, revoked.

use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use super::{Talk, decision_of};
use crate::harness::client::Client;
use crate::harness::on_both;
use crate::harness::script::guarded;

async fn grants(client: &Client, query: &str) -> Vec<Value> {
    let page = client.get(&format!("/v1/grants{query}")).await.expect(200);
    page["data"].as_array().unwrap().clone()
}

fn path(grant: &Value) -> String {
    format!("/v1/grants/{}", grant["id"].as_str().unwrap())
}

#[test]
fn a_revoked_grant_asks_again() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let approval = talk.ask(&guarded("a")).await;
        let decided = owner
            .post(&decision_of(&approval), &json!({"choice": "session"}))
            .await
            .expect(200);
        talk.events.until("turn.completed").await;
        talk.say(&guarded("b")).await;
        talk.events.until("turn.completed").await;
        let found = grants(&owner, "").await;
        assert_eq!(found.len(), 1, "{found:?}");
        let grant = &found[0];
        assert_eq!(grant["id"], decided["decision"]["grant_id"]);
        assert_eq!(
            (&grant["scope"], &grant["session_id"]),
            (&json!("session"), &json!(talk.session))
        );
        assert_eq!((&grant["approval_id"], &grant["uses"]), (&approval["id"], &json!(1)));
        assert!(!grant["keys"].as_array().unwrap().is_empty());

        let reader = web.user("owner", &[Scope::SessionsRead]).await;
        reader.delete(&path(grant)).await.problem(403, "forbidden");
        assert_eq!(owner.delete(&path(grant)).await.status, 204);
        let revoked = grants(&owner, "").await;
        assert!(revoked[0]["revoked_at"].is_string());
        assert_eq!(owner.delete(&path(grant)).await.status, 204);
        assert_eq!(grants(&owner, "").await, revoked, "to revoke again changes nothing");
        talk.ask(&guarded("c")).await;
        web.stop().await;
    });
}

#[test]
fn a_grant_for_always_holds_in_other_sessions_of_the_user_alone() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let approval = talk.ask(&guarded("a")).await;
        owner
            .post(&decision_of(&approval), &json!({"choice": "always"}))
            .await
            .expect(200);
        let mut second = Talk::new(&web, &owner, &json!({})).await;
        second.say(&guarded("b")).await;
        second.events.until("turn.completed").await;
        let found = grants(&owner, "").await;
        assert_eq!(
            (&found[0]["scope"], &found[0]["session_id"]),
            (&json!("always"), &Value::Null)
        );
        assert_eq!(
            grants(&owner, &format!("?session_id={}", talk.session)).await,
            [] as [Value; 0]
        );

        let all = [
            Scope::SessionsRead,
            Scope::SessionsWrite,
            Scope::TurnsWrite,
            Scope::GrantsWrite,
        ];
        let colleague = web.user("colleague", &all).await;
        assert_eq!(grants(&colleague, "").await, [] as [Value; 0]);
        colleague.delete(&path(&found[0])).await.problem(404, "not_found");
        Talk::new(&web, &colleague, &json!({})).await.ask(&guarded("c")).await;
        web.stop().await;
    });
}
