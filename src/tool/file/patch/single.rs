//! One passage of one file.

#![allow(
    clippy::indexing_slicing,
    reason = "keys of JSON objects: a read of a missing one is null, and what is written is an object made here"
)]

use serde_json::{Map, Value, json};

use super::edited::{Edited, failure, shown_diff, shown_text};
use super::{crosses, refused};
use crate::tool::edit::fuzzy::{NotReplaced, Replaced, did_you_mean, replace as replaced};
use crate::tool::file::target::{self, error};
use crate::tool::file_views::{FileNews, FileViews};
use crate::tool::{Call, Done, ToolWrites};

/// From here on a model that keeps missing is told to do something else.
const ENOUGH_FAILURES: u32 = 3;

pub(super) async fn replace(call: &Call) -> Done {
    let (path, old, new) = match asked(&call.arguments) {
        Ok(asked) => asked,
        Err(text) => return refused(text),
    };
    let edited = match Edited::open(call, path, crosses(&call.arguments)).await {
        Ok((_, Some(edited))) => edited,
        Ok((_, None)) => return refused(format!("File not found: {path}; write_file makes new files")),
        Err(refusal) => return Done::failure(failure(refusal).to_string()),
    };
    let all = call.arguments["replace_all"] == Value::Bool(true);
    let (text, old, new) = (edited.text.clone(), edited.passage(old), edited.passage(new));
    let work = tokio::task::spawn_blocking(move || match replaced(&text, &old, &new, all) {
        Ok(done) => Ok(done),
        Err(error @ NotReplaced::NotFound) => Err((error, did_you_mean(&text, &old))),
        Err(error) => Err((error, String::new())),
    });
    match work.await {
        Ok(Ok(done)) => match write(call, &edited, &done).await {
            Ok(done) => done,
            Err(refusal) => Done::failure(failure(refusal).to_string()),
        },
        Ok(Err((why, near))) => missed(call, &edited, &why, &near),
        Err(failed) => Done::failure(failure(error(failed)).to_string()),
    }
}

/// Path and both texts; models drop one of them more often than they mean it.
fn asked(arguments: &Value) -> Result<(&str, &str, &str), String> {
    let path = target::argument(arguments).ok_or("`path` is missing: name the file to change")?;
    let text = |name: &str| {
        let missing = || {
            let empty = if name == "new_string" {
                "; to take the passage away it is `\"\"`"
            } else {
                ""
            };
            format!("`{name}` is missing or no text, so nothing was changed{empty}")
        };
        arguments[name].as_str().ok_or_else(missing)
    };
    Ok((path, text("old_string")?, text("new_string")?))
}

async fn write(call: &Call, edited: &Edited, done: &Replaced) -> Result<Done, Value> {
    edited.accepts(&done.content)?;
    let put = edited.write(call, &done.content).await?;
    let mut fields = Map::new();
    let mut say = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    say("success", json!(true));
    say(
        "diff",
        json!(shown_diff(&edited.target, Some(&edited.text), Some(&done.content))),
    );
    say("files_modified", json!([put.landed.path]));
    say("resolved_path", json!(put.landed.path));
    if let Some(lint) = &put.lint {
        say("lint", lint.clone());
    }
    if let Some(warning) = edited.warning(call) {
        say("_warning", json!(warning));
    }
    Ok(Done {
        result: Value::Object(fields).to_string(),
        writes: ToolWrites {
            files: edited.news(&put).into_iter().collect(),
            artifacts: Vec::from_iter(put.kept),
            ..ToolWrites::default()
        },
        ..Done::default()
    })
}

/// The passage did not fit; the file is as it was.
fn missed(call: &Call, edited: &Edited, why: &NotReplaced, near: &str) -> Done {
    let near = shown_text(&edited.target, near);
    let mut text = why.to_string();
    if !near.is_empty() {
        text = format!("{text}. Did you mean one of these?\n{near}");
    }
    let mut fields = json!({"success": false, "error": text});
    let file = edited.key().map(|(file, _)| file.clone());
    let failures = file
        .as_ref()
        .map_or(1, |file| FileViews::parse(&call.seen_files).failed_edits(file) + 1);
    let shown = &edited.target.shown;
    fields["_hint"] = json!(match failures {
        ENOUGH_FAILURES.. => format!(
            "{failures} changes of `{shown}` in a row did not fit. Stop: read the file anew with read_file and copy \
             the passage from what you see, or write the whole file with write_file."
        ),
        _ => format!("`{shown}` is unchanged; read it again with read_file before the next try"),
    });
    Done {
        writes: ToolWrites {
            files: file.map(|file| FileNews::EditFailed { file }).into_iter().collect(),
            ..ToolWrites::default()
        },
        ..Done::failure(fields.to_string())
    }
}
