//! A call as the model wrote it, read: the tool that is meant, the arguments in
//! the types of its schema, or why it cannot run. Pure, so that whoever is asked
//! beforehand sees what the step will see.

use serde_json::{Map, Value, json};

use crate::model::id::CallId;
use crate::provider::Call;
use crate::tool::hook::Before;
use crate::tool::session_tools::SessionTools;
use crate::tool::{arguments, coerce, error_text, name_repair, search};

/// What hooks made of a call, and the id that they know it by.
#[derive(Clone, Debug, PartialEq)]
pub struct Hooked {
    pub call_id: CallId,
    pub before: Before,
}

/// A call before it is stored: what to run, or why it cannot be.
pub(super) struct Planned {
    pub call: Call,
    pub name: String,
    pub arguments: Map<String, Value>,
    /// The text of the result of a call that cannot run.
    pub error: Option<String>,
    pub unknown: bool,
    pub hooked: Option<Hooked>,
}

impl Planned {
    /// Nothing of it runs: it has its result already.
    pub(super) fn is_settled(&self) -> bool {
        self.error.is_some() || self.blocked().is_some()
    }

    /// Why a hook refused it.
    pub(super) fn blocked(&self) -> Option<&str> {
        self.hooked.as_ref()?.before.blocked.as_deref()
    }

    /// With what hooks made of it; new arguments are read like the model's.
    pub(super) fn hooked(mut self, tools: &SessionTools, hooked: Option<Hooked>) -> Self {
        let replaced = hooked.as_ref().and_then(|hooked| hooked.before.arguments.clone());
        if let (Some(replaced), Some(parameters)) = (replaced, tools.parameters(&self.name)) {
            self.arguments = coerce::coerce(&parameters, replaced);
            self.error = missing_argument(&parameters, &self.arguments);
        }
        self.hooked = hooked.filter(|_| !self.unknown);
        self
    }
}

/// The tool and the arguments of a call that can run; the text of the result of
/// one that cannot.
pub fn read_call(tools: &SessionTools, call: Call) -> Result<(String, Map<String, Value>), String> {
    let planned = planned(tools, call);
    match planned.error {
        None => Ok((planned.name, planned.arguments)),
        Some(error) => Err(error),
    }
}

/// Names repaired, bridges to tools that were searched for taken apart,
/// arguments parsed and coerced.
pub(super) fn planned(tools: &SessionTools, call: Call) -> Planned {
    let known = tools.names();
    let name = match known.contains(&call.name.as_str()) {
        true => None,
        false => name_repair::repair(&call.name, &known),
    };
    let name = name.unwrap_or(call.name.as_str()).to_owned();
    let (name, call) = match name == search::CALL && !tools.deferred().is_empty() {
        false => (name, call),
        true => match search::unwrap(&call.arguments, tools.deferred()) {
            Ok((name, arguments)) => (
                name.clone(),
                Call {
                    name,
                    arguments,
                    ..call
                },
            ),
            Err(error) => return failed(call, name, error, false),
        },
    };
    let Some(parameters) = tools.parameters(&name) else {
        let error = unknown_tool(&call.name, &known);
        return failed(call, name, error, true);
    };
    match arguments::parse(&call.arguments) {
        Ok(parsed) => {
            let arguments = coerce::coerce(&parameters, parsed);
            let error = missing_argument(&parameters, &arguments);
            Planned {
                call,
                name,
                arguments,
                error,
                unknown: false,
                hooked: None,
            }
        }
        Err(unreadable) => {
            let error = json!({"error": "Invalid tool arguments", "message": unreadable.to_string()}).to_string();
            failed(call, name, error, false)
        }
    }
}

fn failed(call: Call, name: String, error: String, unknown: bool) -> Planned {
    Planned {
        call,
        name,
        arguments: Map::new(),
        error: Some(error),
        unknown,
        hooked: None,
    }
}

fn unknown_tool(name: &str, known: &[&str]) -> String {
    let shown = crate::base::text::first_chars(name, 100);
    error_text::envelope(&format!("Unknown tool: {shown}. Available tools: {}", known.join(", ")))
}

/// The error of a call that lacks a required argument or has one of a wrong
/// type that coercion could not mend.
pub(in crate::turn) fn missing_argument(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let required = schema.get("required").and_then(Value::as_array);
    let mut names = required.into_iter().flatten().filter_map(Value::as_str);
    let missing = names.find(|name| arguments.get(*name).is_none_or(Value::is_null))?;
    let text = format!("missing required argument `{missing}`");
    Some(json!({"error": "Invalid tool arguments", "message": text}).to_string())
}
