//! `file_access`: files that tools neither show nor change, as the guard says
//! and as the tools do.
//!
//! The paths are those of another machine: what a tool does not refuse by name
//! it refuses as outside the workspace, and nothing is ever shown or written.

use std::path::{Path, PathBuf};

use hermes_server::guard::file_access::{Places, normalised};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::case::{Case, strings};

pub fn judge(case: &Case) -> Result<(), String> {
    // The tools' own home is the workspace.
    let path = case.text("path");
    let path = &match path.strip_prefix("~/") {
        Some(rest) => format!("/home/alice/{rest}"),
        None => path.to_owned(),
    };
    let write_roots: Vec<PathBuf> = strings(&case.input["write_roots"])
        .into_iter()
        .map(PathBuf::from)
        .collect();
    let places = Places {
        home: "/home/alice".into(),
        agent_home: "/home/alice/.hermes".into(),
        write_roots: write_roots.clone(),
    };
    let named = normalised(Path::new(path));
    case.check(json!({
        "read_blocked": places.may_read(&named).is_err(),
        "write_blocked": places.is_kept(&named).is_err(),
    }))?;
    let bench = Bench::with(|terminal| terminal.write_safe_root = write_roots);
    let read = error(&bench.run("read_file", json!({"path": path})));
    // A database is no text wherever it lies, which is judged before.
    let is_kind = read.contains("is a binary file");
    if !is_kind && !read.contains("may hold secrets") && !read.contains("outside the workspace") {
        return Err(format!("read_file says: {read}"));
    }
    let is_refused = json!(read.contains("may hold secrets"));
    if is_refused != case.expect["read_blocked"] {
        return Err(format!("read_file says: {read}"));
    }
    let written = error(&bench.run("write_file", json!({"path": path, "content": "{}"})));
    // Further rules, which the cases do not record.
    let further = [
        "belongs to the system",
        "own configuration",
        "belongs to the agent profile",
    ];
    if further.iter().any(|rule| written.contains(rule)) {
        return Ok(());
    }
    if json!(!written.contains("outside the workspace")) == case.expect["write_blocked"] {
        return Ok(());
    }
    Err(format!("write_file says: {written}"))
}

fn error(result: &Value) -> String {
    result["error"].as_str().unwrap().to_owned()
}
