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

pub fn read(arguments: &Value) -> Result<Action, String> {
    let empty = Map::new();
    let fields = arguments.as_object().unwrap_or(&empty);
    let text = |name: &str| {
        fields
            .get(name)
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool);
    let deliver = deliver(text("deliver"), fields.get("attach_to_session"))?;
    let job = || {
        text("job_id")
            .map(str::to_owned)
            .ok_or_else(|| "job_id is required".to_owned())
    };
    match text("action").unwrap_or_default().to_ascii_lowercase().as_str() {
        "create" => {
            let schedule = text("schedule").ok_or("schedule is required for create")?;
            let task = JobTask {
                prompt: text("prompt").unwrap_or_default().to_owned(),
                skills: texts(fields.get("skills"))?.unwrap_or_default(),
                model: model(fields.get("model"))?,
                toolsets: texts(fields.get("enabled_toolsets"))?,
                context_from: texts(fields.get("context_from"))?.unwrap_or_default(),
                deliver: deliver.unwrap_or_default(),
                workdir: text("workdir").map(str::to_owned),
                script: text("script").map(str::to_owned),
                no_agent: flag("no_agent").unwrap_or_default(),
            };
            if task.no_agent && task.script.is_none() {
                return Err("create with no_agent requires a script".to_owned());
            }
            if task.prompt.is_empty() && task.skills.is_empty() && !task.no_agent {
                return Err("create requires either prompt or at least one skill".to_owned());
            }
            Ok(Action::Create(Box::new(NewJob {
                name: text("name").map(str::to_owned),
                task,
                schedule: schedule.to_owned(),
                time_zone: text("time_zone").map(str::to_owned),
                repeat: repeat(fields.get("repeat"))?,
                ..NewJob::default()
            })))
        }
        "list" => Ok(Action::List),
        "update" => Ok(Action::Update(
            job()?,
            Box::new(JobChanges {
                name: text("name").map(str::to_owned),
                task: TaskChanges {
                    prompt: text("prompt").map(str::to_owned),
                    skills: texts(fields.get("skills"))?,
                    model: model(fields.get("model"))?.map(Some),
                    toolsets: texts(fields.get("enabled_toolsets"))?.map(Some),
                    context_from: texts(fields.get("context_from"))?,
                    deliver,
                    workdir: text("workdir").map(|path| Some(path.to_owned())),
                    script: text("script").map(|path| Some(path.to_owned())),
                    no_agent: flag("no_agent"),
                },
                schedule: text("schedule").map(str::to_owned),
                time_zone: text("time_zone").map(str::to_owned),
                missed: None,
                repeat: repeat(fields.get("repeat"))?.map(Some),
            }),
        )),
        "pause" => Ok(Action::Pause(job()?, text("reason").map(str::to_owned))),
        "resume" => Ok(Action::Resume(job()?)),
        "remove" => Ok(Action::Remove(job()?)),
        "run" | "run_now" | "trigger" => Ok(Action::Run(job()?)),
        other => Err(format!(
            "unknown action `{}`: create, list, update, pause, resume, remove or run",
            first_chars(other, 40)
        )),
    }
}

