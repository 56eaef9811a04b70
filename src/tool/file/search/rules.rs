//! What is left out of a search: hidden files, and what ignore files name, by
//! ripgrep's rules.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};

use crate::environment::Directory;

/// By precedence; those of git count in a repository only.
const IGNORE_FILES: [(&str, bool); 3] = [(".rgignore", false), (".ignore", false), (".gitignore", true)];
/// An ignore file longer than that is read in part.
const IGNORE_BYTES: u64 = 1 << 20;

/// The ignore files of a directory and of those above it.
#[derive(Debug, Default)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    own: Vec<Gitignore>,
    in_repository: bool,
}

impl Rules {
    /// The rules inside `directory`. The ignore files are asked for by name, so
    /// that the search need not wait for the end of a long listing.
    pub(super) fn within(above: &Arc<Self>, directory: &Directory) -> Arc<Self> {
        let begins_repository = directory.state(OsStr::new(".git")).is_ok();
        let in_repository = above.in_repository || begins_repository;
        let files = IGNORE_FILES.iter().filter(|(_, of_git)| !of_git || in_repository);
        let mut own: Vec<Gitignore> = files.filter_map(|(name, _)| read(directory, Path::new(name))).collect();
        if begins_repository {
            own.extend(read(directory, Path::new(".git/info/exclude")));
        }
        if own.is_empty() && in_repository == above.in_repository {
            return Arc::clone(above);
        }
        Arc::new(Self {
            above: above.say_something().then(|| Arc::clone(above)),
            own,
            in_repository,
        })
    }

    /// Whether any path could be left out by them.
    pub(super) fn say_something(&self) -> bool {
        !self.own.is_empty() || self.above.is_some()
    }

    /// Whether the rules leave the path out; the nearest that says anything.
    pub(super) fn ignores(&self, path: &Path, is_directory: bool) -> Option<bool> {
        let mut rules = Some(self);
        while let Some(these) = rules {
            for matcher in &these.own {
                match matcher.matched(path, is_directory) {
                    Match::None => {}
                    Match::Ignore(_) => return Some(true),
                    Match::Whitelist(_) => return Some(false),
                }
            }
            rules = these.above.as_deref();
        }
        None
    }
}

fn read(directory: &Directory, name: &Path) -> Option<Gitignore> {
    let mut text = Vec::new();
    directory
        .file(name)
        .ok()?
        .take(IGNORE_BYTES)
        .read_to_end(&mut text)
        .ok()?;
    let mut builder = GitignoreBuilder::new(directory.path());
    for line in String::from_utf8_lossy(&text).lines() {
        // A line that is no pattern leaves nothing out.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

/// The glob of a call: which files are looked at, and whether hidden ones are.
#[derive(Debug)]
pub(in crate::tool::file) struct Wanted {
    glob: Option<Override>,
    hidden: bool,
}

impl Wanted {
    pub(in crate::tool::file) fn new(root: &Path, glob: Option<&str>) -> Result<Self, ignore::Error> {
        let Some(glob) = glob else {
            return Ok(Self {
                glob: None,
                hidden: false,
            });
        };
        let mut builder = OverrideBuilder::new(root);
        builder.add(glob)?;
        Ok(Self {
            glob: Some(builder.build()?),
            // Whoever names hidden files means them.
            hidden: glob
                .trim_start_matches('!')
                .split('/')
                .any(|part| part.starts_with('.') && part != "."),
        })
    }

    /// Whether every file is.
    pub(super) fn takes_all(&self) -> bool {
        self.glob.is_none()
    }

    pub(super) fn takes(&self, path: &Path) -> bool {
        self.glob
            .as_ref()
            .is_none_or(|glob| !glob.matched(path, false).is_ignore())
    }

    /// Whether a directory or file is passed over for its name alone.
    pub(super) fn hides(&self, name: &OsStr) -> bool {
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        is_hidden && (!self.hidden || name == ".git")
    }
}
