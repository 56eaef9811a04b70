//! The file a call names: from the argument to an absolute path, to the
//! refusals by name, to the file that was really opened.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::environment::{EnvironmentError, FileError, Workspace};
use crate::guard::file_access::{Places, Refusal, normalised};
use crate::model::artifact::Kept;
use crate::model::call::Footprint;
use crate::tool::file_views::{FileNews, Stamp};
use crate::tool::{Call, Done, Host, Place, ToolWrites};

/// What a call on a file gives back.
pub(super) struct Answered {
    pub(super) fields: Value,
    pub(super) news: Option<FileNews>,
    /// What it wrote.
    pub(super) kept: Option<Kept>,
}

/// The error is what the model reads of a call that came to nothing.
pub(super) type Answer = Result<Answered, Value>;

pub(super) fn done(answer: Answer) -> Done {
    match answer {
        Ok(answered) => Done {
            result: answered.fields.to_string(),
            writes: ToolWrites {
                files: Vec::from_iter(answered.news),
                artifacts: Vec::from_iter(answered.kept),
                ..ToolWrites::default()
            },
            ..Done::default()
        },
        Err(refused) => Done::failure(refused.to_string()),
    }
}

pub(super) fn error(text: impl std::fmt::Display) -> Value {
    json!({"error": text.to_string()})
}

/// The `path` of the arguments, none when there is no text in it.
pub(super) fn argument(arguments: &Value) -> Option<&str> {
    arguments["path"].as_str().filter(|path| !path.trim().is_empty())
}

/// What an approval and a grant would name.
pub(super) fn subject(arguments: &Value) -> String {
    argument(arguments).unwrap_or_default().to_owned()
}

/// What a call on this path touches, as text says it.
pub(super) fn footprint(arguments: &Value, place: &Place<'_>, of: fn(Vec<PathBuf>) -> Footprint) -> Footprint {
    match argument(arguments) {
        Some(path) => of(vec![normal(path, place)]),
        None => Footprint::Alone,
    }
}

/// A path of a call, absolute and normalised, as text says it.
pub(super) fn normal(path: &str, place: &Place<'_>) -> PathBuf {
    told(path, place.cwd, place.workspace)
}

/// The path from where the session stands; `~` is `home`.
fn absolute(path: &str, cwd: &Path, home: &Path) -> PathBuf {
    match path.strip_prefix('~') {
        Some("") => home.to_path_buf(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => cwd.join(path),
    }
}

/// A path of a call as text says it, seen from `cwd` in the workspace `root`.
pub(super) fn told(path: &str, cwd: &Path, root: &Path) -> PathBuf {
    normalised(&absolute(path, cwd, root))
}

/// One path of one call.
pub(super) struct Target {
    pub(super) workspace: Workspace,
    /// As the model wrote it.
    pub(super) shown: String,
    /// Absolute; `..` in it is the kernel's to judge.
    pub(super) path: PathBuf,
    /// The same with `~` as the home of the server's user, which is meant to be
    /// refused although commands have another home.
    as_written: PathBuf,
    pub(super) places: Places,
}

impl Target {
    pub(super) async fn of(call: &Call, path: &str) -> Result<Self, Value> {
        let host: &Host = &call.host;
        let workspace = host.workspace(call.tenant_id, call.session_id).await;
        let workspace = workspace.map_err(|failed: EnvironmentError| error(failed))?;
        Ok(Self {
            shown: path.to_owned(),
            // Commands have the workspace as their home.
            path: absolute(path, &call.cwd, workspace.root()),
            as_written: absolute(path, &call.cwd, &host.home),
            places: host.places(),
            workspace,
        })
    }

    /// Whether the name says that the file is not to be read.
    pub(super) fn may_read(&self) -> Result<(), Refusal> {
        self.places.may_read(&self.as_written)?;
        self.places.may_read(&self.path)
    }

    /// Whether the name says that the file is not to be written.
    pub(super) fn may_write(&self) -> Result<(), Refusal> {
        self.places.may_write(&self.as_written)?;
        self.places.may_write(&self.path)
    }

    /// Whether the name stays out of other profiles of the agent.
    pub(super) fn stays_in_profile(&self) -> Result<(), Refusal> {
        self.places.stays_in_profile(&self.as_written)?;
        self.places.stays_in_profile(&self.path)
    }

    /// The same for the file that links led to.
    pub(super) fn may_read_opened(&self, opened: &Path) -> Result<(), Value> {
        self.places.may_read(opened).map_err(error)
    }

    pub(super) fn may_write_opened(&self, opened: &Path) -> Result<(), Value> {
        self.places.may_write(opened).map_err(error)
    }

    /// What went wrong with the file, and what to do about it.
    pub(super) fn failed(&self, failed: &FileError) -> Value {
        match failed {
            FileError::Outside { .. } => error(format!(
                "`{}` is outside the workspace. Files are read and written below `{}` and, for what is temporary, \
                 `{}`; relative paths begin where the session stands.",
                self.shown,
                self.workspace.root().display(),
                self.workspace.tmp().display(),
            )),
            FileError::IsDirectory { .. } => error(format!("`{}` is a directory, not a file", self.shown)),
            other => error(other),
        }
    }
}

/// Where an open file lies, links resolved; the fallback where the system does
/// not say.
pub(super) fn real_path(file: &File, fallback: &Path) -> PathBuf {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::read_link(link).unwrap_or_else(|_| normalised(fallback))
}

/// The state of an open file.
pub(super) fn stamp(file: &File) -> std::io::Result<Stamp> {
    let metadata = file.metadata()?;
    Ok(Stamp {
        modified_ns: metadata
            .mtime()
            .saturating_mul(1_000_000_000)
            .saturating_add(metadata.mtime_nsec()),
        bytes: metadata.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::testing::place;

    #[test]
    fn paths_begin_where_the_session_stands() {
        let cwd = Path::new("/data/work/sub");
        for (path, resolved) in [
            ("a.txt", "/data/work/sub/a.txt"),
            ("../a.txt", "/data/work/a.txt"),
            ("~/a.txt", "/data/work/a.txt"),
            ("~", "/data/work"),
            ("~other/a", "/data/work/sub/~other/a"),
            ("/data/work/./a", "/data/work/a"),
        ] {
            let footprint = footprint(&json!({"path": path}), &place(cwd), Footprint::Reads);
            assert_eq!(footprint, Footprint::Reads(vec![resolved.into()]), "{path}");
        }
        let nothing = footprint(&json!({"path": " "}), &place(cwd), Footprint::Writes);
        assert_eq!(nothing, Footprint::Alone);
    }
}
