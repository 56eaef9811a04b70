//! The audit trail as a client meets it: what is in it and what is not, how it is
//! read, and that an export proves itself.

use std::time::{Duration, Instant};

use hermes_server::base::Clock;
use hermes_server::model::audit::export::{Proof, Verifier};
use hermes_server::model::principal::Scope;
use hermes_server::store::Fate;
use serde_json::{Value, json};

use crate::api_rest::{Talk, decision_of};
use crate::harness::client::{Client, NewKey};
use crate::harness::script::{guarded, terminal};
use crate::harness::{PATIENCE, Place, new_session, on_both, probe};

async fn entries(client: &Client, query: &str) -> Vec<Value> {
    let page = client.get(&format!("/v1/audit?limit=200{query}")).await.expect(200);
    let mut entries = page["data"].as_array().unwrap().clone();
    entries.reverse();
    entries
}

fn actions(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect()
}

fn one<'e>(entries: &'e [Value], action: &str) -> &'e Value {
    entries
        .iter()
        .find(|entry| entry["action"] == action)
        .unwrap_or_else(|| panic!("no {action} in {:?}", actions(entries)))
}

async fn exported(client: &Client) -> String {
    let request = client.request(reqwest::Method::GET, "/v1/audit/export");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    answer.text().await.unwrap()
}

fn proved(export: &str) -> Proof {
    let mut verifier = Verifier::new(None);
    export.lines().for_each(|line| verifier.line(line).unwrap());
    verifier.finish().unwrap()
}

/// Waits until every entry has its place in the chain.
async fn chained(client: &Client) -> Proof {
    let all = async {
        loop {
            let proof = proved(&exported(client).await);
            if proof.unchained.is_empty() {
                return proof;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("chained in time")
}

#[test]
fn what_was_done_is_told_with_who_did_it_and_never_with_what_was_said() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let key = owner.get("/v1/keys").await.expect(200)["data"][0]["id"].clone();
        let secret = "whispered";
        let mut talk = Talk::new(&web, &owner, &json!({"title": secret, "external_id": secret})).await;
        let change = json!({"approvals": {"mode": "manual", "recovery": "ask"}, "title": secret});
        owner.patch(&talk.path(""), &change).await.expect(200);
        let approval = talk.ask(&guarded(secret)).await;
        let answer = json!({"choice": "session", "reason": secret, "grant": {"max_uses": 5}});
        owner.post(&decision_of(&approval), &answer).await.expect(200);
        talk.events.until("turn.completed").await;
        talk.say(&format!("{}\n{}", guarded(secret), terminal("exit 3"))).await;
        talk.events.until("turn.completed").await;
        talk.say(&terminal("rm -rf /")).await;
        talk.events.until("turn.completed").await;
        let grants = owner.get("/v1/grants").await.expect(200);
        let grant = grants["data"][0]["id"].as_str().unwrap();
        for _ in 0..2 {
            assert_eq!(owner.delete(&format!("/v1/grants/{grant}")).await.status, 204);
        }
        assert_eq!(owner.delete(&talk.path("")).await.status, 204);
        let found = entries(&owner, &format!("&session_id={}", talk.session)).await;
        assert_eq!(
            actions(&found),
            [
                "session.created",
                "session.policy_changed",
                "approval.requested",
                "grant.created",
                "approval.decided",
                "call.executed",
                "grant.used",
                "call.executed",
                "call.executed",
                "call.refused",
                "grant.revoked",
                "session.deleted",
            ]
        );
        for entry in &found {
            let by_nobody = ["call.executed"].contains(&entry["action"].as_str().unwrap());
            assert_eq!((&entry["actor"], &entry["user_id"]), (&json!("owner"), &json!("owner")));
            assert!(by_nobody || entry["key_id"] == key, "{entry}");
        }
        let changed = one(&found, "session.policy_changed");
        assert_eq!(
            changed["fields"],
            json!(["approvals", "approvals.mode=\"manual\"", "approvals.recovery=\"ask\""])
        );
        let decided = one(&found, "approval.decided");
        assert_eq!(
            (&decided["decision"], &decided["verdict"]),
            (&json!("session"), &json!("ask"))
        );
        assert_eq!(
            (&decided["approval_id"], &decided["grant_id"]),
            (&approval["id"], &json!(grant))
        );
        assert_eq!(decided["rules"][0], approval["findings"][0]["key"]);
        let executed = &found[5];
        assert_eq!(
            (&executed["outcome"], &executed["exit_code"]),
            (&json!("succeeded"), &json!(0))
        );
        assert_eq!(
            (&executed["tool"], &executed["decision"]),
            (&json!("terminal"), &json!("session"))
        );
        assert_eq!(one(&found, "grant.used")["tool_call_id"], found[7]["tool_call_id"]);
        assert_eq!(found[8]["exit_code"], 3);
        assert_eq!(one(&found, "call.refused")["verdict"], "deny");
        let whole = exported(&owner).await;
        for hidden in [secret, "never-there", "rm -rf", "exit 3"] {
            assert!(!whole.contains(hidden), "{hidden}");
        }
        web.stop().await;
    });
}

