//! `write_file`: puts text in the place of a whole file, in one step.
//!
//! Order of refusals: no path, no content, system files, the agent's own
//! configuration, another profile, content that is a display of `read_file`,
//! logins, syntax that a program could not read, what is outside the workspace.
//! Nothing is written unless all of them let it pass.

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::display;
use super::landing::{self, Existing};
use super::target::{self, Answer, Answered, Target, error};
use super::warning::warning;
use super::writers;
use crate::guard::file_access::Refusal;
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::file_views::FileViews;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool};

inventory::submit!(Registered(&WriteFile));

struct WriteFile;

impl Tool for WriteFile {
    fn spec(&self) -> Spec {
        Spec {
            name: "write_file",
            toolset: "file",
            emoji: "✍️",
            description: "Writes a whole file: its old content is replaced, missing directories are made. Use this \
                instead of echo or heredocs in the terminal. Line ends and a byte-order mark of an existing file \
                are kept. JSON, YAML and TOML files are checked first and not written when they are malformed.",
            requires_env: &[],
            result_limit: ResultLimit::Chars(100_000),
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "The file: absolute, relative to the working directory, or with ~ for the workspace.",
                },
                "content": {"type": "string", "description": "The whole new content of the file."},
                "cross_profile": {
                    "type": "boolean",
                    "description": "true: write into another agent profile or a sandbox's copy of one. Only when the \
                        user asked for that.",
                    "default": false,
                },
            },
            "required": ["path", "content"],
        })
    }

    fn example(&self) -> Value {
        json!({"path": "notes.txt", "content": "one\ntwo\n"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Write
    }

    fn footprint(&self, arguments: &Value, place: &Place<'_>) -> Footprint {
        target::footprint(arguments, place, Footprint::Writes)
    }

    fn subject(&self, arguments: &Value) -> String {
        target::subject(arguments)
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async move {
            let path = target::argument(&call.arguments);
            match writers::turn(&call, path.as_slice()).await {
                Ok(_turn) => target::done(write(&call).await),
                Err(stopped) => stopped,
            }
        })
    }
}

async fn write(call: &Call) -> Answer {
    let path = target::argument(&call.arguments).ok_or_else(|| error("`path` is missing: name the file to write"))?;
    let content = content(&call.arguments)?;
    let target = Target::of(call, path).await?;
    let crosses = call.arguments.get("cross_profile") == Some(&Value::Bool(true));
    refuse(&target, content, crosses)?;
    let existing = Existing::of(&target).await?;
    let bytes = existing.dress(content).into_bytes();
    let written = bytes.len();
    let seen = FileViews::parse(&call.seen_files);
    let put_there = landing::put(call, &target, bytes, existing.before.as_deref()).await?;
    let landed = &put_there.landed;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("bytes_written", json!(written));
    put("dirs_created", json!(put_there.dirs_created));
    if let Some(lint) = put_there.lint {
        put("lint", lint);
    }
    put("resolved_path", json!(landed.path));
    put("files_modified", json!([landed.path]));
    if let Some(warning) = warning(&seen, existing.replaced.as_ref(), &target, &landed.path) {
        put("_warning", json!(warning));
    }
    Ok(Answered {
        fields: Value::Object(fields),
        news: landed.news(),
        kept: put_there.kept,
    })
}

/// Models drop the content of a long call more often than they mean to write
/// nothing.
fn content(arguments: &Value) -> Result<&str, Value> {
    match arguments.get("content") {
        None | Some(Value::Null) => Err(error(
            "`content` is missing, so nothing was written. It may have been cut off: send the call again with the \
             whole content, or write the file in smaller parts; an empty file is `\"content\": \"\"`",
        )),
        Some(Value::String(content)) => Ok(content),
        Some(_) => Err(error("`content` must be text, so nothing was written")),
    }
}

fn refuse(target: &Target, content: &str, crosses: bool) -> Result<(), Value> {
    let refusal = target.may_write();
    if let Err(first @ (Refusal::System(_) | Refusal::OwnConfig(_))) = refusal {
        return Err(error(first));
    }
    if !crosses {
        target.stays_in_profile().map_err(error)?;
    }
    if display::is_numbered_display(content) {
        return Err(error(
            "the content is what read_file displays, with line numbers, so nothing was written: leave out the numbers \
             and bars and write the text itself",
        ));
    }
    if display::is_unchanged_notice(content) {
        return Err(error(
            "the content is what read_file says of a file that did not change, so nothing was written: write the \
             text itself, as an earlier result shows it",
        ));
    }
    refusal.map_err(error)?;
    landing::is_well_formed(target, content)
}

#[cfg(test)]
mod tests;
