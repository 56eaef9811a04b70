//! Jobs with long histories, and many answers that wait to be told: each in its
//! turn, none in another's way, in bounded memory.

use std::collections::BTreeSet;
use std::time::Duration;

use hermes_server::base::Timestamp;
use hermes_server::model::id::{JobId, JobRunId, SessionId, TurnId};
use hermes_server::model::job_task::Delivery;
use hermes_server::store::jobs::NewRun;
use serde_json::{Value, json};

use super::{delivered, path, runs};
use crate::harness::client::Client;
use crate::harness::http::Web;
use crate::harness::{PATIENCE, on_both};

/// The most that the tests' process may grow while it lists and delivers.
const MAX_GROWTH_KB: u64 = 64 << 10;

/// The most memory that this process ever had.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A session and the turn in it that a run was.
type Ran = (SessionId, TurnId);

/// Writes runs of a job as if they had been, all of them the same turn.
async fn remember(web: &Web, job: &Value, ran: Ran, (count, delivery): (usize, Delivery)) {
    let job_id: JobId = job["id"].as_str().unwrap().parse().unwrap();
    let clock = web.server.engine.clock().clone();
    for _ in 0..count.div_ceil(500) {
        let clock = clock.clone();
        let written = web.server.scope.write("test", move |mut rows| {
            Box::pin(async move {
                for _ in 0..count.min(500) {
                    let run = NewRun {
                        id: JobRunId::new(&clock),
                        job_id,
                        due_at: Timestamp(1),
                        triggered: false,
                        outcome: None,
                        session_id: Some(ran.0),
                        turn_id: Some(ran.1),
                        delivery: Some(delivery),
                        at: clock.now(),
                    };
                    rows.add_job_run("owner", &run).await?;
                }
                Ok(())
            })
        });
        written.await.unwrap();
    }
}

/// A job that has run once, and that run.
async fn ran(owner: &Client, body: &Value) -> (Value, Ran) {
    let job = owner.post("/v1/jobs", body).await.expect(201);
    owner.post(&path(&job, "/trigger"), &json!({})).await.expect(200);
    let run = runs(owner, &job, 1).await[0].clone();
    let id = |name: &str| run[name].as_str().unwrap().to_owned();
    (job, (id("session_id").parse().unwrap(), id("turn_id").parse().unwrap()))
}

/// All items of a list, page by page.
async fn all(client: &Client, at: &str) -> Vec<Value> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{at}?limit=200{after}")).await.expect(200);
        let items = page["data"].as_array().unwrap();
        assert!(items.len() <= 200);
        found.extend(items.iter().cloned());
        match page["next_cursor"].as_str().filter(|_| page["has_more"] == true) {
            Some(cursor) => after = format!("&after={cursor}"),
            None => return found,
        }
    }
}

