//! How long runs and their scripts may take, and how many a job remembers.

use std::time::Duration;

use serde_json::{Value, json};

use super::{answered, path, runs, script};
use crate::harness::client::Client;
use crate::harness::{PATIENCE, on_both};

/// The session of the job's next run, once it began.
async fn begun(owner: &Client, job: &Value, before: &Value) -> Value {
    let look = async {
        loop {
            let newest = owner.get(&path(job, "")).await.expect(200)["last_session_id"].clone();
            if newest != *before {
                return newest;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look)
        .await
        .expect("the run begins in time")
}

#[test]
fn a_job_remembers_its_newest_runs_and_their_sessions_stay() {
    on_both(async |mut place| {
        place.config.cron.runs_kept = 3;
        let web = place.serve().await;
        let owner = web.owner().await;
        let body = json!({"prompt": "/say it rains", "schedule": "every 1h"});
        let job = owner.post("/v1/jobs", &body).await.expect(201);
        for count in 1..=5 {
            let before = owner.get(&path(&job, "")).await.expect(200)["last_session_id"].clone();
            owner.post(&path(&job, "/trigger"), &json!({})).await.expect(200);
            let newest = begun(&owner, &job, &before).await;
            let found = runs(&owner, &job, count.min(3)).await;
            // The newest is there, whatever went.
            assert_eq!(found[0]["session_id"], newest);
        }
        let sessions = owner.get("/v1/sessions").await.expect(200);
        assert_eq!(sessions["data"].as_array().unwrap().len(), 5);
        assert_eq!(owner.get(&path(&job, "")).await.expect(200)["last_status"], "completed");
        web.stop().await;
    });
}

#[test]
fn a_run_that_falls_silent_ends_sooner_than_other_turns() {
    on_both(async |mut place| {
        place.config.cron.inactivity = Duration::from_millis(700);
        let web = place.serve().await;
        let owner = web.owner().await;
        let body = json!({"prompt": "/sleep 60000\n/say never", "schedule": "every 1h"});
        let job = owner.post("/v1/jobs", &body).await.expect(201);
        owner.post(&path(&job, "/trigger"), &json!({})).await.expect(200);
        let run = runs(&owner, &job, 1).await[0].clone();
        assert_eq!(
            (&run["status"], &run["stop_reason"]),
            (&json!("failed"), &json!("timeout"))
        );
        // A person's turn may be silent for longer.
        let session = owner.post("/v1/sessions", &json!({})).await.expect(201)["id"].clone();
        let turns = format!("/v1/sessions/{}/turns?wait=20", session.as_str().unwrap());
        let ended = owner
            .post(&turns, &json!({"input": "/sleep 1500\n/say late"}))
            .await
            .expect(200);
        assert_eq!(ended["turn"]["status"], "completed");
        web.stop().await;
    });
}

#[test]
fn a_script_has_a_time_of_its_own_that_no_commands_limit_or_silence_cuts() {
    on_both(async |mut place| {
        place.config.cron.inactivity = Duration::from_millis(500);
        place.config.terminal.timeout = Duration::from_secs(1);
        place.config.terminal.max_foreground_timeout = Duration::from_secs(1);
        place.config.agent.max_duration = Duration::from_secs(2);
        place.config.cron.script_timeout = Duration::from_secs(4);
        let web = place.serve().await;
        let owner = web.owner().await;
        let data = place.config.server.data_dir.clone();
        script(&web, &data, "slow.sh", "sleep 2.5; echo done");
        script(&web, &data, "endless.sh", "echo begun; sleep 300");
        let job = |file: &str| json!({"script": file, "no_agent": true, "schedule": "every 1h"});
        let slow = owner.post("/v1/jobs", &job("slow.sh")).await.expect(201);
        assert_eq!(answered(&owner, &slow).await.last(), Some(&json!("done")));
        let endless = owner.post("/v1/jobs", &job("endless.sh")).await.expect(201);
        let said: Vec<Value> = answered(&owner, &endless).await;
        let said = said.last().unwrap().as_str().unwrap();
        assert!(
            said.starts_with("The script ended with exit code 124.\nbegun"),
            "{said}"
        );
        web.stop().await;
    });
}