#[test]
fn keys_are_told_of_when_they_are_made_revoked_and_shown_after_their_end() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let new = json!({"name": "n", "scopes": ["sessions:read"], "tools": ["todo"]});
        let made = owner.post("/v1/keys", &new).await.expect(201);
        let path = format!("/v1/keys/{}", made["id"].as_str().unwrap());
        assert_eq!(owner.delete(&path).await.status, 204);
        let late = web.client(made["key"].as_str().unwrap());
        for _ in 0..5 {
            late.get("/v1/sessions").await.problem(401, "unauthenticated");
        }
        let about = async || {
            let mut found = entries(&owner, "").await;
            found.retain(|entry| entry["target_key_id"] == made["id"]);
            found
        };
        let told = async {
            loop {
                let found = about().await;
                if found.len() == 3 {
                    return found;
                }
                tokio::task::yield_now().await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, told).await.unwrap();
        assert_eq!(actions(&found), ["key.created", "key.revoked", "key.refused"]);
        assert_eq!(found[0]["fields"], json!(["sessions:read", "tool:todo"]));
        assert_eq!(
            (&found[1]["actor"], &found[2]["actor"]),
            (&json!("owner"), &json!("system"))
        );
        assert!(!exported(&owner).await.contains(made["key"].as_str().unwrap()));
        web.stop().await;
    });
}

#[test]
fn the_trail_is_read_in_pages_by_filters_and_by_those_it_is_about() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let eve = web.user("eve", &[Scope::AuditRead, Scope::SessionsWrite]).await;
        for client in [&owner, &eve, &owner] {
            client.post("/v1/sessions", &json!({})).await.expect(201);
        }
        let made = "&action=session.created";
        assert_eq!(entries(&owner, made).await.len(), 3);
        let mine = entries(&eve, "").await;
        assert!(mine.iter().all(|entry| entry["user_id"] == "eve") && !mine.is_empty());
        assert_eq!(
            entries(&owner, &format!("{made}&actor=eve")).await,
            entries(&eve, made).await
        );
        let all = entries(&owner, made).await;
        let (first, last) = (all[0]["at"].as_str().unwrap(), all[2]["at"].as_str().unwrap());
        assert_eq!(
            entries(&owner, &format!("{made}&until={first}")).await,
            [] as [Value; 0]
        );
        let since = entries(&owner, &format!("{made}&since={last}")).await;
        assert!(since.iter().any(|entry| entry["id"] == all[2]["id"]));
        let page = owner.get("/v1/audit?action=session.created&limit=2").await.expect(200);
        let after = page["next_cursor"].as_str().unwrap();
        let rest = owner
            .get(&format!("/v1/audit?action=session.created&limit=2&after={after}"))
            .await
            .expect(200);
        assert_eq!(rest["data"].as_array().unwrap().len(), 1);
        owner
            .get(&format!("/v1/audit?limit=2&after={after}"))
            .await
            .problem(400, "invalid_cursor");
        owner
            .get("/v1/audit?action=session.made")
            .await
            .problem(400, "invalid_request");
        // Withheld is what is about others; the chain is whole all the same.
        chained(&owner).await;
        let (whole, part) = (exported(&owner).await, exported(&eve).await);
        assert_eq!(proved(&whole).head_hash, proved(&part).head_hash);
        assert!(part.contains("\"entry\":null") && !whole.contains("\"entry\":null"));
        let tenant = web.tenant("another").await;
        let stranger = web
            .with_key(NewKey {
                tenant,
                user: "owner",
                scopes: &[Scope::Admin],
                tools: None,
            })
            .await;
        assert_eq!(chained(&stranger).await.chained, 1, "its own key");
        web.stop().await;
    });
}

