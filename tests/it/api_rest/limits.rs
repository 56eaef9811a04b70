//! Grants that are held to something: patterns, a number of uses, a time. And
//! grants that are given before anybody is asked.

use hermes_server::base::Timestamp;
use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use super::{Talk, decision_of};
use crate::harness::client::Client;
use crate::harness::http::Web;
use crate::harness::script::{guarded, terminal};
use crate::harness::{lines, on_both};

/// Answers with `session` or `always`, held to `limits`; the grant.
async fn granted(client: &Client, approval: &Value, choice: &str, limits: Value) -> Value {
    let body = json!({"choice": choice, "grant": limits});
    let decided = client.post(&decision_of(approval), &body).await.expect(200);
    assert_eq!(decided["decision"]["grant"]["max_uses"], limits["max_uses"]);
    let path = format!("/v1/grants/{}", decided["decision"]["grant_id"].as_str().unwrap());
    client.get(&path).await.expect(200)
}

fn path(grant: &Value) -> String {
    format!("/v1/grants/{}", grant["id"].as_str().unwrap())
}

fn ran(web: &Web, talk: &Talk, name: &str) -> usize {
    lines(&web.server.workspace(talk.session.parse().unwrap()).join(name))
}

async fn deny(client: &Client, approval: &Value) {
    client
        .post(&decision_of(approval), &json!({"choice": "deny"}))
        .await
        .expect(200);
}

#[test]
fn a_grant_covers_what_its_patterns_match_and_counts_its_uses() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let approval = talk.ask(&terminal("rm -rf build/a")).await;
        let limits = json!({"arguments": {"command": "rm -rf build/*"}, "max_uses": 2});
        let grant = granted(&owner, &approval, "session", limits.clone()).await;
        assert_eq!((&grant["limits"]["max_uses"], &grant["uses"]), (&json!(2), &json!(0)));
        talk.events.until("turn.completed").await;
        // The same answer again is no error, another one is.
        let body = json!({"choice": "session", "grant": limits});
        owner.post(&decision_of(&approval), &body).await.expect(200);
        owner
            .post(&decision_of(&approval), &json!({"choice": "session"}))
            .await
            .problem(409, "approval_resolved");

        for other in ["rm -rf src/a", "rm -rf build/..", "rm -rf build/a src"] {
            let asked = talk.ask(&terminal(other)).await;
            deny(&owner, &asked).await;
            talk.events.until("turn.completed").await;
        }
        for covered in ["rm -rf build/b", "rm -rf build/c"] {
            talk.say(&terminal(covered)).await;
            talk.events.until("turn.completed").await;
        }
        talk.ask(&terminal("rm -rf build/d")).await;
        let grant = owner.get(&path(&grant)).await.expect(200);
        assert_eq!(grant["uses"], 2);
        let uses = owner.get(&format!("{}/uses?limit=1", path(&grant))).await.expect(200);
        assert_eq!(
            (&uses["has_more"], &uses["data"][0]["tool"]),
            (&json!(true), &json!("terminal"))
        );
        let after = uses["next_cursor"].as_str().unwrap();
        let rest = owner
            .get(&format!("{}/uses?limit=1&after={after}", path(&grant)))
            .await
            .expect(200);
        assert_eq!(rest["has_more"], false);
        assert_eq!(rest["data"][0]["session_id"], json!(talk.session));
        assert!(rest["data"][0]["used_at"].as_str() <= uses["data"][0]["used_at"].as_str());
        web.stop().await;
    });
}

#[test]
fn a_grant_for_paths_covers_commands_whose_paths_are_known() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let approval = talk.ask(&terminal("rm -rf build/a")).await;
        granted(&owner, &approval, "session", json!({"paths": ["build/**"]})).await;
        talk.events.until("turn.completed").await;
        talk.say(&terminal("rm -rf build/b/c && rm -r build/d")).await;
        talk.events.until("turn.completed").await;
        for other in [
            "rm -rf build/b src",
            "cd build && rm -rf b",
            "rm -rf build/$X",
            "rm -rf build/../src",
        ] {
            let asked = talk.ask(&terminal(other)).await;
            deny(&owner, &asked).await;
            talk.events.until("turn.completed").await;
        }
        web.stop().await;
    });
}

#[test]
fn calls_side_by_side_never_share_the_last_use() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut first = Talk::new(&web, &owner, &json!({})).await;
        let approval = first.ask(&guarded("a")).await;
        let grant = granted(&owner, &approval, "always", json!({"max_uses": 3})).await;
        first.events.until("turn.completed").await;
        let mut talks = Vec::new();
        for _ in 0..8 {
            talks.push(Talk::new(&web, &owner, &json!({})).await);
        }
        futures::future::join_all(talks.iter().map(async |talk| talk.say(&guarded("b")).await)).await;
        let (mut done, mut waiting) = (0, 0);
        for talk in &mut talks {
            loop {
                match talk.events.next().await.unwrap().event.as_str() {
                    "turn.completed" => done += 1,
                    "turn.waiting" => waiting += 1,
                    _ => continue,
                }
                break;
            }
        }
        assert_eq!((done, waiting), (3, 5));
        assert_eq!(talks.iter().map(|talk| ran(&web, talk, "b")).sum::<usize>(), 3);
        assert_eq!(owner.get(&path(&grant)).await.expect(200)["uses"], 3);
        let uses = owner.get(&format!("{}/uses", path(&grant))).await.expect(200);
        assert_eq!(uses["data"].as_array().unwrap().len(), 3);
        web.stop().await;
    });
}

