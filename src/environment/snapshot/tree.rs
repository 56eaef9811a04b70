//! The names of a snapshot and what each stood for, in memory and as lines of
//! JSON. Names are bytes: those that are no text are written with `%`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A file in a certain state. The time of change cannot be set by whoever owns the
/// file, so the same stamp is the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub size: u64,
    pub inode: u64,
    /// In nanoseconds, as the file system has them.
    pub modified: i64,
    pub changed: i64,
}

/// Why something is not in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// It may not be read.
    Closed,
    /// Longer than one file may be.
    Long,
    /// All files together were long enough.
    NoRoom,
    /// A pipe, a socket, a device.
    Special,
    /// Its name is one of those that are left out.
    Named,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum What {
    Directory {
        mode: u32,
    },
    File {
        mode: u32,
        sha256: String,
        #[serde(flatten)]
        stamp: Stamp,
    },
    Link {
        #[serde(with = "name")]
        to: PathBuf,
    },
    /// With all beneath it.
    LeftOut {
        why: LeftOut,
    },
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(with = "name")]
    path: PathBuf,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize, Deserialize)]
struct Head {
    began: i64,
}

/// All names from the root on, each directory before what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// When it was begun, by the clock of the file system in nanoseconds: what
    /// changed since then may have been read too early.
    pub began: i64,
    pub names: BTreeMap<PathBuf, What>,
}

impl Tree {
    /// Whether something is left out here, or above.
    pub fn leaves_out(&self, path: &Path) -> bool {
        path.ancestors()
            .any(|above| matches!(self.names.get(above), Some(What::LeftOut { .. })))
    }

    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut to, &Head { began: self.began })?;
        to.write_all(b"\n")?;
        for (path, what) in &self.names {
            let line = Line {
                path: path.clone(),
                what: what.clone(),
            };
            serde_json::to_writer(&mut to, &line)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    }

    pub fn read(from: impl BufRead) -> io::Result<Self> {
        let mut lines = from.lines();
        let head = lines.next().transpose()?.unwrap_or_default();
        let Head { began } = serde_json::from_str(&head)?;
        let names = lines.map(|line| {
            let Line { path, what } = serde_json::from_str(&line?)?;
            Ok((path, what))
        });
        Ok(Self {
            began,
            names: names.collect::<io::Result<_>>()?,
        })
    }
}

/// A name as text, and back.
mod name {
    use std::ffi::OsString;
    use std::fmt::Write;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&written(path.as_os_str().as_bytes()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = read(&text).ok_or_else(|| de::Error::custom("no name of a file"))?;
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }

    fn written(bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(&chunk.valid().replace('%', "%25"));
            for byte in chunk.invalid() {
                // Writing to a text does not fail.
                let _ = write!(text, "%{byte:02x}");
            }
        }
        text
    }

    fn read(text: &str) -> Option<Vec<u8>> {
        let mut parts = text.split('%');
        let mut bytes = parts.next()?.as_bytes().to_vec();
        for part in parts {
            let (code, rest) = part.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(code, 16).ok()?);
            bytes.extend(rest.as_bytes());
        }
        Some(bytes)
    }
}
