//! Jobs: made, changed, and begun when they are due. A run begins in the
//! transaction that moves its job on, under the job's lock: of several servers
//! one finds it due, and a crash leaves either both or nothing.

use serde_json::json;

use super::adopt::History;
use super::sessions::stored;
use super::{CreateSession, EngineError, Verdict, earlier};
use crate::base::text::first_chars;
use crate::config::HookPoint;
use crate::model::approval::OnAsk;
use crate::model::budget::SessionBudget;
use crate::model::id::{JobId, JobRunId, SessionId, TenantId, TurnId};
use crate::model::job::{Due, JOB_ID, Job, JobChanges, JobFault, MAX_JOBS, NewJob, RunStatus};
use crate::model::job_task::{Deliver, Delivery};
use crate::model::message::{Part, text_of};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::TurnRecord;
use crate::model::sampling::Sampling;
use crate::model::session::{ApprovalMode, ApprovalPolicy, EnvironmentSpec, Metadata, ToolsetSelection};
use crate::model::turn::{RunScript, TurnApprovals, TurnOptions};
use crate::store::jobs::NewRun;
use crate::store::{Rows, Scope, StoreError};
use crate::tool::{job_actions, untrusted};
use crate::turn::commit::{self, Carried};
use crate::turn::engine::Engine;
use crate::turn::state::State;

/// What a run never does: nobody is there to answer, and jobs make no jobs.
const NOT_IN_RUNS: [&str; 2] = ["clarify", "cronjob"];

/// Characters of another job's answer that a run begins with.
const CONTEXT_CHARS: usize = 8_000;

/// What may be done to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobChange {
    Update(Box<JobChanges>),
    Pause(Option<String>),
    Resume,
    /// With what this one run asks, where that is not what the job asks.
    Trigger(Option<String>),
}

impl JobChange {
    pub fn apply(self, job: Job, now: crate::base::Timestamp) -> Result<Job, JobFault> {
        match self {
            Self::Update(changes) => job.changed(*changes, now),
            Self::Pause(reason) => Ok(job.paused(reason, now)),
            Self::Resume => job.resumed(now),
            Self::Trigger(prompt) => job.triggered(prompt, now),
        }
    }
}

