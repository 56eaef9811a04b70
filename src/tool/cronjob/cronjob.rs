//! `cronjob`: jobs that run by themselves. The call only reads what is asked; the
//! jobs are changed, and the result is written, in the transaction that stores it.

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::job_actions;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool, ToolWrites};

inventory::submit!(Registered(&Cronjob));

struct Cronjob;

impl Tool for Cronjob {
    fn spec(&self) -> Spec {
        Spec {
            name: "cronjob",
            toolset: "cronjob",
            emoji: "⏰",
            description: "Schedules work that runs by itself. `create` needs a schedule and a prompt (or skills). \
                Each run begins with an empty conversation in a session of its own, with nobody there to answer, so \
                the prompt has to hold everything it needs. Schedules: `30m`, `2h`, `1d` (once, from now), \
                `every 30m`, five cron fields (`0 9 * * *`, in `time_zone`), or a time (`2030-02-03T14:00`, once). \
                `list` shows all jobs; `update`, `pause`, `resume`, `remove` and `run` take a `job_id`, or a name \
                that only one job has.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        let text = |description: &str| json!({"type": "string", "description": description});
        let texts =
            |description: &str| json!({"type": "array", "items": {"type": "string"}, "description": description});
        json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["create", "list", "update", "pause", "resume", "remove", "run"],
                },
                "job_id": text("Which job: its id, or its name."),
                "prompt": text("What the run is to do, whole and by itself understandable."),
                "schedule": text("When it runs."),
                "time_zone": text("Zone of cron fields and of times without an offset, such as Europe/Berlin; UTC."),
                "name": text("A short name."),
                "repeat": {"type": "integer", "description": "How often it runs in all; without end if left out."},
                "skills": texts("Skills that the run begins with."),
                "model": {
                    "type": "object",
                    "properties": {"model": {"type": "string"}, "provider": {"type": "string"}},
                    "required": ["model"],
                    "description": "The model of the runs.",
                },
                "enabled_toolsets": texts("Toolsets of the runs."),
                "context_from": texts("Jobs, by id or name, whose last answers a run begins with."),
                "deliver": {
                    "type": "string",
                    "enum": ["local", "origin"],
                    "description": "`origin`: the answer of each run is told in this conversation too. A run that \
                        has nothing to tell answers [SILENT].",
                },
                "attach_to_session": {"type": "boolean", "description": "The same as `deliver: origin`."},
                "workdir": text("Directory inside the run's workspace that its commands begin in."),
                "script": text("A script of the server's operator that the run begins with; you see what it printed."),
                "no_agent": {
                    "type": "boolean",
                    "description": "What the script prints is the answer of the run; nobody is asked.",
                },
                "reason": text("With pause: why."),
            },
            "required": ["action"],
        })
    }

    fn example(&self) -> Value {
        json!({"action": "create", "schedule": "every 1d", "prompt": "Say what is new in notes.txt", "name": "Notes"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Internal
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    fn subject(&self, arguments: &Value) -> String {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        format!("{} {}", text("action"), text("job_id")).trim().to_owned()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(std::future::ready(asked(&call.arguments)))
    }
}

fn asked(arguments: &Value) -> Done {
    match job_actions::read(arguments) {
        Err(why) => Done::failure(json!({"success": false, "error": why}).to_string()),
        Ok(action) => Done {
            writes: ToolWrites {
                jobs: Some(action),
                ..ToolWrites::default()
            },
            ..Done::default()
        },
    }
}
