//! Cursors of lists: each leads on in its own list and nowhere else.

use hermes_server::model::principal::Scope;
use serde_json::json;

use crate::harness::client::{Client, NewKey};
use crate::harness::http::KEY;
use crate::harness::{Place, on_both};

/// The cursor after the first entry of a list that has more.
async fn cursor(client: &Client, list: &str) -> String {
    let page = client.get(list).await.expect(200);
    assert_eq!(page["has_more"], true, "{list}: {page}");
    page["next_cursor"].as_str().unwrap().to_owned()
}

#[test]
fn a_cursor_of_another_tenant_list_or_filter_is_refused() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.client(KEY);
        let tenant = web.tenant("another").await;
        let elsewhere = NewKey {
            tenant,
            user: "owner",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let other = web.with_key(elsewhere).await;
        let mut turns = Vec::new();
        for client in [&owner, &owner, &other, &other] {
            let made = client.post("/v1/sessions", &json!({})).await;
            turns.push(format!("{}/turns", made.header("location")));
        }
        for path in turns[..2].iter().flat_map(|path| [path, path, path]) {
            let done = owner
                .post(&format!("{path}?wait=20"), &json!({"input": "/say x"}))
                .await;
            assert_eq!(done.status, 200, "{}", done.body);
        }
        let sessions = cursor(&owner, "/v1/sessions?limit=1").await;
        let foreign = cursor(&other, "/v1/sessions?limit=1").await;
        let first = cursor(&owner, &format!("{}?limit=1", turns[0])).await;
        let completed = cursor(&owner, &format!("{}?limit=1&status=completed", turns[0])).await;
        for (list, after) in [
            ("/v1/sessions?", &foreign),
            ("/v1/sessions?", &first),
            ("/v1/sessions?external_id=x&", &sessions),
            ("/v1/approvals?", &sessions),
            ("/v1/grants?", &sessions),
            ("/v1/keys?", &sessions),
            (&format!("{}?", turns[1]), &first),
            (&format!("{}?", turns[0]), &completed),
            (&format!("{}?status=completed&", turns[0]), &first),
            (&format!("{}?", turns[0].replace("/turns", "/messages")), &first),
        ] {
            let refused = owner.get(&format!("{list}after={after}")).await;
            assert_eq!(refused.status, 400, "{list}: {}", refused.body);
            refused.problem(400, "invalid_cursor");
        }
        // Pages may change their size, and servers may come and go.
        web.stop().await;
        let web = place.serve().await;
        let owner = web.client(KEY);
        let rest = owner
            .get(&format!("{}?limit=200&after={first}", turns[0]))
            .await
            .expect(200);
        assert_eq!(
            (rest["data"].as_array().unwrap().len(), &rest["has_more"]),
            (2, &json!(false))
        );
        web.stop().await;
    });
}