/// How long it takes until a new entry has its place in the chain.
async fn time_to_chain(client: &Client) -> Duration {
    client.post("/v1/sessions", &json!({})).await.expect(201);
    let begun = Instant::now();
    while !proved(&exported(client).await).unchained.is_empty() {
        tokio::task::yield_now().await;
    }
    begun.elapsed()
}

#[test]
fn an_entry_is_chained_within_a_second() {
    on_both(async |mut place| {
        // Nothing is looked for: the commit itself wakes who chains.
        place.config.lease.duration = Duration::from_secs(3600);
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut times = Vec::new();
        // A machine may stand still for a while, but not each time.
        while times.len() < 5 && times.iter().all(|time| Duration::from_secs(1) <= *time) {
            let time = tokio::time::timeout(PATIENCE, time_to_chain(&owner)).await;
            times.push(time.expect("it is chained at all"));
        }
        assert!(*times.last().unwrap() < Duration::from_secs(1), "{times:?}");
        web.stop().await;
    });
}

#[test]
fn what_a_dead_server_left_is_chained_when_another_finds_it_dead() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let Some(mut place) = Place::postgres().await else {
            eprintln!("skipped on Postgres: TEST_DATABASE_URL is not set");
            return;
        };
        // It looks for the dead three times a lease, and for entries once. What it
        // writes itself is gathered for as long as its clock stands still.
        place.config.lease.duration = Duration::from_secs(18);
        place.clock = Clock::stepped(place.clock.now());
        let web = place.serve().await;
        let owner = web.owner().await;
        let own = place.config.server.data_dir.clone();
        place.config.server.data_dir = own.with_file_name("second");
        let never = |label| {
            if label == "audit.chained" {
                Fate::FailBefore
            } else {
                Fate::Go
            }
        };
        let dying = place.start_probed(probe(never)).await;
        dying.session().await;
        let left = |proof: &Proof| proof.unchained.len();
        assert_ne!(left(&proved(&exported(&owner).await)), 0, "nobody has chained it");
        dying.crash().await;
        let found = tokio::time::timeout(Duration::from_secs(15), chained(&owner)).await;
        assert!(found.is_ok(), "it is left for the next lease");
        web.stop().await;
    });
}

#[test]
fn servers_that_chain_side_by_side_make_one_chain() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let Some(mut place) = Place::postgres().await else {
            eprintln!("skipped on Postgres: TEST_DATABASE_URL is not set");
            return;
        };
        let web = place.serve().await;
        let owner = web.owner().await;
        let own = place.config.server.data_dir.clone();
        place.config.server.data_dir = own.with_file_name("second");
        let second = place.start().await;
        let servers = [&web.server, &second];
        let made = (0..60).map(|number| {
            let server = servers[number % 2];
            async move {
                server
                    .engine
                    .create_session(&server.scope, new_session())
                    .await
                    .unwrap()
            }
        });
        futures::future::join_all(made).await;
        let proof = chained(&owner).await;
        assert!(60 < proof.chained, "{proof:?}");
        second.stop().await;
        web.stop().await;
    });
}
