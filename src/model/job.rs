//! A job: a prompt that runs by itself, again and again or once, each time as a
//! turn in a session of its own. Here is what a job is and what may be done to
//! one; when it runs is `schedule`'s, and that it runs the server's.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{JobId, JobRunId, KeyId, SessionId, TurnId};
use super::job_task::{Delivery, JobTask, TaskChanges, TaskFault};
use super::schedule::{self, Schedule, ScheduleError};
use super::turn::{StopReason, TurnStatus};
use crate::base::Timestamp;

/// Where the session of a run names its job, among what is free for clients.
pub const JOB_ID: &str = "job_id";

/// Of one user; each is looked at when one of them changes.
pub const MAX_JOBS: usize = 100;
const MAX_NAME_CHARS: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Active,
    Paused,
    /// It has run as often as it should.
    Completed,
}

impl JobState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Completed => "completed",
        }
    }
}

/// What becomes of a run whose time passed while no server was there, or while
/// the run before was not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// It runs if it is late by less than half its period, 2 minutes to 2 hours.
    #[default]
    CatchUp,
    /// It runs once, however late.
    Run,
    /// It does not run.
    Skip,
}

/// A job as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub id: JobId,
    pub user_id: String,
    pub name: String,
    #[serde(flatten)]
    pub task: JobTask,
    /// The session that it was made in, or is for: `deliver: origin` tells it
    /// what the runs came to.
    #[serde(default)]
    pub origin_session_id: Option<SessionId>,
    /// As it was written.
    pub schedule: String,
    pub time_zone: String,
    /// What the text means.
    pub plan: Schedule,
    pub missed: Missed,
    /// How often it runs in all; nothing is without end.
    pub repeat: Option<u32>,
    /// How often it has run by its schedule.
    pub runs: u32,
    pub state: JobState,
    pub paused_at: Option<Timestamp>,
    pub paused_reason: Option<String>,
    pub next_run_at: Option<Timestamp>,
    /// Somebody wants it to run now.
    pub triggered_at: Option<Timestamp>,
    /// What that run asks, in place of what the job asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggered_prompt: Option<String>,
    pub last_run_at: Option<Timestamp>,
    pub last_status: Option<RunStatus>,
    /// What became of the newest run's answer, where the job tells it to a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_delivery: Option<Delivery>,
    pub last_session_id: Option<SessionId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// What the runs may use at most: what whoever made the job may.
    #[serde(skip)]
    pub ceiling: JobCeiling,
}

/// What the key that made a job may do, for its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCeiling {
    pub key: Option<KeyId>,
    pub tools: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Its turn is not over.
    Running,
    Completed,
    Failed,
    /// Its time passed without a run.
    Missed,
    /// The run before was not over.
    Skipped,
}

impl RunStatus {
    /// Of a run whose turn is as this.
    pub fn of_turn(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Queued | TurnStatus::Running | TurnStatus::Waiting => Self::Running,
            TurnStatus::Completed => Self::Completed,
            _ => Self::Failed,
        }
    }
}

/// One run of a job, or why there was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobRun {
    pub id: JobRunId,
    pub job_id: JobId,
    /// When it was due.
    pub due_at: Timestamp,
    /// Asked for by somebody, not by the schedule.
    pub triggered: bool,
    pub status: RunStatus,
    /// What became of its answer, where the job delivers to a session.
    pub delivery: Option<Delivery>,
    pub session_id: Option<SessionId>,
    pub turn_id: Option<TurnId>,
    pub stop_reason: Option<StopReason>,
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// What is wrong with a job, by the name of the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobFault {
    #[error(transparent)]
    Task(#[from] TaskFault),
    #[error("{0}")]
    Schedule(#[from] ScheduleError),
    #[error("the time has passed already")]
    Past,
    #[error("`name` is too long: {MAX_NAME_CHARS} characters at most")]
    LongName,
    #[error("`repeat` is 1 or more")]
    Repeat,
    #[error("{MAX_JOBS} jobs are there already; remove one first")]
    TooMany,
    #[error("the job has run as often as it should; give it a new schedule")]
    Over,
}

impl JobFault {
    /// The field that it is about.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Task(fault) => fault.field(),
            Self::Schedule(ScheduleError::UnknownZone(_)) => "time_zone",
            Self::Schedule(_) | Self::Past => "schedule",
            Self::LongName => "name",
            Self::Repeat => "repeat",
            Self::TooMany | Self::Over => "",
        }
    }
}

