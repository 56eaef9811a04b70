//! Job rows and their runs. A job is due at one instant, a column of its own, so
//! that what is next is found without reading jobs; the row's lock is what lets
//! one server begin a run.

use serde::{Deserialize, Serialize};

use super::scope::Rows;
use super::sessions::named;
use super::{Arg, Row, StoreError};
use crate::base::Timestamp;
use crate::model::id::{JobId, JobRunId, SessionId, TurnId};
use crate::model::job::{Job, JobCeiling, JobRun, JobState, RunStatus};
use crate::model::job_task::Delivery;
use crate::model::turn::TurnStatus;

/// A job as its row keeps it.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    job: Job,
    ceiling: JobCeiling,
}

/// A run as it is added: its turn says the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    pub id: JobRunId,
    pub job_id: JobId,
    pub due_at: Timestamp,
    pub triggered: bool,
    /// What it came to, where it has no turn.
    pub outcome: Option<RunStatus>,
    pub session_id: Option<SessionId>,
    pub turn_id: Option<TurnId>,
    pub delivery: Option<Delivery>,
    pub at: Timestamp,
}

/// A run whose answer is still to be told to the session that its job is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    pub job: Job,
    pub session_id: Option<SessionId>,
    pub turn_id: Option<TurnId>,
    /// Nothing where the session of the run is gone.
    pub status: Option<TurnStatus>,
}

