//! `path_security`: `..` told in the paths of a patch, and paths kept inside a
//! workspace of the local environment, on a disk that is laid out for the case.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use hermes_server::environment::{FileError, IsolationChoice, Limits, Local, LocalSettings};
use hermes_server::tool::edit::v4a::has_parent_component;
use serde_json::Value;

use crate::case::{Case, Relation};

pub fn judge(case: &Case) -> Result<(), String> {
    match case.text("check") {
        "has_parent_component" => case.check_by(has_parent_component(case.text("path")), |_, got| match got {
            Value::Bool(true) => Relation::Stricter,
            _ => Relation::Looser,
        }),
        "within_dir" => case.check_by(within(case), |_, got| match got {
            Value::Bool(false) => Relation::Stricter,
            _ => Relation::Looser,
        }),
        other => case.unknown(other),
    }
}

/// Whether the environment lets a tool look at the path.
fn within(case: &Case) -> bool {
    let data = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let local = Local::open(LocalSettings {
            exec_program: "/nonexistent".into(),
            data_dir: data.path().to_owned(),
            isolation: IsolationChoice::Auto,
            network: false,
            writable: Vec::new(),
            readable: Vec::new(),
            passthrough: Vec::new(),
            limits: Limits::default(),
        });
        let workspace = local.await.workspace("tenant", "session").await.unwrap();
        let base = workspace.root().parent().unwrap().to_owned();
        let root = Path::new(case.text("root"));
        // The root of the layout is the workspace.
        let placed = |path: &str| match Path::new(path).strip_prefix(root) {
            Ok(inner) => workspace.root().join(inner),
            Err(_) => base.join(path),
        };
        lay_out(&case.input["layout"], &placed);
        match workspace.metadata(&placed(case.text("path"))).await {
            Ok(_) | Err(FileError::Missing { .. } | FileError::NotDirectory { .. }) => true,
            Err(_) => false,
        }
    })
}

fn lay_out(layout: &Value, placed: &dyn Fn(&str) -> PathBuf) {
    for directory in layout["dirs"].as_array().into_iter().flatten() {
        std::fs::create_dir_all(placed(directory.as_str().unwrap())).unwrap();
    }
    for file in layout["files"].as_array().into_iter().flatten() {
        std::fs::write(placed(file.as_str().unwrap()), "").unwrap();
    }
    for (link, target) in layout["symlinks"].as_object().into_iter().flatten() {
        symlink(placed(target.as_str().unwrap()), placed(link)).unwrap();
    }
}
