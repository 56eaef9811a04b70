//! The three tools by which a model reaches those that it was not told of. They
//! stand in a session's tools only where some are left to be searched for.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::found;
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Entry;
use crate::tool::{Call, Done, Place, Spec, Tool, arguments, error_text};

pub const SEARCH: &str = "tool_search";
pub const DESCRIBE: &str = "tool_describe";
pub const CALL: &str = "tool_call";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bridge {
    Search,
    Describe,
    Call,
}

/// The three, as a session has them.
pub fn bridges() -> Vec<Arc<Entry>> {
    let all: [&'static dyn Tool; 3] = [&Bridge::Search, &Bridge::Describe, &Bridge::Call];
    all.into_iter().filter_map(Entry::built_in).collect()
}

impl Tool for Bridge {
    fn spec(&self) -> Spec {
        let (name, description) = match self {
            Self::Search => (
                SEARCH,
                "Finds tools beyond those described to you, by words about what they should do.",
            ),
            Self::Describe => (
                DESCRIBE,
                "Shows what a tool found by tool_search does and which arguments it takes.",
            ),
            Self::Call => (
                CALL,
                "Calls a tool found by tool_search, with the arguments that tool_describe shows.",
            ),
        };
        Spec {
            name,
            toolset: "tool_search",
            emoji: "🔎",
            description,
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        let name = json!({"type": "string", "description": "The tool's name."});
        match self {
            Self::Search => json!({"type": "object", "properties": {
                "query": {"type": "string", "description": "Words about what the tool should do."},
                "limit": {"type": "integer", "description": "How many tools to show.", "minimum": 1},
            }, "required": ["query"]}),
            Self::Describe => json!({"type": "object", "properties": {"name": name}, "required": ["name"]}),
            Self::Call => json!({"type": "object", "properties": {
                "name": name,
                "arguments": {"type": "object", "properties": {}, "additionalProperties": true,
                    "description": "The arguments of that tool."},
            }, "required": ["name", "arguments"]}),
        }
    }

    fn example(&self) -> Value {
        match self {
            Self::Search => json!({"query": "weather"}),
            Self::Describe => json!({"name": "weather_now"}),
            Self::Call => json!({"name": "weather_now", "arguments": {}}),
        }
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Read
    }

    fn footprint(&self, _: &Value, _: &Place<'_>) -> Footprint {
        Footprint::Parallel
    }

    fn subject(&self, arguments: &Value) -> String {
        let named = arguments.get("name").or_else(|| arguments.get("query"));
        named.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        let done = match self {
            Self::Search => search(&call),
            Self::Describe => describe(&call),
            // It is taken apart before it could run.
            Self::Call => Done::failure(error_text::envelope("tool_call runs the tool that it names")),
        };
        Box::pin(std::future::ready(done))
    }
}

fn text<'c>(call: &'c Call, argument: &str) -> &'c str {
    let given = call.arguments.get(argument).and_then(Value::as_str);
    given.unwrap_or_default()
}

fn search(call: &Call) -> Done {
    let settings = call.tools.search();
    let query = text(call, "query");
    let limit = call.arguments.get("limit").and_then(Value::as_u64);
    let limit = limit.unwrap_or_else(|| u64::from(settings.default_limit));
    let limit = limit.clamp(1, u64::from(settings.max_limit.max(1)));
    let limit = usize::try_from(limit).unwrap_or(1);
    Done {
        result: found(query, limit, call.tools.deferred()).to_string(),
        ..Done::default()
    }
}

fn describe(call: &Call) -> Done {
    let name = text(call, "name");
    match call.tools.deferred().iter().find(|tool| tool.name() == name) {
        Some(tool) => {
            let (description, parameters) = tool.told(&call.tools.names());
            let shown = json!({"name": name, "description": description, "parameters": parameters});
            Done {
                result: shown.to_string(),
                ..Done::default()
            }
        }
        None => Done::failure(not_found(name)),
    }
}

fn not_found(name: &str) -> String {
    let shown = crate::base::text::first_chars(name, 100);
    error_text::envelope(&format!(
        "`{shown}` is not among the tools that {SEARCH} finds in this session"
    ))
}

/// The tool and the arguments that a call of the bridge is about, or the result
/// of a call that is about none.
pub fn unwrap(raw: &str, deferred: &[Arc<Entry>]) -> Result<(String, String), String> {
    let invalid = |message: String| Err(json!({"error": "Invalid tool arguments", "message": message}).to_string());
    let fields = match arguments::parse(raw) {
        Ok(fields) => fields,
        Err(error) => return invalid(error.to_string()),
    };
    let Some(name) = fields.get("name").and_then(Value::as_str) else {
        return invalid("missing required argument `name`".to_owned());
    };
    if !deferred.iter().any(|tool| tool.name() == name) {
        return Err(not_found(name));
    }
    let inner = match fields.get("arguments") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::Object(inner)) => Value::Object(inner.clone()),
        // Models like to write nested JSON as a string.
        Some(Value::String(text)) => match arguments::parse(text) {
            Ok(inner) => Value::Object(inner),
            Err(error) => return invalid(format!("`arguments`: {error}")),
        },
        Some(_) => return invalid("`arguments` must be an object".to_owned()),
    };
    Ok((name.to_owned(), inner.to_string()))
}
