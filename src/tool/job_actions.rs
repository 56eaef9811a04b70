//! What the tool `cronjob` does, as a pure function of the user's jobs: carried
//! out under their lock, in the transaction that stores the result.

use serde_json::{Map, Value, json};

use crate::base::Timestamp;
use crate::base::text::first_chars;
use crate::model::id::{JobId, SessionId};
use crate::model::job::{Job, JobCeiling, JobChanges, JobState, MAX_JOBS, NewJob};
use crate::model::job_task::{Deliver, JobTask, TaskChanges};
use crate::model::record::JobWrite;

const PREVIEW_CHARS: usize = 100;

/// What is asked, read from the arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Create(Box<NewJob>),
    List,
    Update(String, Box<JobChanges>),
    Pause(String, Option<String>),
    Resume(String),
    Remove(String),
    Run(String),
}

/// Who asks, and when.
pub struct Asker<'a> {
    pub user: &'a str,
    pub session: SessionId,
    pub ceiling: JobCeiling,
    pub now: Timestamp,
    /// Of the job that may be made.
    pub new_id: JobId,
}

/// What was done, and what the model is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub told: String,
    pub failed: bool,
    pub write: Option<JobWrite>,
}

/// The arguments of a call.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    fn given(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str).map(str::trim)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.given(name).filter(|text| !text.is_empty())
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// What takes the place of what was there; an empty text takes it away.
    fn replaced(&self, name: &str) -> Option<Option<String>> {
        self.given(name).map(|_| self.owned(name))
    }

    fn texts(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        texts(self.get(name))
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }

    fn job(&self) -> Result<String, String> {
        self.owned("job_id").ok_or_else(|| "job_id is required".to_owned())
    }
}

pub fn read(arguments: &Value) -> Result<Action, String> {
    let empty = Map::new();
    let fields = Fields(arguments.as_object().unwrap_or(&empty));
    let deliver = deliver(fields.text("deliver"), fields.get("attach_to_session"))?;
    let action = fields.text("action").unwrap_or_default().to_ascii_lowercase();
    match action.as_str() {
        "create" => created(&fields, deliver),
        "list" => Ok(Action::List),
        "update" => updated(&fields, deliver),
        "pause" => Ok(Action::Pause(fields.job()?, fields.owned("reason"))),
        "resume" => Ok(Action::Resume(fields.job()?)),
        "remove" => Ok(Action::Remove(fields.job()?)),
        "run" | "run_now" | "trigger" => Ok(Action::Run(fields.job()?)),
        other => Err(format!(
            "unknown action `{}`: create, list, update, pause, resume, remove or run",
            first_chars(other, 40)
        )),
    }
}

fn created(fields: &Fields<'_>, deliver: Option<Deliver>) -> Result<Action, String> {
    let schedule = fields.owned("schedule").ok_or("schedule is required for create")?;
    let task = JobTask {
        prompt: fields.owned("prompt").unwrap_or_default(),
        skills: fields.texts("skills")?.unwrap_or_default(),
        model: model(fields.get("model"))?,
        toolsets: fields.texts("enabled_toolsets")?.filter(|all| !all.is_empty()),
        context_from: fields.texts("context_from")?.unwrap_or_default(),
        deliver: deliver.unwrap_or_default(),
        workdir: fields.owned("workdir"),
        script: fields.owned("script"),
        no_agent: fields.flag("no_agent").unwrap_or_default(),
    };
    if task.no_agent && task.script.is_none() {
        return Err("create with no_agent requires a script".to_owned());
    }
    if task.prompt.is_empty() && task.skills.is_empty() && !task.no_agent {
        return Err("create requires either prompt or at least one skill".to_owned());
    }
    Ok(Action::Create(Box::new(NewJob {
        name: fields.owned("name"),
        task,
        schedule,
        time_zone: fields.owned("time_zone"),
        repeat: repeat(fields.get("repeat"))?,
        ..NewJob::default()
    })))
}

