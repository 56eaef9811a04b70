//! Limits of what executes at once and of how fast requests come: for a key, a
//! tenant and the server.

use std::time::Duration;

use futures::future::join_all;
use hermes_server::base::{Clock, Timestamp};
use hermes_server::config::Quota;
use hermes_server::model::principal::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::client::{Client, NewKey};
use crate::harness::http::{Answer, KEY, Web};
use crate::harness::script::guarded;
use crate::harness::{Place, lines, on_both};

const LONG: &str = "/sleep 60000\n/say late";

async fn session(client: &Client) -> String {
    let made = client.post("/v1/sessions", &json!({})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.header("location")
}

async fn say(client: &Client, session: &str, input: &str) -> Answer {
    client
        .post(&format!("{session}/turns"), &json!({ "input": input }))
        .await
}

/// A new session with a turn in it that waits for a person.
async fn parked(client: &Client) -> (String, Value) {
    let session = session(client).await;
    let input = format!("{}\n/then\n{LONG}", guarded("ran"));
    let asked = client
        .post(&format!("{session}/turns?wait=20"), &json!({ "input": input }))
        .await
        .expect(200);
    assert_eq!(asked["turn"]["status"], "waiting");
    (session, asked)
}

async fn of_tenant(web: &Web, name: &str) -> Client {
    let new = NewKey {
        tenant: web.tenant(name).await,
        user: "owner",
        scopes: &[Scope::Admin],
        tools: None,
    };
    web.with_key(new).await
}

#[track_caller]
fn assert_turn_limit(refused: &Answer, code: &str, limit: u32) {
    refused.is_problem(429, code);
    assert_eq!(refused.body["context"]["limit"], limit);
    assert!(1 <= refused.header("retry-after").parse::<u32>().unwrap());
}

#[test]
fn a_key_a_tenant_and_the_server_each_have_their_limit_of_turns() {
    on_both(async |mut place: Place| {
        place.config.limits.key.executing_turns = Some(1);
        place.config.limits.tenant.executing_turns = Some(2);
        place.config.limits.server.executing_turns = Some(3);
        let web = place.serve().await;
        let (one, two) = (web.owner().await, web.owner().await);
        say(&one, &session(&one).await, LONG).await.expect(202);
        // The same user with another key.
        let more = session(&one).await;
        assert_turn_limit(&say(&one, &more, LONG).await, "key_turn_limit", 1);
        say(&two, &more, LONG).await.expect(202);
        let third = web.owner().await;
        assert_turn_limit(&say(&third, &session(&third).await, LONG).await, "tenant_turn_limit", 2);

        let elsewhere = of_tenant(&web, "another").await;
        say(&elsewhere, &session(&elsewhere).await, LONG).await.expect(202);
        let last = of_tenant(&web, "third").await;
        let refused = session(&last).await;
        assert_turn_limit(&say(&last, &refused, LONG).await, "server_turn_limit", 3);
        let turns = last.get(&format!("{refused}/turns")).await.expect(200);
        assert_eq!(turns["data"], json!([]), "nothing of it was stored");
        web.stop().await;
    });
}

/// A token names no key, nor does the key of the environment: their users count.
#[test]
fn without_a_stored_key_the_user_is_limited() {
    on_both(async |mut place: Place| {
        place.config.limits.key.executing_turns = Some(1);
        let web = place.serve().await;
        let environment = web.client(KEY);
        say(&environment, &session(&environment).await, LONG).await.expect(202);
        let other = session(&environment).await;
        assert_turn_limit(&say(&environment, &other, LONG).await, "key_turn_limit", 1);
        let keyed = web.user("default", &[Scope::Admin]).await;
        say(&keyed, &other, LONG).await.expect(202);
        web.stop().await;
    });
}

#[test]
fn of_many_at_once_exactly_as_many_begin_as_may() {
    for widest in [false, true] {
        on_both(async |mut place: Place| {
            let limits = &mut place.config.limits;
            let limit = if widest { &mut limits.server } else { &mut limits.tenant };
            limit.executing_turns = Some(3);
            let web = place.serve().await;
            let owner = web.owner().await;
            let sessions = join_all((0..10).map(|_| session(&owner))).await;
            let answers = join_all(sessions.iter().map(|session| say(&owner, session, LONG))).await;
            let taken = answers.iter().filter(|answer| answer.status == 202).count();
            let refused = answers.iter().filter(|answer| answer.status == 429).count();
            assert_eq!((taken, refused), (3, 7));
            // One that ends makes room for exactly one.
            let begun = answers.iter().find(|answer| answer.status == 202).unwrap();
            let path = begun.header("location");
            owner.post(&format!("{path}/cancel"), &json!({})).await.expect(202);
            owner.get(&format!("{path}/stream")).await;
            let free: Vec<&String> = sessions
                .iter()
                .zip(&answers)
                .filter(|(_, answer)| answer.status == 429)
                .map(|(session, _)| session)
                .collect();
            // The owner task lets go of its place a moment after its last commit.
            let mut again = say(&owner, free[0], LONG).await;
            while again.status == 429 {
                again = say(&owner, free[0], LONG).await;
            }
            again.expect(202);
            assert_eq!(say(&owner, free[1], LONG).await.status, 429);
            web.stop().await;
        });
    }
}

#[test]
fn what_waits_does_not_count_and_is_not_held_up() {
    on_both(async |mut place: Place| {
        place.config.limits.tenant.executing_turns = Some(1);
        let web = place.serve().await;
        let owner = web.owner().await;
        let (waiting, asked) = parked(&owner).await;
        let (second, _) = parked(&owner).await;
        let busy = session(&owner).await;
        let running = say(&owner, &busy, LONG).await;
        assert_eq!(running.status, 202, "parked turns do not count: {}", running.body);

        // The queue takes turns, what would begin at once does not.
        let behind = json!({"input": "/say x", "on_busy": "enqueue"});
        let queued = owner.post(&format!("{waiting}/turns"), &behind).await.expect(202);
        assert_eq!(queued["status"], "queued");
        for on_busy in ["interrupt", "rollback"] {
            let body = json!({"input": LONG, "on_busy": on_busy});
            let refused = owner.post(&format!("{second}/turns"), &body).await;
            assert_turn_limit(&refused, "tenant_turn_limit", 1);
        }
        let shown = owner.get(&second).await.expect(200);
        assert_eq!(shown["required_actions"].as_array().unwrap().len(), 1);
        let turns = owner.get(&format!("{second}/turns")).await.expect(200);
        assert_eq!(turns["data"].as_array().unwrap().len(), 1);
        // In the place of one that executes, a turn does not add to them.
        let body = json!({"input": LONG, "on_busy": "interrupt"});
        let instead = owner.post(&format!("{busy}/turns"), &body).await;
        assert_eq!(instead.status, 202, "{}", instead.body);

        // A decision wakes its turn above the limit.
        let decision = format!(
            "/v1/approvals/{}/decision",
            asked["approvals"][0]["id"].as_str().unwrap()
        );
        let mut events = owner.stream(&web, &format!("{waiting}/stream")).await;
        owner.post(&decision, &json!({"choice": "once"})).await.expect(200);
        events.until("turn.resumed").await;
        events.until("tool_call.completed").await;
        let id = waiting.rsplit('/').next().unwrap().parse().unwrap();
        assert_eq!(lines(&web.server.workspace(id).join("ran")), 1);
        assert_turn_limit(&say(&owner, &session(&owner).await, LONG).await, "tenant_turn_limit", 1);
        web.stop().await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_turns_are_counted_on_all_servers_of_the_database() {
    let Some(mut place) = Place::postgres().await else {
        return;
    };
    place.config.limits.tenant.executing_turns = Some(1);
    let one = place.serve().await;
    place.config.server.data_dir = place.directory.join("other");
    let two = place.serve().await;
    let (here, there) = (one.client(KEY), two.client(KEY));
    say(&here, &session(&here).await, LONG).await.expect(202);
    let refused = say(&there, &session(&there).await, LONG).await;
    assert_turn_limit(&refused, "tenant_turn_limit", 1);
    two.stop().await;
    one.stop().await;
}

fn quota(requests: u32, seconds: u64) -> Option<Quota> {
    Some(Quota {
        requests,
        window: Duration::from_secs(seconds),
    })
}

#[track_caller]
fn assert_rates(answer: &Answer, policy: &str, left: &str) {
    assert_eq!(answer.header("ratelimit-policy"), policy, "{}", answer.body);
    assert_eq!(answer.header("ratelimit"), left);
}

#[test]
fn a_rate_is_told_kept_and_comes_back() {
    on_both(async |mut place: Place| {
        place.clock = Clock::stepped(Timestamp(1_769_851_800_000));
        place.config.limits.key.requests = quota(4, 60);
        place.config.limits.tenant.requests = quota(100, 600);
        let web = place.serve().await;
        let (owner, other) = (web.owner().await, web.owner().await);
        let policy = "\"key\";q=4;w=60, \"tenant\";q=100;w=600";
        let first = owner.get("/v1/sessions").await;
        assert_eq!(first.status, 200);
        assert_rates(&first, policy, "\"key\";r=3;t=15, \"tenant\";r=99;t=6");
        // A refusal of another kind counts as well, and tells.
        let missing = owner.get("/v1/sessions/ses_x").await;
        missing.is_problem(404, "not_found");
        assert_rates(&missing, policy, "\"key\";r=2;t=30, \"tenant\";r=98;t=12");
        owner.get("/v1/sessions").await.expect(200);
        assert_rates(
            &owner.get("/v1/sessions").await,
            policy,
            "\"key\";r=0;t=15, \"tenant\";r=96;t=24",
        );
        for _ in 0..3 {
            let refused = owner.post("/v1/sessions", &json!({})).await;
            refused.is_problem(429, "key_rate_limit");
            assert_eq!(refused.header("retry-after"), "15");
            assert_rates(&refused, policy, "\"key\";r=0;t=15, \"tenant\";r=96;t=24");
            assert_eq!(refused.body["context"], json!({"requests": 4, "window_seconds": 60}));
        }
        // Neither another key nor who asks without one is concerned.
        let untouched = other.get("/v1/sessions").await;
        assert_rates(&untouched, policy, "\"key\";r=3;t=15, \"tenant\";r=95;t=30");
        assert_eq!(untouched.body["data"], json!([]), "nothing was made");
        let open = web.anonymous().get("/health/live").await;
        assert_eq!((open.status, open.header("ratelimit")), (200, String::new()));
        let stranger = web.anonymous().get("/v1/sessions").await;
        stranger.is_problem(401, "unauthenticated");
        assert_eq!(stranger.header("ratelimit"), "");

        place.clock.step(Duration::from_secs(15));
        owner.get("/v1/sessions").await.expect(200);
        owner.get("/v1/sessions").await.problem(429, "key_rate_limit");
        web.stop().await;
    });
}

#[test]
fn the_rates_of_a_tenant_and_of_the_server_are_everybodys() {
    on_both(async |mut place: Place| {
        place.clock = Clock::stepped(Timestamp(1_769_851_800_000));
        place.config.limits.tenant.requests = quota(2, 60);
        place.config.limits.server.requests = quota(3, 30);
        let web = place.serve().await;
        let (ada, bob) = (web.owner().await, web.user("bob", &[Scope::SessionsRead]).await);
        let elsewhere = of_tenant(&web, "another").await;
        let first = ada.get("/v1/sessions").await;
        // What is left of the server would tell of other tenants.
        assert_rates(&first, "\"tenant\";q=2;w=60", "\"tenant\";r=1;t=30");
        bob.get("/v1/sessions").await.expect(200);
        let refused = ada.get("/v1/sessions").await;
        refused.is_problem(429, "tenant_rate_limit");
        assert_eq!(refused.header("retry-after"), "30");
        elsewhere.get("/v1/sessions").await.expect(200);
        let refused = elsewhere.get("/v1/sessions").await;
        refused.is_problem(429, "server_rate_limit");
        assert_eq!(refused.header("retry-after"), "10");
        assert_rates(
            &refused,
            "\"tenant\";q=2;w=60, \"server\";q=3;w=30",
            "\"tenant\";r=1;t=30, \"server\";r=0;t=10",
        );
        web.stop().await;
    });
}

/// The second half of FC-065, for rates: what was carried out is answered again.
#[test]
fn a_replay_meets_no_limit() {
    on_both(async |mut place: Place| {
        place.clock = Clock::stepped(Timestamp(1_769_851_800_000));
        place.config.limits.key.requests = quota(3, 60);
        place.config.limits.key.executing_turns = Some(1);
        let web = place.serve().await;
        let owner = web.owner().await;
        let keyed = async |path: &str, key: &str, body: Value| {
            let request = owner.request(Method::POST, path).header("Idempotency-Key", key);
            Answer::of(request.json(&body).send().await.unwrap()).await
        };
        let made = keyed("/v1/sessions", "a", json!({})).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let turns = format!("{}/turns", made.header("location"));
        let begun = keyed(&turns, "b", json!({ "input": LONG })).await;
        assert_eq!(begun.status, 202, "{}", begun.body);
        assert!(begun.header("ratelimit").starts_with("\"key\";r=1;"));
        for _ in 0..5 {
            let again = keyed(&turns, "b", json!({ "input": LONG })).await;
            assert_eq!(
                (again.status, again.header("idempotency-replayed")),
                (202, "true".to_owned())
            );
            assert_eq!(again.body["id"], begun.body["id"]);
            let again = keyed("/v1/sessions", "a", json!({})).await;
            assert_eq!((again.status, &again.body), (201, &made.body));
        }
        // They counted for nothing: one is still left, and then none.
        owner.get("/v1/sessions").await.expect(200);
        owner.get("/v1/sessions").await.problem(429, "key_rate_limit");
        keyed("/v1/sessions", "a", json!({})).await.expect(201);
        let other = keyed("/v1/sessions", "a", json!({"title": "x"})).await;
        other.problem(422, "idempotency_key_reused");
        let new = keyed("/v1/sessions", "c", json!({})).await;
        new.problem(429, "key_rate_limit");
        place.clock.step(Duration::from_secs(60));
        let sessions = owner.get("/v1/sessions").await.expect(200);
        assert_eq!(sessions["data"].as_array().unwrap().len(), 1, "refused is not made");
        keyed("/v1/sessions", "c", json!({})).await.expect(201);
        web.stop().await;
    });
}

#[test]
fn a_stream_tells_the_rates_at_its_head() {
    on_both(async |mut place: Place| {
        place.config.limits.key.requests = quota(10, 86_400);
        let web = place.serve().await;
        let owner = web.owner().await;
        let turns = format!("{}/turns", session(&owner).await);
        let request = owner.request(Method::POST, &turns).json(&json!({"input": "/say x"}));
        let events = web.stream(request).await;
        assert!(
            events.response_headers["ratelimit"]
                .to_str()
                .unwrap()
                .starts_with("\"key\";r=8;")
        );
        events.rest().await;
        web.stop().await;
    });
}

#[tokio::test]
async fn where_no_rate_is_limited_none_is_told() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let answer = web.get("/v1/sessions").await;
    assert_eq!(
        (answer.header("ratelimit"), answer.header("ratelimit-policy")),
        (String::new(), String::new())
    );
    web.stop().await;
}
