//! Jobs: when they are due, who has them, what their runs came to.

use super::*;
use crate::base::{Clock, Timestamp};
use crate::model::id::{JobId, JobRunId, TurnId};
use crate::model::job::{Job, JobCeiling, JobState, NewJob, RunStatus};
use crate::model::job_task::{Delivery, JobTask};
use crate::store::jobs::NewRun;

fn job(clock: &Clock, user: &str, schedule: &str) -> Job {
    let new = NewJob {
        task: JobTask {
            prompt: "look".to_owned(),
            toolsets: Some(vec!["todo".to_owned()]),
            ..JobTask::default()
        },
        schedule: schedule.to_owned(),
        ceiling: JobCeiling {
            key: None,
            tools: Some(vec!["todo".to_owned()]),
        },
        ..NewJob::default()
    };
    Job::new(JobId::new(clock), user, new, clock.now()).unwrap()
}

fn run(clock: &Clock, job: &Job, outcome: RunStatus) -> NewRun {
    NewRun {
        id: JobRunId::new(clock),
        job_id: job.id,
        due_at: Timestamp(1),
        triggered: true,
        outcome: Some(outcome),
        session_id: None,
        turn_id: None,
        delivery: None,
        at: Timestamp(2),
    }
}

#[tokio::test]
async fn a_job_is_kept_whole_and_its_users_own() {
    on_both(async |bench| {
        let store = &bench.store;
        write(store, "ours").await.unwrap();
        let clock = Clock::system();
        let (mine, other) = (job(&clock, "ada", "every 2h"), job(&clock, "bob", "0 9 * * *"));
        let scope = store.scope(tenant_id("ours"));
        let (first, second) = (mine.clone(), other.clone());
        let added = scope.write("test", move |mut rows| {
            Box::pin(async move {
                rows.add_job(&first).await?;
                rows.add_job(&second).await?;
                rows.count_jobs_of("ada").await
            })
        });
        assert_eq!(added.await.unwrap(), 1);
        let id = mine.id;
        let of_bob = scope.clone().of_user("bob".to_owned());
        let foreign = of_bob.write("test", move |mut rows| Box::pin(async move { rows.lock_job(id).await }));
        assert_eq!(foreign.await.unwrap(), None);
        let seen = of_bob.read(|mut rows| Box::pin(async move { rows.jobs(None, None, 10).await }));
        assert_eq!(seen.await.unwrap(), [other]);
        let seen = scope.write("test", |mut rows| {
            Box::pin(async move { rows.lock_jobs_of("ada").await })
        });
        assert_eq!(seen.await.unwrap(), [mine]);
    })
    .await;
}

#[tokio::test]
async fn what_waits_for_a_busy_session_comes_behind_what_can_be_delivered() {
    on_both(async |bench| {
        let store = &bench.store;
        write(store, "ours").await.unwrap();
        let clock = Clock::system();
        let of = |number: u128| Job {
            origin_session_id: Some(session(number)),
            ..job(&clock, "ada", "every 2h")
        };
        // One for a busy session, one for an idle one, one for none that is there.
        let jobs = [of(1), of(2), of(3)];
        let runs = jobs.each_ref().map(|job| NewRun {
            outcome: None,
            delivery: Some(Delivery::Pending),
            ..run(&clock, job, RunStatus::Completed)
        });
        let ids = runs.each_ref().map(|run| run.id);
        let scope = store.scope(tenant_id("ours"));
        let added = scope.write("test", move |mut rows| {
            Box::pin(async move {
                rows.add_session(&children::record(1, None)).await?;
                rows.add_session(&children::record(2, None)).await?;
                for (job, run) in jobs.iter().zip(&runs) {
                    rows.add_job(job).await?;
                    rows.add_job_run("ada", run).await?;
                }
                Ok(())
            })
        });
        added.await.unwrap();
        let busy = async |turn: Option<TurnId>| {
            let set = store.write(Wall::Across, "test", move |conn| {
                let sql = "update session set active_turn_id = $1 where session_id = $2";
                Box::pin(async move { conn.execute(sql, &[turn.into(), session(1).into()]).await })
            });
            set.await.unwrap();
        };
        let found = async |limit: u32| {
            let found = store.undelivered_across_tenants(limit).await.unwrap();
            let seen = found.into_iter().map(|answer| (answer.run_id, answer.waits_for));
            seen.collect::<Vec<_>>()
        };
        busy(Some(Id::from_bits(7))).await;
        let behind = [(ids[1], None), (ids[2], None), (ids[0], Some(session(1)))];
        assert_eq!(
            (found(10).await, found(1).await),
            (behind.to_vec(), behind[..1].to_vec())
        );
        busy(None).await;
        assert_eq!(found(10).await, ids.map(|id| (id, None)));
        let settled = scope.write("test", move |mut rows| {
            Box::pin(async move {
                for id in ids {
                    rows.settle_delivery(id, Delivery::Delivered).await?;
                }
                Ok(())
            })
        });
        settled.await.unwrap();
        assert!(found(10).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn what_is_due_is_found_and_a_run_without_a_turn_says_why() {
    on_both(async |bench| {
        let store = &bench.store;
        write(store, "ours").await.unwrap();
        let clock = Clock::system();
        let (soon, later) = (job(&clock, "ada", "every 10m"), job(&clock, "ada", "every 2h"));
        let scope = store.scope(tenant_id("ours"));
        let (first, second) = (soon.clone(), later.clone());
        let added = scope.write("test", move |mut rows| {
            Box::pin(async move {
                rows.add_job(&second).await?;
                rows.add_job(&first).await
            })
        });
        added.await.unwrap();
        let due = async || {
            let due = store.due_jobs_across_tenants(10).await.unwrap();
            due.into_iter().map(|due| (due.job_id, due.due_at)).collect::<Vec<_>>()
        };
        let expected = [&soon, &later].map(|job| (job.id, job.next_run_at.unwrap()));
        assert_eq!(due().await, expected);

        let paused = soon.clone().paused(None, clock.now());
        let missed = run(&clock, &soon, RunStatus::Missed);
        let wrote = scope.write("test", move |mut rows| {
            Box::pin(async move {
                rows.write_job(&paused).await?;
                rows.add_job_run("ada", &missed).await?;
                let running = rows.job_is_running(paused.id).await?;
                Ok((
                    rows.job(paused.id).await?,
                    rows.job_runs(paused.id, None, 10).await?,
                    running,
                ))
            })
        });
        let (seen, runs, running) = wrote.await.unwrap();
        let seen = seen.unwrap();
        assert_eq!(
            (seen.state, seen.last_status),
            (JobState::Paused, Some(RunStatus::Missed))
        );
        assert_eq!((runs.len(), runs[0].status, running), (1, RunStatus::Missed, false));
        assert_eq!(due().await, expected[1..]);

        let id = soon.id;
        let removed = scope.write("test", move |mut rows| {
            Box::pin(async move {
                rows.remove_job(id).await?;
                Ok((rows.job(id).await?, rows.job_runs(id, None, 10).await?.len()))
            })
        });
        assert_eq!(removed.await.unwrap(), (None, 0));
    })
    .await;
}