impl Rows<'_> {
    pub async fn add_job(&mut self, job: &Job) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into job (tenant_id, job_id, user_id, state, due_at, data) values ($1, $2, $3, $4, $5, $6)";
        let args = [
            self.tenant.into(),
            job.id.into(),
            Arg::from(&job.user_id),
            Arg::from(job.state.name()),
            due_at(job).into(),
            Arg::json(&kept(job))?,
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// Writes a job back; call under its lock.
    pub async fn write_job(&mut self, job: &Job) -> Result<(), StoreError> {
        const SQL: &str = "update job set state = $3, due_at = $4, data = $5 where tenant_id = $1 and job_id = $2";
        let args = [
            self.tenant.into(),
            job.id.into(),
            Arg::from(job.state.name()),
            due_at(job).into(),
            Arg::json(&kept(job))?,
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// Removes a job and the record of its runs; the sessions of the runs stay.
    pub async fn remove_job(&mut self, id: JobId) -> Result<(), StoreError> {
        for sql in [
            "delete from job_run where tenant_id = $1 and job_id = $2",
            "delete from job where tenant_id = $1 and job_id = $2",
        ] {
            self.conn.execute(sql, &[self.tenant.into(), id.into()]).await?;
        }
        Ok(())
    }

    /// Locks a job for this transaction; absent and foreign ones are `None`.
    pub async fn lock_job(&mut self, id: JobId) -> Result<Option<Job>, StoreError> {
        const LOCK: &str = "
            update job set state = state
            where tenant_id = $1 and job_id = $2 and user_id = coalesce($3, user_id) returning job_id";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        match self.conn.row(LOCK, &args).await? {
            Some(_) => self.job(id).await,
            None => Ok(None),
        }
    }

    /// Locks all jobs of a user, in the order of their ids.
    pub async fn lock_jobs_of(&mut self, user: &str) -> Result<Vec<Job>, StoreError> {
        const LOCK: &str = "
            update job set state = state where tenant_id = $1 and user_id = $2";
        let args = [self.tenant.into(), Arg::from(user)];
        self.conn.execute(LOCK, &args).await?;
        self.jobs_of(user).await
    }

    /// All jobs of a user, in the order of their ids.
    pub async fn jobs_of(&mut self, user: &str) -> Result<Vec<Job>, StoreError> {
        const SQL: &str = "
            select j.data, (
                    select coalesce(t.status, r.outcome) from job_run r
                    left join turn t on t.tenant_id = r.tenant_id and t.turn_id = r.turn_id
                    where r.tenant_id = j.tenant_id and r.job_id = j.job_id order by r.run_id desc limit 1) as last, (
                    select r.delivery from job_run r
                    where r.tenant_id = j.tenant_id and r.job_id = j.job_id order by r.run_id desc limit 1) as told
            from job j where j.tenant_id = $1 and j.user_id = $2 order by j.job_id";
        let args = [self.tenant.into(), Arg::from(user)];
        self.conn.rows(SQL, &args).await?.iter().map(job).collect()
    }

    /// One job; absent and foreign ones are `None`.
    pub async fn job(&mut self, id: JobId) -> Result<Option<Job>, StoreError> {
        const SQL: &str = "
            select j.data, (
                    select coalesce(t.status, r.outcome) from job_run r
                    left join turn t on t.tenant_id = r.tenant_id and t.turn_id = r.turn_id
                    where r.tenant_id = j.tenant_id and r.job_id = j.job_id order by r.run_id desc limit 1) as last, (
                    select r.delivery from job_run r
                    where r.tenant_id = j.tenant_id and r.job_id = j.job_id order by r.run_id desc limit 1) as told
            from job j where j.tenant_id = $1 and j.job_id = $2 and j.user_id = coalesce($3, j.user_id)";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.as_ref().map(job).transpose()
    }

    /// Jobs, newest first, older than `before`.
    pub async fn jobs(
        &mut self,
        state: Option<JobState>,
        before: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<Job>, StoreError> {
        const SQL: &str = "
            select j.data, (
                    select coalesce(t.status, r.outcome) from job_run r
                    left join turn t on t.tenant_id = r.tenant_id and t.turn_id = r.turn_id
                    where r.tenant_id = j.tenant_id and r.job_id = j.job_id order by r.run_id desc limit 1) as last, (
                    select r.delivery from job_run r
                    where r.tenant_id = j.tenant_id and r.job_id = j.job_id order by r.run_id desc limit 1) as told
            from job j
            where j.tenant_id = $1 and j.user_id = coalesce($2, j.user_id) and j.state = coalesce($3, j.state)
                and j.job_id < coalesce($4, 'job_~')
            order by j.job_id desc limit $5";
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            Arg::OptText(state.map(JobState::name)),
            before.into(),
            limit.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(job).collect()
    }

    /// How many jobs a user has.
    pub async fn count_jobs_of(&mut self, user: &str) -> Result<i64, StoreError> {
        const SQL: &str = "select count(*) as jobs from job where tenant_id = $1 and user_id = $2";
        let row = self.conn.row(SQL, &[self.tenant.into(), Arg::from(user)]).await?;
        row.ok_or_else(|| StoreError::bug("no count"))?.int("jobs")
    }

    pub async fn add_job_run(&mut self, user: &str, run: &NewRun) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into job_run (tenant_id, job_id, run_id, user_id, due_at, triggered, outcome, session_id, turn_id,
                started_at, delivery)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let outcome = run.outcome.map(|outcome| match outcome {
            RunStatus::Missed => "missed",
            RunStatus::Skipped => "skipped",
            RunStatus::Running | RunStatus::Completed | RunStatus::Failed => "failed",
        });
        let args = [
            self.tenant.into(),
            run.job_id.into(),
            run.id.into(),
            Arg::from(user),
            run.due_at.into(),
            Arg::Int(i64::from(run.triggered)),
            Arg::OptText(outcome),
            run.session_id.into(),
            run.turn_id.into(),
            run.at.into(),
            Arg::OptText(run.delivery.map(word)),
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// Lets go of a job's entries that are older than the newest `keep`. What is not
    /// over or not delivered yet stays.
    pub async fn forget_job_runs(&mut self, id: JobId, keep: u32) -> Result<(), StoreError> {
        // Each row is looked at once, whatever a planner thinks of the table: with a
        // list of what is to go it looked through the list for each.
        const SQL: &str = "
            delete from job_run where tenant_id = $1 and job_id = $2 and coalesce(delivery, '') <> 'pending'
                and run_id < (select n.run_id from job_run n where n.tenant_id = $1 and n.job_id = $2
                    order by n.run_id desc limit 1 offset $3)
                and not exists (select 1 from turn t where t.tenant_id = $1 and t.turn_id = job_run.turn_id
                    and t.status in ('queued', 'running', 'waiting'))";
        let args = [self.tenant.into(), id.into(), keep.saturating_sub(1).into()];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// A run that waits for its delivery, locked; `None` if it waits no more.
    pub async fn lock_undelivered(&mut self, id: JobRunId) -> Result<Option<Undelivered>, StoreError> {
        const LOCK: &str = "
            update job_run set delivery = delivery
            where tenant_id = $1 and run_id = $2 and delivery = 'pending' returning job_id, session_id, turn_id";
        let Some(row) = self.conn.row(LOCK, &[self.tenant.into(), id.into()]).await? else {
            return Ok(None);
        };
        let (session_id, turn_id) = (row.opt_id("session_id")?, row.opt_id("turn_id")?);
        let Some(job) = self.job(row.id("job_id")?).await? else {
            return Ok(None);
        };
        let turn = match (session_id, turn_id) {
            (Some(session), Some(turn)) => self.turn(session, turn).await?,
            _ => None,
        };
        Ok(Some(Undelivered {
            job,
            session_id,
            turn_id,
            status: turn.map(|turn| turn.status),
        }))
    }

    pub async fn settle_delivery(&mut self, id: JobRunId, delivery: Delivery) -> Result<(), StoreError> {
        const SQL: &str = "update job_run set delivery = $3 where tenant_id = $1 and run_id = $2";
        let args = [self.tenant.into(), id.into(), Arg::from(word(delivery))];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// What the last completed run of a job came to: its session and its turn.
    pub async fn last_completed_run(&mut self, id: JobId) -> Result<Option<(SessionId, TurnId)>, StoreError> {
        const SQL: &str = "
            select r.session_id, r.turn_id from job_run r
            join turn t on t.tenant_id = r.tenant_id and t.turn_id = r.turn_id
            where r.tenant_id = $1 and r.job_id = $2 and t.status = 'completed'
            order by r.run_id desc limit 1";
        let row = self.conn.row(SQL, &[self.tenant.into(), id.into()]).await?;
        row.map(|row| Ok((row.id("session_id")?, row.id("turn_id")?)))
            .transpose()
    }

    /// Whether a run of the job has a turn that is not over.
    pub async fn job_is_running(&mut self, id: JobId) -> Result<bool, StoreError> {
        const SQL: &str = "
            select r.run_id from job_run r join turn t on t.tenant_id = r.tenant_id and t.turn_id = r.turn_id
            where r.tenant_id = $1 and r.job_id = $2 and t.status in ('queued', 'running', 'waiting') limit 1";
        let row = self.conn.row(SQL, &[self.tenant.into(), id.into()]).await?;
        Ok(row.is_some())
    }

    /// Runs of a job, newest first, older than `before`.
    pub async fn job_runs(
        &mut self,
        id: JobId,
        before: Option<JobRunId>,
        limit: u32,
    ) -> Result<Vec<JobRun>, StoreError> {
        const SQL: &str = "
            select r.run_id, r.job_id, r.due_at, r.triggered, r.outcome, r.session_id, r.turn_id, r.started_at,
                r.delivery, t.status, t.stop_reason, t.finished_at
            from job_run r left join turn t on t.tenant_id = r.tenant_id and t.turn_id = r.turn_id
            where r.tenant_id = $1 and r.job_id = $2 and r.run_id < coalesce($3, 'jrun_~')
            order by r.run_id desc limit $4";
        let args = [self.tenant.into(), id.into(), before.into(), limit.into()];
        self.conn.rows(SQL, &args).await?.iter().map(run).collect()
    }
}

fn word(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Pending => "pending",
        Delivery::Delivered => "delivered",
        Delivery::Silent => "silent",
        Delivery::Failed => "failed",
    }
}

fn due_at(job: &Job) -> Option<Timestamp> {
    let next = job.next_run_at.filter(|_| job.state == JobState::Active);
    job.triggered_at.or(next)
}

fn kept(job: &Job) -> Kept {
    Kept {
        job: job.clone(),
        ceiling: job.ceiling.clone(),
    }
}

fn job(row: &Row) -> Result<Job, StoreError> {
    let Kept { mut job, ceiling } = row.json("data")?;
    job.ceiling = ceiling;
    job.last_status = row.opt_text("last")?.map(|last| status(&last)).transpose()?;
    job.last_delivery = row.opt_text("told")?.map(|told| named(&told)).transpose()?;
    Ok(job)
}

/// The status of a run by its turn's, or by the word that stands for a turn.
fn status(name: &str) -> Result<RunStatus, StoreError> {
    Ok(match name {
        "missed" => RunStatus::Missed,
        "skipped" => RunStatus::Skipped,
        turn => RunStatus::of_turn(named::<TurnStatus>(turn)?),
    })
}

fn run(row: &Row) -> Result<JobRun, StoreError> {
    let turn = row.opt_text("status")?;
    let known = turn.or(row.opt_text("outcome")?);
    Ok(JobRun {
        id: row.id("run_id")?,
        job_id: row.id("job_id")?,
        due_at: row.timestamp("due_at")?,
        triggered: row.int("triggered")? != 0,
        // The session of the run is gone: so it is over.
        status: known.map_or(Ok(RunStatus::Completed), |known| status(&known))?,
        delivery: row.opt_text("delivery")?.map(|name| named(&name)).transpose()?,
        session_id: row.opt_id("session_id")?,
        turn_id: row.opt_id("turn_id")?,
        stop_reason: row.opt_text("stop_reason")?.map(|name| named(&name)).transpose()?,
        started_at: row.timestamp("started_at")?,
        finished_at: row.opt_timestamp("finished_at")?,
    })
}