/// A job that is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewJob {
    pub name: Option<String>,
    pub task: JobTask,
    pub origin: Option<SessionId>,
    pub schedule: String,
    pub time_zone: Option<String>,
    pub missed: Missed,
    pub repeat: Option<u32>,
    pub ceiling: JobCeiling,
}

/// What changes of a job; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobChanges {
    pub name: Option<String>,
    pub task: TaskChanges,
    pub schedule: Option<String>,
    pub time_zone: Option<String>,
    pub missed: Option<Missed>,
    pub repeat: Option<Option<u32>>,
}

const NAME_FROM_PROMPT: usize = 50;

impl Job {
    pub fn new(id: JobId, user_id: &str, new: NewJob, now: Timestamp) -> Result<Self, JobFault> {
        let zone = new.time_zone.unwrap_or_else(|| "UTC".to_owned());
        let plan = schedule::parse(&new.schedule, &zone, now)?;
        let prompt = new.task.prompt.trim();
        let by_prompt = crate::base::text::first_chars(prompt, NAME_FROM_PROMPT).trim();
        let named = new.name.filter(|name| !name.trim().is_empty());
        let fallback = if by_prompt.is_empty() { "job" } else { by_prompt };
        let name = named.unwrap_or_else(|| fallback.to_owned());
        let repeat = match plan.repeats() {
            true => new.repeat,
            false => Some(1),
        };
        let job = Self {
            id,
            user_id: user_id.to_owned(),
            name: name.trim().to_owned(),
            task: new.task,
            origin_session_id: new.origin,
            schedule: new.schedule.trim().to_owned(),
            time_zone: zone,
            next_run_at: plan.after(now, now),
            plan,
            missed: new.missed,
            repeat,
            runs: 0,
            state: JobState::Active,
            paused_at: None,
            paused_reason: None,
            triggered_at: None,
            triggered_prompt: None,
            last_run_at: None,
            last_status: None,
            last_delivery: None,
            last_session_id: None,
            created_at: now,
            updated_at: now,
            ceiling: new.ceiling,
        };
        job.checked()
    }

