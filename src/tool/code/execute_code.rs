//! `execute_code`: runs a Python program of the model's in the session's sandbox.
//! It may call some of the session's tools; each such call is recorded, judged
//! and run like one of the model's own.

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{library, run};
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Host, Judged, Place, Spec, Tool, Wording};

inventory::submit!(Registered(&ExecuteCode));

struct ExecuteCode;

impl Tool for ExecuteCode {
    fn spec(&self) -> Spec {
        Spec {
            name: "execute_code",
            toolset: "code_execution",
            emoji: "🐍",
            description: DESCRIPTION,
            requires_env: &[],
            result_limit: ResultLimit::Chars(100_000),
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "code": {
                    "type": "string",
                    "description": "The program, in Python. Print what you want to see.",
                },
            },
            "required": ["code"],
        })
    }

    fn example(&self) -> Value {
        json!({"code": "print(len(open('notes.txt').read()))"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Write
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    fn unavailable(&self, host: &Host) -> Option<String> {
        let missing = || {
            let found = host.environment().has_program("python3");
            (!found).then(|| "`python3` is not installed where programs run".to_owned())
        };
        host.no_commands().or_else(missing)
    }

    fn worded(&self, offered: &[&str]) -> Option<Wording> {
        let tools = library::described(offered);
        let more = match tools.as_str() {
            "" => " No tool of this session can be called from it.".to_owned(),
            tools => format!(
                " From it you can call, after `from hermes_tools import …`:{tools}\nHelpers there: json_parse(text), \
                 shell_quote(text), retry(fn, max_attempts=3, delay=2)."
            ),
        };
        Some(Wording {
            description: Some(format!("{DESCRIPTION}{more}")),
            parameters: None,
        })
    }

    fn judge(&self, arguments: &Value, _place: &Place<'_>, host: &Host) -> Judged {
        match host.judged_code(code(arguments)) {
            Some(finding) => Judged::Ask {
                findings: vec![finding],
            },
            None => Judged::Allow,
        }
    }

    fn subject(&self, arguments: &Value) -> String {
        format!("python3 <<'PYTHON'\n{}\nPYTHON", code(arguments))
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async move { run::execute(&call).await.unwrap_or_else(|failed| run::not_run(&failed)) })
    }
}

const DESCRIPTION: &str = "Runs a Python program and returns what it prints. Use it where several tool calls follow \
    from one another without your having to think in between: loops over files, filtering of large outputs, \
    arithmetic. What the calls inside return you do not see unless the program prints it. It runs in the session's \
    sandbox and directory, without input, and must end by itself.";

pub(super) fn code(arguments: &Value) -> &str {
    arguments.get("code").and_then(Value::as_str).unwrap_or_default()
}
