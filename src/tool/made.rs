//! Files that a command or a program left in the workspace: those that are new or
//! changed when it is over. A small tree is looked at before and after; in a large
//! one, or where a whole tree was made, nothing is told apart from its work.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::artifacts::{digest, kept_file};
use crate::environment::{Directory, EntryKind, Workspace};
use crate::model::artifact::Kept;

/// Names that are looked at; a workspace with more is not. Both looks together
/// take some milliseconds then.
const MAX_NAMES: usize = 1_000;
const MAX_DEPTH: usize = 8;
/// What made more has made a tree: a checkout, what a build needs.
const MAX_FILES: usize = 20;
/// A longer file is not read for its hash, and not told of.
const MAX_BYTES: u64 = 64 << 20;
/// What tools keep for themselves.
const OF_TOOLS: [&str; 4] = ["node_modules", "__pycache__", "target", "venv"];

/// The files of a workspace, by length and time of change.
pub(super) struct Seen {
    directory: Directory,
    files: BTreeMap<PathBuf, (u64, i64)>,
}

/// What is there; nothing where it is too much, or cannot be looked at.
pub(super) async fn look(workspace: &Workspace) -> Option<Seen> {
    let looked = workspace.in_directory(workspace.root(), |directory| {
        let files = files(&directory).ok().flatten()?;
        Some(Seen { directory, files })
    });
    looked.await.ok().flatten()
}

/// What is new or changed since.
pub(super) async fn since(workspace: &Workspace, before: Option<Seen>) -> Vec<Kept> {
    let Some(before) = before else { return Vec::new() };
    let root = workspace.root().to_owned();
    let made = tokio::task::spawn_blocking(move || {
        let Ok(Some(after)) = files(&before.directory) else {
            return Vec::new();
        };
        let changed = after
            .into_iter()
            .filter(|(path, state)| before.files.get(path) != Some(state));
        let changed: Vec<(PathBuf, u64)> = changed.map(|(path, (length, _))| (path, length)).collect();
        if MAX_FILES < changed.len() {
            return Vec::new();
        }
        let small = changed.into_iter().filter(|(_, length)| *length <= MAX_BYTES);
        small
            .filter_map(|(path, _)| kept(&before.directory, &root, &path))
            .collect()
    });
    made.await.unwrap_or_default()
}

fn kept(directory: &Directory, root: &Path, path: &Path) -> Option<Kept> {
    let file = directory.file(path).ok()?;
    // It may have grown since it was looked at.
    let (size, sha256) = digest(io::Read::take(file, MAX_BYTES)).ok()?;
    kept_file(root, &root.join(path), size, sha256)
}

/// All ordinary files of a tree; `None` where there are too many names.
fn files(root: &Directory) -> io::Result<Option<BTreeMap<PathBuf, (u64, i64)>>> {
    let mut files = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    let mut names = 0;
    while let Some(path) = open.pop() {
        // Gone, or changed into something else meanwhile.
        let Ok(directory) = root.directory(&path) else { continue };
        for entry in directory.entries()? {
            names += 1;
            if MAX_NAMES < names {
                return Ok(None);
            }
            let Some(name) = entry.name.to_str().filter(|name| !is_of_tools(name)) else {
                continue;
            };
            match entry.kind {
                EntryKind::File => {
                    if let Ok(state) = directory.state(name.as_ref()) {
                        files.insert(path.join(name), state);
                    }
                }
                EntryKind::Directory if path.components().count() < MAX_DEPTH => open.push(path.join(name)),
                EntryKind::Directory | EntryKind::Link | EntryKind::Other => {}
            }
        }
    }
    Ok(Some(files))
}

fn is_of_tools(name: &str) -> bool {
    name.starts_with('.') || OF_TOOLS.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tool::testing::Bench;

    fn paths(made: &[Kept]) -> Vec<&str> {
        made.iter().filter_map(|kept| kept.held.path()).collect()
    }

    #[tokio::test]
    async fn what_is_new_or_changed_is_told_and_nothing_else() {
        let bench = Bench::new().await;
        let workspace = bench.workspace().await;
        let root = workspace.root();
        fs::create_dir_all(root.join("sub/.git")).unwrap();
        fs::create_dir_all(root.join("node_modules")).unwrap();
        for name in ["same.txt", "old.txt", "gone.txt"] {
            fs::write(root.join(name), "one").unwrap();
        }
        let before = look(&workspace).await;
        fs::write(root.join("old.txt"), "three").unwrap();
        fs::write(root.join("sub/new é.csv"), "a,b\n").unwrap();
        fs::write(root.join("sub/.git/HEAD"), "x").unwrap();
        fs::write(root.join("node_modules/x.js"), "x").unwrap();
        fs::remove_file(root.join("gone.txt")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        let made = since(&workspace, before).await;
        assert_eq!(paths(&made), ["old.txt", "sub/new é.csv"]);
        assert_eq!((made[1].media_type.as_str(), made[1].held.size()), ("text/csv", 4));
    }

    #[tokio::test]
    async fn a_tree_that_was_made_and_a_workspace_that_is_large_are_left_alone() {
        let bench = Bench::new().await;
        let workspace = bench.workspace().await;
        let root = workspace.root().to_owned();
        let put = |from: usize, to: usize| {
            for number in from..to {
                fs::write(root.join(format!("{number}")), "x").unwrap();
            }
        };
        let before = look(&workspace).await;
        put(0, MAX_FILES);
        assert_eq!(since(&workspace, before).await.len(), MAX_FILES);
        let before = look(&workspace).await;
        put(MAX_FILES, 2 * MAX_FILES + 1);
        assert!(since(&workspace, before).await.is_empty());
        put(0, MAX_NAMES + 1);
        assert!(look(&workspace).await.is_none());
    }

    #[tokio::test]
    async fn a_tree_that_is_taken_away_meanwhile_is_no_error() {
        let bench = Bench::new().await;
        let workspace = bench.workspace().await;
        fs::create_dir_all(workspace.root().join("a/b")).unwrap();
        let before = look(&workspace).await;
        fs::remove_dir_all(workspace.root().join("a")).unwrap();
        assert!(since(&workspace, before).await.is_empty());
        assert!(since(&workspace, None).await.is_empty());
    }
}
