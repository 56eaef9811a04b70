//! What a change of a skill comes to on the disk: one file, or one folder, and
//! how it was before. A plan that was let in and cut short is finished from this
//! alone, once: what it is to leave behind tells whether it was carried out.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::change::Alone;
use super::library;
use crate::tool::artifacts::digest;

/// What happens to the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub enum Deed {
    Put {
        #[serde(with = "text")]
        content: Vec<u8>,
    },
    Remove,
    /// The skill's folder goes, and the file with it.
    Drop,
}

impl Deed {
    pub(super) fn put(content: &str) -> Self {
        Self::Put {
            content: content.as_bytes().to_vec(),
        }
    }

    /// The state that it leaves the file in.
    fn after(&self) -> Option<String> {
        match self {
            Self::Put { content } => hash(content.as_slice()),
            Self::Remove | Self::Drop => None,
        }
    }
}

/// A change that nothing refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The skill's, `category/name` or `name`.
    pub path: String,
    #[serde(skip)]
    pub done: &'static str,
    /// In the skill's folder.
    pub(super) file: String,
    /// The file's state when this was planned; none where there was none.
    pub(super) before: Option<String>,
    pub(super) deed: Deed,
}

/// What became of a plan that was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// It had been carried out.
    Before,
    Now,
    /// Somebody changed the file since; that change stays.
    Overtaken,
}

impl Alone {
    pub fn carry_out(&self, plan: &Plan) -> io::Result<()> {
        let folder = self.library.own.join(&plan.path);
        let file = folder.join(&plan.file);
        match &plan.deed {
            Deed::Put { content } => {
                fs::create_dir_all(&folder)?;
                make_parents(&folder, &file)?;
                put(&file, content)
            }
            Deed::Remove => fs::remove_file(&file),
            Deed::Drop => {
                // Gone in one step; what is left of it no name finds.
                let gone = tempfile::Builder::new()
                    .prefix(".gone-")
                    .tempdir_in(&self.library.own)?;
                fs::rename(&folder, gone.path().join("skill"))?;
                gone.close()?;
                if plan.path.contains('/') {
                    // An empty category goes too; one that is not empty stays.
                    let _kept = folder.parent().map(fs::remove_dir);
                }
                Ok(())
            }
        }
    }

    /// Carries a plan out unless that was done.
    pub fn finish(&self, plan: &Plan) -> io::Result<Finished> {
        let now = state(&self.library.own.join(&plan.path).join(&plan.file));
        if now == plan.deed.after() {
            return Ok(Finished::Before);
        }
        if now != plan.before {
            return Ok(Finished::Overtaken);
        }
        self.carry_out(plan).map(|()| Finished::Now)
    }
}

/// What a file holds, in short; none where there is none.
pub(super) fn state(path: &Path) -> Option<String> {
    hash(library::read_file(path).ok()?.as_slice())
}

fn hash(content: &[u8]) -> Option<String> {
    digest(content).ok().map(|(_, hash)| hash)
}

/// Directories on the way to a file that are none are refused, a link too.
pub(super) fn checked_parents(folder: &Path, path: &Path) -> io::Result<()> {
    parents(folder, path, |_| Ok(()))
}

fn make_parents(folder: &Path, path: &Path) -> io::Result<()> {
    parents(folder, path, |missing| fs::create_dir(missing))
}

fn parents(folder: &Path, path: &Path, missing: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut at = folder.to_owned();
    let within = path.strip_prefix(folder).map_err(io::Error::other)?;
    for part in within.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::NotADirectory,
                    "a folder of the skill is none",
                ));
            }
            Err(_) => missing(&at)?,
        }
    }
    Ok(())
}

/// Puts the whole file in its place.
pub(super) fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

/// Bytes as the text that they are; agents write nothing else.
pub(super) mod text {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::tool::skill) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(bytes))
    }

    pub(in crate::tool::skill) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        String::deserialize(deserializer).map(String::into_bytes)
    }
}