fn updated(fields: &Fields<'_>, deliver: Option<Deliver>) -> Result<Action, String> {
    let toolsets = fields.texts("enabled_toolsets")?;
    let changes = JobChanges {
        name: fields.owned("name"),
        task: TaskChanges {
            prompt: fields.owned("prompt"),
            skills: fields.texts("skills")?,
            model: model(fields.get("model"))?.map(Some),
            toolsets: toolsets.map(|all| Some(all).filter(|all| !all.is_empty())),
            context_from: fields.texts("context_from")?,
            deliver,
            workdir: fields.replaced("workdir"),
            script: fields.replaced("script"),
            no_agent: fields.flag("no_agent"),
        },
        schedule: fields.owned("schedule"),
        time_zone: fields.owned("time_zone"),
        missed: None,
        repeat: match fields.get("repeat") {
            None | Some(Value::Null) => None,
            given => Some(repeat(given)?),
        },
    };
    Ok(Action::Update(fields.job()?, Box::new(changes)))
}

/// `origin` adds each run's answer to the session of the call; so does
/// `attach_to_session`, which the original has beside it.
fn deliver(named: Option<&str>, attach: Option<&Value>) -> Result<Option<Deliver>, String> {
    match (named, attach.and_then(Value::as_bool)) {
        (Some("origin"), _) | (None, Some(true)) => Ok(Some(Deliver::Origin)),
        (Some("local"), Some(true)) => Err("`deliver: local` and `attach_to_session` exclude each other".to_owned()),
        (Some("local"), _) | (None, Some(false)) => Ok(Some(Deliver::Local)),
        (Some(_), _) => Err(
            "`deliver` is `local` (the run's own session) or `origin` (this session too); \
            this server sends nothing elsewhere"
                .to_owned(),
        ),
        (None, None) => Ok(None),
    }
}

fn texts(list: Option<&Value>) -> Result<Option<Vec<String>>, String> {
    match list {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(one)) if one.trim().is_empty() => Ok(None),
        Some(Value::String(one)) => Ok(Some(vec![one.trim().to_owned()])),
        Some(Value::Array(all)) => {
            let all = all.iter().map(|one| one.as_str().map(|one| one.trim().to_owned()));
            all.collect::<Option<Vec<_>>>()
                .map(Some)
                .ok_or_else(|| "a list of texts is expected".to_owned())
        }
        Some(_) => Err("a list of texts is expected".to_owned()),
    }
}

fn model(given: Option<&Value>) -> Result<Option<String>, String> {
    match given {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.clone()).filter(|name| !name.trim().is_empty())),
        Some(Value::Object(fields)) => match fields.get("model").and_then(Value::as_str) {
            Some(name) => Ok(Some(name.to_owned())),
            None => Err("model needs its name as `model`".to_owned()),
        },
        Some(_) => Err("model is an object with the name as `model`".to_owned()),
    }
}

fn repeat(given: Option<&Value>) -> Result<Option<u32>, String> {
    match given {
        None | Some(Value::Null) => Ok(None),
        Some(number) => {
            let count = number.as_i64().ok_or("repeat is a whole number")?;
            // Nothing or less is without end, as in the original.
            Ok(u32::try_from(count).ok().filter(|count| 0 < *count))
        }
    }
}

pub fn apply(action: Action, jobs: &[Job], asker: Asker<'_>) -> Outcome {
    match done(action, jobs, asker) {
        Ok((told, write)) => Outcome {
            told: told.to_string(),
            failed: false,
            write,
        },
        Err(refused) => Outcome {
            told: refused.to_string(),
            failed: true,
            write: None,
        },
    }
}

type Told = (Value, Option<JobWrite>);