/// `origin` adds each run's answer to the session of the call; so does
/// `attach_to_session`, which the original has beside it.
fn deliver(named: Option<&str>, attach: Option<&Value>) -> Result<Option<Deliver>, String> {
    let attached = attach.and_then(Value::as_bool).unwrap_or_default();
    match (named, attached) {
        (Some("origin"), _) | (None, true) => Ok(Some(Deliver::Origin)),
        (Some("local"), false) => Ok(Some(Deliver::Local)),
        (Some("local"), true) => Err("`deliver: local` and `attach_to_session` exclude each other".to_owned()),
        (Some(_), _) => Err(
            "`deliver` is `local` (the run's own session) or `origin` (this session too); \
            this server sends nothing elsewhere"
                .to_owned(),
        ),
        (None, false) => Ok(None),
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
            changed(job.changed(*changes, now).map_err(|error| fault(&error.to_string()))?)
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
        "last_session_id": job.last_session_id, "last_delivery_error": null, "enabled": job.state == JobState::Active,
        "state": state, "paused_at": job.paused_at, "paused_reason": job.paused_reason,
        "enabled_toolsets": job.task.toolsets, "context_from": job.task.context_from, "workdir": job.task.workdir,
        "script": job.task.script, "no_agent": job.task.no_agent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;

    fn act(jobs: &mut Vec<Job>, arguments: &Value) -> Value {
        let asker = Asker {
            user: "ada",
            session: Id::from_bits(9),
            ceiling: JobCeiling::default(),
            now: Timestamp(1_800_000_000_000),
            new_id: Id::from_bits(jobs.len() as u128 + 1),
        };
        let outcome = apply(read(arguments).unwrap(), jobs, asker);
        match outcome.write {
            Some(JobWrite::Add(job)) => jobs.push(*job),
            Some(JobWrite::Change(job)) => {
                let place = jobs.iter().position(|own| own.id == job.id).unwrap();
                jobs[place] = *job;
            }
            Some(JobWrite::Remove(id)) => jobs.retain(|job| job.id != id),
            None => {}
        }
        serde_json::from_str(&outcome.told).unwrap()
    }

    #[test]
    fn a_job_is_made_named_paused_run_and_removed() {
        let mut jobs = Vec::new();
        let made = act(
            &mut jobs,
            &json!({"action": "create", "schedule": "every 2h", "prompt": "look", "name": "News"}),
        );
        assert_eq!(
            (&made["success"], &made["repeat"], &made["job"]["state"]),
            (&json!(true), &json!("forever"), &json!("scheduled"))
        );
        assert_eq!(act(&mut jobs, &json!({"action": "list"}))["count"], 1);
        assert_eq!(
            act(&mut jobs, &json!({"action": "pause", "job_id": "news"}))["job"]["state"],
            "paused"
        );
        assert_eq!(
            act(&mut jobs, &json!({"action": "resume", "job_id": "News"}))["job"]["enabled"],
            true
        );
        assert_eq!(
            act(&mut jobs, &json!({"action": "run_now", "job_id": "News"}))["executed"],
            true
        );
        assert!(jobs[0].triggered_at.is_some());
        let updated = act(
            &mut jobs,
            &json!({"action": "update", "job_id": "News", "schedule": "0 9 * * *"}),
        );
        assert_eq!(updated["job"]["schedule"], "0 9 * * *");
        assert_eq!(
            act(&mut jobs, &json!({"action": "remove", "job_id": "News"}))["removed_job"]["name"],
            "News"
        );
        assert!(jobs.is_empty());
    }

    #[test]
    fn an_ambiguous_name_is_no_job_and_lists_those_of_the_name() {
        let mut jobs = Vec::new();
        for _ in 0..2 {
            act(
                &mut jobs,
                &json!({"action": "create", "schedule": "1h", "prompt": "look", "name": "twin"}),
            );
        }
        let told = act(&mut jobs, &json!({"action": "remove", "job_id": "twin"}));
        assert_eq!(
            (told["success"].as_bool(), told["matches"].as_array().unwrap().len()),
            (Some(false), 2)
        );
        let told = act(&mut jobs, &json!({"action": "remove", "job_id": "nobody"}));
        assert!(told["error"].as_str().unwrap().contains("not found"));
    }

    #[test]
    fn what_cannot_be_done_here_is_said() {
        for (arguments, why) in [
            (json!({"action": "create", "prompt": "x"}), "schedule"),
            (json!({"action": "create", "schedule": "1h"}), "prompt"),
            (
                json!({"action": "create", "schedule": "1h", "prompt": "x", "no_agent": true}),
                "script",
            ),
            (
                json!({"action": "create", "schedule": "1h", "prompt": "x", "deliver": "telegram"}),
                "deliver",
            ),
            (json!({"action": "pause"}), "job_id"),
            (json!({"action": "dance"}), "unknown action"),
        ] {
            let text = read(&arguments).unwrap_err();
            assert!(text.contains(why), "{arguments}: {text}");
        }
        let told = act(
            &mut Vec::new(),
            &json!({"action": "create", "schedule": "1h", "prompt": "rm -rf /"}),
        );
        assert!(
            told["error"].as_str().unwrap().contains("destructive_root_rm"),
            "{told}"
        );
    }
}