#[test]
fn a_grant_that_is_revoked_or_ends_while_a_turn_runs_covers_nothing_more_of_it() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (owner, clock) = (web.owner().await, web.server.engine.clock().clone());
        for by_time in [false, true] {
            let mut talk = Talk::new(&web, &owner, &json!({})).await;
            let approval = talk.ask(&guarded("a")).await;
            let end = Timestamp(clock.now().0 + 3_000);
            let limits = if by_time { json!({"expires_at": end}) } else { json!({}) };
            let body = json!({"choice": "session", "grant": limits});
            let decided = owner.post(&decision_of(&approval), &body).await.expect(200);
            talk.events.until("turn.completed").await;
            // Both are proposed under the grant; the second starts after it ended.
            let hold = terminal("while [ ! -e go ]; do sleep 0.02; done");
            talk.say(&format!("{hold}\n{}", guarded("b"))).await;
            talk.events.until("tool_call.started").await;
            if by_time {
                clock.sleep_until(end).await;
            } else {
                let grant = decided["decision"]["grant_id"].as_str().unwrap();
                assert_eq!(owner.delete(&format!("/v1/grants/{grant}")).await.status, 204);
            }
            let workspace = web.server.workspace(talk.session.parse().unwrap());
            std::fs::write(workspace.join("go"), "").unwrap();
            let asked = talk.asked().await;
            assert_eq!(asked.len(), 1);
            assert_eq!(ran(&web, &talk, "b"), 0);
            deny(&owner, &asked[0]).await;
            talk.events.until("turn.completed").await;
        }
        web.stop().await;
    });
}

#[test]
fn a_grant_is_given_before_anybody_is_asked() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let judged = owner
            .post("/v1/guard/check", &json!({"command": "rm -rf build/a"}))
            .await
            .expect(200);
        let keys: Vec<&Value> = judged["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| &found["key"])
            .collect();
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let mut other = Talk::new(&web, &owner, &json!({})).await;
        let new = json!({"tool": "terminal", "keys": keys, "session_id": talk.session,
            "limits": {"arguments": {"command": "rm -rf build/*"}}});
        let answer = owner.post("/v1/grants", &new).await;
        let location = answer.header("location");
        let grant = answer.expect(201);
        assert_eq!((&grant["scope"], location), (&json!("session"), path(&grant)));
        talk.say(&terminal("rm -rf build/a")).await;
        talk.events.until("turn.completed").await;
        assert_eq!(owner.get(&path(&grant)).await.expect(200)["uses"], 1);
        other.ask(&terminal("rm -rf build/a")).await;

        let decider = web.user("owner", &[Scope::ApprovalsDecide, Scope::SessionsRead]).await;
        decider.post("/v1/grants", &new).await.problem(403, "forbidden");
        let eve = web.user("eve", &[Scope::GrantsWrite, Scope::SessionsRead]).await;
        eve.post("/v1/grants", &new).await.problem(404, "not_found");
        eve.get(&path(&grant)).await.problem(404, "not_found");
        eve.get(&format!("{}/uses", path(&grant)))
            .await
            .problem(404, "not_found");
        for (change, pointer) in [
            (json!({"tool": "teleport"}), "/tool"),
            (json!({"keys": []}), "/keys"),
            (json!({"keys": [""]}), "/keys/0"),
            (json!({"limits": {"arguments": {"x": "y"}}}), "/limits/arguments/x"),
            (json!({"limits": {"max_uses": 0}}), "/limits/max_uses"),
            (json!({"limits": {"uses": 1}}), "/limits/uses"),
        ] {
            let mut wrong = new.clone();
            wrong
                .as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            let problem = owner.post("/v1/grants", &wrong).await.problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{change}");
        }
        web.stop().await;
    });
}

#[test]
fn limits_that_do_not_fit_leave_the_approval_pending() {
    on_both(async |mut place| {
        place.config.approvals.allow_permanent = false;
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let approval = talk.ask(&guarded("a")).await;
        for (body, pointer) in [
            (json!({"choice": "once", "grant": {}}), "/grant"),
            (json!({"choice": "deny", "grant": {"max_uses": 1}}), "/grant"),
            (
                json!({"choice": "session", "grant": {"arguments": {"cmd": "x"}}}),
                "/grant/arguments/cmd",
            ),
            (
                json!({"choice": "session", "grant": {"paths": ["../x"]}}),
                "/grant/paths/0",
            ),
            (
                json!({"choice": "session", "grant": {"expires_at": "2020-01-01T00:00:00Z"}}),
                "/grant/expires_at",
            ),
        ] {
            let problem = owner
                .post(&decision_of(&approval), &body)
                .await
                .problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
        }
        let one = json!({"approval_id": approval["id"], "choice": "session", "grant": {"paths": [""]}});
        let batch = json!({"mode": "atomic", "decisions": [one]});
        let problem = owner
            .post(&talk.path("/approvals/decisions"), &batch)
            .await
            .problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/decisions/0/grant/paths/0");
        let permanent = json!({"tool": "terminal", "keys": ["k"]});
        owner
            .post("/v1/grants", &permanent)
            .await
            .problem(400, "choice_not_offered");

        let one = json!({"approval_id": approval["id"], "choice": "session", "grant": {"max_uses": 1}});
        let batch = json!({"mode": "each", "decisions": [one]});
        let outcome = owner.post(&talk.path("/approvals/decisions"), &batch).await.expect(200);
        assert_eq!(outcome["outcomes"][0]["approval"]["decision"]["grant"]["max_uses"], 1);
        talk.events.until("turn.completed").await;
        web.stop().await;
    });
}
