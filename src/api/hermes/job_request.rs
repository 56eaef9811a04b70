//! A job as clients of the original write it: what is absent or `null` is left as
//! it is, and an empty text or list takes away what can be absent.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::job_shape::{names, repeat, text};
use crate::api::failure::Failure;
use crate::api::native::bounds;
use crate::model::job::{JobCeiling, JobChanges, NewJob};
use crate::model::job_task::{Deliver, JobTask, TaskChanges};

/// A job, or what changes of one.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct HermesJob {
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    name: Value,
    /// `30m`, `2h` or `1d` from now, once; `every 2h`; five cron fields; or a time.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    schedule: Value,
    /// The zone of cron fields and of times without an offset; `UTC` unless said.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    time_zone: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    prompt: Value,
    /// `local`: what a run came to is in its session; `origin`: it is told to the
    /// job's session as well.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    deliver: Value,
    /// Of a new job: the session that it is for, by its name or id; also
    /// `origin.session_id`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    origin_session_id: Value,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    origin: Value,
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    skills: Value,
    /// The same, one of them.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    skill: Value,
    /// How often it runs in all.
    #[serde(default)]
    #[schema(value_type = Option<u32>)]
    repeat: Value,
    /// Jobs, by id or name, whose last answers a run begins with.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    context_from: Value,
    /// Directory that the run's commands begin in, inside its workspace.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    workdir: Value,
    /// A script of the operator's, with which each run begins.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    script: Value,
    /// What the script prints is the answer of the run; no model is asked.
    #[serde(default)]
    #[schema(value_type = Option<bool>)]
    no_agent: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    model: Value,
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    enabled_toolsets: Value,
    /// Of a change: `false` pauses, `true` resumes.
    #[serde(default)]
    #[schema(value_type = Option<bool>)]
    enabled: Value,
}

fn yes_or_no(value: &Value, field: &str) -> Result<Option<bool>, Failure> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(yes) => Ok(Some(*yes)),
        _ => Err(Failure::field(&format!("/{field}"), "expected `true` or `false`")),
    }
}

/// A text that is taken away by an empty one.
fn removable(value: &Value, field: &str) -> Result<Option<Option<String>>, Failure> {
    let given = text(value, field)?;
    Ok(given.map(|text| (!text.is_empty()).then_some(text)))
}

impl HermesJob {
    pub(super) fn is_enabled(&self) -> Result<Option<bool>, Failure> {
        yes_or_no(&self.enabled, "enabled")
    }

    /// The name or id of the session that the job is for.
    pub(super) fn origin(&self) -> Result<Option<String>, Failure> {
        match text(&self.origin_session_id, "origin_session_id")? {
            Some(name) => Ok(Some(name)),
            None => text(
                self.origin.pointer("/session_id").unwrap_or(&Value::Null),
                "origin/session_id",
            ),
        }
    }

    fn deliver(&self) -> Result<Option<Deliver>, Failure> {
        match text(&self.deliver, "deliver")?.as_deref() {
            None | Some("") => Ok(None),
            Some("local") => Ok(Some(Deliver::Local)),
            Some("origin") => Ok(Some(Deliver::Origin)),
            Some(_) => Err(Failure::field(
                "/deliver",
                "only `local` and `origin` are possible here",
            )),
        }
    }

    fn skills(&self) -> Result<Option<Vec<String>>, Failure> {
        match (names(&self.skills, "skills")?, text(&self.skill, "skill")?) {
            (None, Some(one)) => Ok(Some(vec![one])),
            (many, _) => Ok(many),
        }
    }

    fn task(&self) -> Result<TaskChanges, Failure> {
        let model = removable(&self.model, "model")?;
        bounds::model(&model.clone().flatten())?;
        let toolsets = names(&self.enabled_toolsets, "enabled_toolsets")?;
        Ok(TaskChanges {
            prompt: text(&self.prompt, "prompt")?,
            skills: self.skills()?,
            model,
            toolsets: toolsets.map(|names| (!names.is_empty()).then_some(names)),
            context_from: names(&self.context_from, "context_from")?,
            deliver: self.deliver()?,
            workdir: removable(&self.workdir, "workdir")?,
            script: removable(&self.script, "script")?,
            no_agent: yes_or_no(&self.no_agent, "no_agent")?,
        })
    }

    /// The job that it makes, but for the session that it is for.
    pub(super) fn made(&self, ceiling: JobCeiling) -> Result<NewJob, Failure> {
        Ok(NewJob {
            name: text(&self.name, "name")?,
            task: JobTask::default().changed(self.task()?),
            schedule: text(&self.schedule, "schedule")?.ok_or_else(|| Failure::field("/schedule", "it is required"))?,
            time_zone: text(&self.time_zone, "time_zone")?,
            repeat: repeat(&self.repeat)?.flatten(),
            ceiling,
            ..NewJob::default()
        })
    }

    pub(super) fn changes(&self) -> Result<JobChanges, Failure> {
        Ok(JobChanges {
            name: text(&self.name, "name")?,
            task: self.task()?,
            schedule: text(&self.schedule, "schedule")?,
            time_zone: text(&self.time_zone, "time_zone")?,
            repeat: repeat(&self.repeat)?,
            ..JobChanges::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> HermesJob {
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn what_is_empty_is_taken_away_and_what_is_null_stays() {
        let changes = read(json!({"workdir": "", "script": null, "context_from": [], "enabled_toolsets": []}));
        let task = changes.changes().unwrap().task;
        let expected = TaskChanges {
            workdir: Some(None),
            context_from: Some(Vec::new()),
            toolsets: Some(None),
            ..TaskChanges::default()
        };
        assert_eq!(task, expected);
        assert_eq!(read(json!({"name": null})).changes().unwrap(), JobChanges::default());
    }

    #[test]
    fn a_field_of_another_type_is_refused_by_its_name() {
        for field in [
            "name",
            "schedule",
            "time_zone",
            "prompt",
            "deliver",
            "skill",
            "workdir",
            "script",
            "model",
        ] {
            let failure = read(json!({field: 5})).changes().unwrap_err();
            assert_eq!(failure.problem().errors[0].pointer, format!("/{field}"));
        }
        for (field, wrong) in [
            ("no_agent", json!("yes")),
            ("context_from", json!([1])),
            ("enabled_toolsets", json!({})),
            ("repeat", json!(0)),
        ] {
            let failure = read(json!({field: wrong})).changes().unwrap_err();
            assert_eq!(failure.problem().errors[0].pointer, format!("/{field}"));
        }
        assert!(read(json!({"enabled": 1})).is_enabled().is_err() && read(json!({"origin": 5})).origin().is_ok());
        assert!(read(json!({"origin": {"session_id": 5}})).origin().is_err());
    }
}