    /// Why the newest run's answer was told to nobody, if so.
    pub fn delivery_error(&self) -> Option<&'static str> {
        let failed = self.last_delivery == Some(Delivery::Failed);
        failed.then_some("the answer could not be told: its session is gone, or the run came to nothing")
    }

    fn checked(self) -> Result<Self, JobFault> {
        self.task.check()?;
        if MAX_NAME_CHARS < self.name.chars().count() {
            return Err(JobFault::LongName);
        }
        if self.repeat == Some(0) {
            return Err(JobFault::Repeat);
        }
        if self.next_run_at.is_none() && self.state == JobState::Active {
            return Err(JobFault::Past);
        }
        Ok(self)
    }

    pub fn changed(mut self, changes: JobChanges, now: Timestamp) -> Result<Self, JobFault> {
        let planned = changes.schedule.is_some() || changes.time_zone.is_some();
        self.name = changes.name.unwrap_or(self.name);
        self.task = self.task.changed(changes.task);
        self.missed = changes.missed.unwrap_or(self.missed);
        self.repeat = changes.repeat.unwrap_or(self.repeat);
        self.time_zone = changes.time_zone.unwrap_or(self.time_zone);
        self.schedule = changes.schedule.unwrap_or(self.schedule);
        if planned {
            self.plan = schedule::parse(&self.schedule, &self.time_zone, now)?;
            self.next_run_at = self.plan.after(now, now);
            self.runs = 0;
            if !self.plan.repeats() {
                self.repeat = Some(1);
            } else if changes.repeat.is_none() && self.repeat == Some(1) {
                self.repeat = None;
            }
            if self.state == JobState::Completed {
                self.state = JobState::Active;
            }
        }
        self.updated_at = now;
        self.checked()
    }

    pub fn paused(mut self, reason: Option<String>, now: Timestamp) -> Self {
        if self.state == JobState::Active {
            (self.state, self.paused_at, self.paused_reason) = (JobState::Paused, Some(now), reason);
            (self.next_run_at, self.triggered_at, self.updated_at) = (None, None, now);
            self.triggered_prompt = None;
        }
        self
    }

    /// What passed while it was paused is not made up for.
    pub fn resumed(mut self, now: Timestamp) -> Result<Self, JobFault> {
        if self.state == JobState::Completed {
            return Err(JobFault::Over);
        }
        if self.state == JobState::Paused {
            let from = self.last_run_at.unwrap_or(self.created_at);
            self.next_run_at = self.plan.after(from, now);
            (self.state, self.paused_at, self.paused_reason) = (JobState::Active, None, None);
            self.updated_at = now;
        }
        self.checked()
    }

    /// It runs as soon as a server looks, whatever its schedule and state.
    /// Where `prompt` is given, that one run asks it, and so it has to be a prompt
    /// that a job could have.
    pub fn triggered(mut self, prompt: Option<String>, now: Timestamp) -> Result<Self, JobFault> {
        self.triggered_at = self.triggered_at.or(Some(now));
        if prompt.is_some() {
            self.asks(prompt.as_ref()).check()?;
            self.triggered_prompt = prompt;
        }
        Ok(self)
    }

    fn asks(&self, prompt: Option<&String>) -> JobTask {
        let mut task = self.task.clone();
        if let Some(prompt) = prompt {
            task.prompt.clone_from(prompt);
        }
        task
    }

    /// The job as the run that is due is to be.
    pub fn as_due(&self, due: Due) -> Self {
        let prompt = self.triggered_prompt.as_ref().filter(|_| due.triggered);
        Self {
            task: self.asks(prompt),
            ..self.clone()
        }
    }

    /// The instant that it is due, if it is by `now`; triggered runs come first.
    pub fn due(&self, now: Timestamp) -> Option<Due> {
        if let Some(at) = self.triggered_at {
            return Some(Due { at, triggered: true });
        }
        let at = self
            .next_run_at
            .filter(|at| *at <= now && self.state == JobState::Active)?;
        Some(Due { at, triggered: false })
    }

    /// Whether a run that is due at `at` may still begin.
    pub fn is_in_time(&self, due: Due, now: Timestamp) -> bool {
        let late = now.0.saturating_sub(due.at.0);
        due.triggered
            || match self.missed {
                Missed::Run => true,
                Missed::CatchUp => late <= self.plan.grace_ms(due.at),
                // The time between two looks is no delay.
                Missed::Skip => late <= 60_000,
            }
    }

    /// The job after what was due has begun, or was let go by (`ran` is false).
    pub fn moved_on(mut self, due: Due, ran: bool, now: Timestamp) -> Self {
        if due.triggered {
            (self.triggered_at, self.triggered_prompt) = (None, None);
        } else {
            self.runs = self.runs.saturating_add(u32::from(ran || !self.plan.repeats()));
            self.next_run_at = self.plan.after(due.at, now);
            if self.repeat.is_some_and(|repeat| repeat <= self.runs) || self.next_run_at.is_none() {
                (self.state, self.next_run_at) = (JobState::Completed, None);
            }
        }
        if ran {
            self.last_run_at = Some(now);
        }
        self
    }
}

/// A run that should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub at: Timestamp,
    pub triggered: bool,
}

#[cfg(test)]
mod tests;
