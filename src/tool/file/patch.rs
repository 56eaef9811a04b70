//! `patch`: changes a part of a file, or several files at once.
//!
//! `replace` puts one passage in the place of another, `patch` carries out a
//! patch in V4A form. Files are written by the rules of `write_file`.

mod edited;
mod several;
mod single;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{target, writers};
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::edit::v4a;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool};

inventory::submit!(Registered(&Patch));

struct Patch;

impl Tool for Patch {
    fn spec(&self) -> Spec {
        Spec {
            name: "patch",
            toolset: "file",
            emoji: "🩹",
            description: "Changes files in place; use it instead of sed. mode \"replace\": puts new_string where \
                old_string stands in path; the passage is also found when blanks, indentation, escapes or quotes \
                differ a little, and must be unique unless replace_all is set. mode \"patch\": several files at once \
                in V4A form (*** Begin Patch, *** Update File: p, @@ hint @@, lines with a blank, - or +, \
                *** Add File: p, *** Delete File: p, *** Move File: a -> b, *** End Patch); it is checked as a whole \
                first, and a patch that does not fit changes nothing.",
            requires_env: &[],
            result_limit: ResultLimit::Chars(100_000),
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "mode": {
                    "type": "string",
                    "enum": ["replace", "patch"],
                    "description": "replace (the default) takes path, old_string and new_string; patch takes patch.",
                    "default": "replace",
                },
                "path": {
                    "type": "string",
                    "description": "The file: absolute, relative to the working directory, or with ~ for the workspace.",
                },
                "old_string": {
                    "type": "string",
                    "description": "The passage to replace, with enough around it to be unique.",
                },
                "new_string": {"type": "string", "description": "What stands there then; empty takes the passage away."},
                "replace_all": {
                    "type": "boolean",
                    "description": "true: every place where the passage stands.",
                    "default": false,
                },
                "patch": {"type": "string", "description": "The patch in V4A form."},
                "cross_profile": {
                    "type": "boolean",
                    "description": "true: write into another agent profile or a sandbox's copy of one. Only when the \
                        user asked for that.",
                    "default": false,
                },
            },
        })
    }

    fn example(&self) -> Value {
        json!({"path": "notes.txt", "old_string": "one", "new_string": "1"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Write
    }

    fn footprint(&self, arguments: &Value, place: &Place<'_>) -> Footprint {
        let paths = paths(arguments);
        if paths.is_empty() {
            return Footprint::Alone;
        }
        Footprint::Writes(paths.iter().map(|path| target::normal(path, place)).collect())
    }

    fn subject(&self, arguments: &Value) -> String {
        paths(arguments).join(", ")
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async move {
            let named = paths(&call.arguments);
            let named: Vec<&str> = named.iter().map(String::as_str).collect();
            let _turn = match writers::turn(&call, &named).await {
                Ok(turn) => turn,
                Err(stopped) => return stopped,
            };
            match mode(&call.arguments) {
                Ok(Mode::Replace) => single::replace(&call).await,
                Ok(Mode::Patch) => several::patch(&call).await,
                Err(text) => refused(text),
            }
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Replace,
    Patch,
}

fn mode(arguments: &Value) -> Result<Mode, String> {
    match arguments["mode"].as_str() {
        None if arguments["mode"].is_null() => Ok(Mode::Replace),
        Some("replace") => Ok(Mode::Replace),
        Some("patch") => Ok(Mode::Patch),
        _ => Err("`mode` is `replace` or `patch`".to_owned()),
    }
}

fn crosses(arguments: &Value) -> bool {
    arguments["cross_profile"] == Value::Bool(true)
}

/// Every path that the call names.
fn paths(arguments: &Value) -> Vec<String> {
    match mode(arguments) {
        Ok(Mode::Replace) => target::argument(arguments).map(str::to_owned).into_iter().collect(),
        Ok(Mode::Patch) => {
            let text = arguments["patch"].as_str().unwrap_or_default();
            let operations = v4a::parse(text).unwrap_or_default();
            operations
                .iter()
                .flat_map(v4a::Operation::paths)
                .map(str::to_owned)
                .collect()
        }
        Err(_) => Vec::new(),
    }
}

fn refused(text: impl std::fmt::Display) -> Done {
    Done::failure(json!({"success": false, "error": text.to_string()}).to_string())
}

#[cfg(test)]
mod tests;