/// The ids of a job's runs, newest first.
async fn history(owner: &Client, job: &Value) -> Vec<String> {
    let found = all(owner, &path(job, "/runs")).await;
    found.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ten_thousand_outputs_are_listed_in_parts_and_no_more_than_the_newest_are_kept() {
    on_both(async |mut place| {
        place.config.cron.runs_kept = 10_000;
        let web = place.serve().await;
        let owner = web.owner().await;
        let (job, one) = ran(&owner, &json!({"prompt": "/say it rains", "schedule": "every 1h"})).await;
        remember(&web, &job, one, (10_000, Delivery::Delivered)).await;
        let before = peak_kb();
        let listed = history(&owner, &job).await;
        assert_eq!(listed.len(), 10_001, "the first, and those that were written");
        assert!(
            listed.is_sorted_by(|newer, older| newer > older),
            "each once, newest first"
        );
        let trigger = async |owner: &Client, count: usize| {
            let newest = async || owner.get(&path(&job, "/runs?limit=1")).await.expect(200)["data"][0].clone();
            let before = newest().await["id"].clone();
            owner.post(&path(&job, "/trigger"), &json!({})).await.expect(200);
            let look = async {
                loop {
                    let run = newest().await;
                    if run["id"] != before && run["status"] != "running" {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(PATIENCE, look).await.expect("it runs in time");
            let kept = history(owner, &job).await;
            assert_eq!(kept.len(), count);
            kept
        };
        let kept = trigger(&owner, 10_000).await;
        let known: BTreeSet<&String> = listed.iter().collect();
        let new = kept.iter().filter(|id| !known.contains(id)).count();
        assert_eq!((new, kept.last()), (1, listed.get(9_998)), "the oldest two went");
        let grown = peak_kb().saturating_sub(before);
        assert!(grown < MAX_GROWTH_KB, "{grown} kB more");
        web.stop().await;

        // Who keeps less later has less with the next run.
        place.config.cron.runs_kept = 50;
        let web = place.serve().await;
        let owner = web.owner().await;
        let kept = trigger(&owner, 50).await;
        assert!(known.contains(&kept[2]) && !known.contains(&kept[0]), "the newest stay");
        web.stop().await;
    });
}

#[test]
fn an_answer_that_nobody_can_be_told_is_an_error_of_the_job() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let origin = owner.post("/v1/sessions", &json!({})).await.expect(201)["id"].clone();
        let body =
            json!({"prompt": "/say x", "schedule": "every 1h", "deliver": "origin", "origin_session_id": origin});
        let job = owner.post("/v1/jobs", &body).await.expect(201);
        assert_eq!(job["last_delivery"], Value::Null);
        owner
            .delete(&format!("/v1/sessions/{}", origin.as_str().unwrap()))
            .await;
        owner.post(&path(&job, "/trigger"), &json!({})).await.expect(200);
        delivered(&owner, &job, "failed").await;
        assert_eq!(owner.get(&path(&job, "")).await.expect(200)["last_delivery"], "failed");
        let listed = owner.get("/api/jobs").await.expect(200);
        let of_original = &listed["jobs"][0];
        assert!(of_original["last_delivery_error"].is_string(), "{listed}");
        web.stop().await;
    });
}

/// How many answers of jobs a session was told.
async fn told(client: &Client, session: &Value) -> usize {
    let at = format!("/v1/sessions/{}/messages", session.as_str().unwrap());
    let said = all(client, &at).await;
    let of_job = |said: &&Value| {
        said["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("[Job \"News\"]"))
    };
    said.iter().filter(of_job).count()
}

async fn until_told(client: &Client, session: &Value, count: usize) {
    let look = async {
        while told(client, session).await < count {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE * 2, look)
        .await
        .expect("all is told in time");
    assert_eq!(told(client, session).await, count);
}

#[test]
fn answers_that_wait_for_a_busy_session_stand_in_nobodys_way_and_come_once_each() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let session = async || owner.post("/v1/sessions", &json!({})).await.expect(201)["id"].clone();
        let (busy, idle) = (session().await, session().await);
        let body = |origin: &Value| {
            json!({"prompt": "/say it rains", "schedule": "every 1h", "name": "News", "deliver": "origin",
                "origin_session_id": origin})
        };
        let (job, one) = ran(&owner, &body(&busy)).await;
        delivered(&owner, &job, "delivered").await;
        assert_eq!(
            owner.get(&path(&job, "")).await.expect(200)["last_delivery"],
            "delivered"
        );
        let turns = format!("/v1/sessions/{}/turns", busy.as_str().unwrap());
        let turn = owner.post(&turns, &json!({"input": "/sleep 600000"})).await.expect(202)["id"].clone();
        // More than are looked at in one go, older than the one that can be told.
        remember(&web, &job, one, (250, Delivery::Pending)).await;
        let (other, _) = ran(&owner, &body(&idle)).await;
        delivered(&owner, &other, "delivered").await;
        assert_eq!(told(&owner, &idle).await, 1);
        assert_eq!(told(&owner, &busy).await, 1);
        let peak = peak_kb();
        owner
            .post(&format!("{turns}/{}/cancel", turn.as_str().unwrap()), &json!({}))
            .await;
        until_told(&owner, &busy, 251).await;
        let grown = peak_kb().saturating_sub(peak);
        assert!(grown < MAX_GROWTH_KB, "{grown} kB more");
        web.stop().await;
    });
}