impl Engine {
    pub async fn create_job(&self, scope: &Scope, user: &str, new: NewJob) -> Verdict<Job> {
        let now = self.clock().now();
        let job = Job::new(JobId::new(self.clock()), user, new, now).map_err(|fault| refused(&fault))?;
        self.are_toolsets(scope.tenant(), job.task.toolsets.as_deref())?;
        let made = scope.write_anew("create_job", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                if let Some(origin) = job.origin_session_id
                    && rows.session(origin).await?.is_none()
                {
                    return Ok(Err(no_origin()));
                }
                if MAX_JOBS <= usize::try_from(rows.count_jobs_of(&job.user_id).await?).unwrap_or(MAX_JOBS) {
                    return Ok(Err(refused(&JobFault::TooMany)));
                }
                rows.add_job(&job).await?;
                rows.remember(&job).await?;
                Ok(Ok(job))
            })
        });
        let made = made.await;
        self.nudges().jobs.notify_one();
        made?
    }

    pub async fn change_job(&self, scope: &Scope, id: JobId, change: JobChange) -> Verdict<Job> {
        if let JobChange::Update(changes) = &change {
            self.are_toolsets(
                scope.tenant(),
                changes.task.toolsets.as_ref().and_then(Option::as_deref),
            )?;
        }
        let now = self.clock().now();
        let changed = scope.write_anew("change_job", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                let Some(job) = rows.lock_job(id).await? else {
                    return Ok(Err(EngineError::NotFound("job")));
                };
                let job = match change.apply(job, now) {
                    Ok(job) => job,
                    Err(fault) => return Ok(Err(refused(&fault))),
                };
                rows.write_job(&job).await?;
                rows.remember(&job).await?;
                Ok(Ok(job))
            })
        });
        let changed = changed.await;
        self.nudges().jobs.notify_one();
        changed?
    }

    /// What runs of it goes on; the record of its runs goes with it.
    pub async fn delete_job(&self, scope: &Scope, id: JobId) -> Verdict<()> {
        let deleted = scope.write_anew("delete_job", move |mut rows| {
            Box::pin(async move {
                if rows.lock_job(id).await?.is_none() {
                    return Ok(Err(EngineError::NotFound("job")));
                }
                rows.remove_job(id).await?;
                Ok(Ok(()))
            })
        });
        deleted.await?
    }

    /// Begins the run of a job that is due, unless somebody was faster.
    pub async fn run_job(&self, tenant: TenantId, id: JobId) -> Verdict<()> {
        let (engine, scope) = (self.clone(), self.store().scope(tenant));
        self.whole(Box::pin(async move { engine.begin_run(&scope, id).await }))
            .await
    }

    async fn begin_run(&self, scope: &Scope, id: JobId) -> Verdict<()> {
        let engine = self.clone();
        let session = SessionId::new(self.clock());
        let begun = scope.write_anew("run_job", move |mut rows| {
            Box::pin(async move {
                let Some(job) = rows.lock_job(id).await? else {
                    return Ok(None);
                };
                let now = engine.clock().now();
                let Some(due) = job.due(now) else { return Ok(None) };
                let outcome = match rows.job_is_running(id).await? {
                    true => Some(RunStatus::Skipped),
                    false => (!job.is_in_time(due, now)).then_some(RunStatus::Missed),
                };
                let run = NewRun {
                    id: JobRunId::new(engine.clock()),
                    job_id: id,
                    due_at: due.at,
                    triggered: due.triggered,
                    outcome,
                    session_id: None,
                    turn_id: None,
                    delivery: None,
                    at: now,
                };
                begin(&mut rows, &engine, job, (due, run), session).await
            })
        });
        let begun = begun.await;
        if let Err(StoreError::Unclear(_)) = begun {
            self.adopt(scope, session).await;
        }
        if let Some(carried) = begun? {
            self.tell_session(HookPoint::OnSessionStart, scope.tenant(), session);
            self.spawn_own(scope.tenant(), carried);
        }
        Ok(())
    }

    /// Toolsets that are there.
    fn are_toolsets(&self, tenant: TenantId, names: Option<&[String]>) -> Verdict<()> {
        let registry = self.registry(tenant);
        let known = registry.catalog();
        let unknown = names.unwrap_or_default().iter().find(|name| known.info(name).is_none());
        match unknown {
            Some(name) => {
                let detail = format!("there is no toolset `{name}`");
                let problem = Problem::new(ProblemCode::InvalidRequest, detail.clone());
                Err(EngineError::Refused(problem.with_field("/toolsets", detail)))
            }
            None => Ok(()),
        }
    }
}

async fn begin(
    rows: &mut Rows<'_>,
    engine: &Engine,
    job: Job,
    (due, mut run): (Due, NewRun),
    session: SessionId,
) -> Result<Option<Carried>, StoreError> {
    let user = job.user_id.clone();
    let mut carried = None;
    if run.outcome.is_none() {
        match begun(rows, engine, &job.as_due(due), session).await? {
            Some(begun) => {
                run.delivery = delivery(&job);
                run.session_id = Some(session);
                run.turn_id = Some(begun.state.turn.turn_id);
                carried = Some(begun);
            }
            None => run.outcome = Some(RunStatus::Failed),
        }
    }
    rows.add_job_run(&user, &run).await?;
    rows.forget_job_runs(job.id, engine.settings().job_runs_kept).await?;
    let mut job = job.moved_on(due, carried.is_some(), run.at);
    if carried.is_some() {
        job.last_session_id = Some(session);
    }
    rows.write_job(&job).await?;
    Ok(carried)
}

/// The session of a run with its turn; nothing where no session could be made.
async fn begun(
    rows: &mut Rows<'_>,
    engine: &Engine,
    job: &Job,
    session: SessionId,
) -> Result<Option<Carried>, StoreError> {
    let tenant = rows.tenant();
    let Ok(row) = engine.new_row(tenant, session, settings(engine, job)) else {
        tracing::warn!(job = %job.id, "a job's run could not begin: its settings fit no session");
        return Ok(None);
    };
    if stored(rows, row, History::default()).await?.is_err() {
        return Ok(None);
    }
    let Some(record) = rows.session_record(session).await? else {
        return Ok(None);
    };
    let options = TurnOptions {
        approvals: TurnApprovals {
            on_ask: (!engine.settings().jobs_approve).then_some(OnAsk::Deny),
        },
        tool_ceiling: job.ceiling.tools.clone(),
        key_id: job.ceiling.key,
        metadata: [(JOB_ID.to_owned(), json!(job.id))].into(),
        script: job.task.script.clone().map(|file| RunScript {
            file,
            alone: job.task.no_agent,
        }),
        ..TurnOptions::default()
    };
    let now = engine.clock().now();
    let input = vec![Part::text(prompt(job, &context(rows, job).await?))];
    let turn = TurnRecord {
        key_id: job.ceiling.key,
        ..TurnRecord::queued(
            TurnId::new(engine.clock()),
            session,
            job.user_id.clone(),
            input,
            options,
            now,
        )
    };
    let state = State::fresh(record, turn);
    let carried = commit::carry_out_callless(rows, engine, state, None, |step| step.begin_new());
    Box::pin(carried).await.map(Some)
}

