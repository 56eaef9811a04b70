//! What a job looks like to clients of the original, and how what they write is
//! read.

use serde_json::{Value, json};

use crate::api::failure::Failure;
use crate::model::job::{Job, JobState, RunStatus};
use crate::model::schedule::Schedule;

/// Seldom more than a person would write out.
const MOST_RUNS: u64 = 1_000_000;

/// A job under the original's names.
pub(super) fn job(job: &Job, configured: &str) -> Value {
    let state = match job.state {
        JobState::Active => "scheduled",
        JobState::Paused => "paused",
        JobState::Completed => "completed",
    };
    json!({
        "id": job.id,
        "name": job.name,
        "prompt": job.task.prompt,
        "skills": job.task.skills,
        "skill": job.task.skills.first(),
        "model": job.task.model,
        "model_snapshot": job.task.model.as_deref().unwrap_or(configured),
        "provider": null,
        "provider_snapshot": null,
        "base_url": null,
        "script": job.task.script,
        "no_agent": job.task.no_agent,
        "context_from": job.task.context_from,
        "workdir": job.task.workdir,
        "schedule": schedule(job),
        "schedule_display": job.schedule,
        "time_zone": job.time_zone,
        "repeat": {"times": job.repeat, "completed": job.runs},
        "enabled": job.state == JobState::Active,
        "state": state,
        "paused_at": job.paused_at,
        "paused_reason": job.paused_reason,
        "created_at": job.created_at,
        "next_run_at": job.triggered_at.or(job.next_run_at),
        "last_run_at": job.last_run_at,
        "last_status": job.last_status.map(last_status),
        "last_error": (job.last_status == Some(RunStatus::Failed)).then_some("the run failed; its session says why"),
        "last_delivery_error": job.delivery_error(),
        "latest_execution": job.last_run_at.map(|at| json!({"status": job.last_status, "started_at": at,
            "session_id": job.last_session_id})),
        "deliver": job.task.deliver,
        "origin": {"platform": "api_server", "session_id": job.origin_session_id},
        "enabled_toolsets": job.task.toolsets,
    })
}

fn last_status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Completed => "ok",
        RunStatus::Failed => "error",
        RunStatus::Missed => "missed",
        RunStatus::Skipped => "skipped",
    }
}

fn schedule(job: &Job) -> Value {
    let display = &job.schedule;
    match &job.plan {
        Schedule::Once { at } => json!({"kind": "once", "run_at": at, "display": display}),
        Schedule::Interval { minutes } => json!({"kind": "interval", "minutes": minutes, "display": display}),
        Schedule::Cron { expr, time_zone } => {
            json!({"kind": "cron", "expr": expr, "time_zone": time_zone, "display": display})
        }
    }
}

/// A text, or nothing.
pub(super) fn text(value: &Value, field: &str) -> Result<Option<String>, Failure> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err(Failure::field(&format!("/{field}"), "expected a text")),
    }
}

/// A list of names, or one.
pub(super) fn names(value: &Value, field: &str) -> Result<Option<Vec<String>>, Failure> {
    let wrong = || Failure::field(&format!("/{field}"), "expected a list of names");
    match value {
        Value::Null => Ok(None),
        Value::String(one) => Ok(Some(vec![one.clone()])),
        Value::Array(list) => {
            let names = list.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<Vec<_>>>().map(Some).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// How often a job runs: a number, or an object with it as `times`, whose `null`
/// is without end.
pub(super) fn repeat(value: &Value) -> Result<Option<Option<u32>>, Failure> {
    let given = match value {
        Value::Object(fields) => match fields.get("times") {
            None | Some(Value::Null) => return Ok(Some(None)),
            Some(times) => times,
        },
        Value::Null => return Ok(None),
        value => value,
    };
    let times = given.as_u64().filter(|times| (1..=MOST_RUNS).contains(times));
    match times.and_then(|times| u32::try_from(times).ok()) {
        Some(times) => Ok(Some(Some(times))),
        None => Err(Failure::field("/repeat", "expected a number of runs, 1 or more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_runs_is_a_number_or_an_object_with_it() {
        for (given, read) in [
            (json!(null), Ok(None)),
            (json!(3), Ok(Some(Some(3)))),
            (json!({"times": 3, "completed": 1}), Ok(Some(Some(3)))),
            (json!({"times": null}), Ok(Some(None))),
            (json!(0), Err(())),
            (json!("3"), Err(())),
            (json!(-1), Err(())),
        ] {
            assert_eq!(repeat(&given).map_err(|_| ()), read, "{given}");
        }
    }

    #[test]
    fn skills_are_names() {
        let read = |value: Value| names(&value, "skills");
        assert_eq!(read(json!("a")).unwrap(), Some(vec!["a".to_owned()]));
        assert_eq!(read(json!(["a", "b"])).unwrap().unwrap().len(), 2);
        assert!(read(json!([1])).is_err() && read(json!({})).is_err());
    }
}
