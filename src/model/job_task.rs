//! What the runs of a job do, and where what they come to goes. When they run is
//! the job's own; that they do it is the engine's.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::guard::cron_prompt;

const MAX_NAME_CHARS: usize = 200;
const MAX_PROMPT_CHARS: usize = 20_000;
const MAX_LIST: usize = 32;
/// Jobs whose last answers a run begins with.
const MAX_CONTEXT: usize = 8;

/// Where the answer of a run goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Deliver {
    /// It stays in the session of the run.
    #[default]
    Local,
    /// It is added to the job's origin session too, once that is idle.
    Origin,
}

/// What became of an answer that goes to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The run is not over, or the session is busy.
    Pending,
    Delivered,
    /// The run had nothing to say: it answered `[SILENT]`.
    Silent,
    /// The session is gone, or the run came to nothing.
    Failed,
}

/// What a job does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobTask {
    /// Asked of the model in each run. Empty only where skills or a script say
    /// what to do.
    #[schema(max_length = 20_000)]
    pub prompt: String,
    /// Skills that the run begins with.
    pub skills: Vec<String>,
    pub model: Option<String>,
    /// Toolsets of the run; those of the server's sessions where nothing is said.
    pub toolsets: Option<Vec<String>>,
    /// Jobs of the same user, by id or unambiguous name: a run begins with what
    /// the last finished run of each came to.
    pub context_from: Vec<String>,
    pub deliver: Deliver,
    /// Directory that the run's commands begin in: a relative path inside its
    /// workspace.
    pub workdir: Option<String>,
    /// A script of the operator's, with which the run begins: a relative path
    /// inside the tenant's folder of scripts.
    pub script: Option<String>,
    /// What the script prints is the answer of the run; no model is asked.
    pub no_agent: bool,
}

/// What changes of a task; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskChanges {
    pub prompt: Option<String>,
    pub skills: Option<Vec<String>>,
    pub model: Option<Option<String>>,
    pub toolsets: Option<Option<Vec<String>>>,
    pub context_from: Option<Vec<String>>,
    pub deliver: Option<Deliver>,
    pub workdir: Option<Option<String>>,
    pub script: Option<Option<String>>,
    pub no_agent: Option<bool>,
}

/// What is wrong with a task, by the name of the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskFault {
    #[error("a job needs a prompt or a skill, or a script with `no_agent`")]
    Empty,
    #[error("`script` is a relative path inside the folder of scripts, without `..`")]
    Script,
    #[error("`no_agent` needs a `script`")]
    NoScript,
    #[error("the prompt is refused: it matches `{0}`")]
    Prompt(&'static str),
    #[error("`{0}` is too long")]
    TooLong(&'static str),
    #[error("`workdir` is a relative path inside the workspace, without `..`")]
    Workdir,
}

impl TaskFault {
    /// The field that it is about.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Empty | Self::Prompt(_) => "prompt",
            Self::TooLong(field) => field,
            Self::Workdir => "workdir",
            Self::Script => "script",
            Self::NoScript => "no_agent",
        }
    }
}

impl JobTask {
    pub fn check(&self) -> Result<(), TaskFault> {
        if self.no_agent && self.script.is_none() {
            return Err(TaskFault::NoScript);
        }
        if self.prompt.trim().is_empty() && self.skills.is_empty() && !self.no_agent {
            return Err(TaskFault::Empty);
        }
        if self.script.as_deref().is_some_and(leads_out) {
            return Err(TaskFault::Script);
        }
        if MAX_PROMPT_CHARS < self.prompt.chars().count() {
            return Err(TaskFault::TooLong("prompt"));
        }
        let toolsets = self.toolsets.as_deref().unwrap_or_default();
        for (names, most, field) in [
            (self.skills.as_slice(), MAX_LIST, "skills"),
            (toolsets, MAX_LIST, "toolsets"),
            (self.context_from.as_slice(), MAX_CONTEXT, "context_from"),
        ] {
            let long = |name: &String| MAX_NAME_CHARS < name.chars().count();
            if most < names.len() || names.iter().any(long) {
                return Err(TaskFault::TooLong(field));
            }
        }
        if self.workdir.as_deref().is_some_and(leads_out) {
            return Err(TaskFault::Workdir);
        }
        match cron_prompt::scan(&self.prompt) {
            Some(rule) => Err(TaskFault::Prompt(rule)),
            None => Ok(()),
        }
    }

    pub fn changed(self, changes: TaskChanges) -> Self {
        Self {
            prompt: changes.prompt.unwrap_or(self.prompt),
            skills: changes.skills.unwrap_or(self.skills),
            model: changes.model.unwrap_or(self.model),
            toolsets: changes.toolsets.unwrap_or(self.toolsets),
            context_from: changes.context_from.unwrap_or(self.context_from),
            deliver: changes.deliver.unwrap_or(self.deliver),
            workdir: changes.workdir.unwrap_or(self.workdir),
            script: changes.script.unwrap_or(self.script),
            no_agent: changes.no_agent.unwrap_or(self.no_agent),
        }
    }
}

fn leads_out(path: &str) -> bool {
    use std::path::{Component, Path};
    let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    path.trim().is_empty() || path.contains('\0') || 4096 < path.len() || !Path::new(path).components().all(stays)
}

/// Whether an answer says that there is nothing to tell (the original's words).
pub fn is_silent(answer: &str) -> bool {
    ["[SILENT]", "SILENT", "NO_REPLY"].contains(&answer.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_directory_stays_inside() {
        let fault = |workdir: &str| {
            let task = JobTask {
                prompt: "look".to_owned(),
                workdir: Some(workdir.to_owned()),
                ..JobTask::default()
            };
            task.check().err()
        };
        for inside in ["app", "app/src", "./app"] {
            assert_eq!(fault(inside), None, "{inside}");
        }
        for outside in ["", "/etc", "..", "app/../..", "a\0b"] {
            assert_eq!(fault(outside), Some(TaskFault::Workdir), "{outside}");
        }
    }

    #[test]
    fn silence_is_the_whole_answer() {
        assert!(is_silent(" [SILENT]\n") && is_silent("NO_REPLY") && is_silent("SILENT"));
        assert!(!is_silent("The word [SILENT] stands in the text.") && !is_silent(""));
    }
}