fn done(action: Action, jobs: &[Job], asker: Asker<'_>) -> Result<Told, Value> {
    let now = asker.now;
    match action {
        Action::Create(new) => {
            if MAX_JOBS <= jobs.len() {
                return Err(fault(&format!("{MAX_JOBS} jobs are there already; remove one first")));
            }
            let new = NewJob {
                ceiling: asker.ceiling,
                origin: Some(asker.session),
                ..*new
            };
            let job = Job::new(asker.new_id, asker.user, new, now).map_err(|error| fault(&error.to_string()))?;
            let shown = view(&job);
            let mut told =
                json!({"success": true, "job": shown, "message": format!("Job '{}' was created.", job.name)});
            let heads = [
                "job_id",
                "name",
                "skill",
                "skills",
                "schedule",
                "repeat",
                "deliver",
                "next_run_at",
            ];
            if let (Some(told), Some(shown)) = (told.as_object_mut(), shown.as_object()) {
                let heads = heads
                    .iter()
                    .filter_map(|name| Some(((*name).to_owned(), shown.get(*name)?.clone())));
                told.extend(heads);
            }
            Ok((told, Some(JobWrite::Add(Box::new(job)))))
        }
        Action::List => {
            let shown: Vec<Value> = jobs.iter().map(view).collect();
            Ok((json!({"success": true, "count": shown.len(), "jobs": shown}), None))
        }
        Action::Update(name, changes) => {
            let job = found(jobs, &name)?.clone();
            let mut job = job.changed(*changes, now).map_err(|error| fault(&error.to_string()))?;
            if job.task.deliver == Deliver::Origin {
                // One that was made elsewhere has no conversation of its own.
                job.origin_session_id.get_or_insert(asker.session);
            }
            changed(job)
        }
        Action::Pause(name, reason) => changed(found(jobs, &name)?.clone().paused(reason, now)),
        Action::Resume(name) => {
            let job = found(jobs, &name)?.clone();
            changed(job.resumed(now).map_err(|error| fault(&error.to_string()))?)
        }
        Action::Run(name) => {
            let job = found(jobs, &name)?.clone().triggered(None, now);
            let job = job.map_err(|error| fault(&error.to_string()))?;
            let told = json!({"success": true, "job": view(&job), "executed": true,
                "message": "The job runs now, in a session of its own."});
            Ok((told, Some(JobWrite::Change(Box::new(job)))))
        }
        Action::Remove(name) => {
            let job = found(jobs, &name)?;
            let told = json!({"success": true, "message": format!("Job '{}' was removed.", job.name),
                "removed_job": {"id": job.id, "name": job.name, "schedule": job.schedule}});
            Ok((told, Some(JobWrite::Remove(job.id))))
        }
    }
}

fn changed(job: Job) -> Result<Told, Value> {
    let told = json!({"success": true, "job": view(&job)});
    Ok((told, Some(JobWrite::Change(Box::new(job)))))
}

/// A job by its id, or by its name where only one has it.
pub fn found<'a>(jobs: &'a [Job], wanted: &str) -> Result<&'a Job, Value> {
    if let Some(job) = jobs.iter().find(|job| job.id.to_string() == wanted) {
        return Ok(job);
    }
    let named: Vec<&Job> = jobs
        .iter()
        .filter(|job| job.name.eq_ignore_ascii_case(wanted))
        .collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] => Err(fault(&format!(
            "Job with ID '{}' not found. Use action 'list' to see all jobs.",
            first_chars(wanted, 100)
        ))),
        many => {
            let matches: Vec<Value> = many
                .iter()
                .map(|job| json!({"job_id": job.id, "name": job.name, "schedule": job.schedule}))
                .collect();
            let mut refused = fault("several jobs have this name; give the job_id of one");
            if let Some(fields) = refused.as_object_mut() {
                fields.insert("matches".to_owned(), matches.into());
            }
            Err(refused)
        }
    }
}

fn fault(text: &str) -> Value {
    json!({"success": false, "error": text})
}

fn view(job: &Job) -> Value {
    let repeat = match job.repeat {
        Some(1) => "once".to_owned(),
        Some(times) => format!("{}/{times}", job.runs),
        None => "forever".to_owned(),
    };
    let state = match job.state {
        JobState::Active => "scheduled",
        JobState::Paused => "paused",
        JobState::Completed => "completed",
    };
    json!({
        "job_id": job.id, "name": job.name, "skill": job.task.skills.first(), "skills": job.task.skills,
        "prompt_preview": first_chars(&job.task.prompt, PREVIEW_CHARS), "model": job.task.model, "provider": null,
        "base_url": null, "schedule": job.schedule, "time_zone": job.time_zone, "repeat": repeat, "deliver": job.task.deliver,
        "next_run_at": job.next_run_at, "last_run_at": job.last_run_at, "last_status": job.last_status,
        "last_session_id": job.last_session_id, "last_delivery_error": job.delivery_error(), "enabled": job.state == JobState::Active,
        "state": state, "paused_at": job.paused_at, "paused_reason": job.paused_reason,
        "enabled_toolsets": job.task.toolsets, "context_from": job.task.context_from, "workdir": job.task.workdir,
        "script": job.task.script, "no_agent": job.task.no_agent,
    })
}

#[cfg(test)]
mod tests;