fn settings(engine: &Engine, job: &Job) -> CreateSession {
    let mut presets = job
        .task
        .toolsets
        .clone()
        .unwrap_or_else(|| engine.settings().job_toolsets.clone())
        .into_iter();
    let preset = presets.next().unwrap_or_else(|| "hermes-api-server".to_owned());
    let more: Vec<String> = presets.collect();
    let metadata: Metadata = [(JOB_ID.to_owned(), json!(job.id))].into();
    CreateSession {
        user_id: job.user_id.clone(),
        external_id: None,
        title: Some(first_chars(&job.name, 256).to_owned()),
        model: job.task.model.clone(),
        instructions: None,
        preset,
        toolsets: ToolsetSelection {
            enabled: (!more.is_empty()).then_some(more),
            disabled: NOT_IN_RUNS.map(str::to_owned).to_vec(),
        },
        environment: EnvironmentSpec {
            cwd: job.task.workdir.clone(),
            ..EnvironmentSpec::default()
        },
        approvals: ApprovalPolicy {
            mode: engine.settings().jobs_approve.then_some(ApprovalMode::Off),
            ..ApprovalPolicy::default()
        },
        sampling: Sampling::default(),
        tools: Vec::new(),
        budget: SessionBudget::default(),
        metadata,
    }
}

/// What jobs that the run builds on came to last, each with its name.
async fn context(rows: &mut Rows<'_>, job: &Job) -> Result<Vec<(String, String)>, StoreError> {
    let mut all = Vec::new();
    if job.task.context_from.is_empty() {
        return Ok(all);
    }
    let own = rows.jobs_of(&job.user_id).await?;
    for wanted in &job.task.context_from {
        let Ok(source) = job_actions::found(&own, wanted) else {
            tracing::warn!(job = %job.id, "a job that a run builds on is not there");
            continue;
        };
        let Some((session, turn)) = rows.last_completed_run(source.id).await? else {
            continue;
        };
        if let Some(answer) = rows.last_answer(session, turn).await? {
            let text = text_of(&answer.content);
            all.push((source.name.clone(), first_chars(&text, CONTEXT_CHARS).to_owned()));
        }
    }
    Ok(all)
}

/// Another job's answer is text of a model that read who knows what: it is fenced
/// as what tools bring is.
fn prompt(job: &Job, context: &[(String, String)]) -> String {
    let task = &job.task;
    let mut parts: Vec<String> = Vec::new();
    if !task.skills.is_empty() {
        let names = task.skills.join(", ");
        parts.push(format!(
            "Read these skills with skill_view before anything else: {names}."
        ));
    }
    for (name, answer) in context {
        let source = format!("job {name}");
        parts.push(format!(
            "What the job {name:?} came to last:\n{}",
            untrusted::marked(&source, answer.clone())
        ));
    }
    if !task.prompt.is_empty() {
        parts.push(task.prompt.clone());
    } else if let (true, Some(script)) = (task.no_agent, &task.script) {
        parts.push(format!("Run the script {script:?}."));
    }
    parts.join("\n\n")
}

/// Whether the answer of a run of the job is to be told elsewhere.
fn delivery(job: &Job) -> Option<Delivery> {
    let told = job.task.deliver == Deliver::Origin && job.origin_session_id.is_some();
    told.then_some(Delivery::Pending)
}

fn no_origin() -> EngineError {
    let detail = "there is no such session";
    let problem = Problem::new(ProblemCode::InvalidRequest, detail);
    EngineError::Refused(problem.with_field("/origin_session_id", detail))
}

pub(super) fn refused(fault: &JobFault) -> EngineError {
    let (field, detail) = (fault.field(), fault.to_string());
    let problem = Problem::new(ProblemCode::InvalidRequest, detail.clone());
    EngineError::Refused(match field {
        "" => problem,
        field => problem.with_field(format!("/{field}"), detail),
    })
}
