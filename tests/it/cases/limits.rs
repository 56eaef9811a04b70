//! Field cases about what a server takes at once.

use hermes_server::model::principal::Scope;
use reqwest::{Body, Method};
use serde_json::{Value, json};

use super::{ended, held, let_go, talk};
use crate::api_rest::Talk;
use crate::harness::client::NewKey;
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;

#[test]
fn fc_070_a_full_server_starts_nothing_by_any_way() {
    on_both(async |mut place| {
        place.config.limits.server.executing_turns = Some(1);
        let web = place.serve().await;
        let mut busy = talk(&web, json!({})).await;
        let turn = busy.path(&format!("/turns/{}", busy.say(&held("true")).await));
        busy.events.until("tool_call.started").await;

        let other = talk(&web, json!({})).await;
        for (query, accept) in [
            ("", "application/json"),
            ("?wait=20", "application/json"),
            ("", "text/event-stream"),
        ] {
            for on_busy in ["reject", "enqueue"] {
                let body = json!({"input": "/say no", "on_busy": on_busy});
                let path = other.path(&format!("/turns{query}"));
                let request = other.client.request(Method::POST, &path).header("accept", accept);
                let refused = Answer::of(request.json(&body).send().await.unwrap()).await;
                refused.is_problem(429, "server_turn_limit");
                assert!(1 <= refused.header("retry-after").parse::<u32>().unwrap());
            }
        }
        assert_eq!(
            other.client.get(&other.path("/turns")).await.expect(200)["data"],
            json!([])
        );
        assert_eq!(
            other.client.get(&other.path("/messages")).await.expect(200)["data"],
            json!([])
        );
        let_go(&web, &busy.session);
        ended(&busy, &turn).await;
        let taken = other
            .client
            .post(&other.path("/turns?wait=20"), &json!({"input": "/say yes"}))
            .await
            .expect(200);
        assert_eq!(taken["turn"]["status"], "completed");
        web.stop().await;
    });
}

#[test]
fn fc_071_a_tenant_at_its_limit_is_no_ones_business_but_its_own() {
    on_both(async |mut place| {
        place.config.limits.tenant.executing_turns = Some(1);
        place.config.limits.server.executing_turns = Some(10);
        let web = place.serve().await;
        let mut first = talk(&web, json!({})).await;
        let turn = first.path(&format!("/turns/{}", first.say(&held("true")).await));
        first.events.until("tool_call.started").await;
        let second = talk(&web, json!({})).await;
        let refused = second
            .client
            .post(&second.path("/turns"), &json!({"input": "/say no"}))
            .await;
        refused.is_problem(429, "tenant_turn_limit");
        assert!(1 <= refused.header("retry-after").parse::<u32>().unwrap());

        let tenant = web.tenant("b").await;
        let key = NewKey {
            tenant,
            user: "owner",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let other = Talk::new(&web, &web.with_key(key).await, &json!({})).await;
        let path = other.path("/turns?wait=20");
        let done = other
            .client
            .post(&path, &json!({"input": "/say yes"}))
            .await
            .expect(200);
        assert_eq!(done["turn"]["status"], "completed");
        let_go(&web, &first.session);
        ended(&first, &turn).await;
        web.stop().await;
    });
}

/// A turn whose body has about so many bytes, with its length or in chunks.
async fn sized(web: &Web, path: &str, bytes: usize, chunked: bool) -> Answer {
    let text = json!({"input": format!("/say ok\n{}", "x".repeat(bytes))}).to_string();
    let body = if chunked {
        let pieces: Vec<std::io::Result<Vec<u8>>> =
            text.as_bytes().chunks(65_536).map(|piece| Ok(piece.to_vec())).collect();
        Body::wrap_stream(futures::stream::iter(pieces))
    } else {
        Body::from(text)
    };
    let request = web
        .request(Method::POST, path)
        .header("content-type", "application/json");
    Answer::of(request.body(body).send().await.unwrap()).await
}

#[test]
fn fc_073_a_body_over_the_limit_is_refused_alike_however_it_comes() {
    on_both(async |mut place| {
        place.config.server.max_body_bytes = 2_000_000;
        place.config.server.max_input_chars = 4_000_000;
        let web = place.serve().await;
        let session = web.session().await;
        let path = format!("{session}/turns?wait=20");
        assert_eq!(sized(&web, &path, 1_500_000, false).await.status, 200);
        let without_id = |answer: Answer| -> Value {
            answer.is_problem(413, "payload_too_large");
            let mut body = answer.body;
            body.as_object_mut().unwrap().remove("request_id");
            body
        };
        let whole = without_id(sized(&web, &path, 3_000_000, false).await);
        let chunked = without_id(sized(&web, &path, 3_000_000, true).await);
        assert_eq!(whole, chunked);
        let turns = web.get(&format!("{session}/turns")).await.body;
        assert_eq!(turns["data"].as_array().unwrap().len(), 1);
        web.stop().await;
    });
}
