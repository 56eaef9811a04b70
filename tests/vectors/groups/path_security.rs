//! `path_security`: whether a path leads out of a directory.

use std::path::Path;

use hermes_server::environment::contained::{has_parent_component, is_within};
use serde_json::Value;

use crate::case::{Case, Relation, strings};

pub fn judge(case: &Case) -> Result<(), String> {
    match case.text("check") {
        "has_parent_component" => case.check_by(has_parent_component(case.text("path")), |_, _| Relation::Stricter),
        "within_dir" => {
            let base = tempfile::tempdir().unwrap();
            // The directory itself may lie behind a link.
            let base = base.path().canonicalize().map(|path| (path, base)).unwrap();
            laid_out(&base.0, &case.input["layout"]);
            let place = |name: &str| base.0.join(case.text(name));
            case.check(is_within(&place("root"), &place("path")))
        }
        other => case.unknown(other),
    }
}

fn laid_out(base: &Path, layout: &Value) {
    for directory in strings(&layout["dirs"]) {
        std::fs::create_dir_all(base.join(directory)).unwrap();
    }
    for file in strings(&layout["files"]) {
        std::fs::write(base.join(file), "").unwrap();
    }
    for (link, target) in layout["symlinks"].as_object().into_iter().flatten() {
        std::os::unix::fs::symlink(base.join(target.as_str().unwrap()), base.join(link)).unwrap();
    }
}
