//! What was spent, as a client asks for it: grouped, filtered, in pages, and by
//! each caller no more than its own.

use hermes_server::model::principal::Scope;
use hermes_server::model::usage::Price;
use serde_json::{Value, json};

use super::Talk;
use crate::harness::client::{Client, NewKey};
use crate::harness::on_both;

async fn grouped(client: &Client, query: &str) -> Vec<Value> {
    let page = client.get(&format!("/v1/usage?{query}")).await.expect(200);
    page["data"].as_array().unwrap().clone()
}

fn total(entries: &[Value], field: &str) -> u64 {
    entries.iter().map(|entry| entry[field].as_u64().unwrap()).sum()
}

async fn turns(client: &Client, web: &crate::harness::http::Web, count: usize) -> Vec<String> {
    let mut talk = Talk::new(web, client, &json!({})).await;
    let mut made = Vec::new();
    for _ in 0..count {
        made.push(talk.say("/say one two three").await);
        talk.events.until("turn.completed").await;
    }
    made
}

#[test]
fn usage_is_summed_up_by_whatever_a_client_asks() {
    on_both(async |mut place| {
        let price = Price {
            input: 2_000_000_000,
            cached_input: 2_000_000_000,
            output: 8_000_000_000,
            reasoning: 8_000_000_000,
        };
        place.config.usage.prices.0.insert("demo".to_owned(), price);
        place.config.usage.currency = "EUR".to_owned();
        let web = place.serve().await;
        let scopes = [Scope::SessionsRead, Scope::SessionsWrite, Scope::TurnsWrite];
        let (alice, bob) = (web.user("alice", &scopes).await, web.user("bob", &scopes).await);
        let made = turns(&alice, &web, 3).await;
        turns(&bob, &web, 1).await;
        let owner = web.owner().await;

        let by_day = grouped(&owner, "").await;
        let today = web.server.engine.clock().now().day();
        assert_eq!(
            (by_day.len(), &by_day[0]["key"], &by_day[0]["calls"]),
            (1, &json!(today), &json!(4))
        );
        let day = &by_day[0];
        let cost = day["input_tokens"].as_u64().unwrap() * 2000 + day["output_tokens"].as_u64().unwrap() * 8000;
        assert_eq!((&day["cost_nanos"], &day["currency"]), (&json!(cost), &json!("EUR")));
        assert_eq!(day["output_tokens"], 12);
        for (group, keys) in [
            ("model", vec!["demo"]),
            ("purpose", vec!["turn"]),
            ("user", vec!["bob", "alice"]),
        ] {
            let entries = grouped(&owner, &format!("group_by={group}")).await;
            let found: Vec<&str> = entries.iter().map(|entry| entry["key"].as_str().unwrap()).collect();
            assert_eq!(found, keys, "{group}");
            assert_eq!(total(&entries, "cost_nanos"), cost, "{group}");
        }
        let by_turn = grouped(&alice, "group_by=turn").await;
        let newest: Vec<&str> = by_turn.iter().map(|entry| entry["key"].as_str().unwrap()).collect();
        let expected: Vec<&str> = made.iter().rev().map(String::as_str).collect();
        assert_eq!(newest, expected, "nobody sees what others spent");
        assert_eq!(grouped(&alice, "group_by=user&user=bob").await, [] as [Value; 0]);

        // A session says the same of itself, also after it is gone.
        let by_session = grouped(&alice, "group_by=session").await;
        let session = by_session[0]["key"].as_str().unwrap();
        let shown = alice.get(&format!("/v1/sessions/{session}")).await.expect(200);
        for (field, own) in [
            ("input_tokens", "input_tokens"),
            ("cost_nanos", "cost_nanos"),
            ("calls", "steps"),
        ] {
            assert_eq!(by_session[0][field], shown["usage"][own], "{field}");
        }
        assert_eq!(alice.delete(&format!("/v1/sessions/{session}")).await.status, 204);
        assert_eq!(grouped(&alice, "group_by=session").await, by_session);

        for (span, calls) in [
            (format!("since={today}"), 4),
            (format!("until={today}"), 0),
            ("since=2026-01-01&until=2026-01-02T00:00:00Z".to_owned(), 0),
            (format!("since={today}&session_id={session}"), 3),
            ("model=other".to_owned(), 0),
            ("purpose=judge".to_owned(), 0),
        ] {
            assert_eq!(total(&grouped(&owner, &span).await, "calls"), calls, "{span}");
        }
        for wrong in ["group_by=hour", "since=yesterday", "purpose=fun", "limit=0"] {
            owner
                .get(&format!("/v1/usage?{wrong}"))
                .await
                .problem(400, "invalid_request");
        }
        let tenant = web.tenant("other").await;
        let stranger = NewKey {
            tenant,
            user: "alice",
            scopes: &[Scope::Admin],
            tools: None,
        };
        assert_eq!(grouped(&web.with_key(stranger).await, "").await, [] as [Value; 0]);
        web.stop().await;
    });
}

#[test]
fn sums_come_in_pages_whose_cursor_is_theirs_alone() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut made = turns(&owner, &web, 5).await;
        made.reverse();
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = owner
                .get(&format!("/v1/usage?group_by=turn&limit=2{after}"))
                .await
                .expect(200);
            let keys = page["data"].as_array().unwrap().iter();
            seen.extend(keys.map(|entry| entry["key"].as_str().unwrap().to_owned()));
            let Some(cursor) = page["next_cursor"].as_str() else {
                break;
            };
            after = format!("&after={cursor}");
            owner
                .get(&format!("/v1/usage?group_by=session{after}"))
                .await
                .problem(400, "invalid_cursor");
        }
        assert_eq!(seen, made);
        web.stop().await;
    });
}
