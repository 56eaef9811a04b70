//! What a patch makes of the files it names, worked out before one is touched.
//!
//! Every operation must fit the files as they are, and all of them together in
//! their order. The second alone would do, but then a slip in one operation
//! could be hidden by what another made of the file.

use std::collections::BTreeMap;

use super::hunk::{Unfit, after};
use super::parse::{Hunk, Line, Operation, Sign};
use crate::tool::edit::fuzzy::{NotReplaced, did_you_mean};

/// What happens to one file in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landing {
    Write {
        path: String,
        content: String,
        is_new: bool,
    },
    Delete {
        path: String,
    },
    Move {
        path: String,
        to: String,
    },
}

/// A patch that fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// In the order of the patch.
    pub steps: Vec<Landing>,
    /// The files as they are afterwards.
    pub after: BTreeMap<String, String>,
}

/// Why a patch does not fit: all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Invalid(pub Vec<Fault>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("`{path}`: hunk {number} does not fit: {why}{}", shown(.near))]
    Hunk {
        path: String,
        number: usize,
        why: Unfit,
        /// What may have been meant.
        near: String,
    },
    #[error("`{0}`: there is no such file")]
    Missing(String),
    #[error("`{0}`: there is a file already, and a move replaces none")]
    Taken(String),
    #[error("the patch changes nothing")]
    Nothing,
}

fn shown(near: &str) -> String {
    match near {
        "" => String::new(),
        near => format!("\ndid you mean:\n{near}"),
    }
}

/// Tries the operations on `files`, the texts of those that are there.
pub fn plan(operations: &[Operation], files: &BTreeMap<String, String>) -> Result<Changes, Invalid> {
    let apart: Vec<Fault> = operations.iter().filter_map(|one| step(one, files).err()).collect();
    if !apart.is_empty() {
        return Err(Invalid(apart));
    }
    let mut changes = Changes {
        steps: Vec::new(),
        after: files.clone(),
    };
    for operation in operations {
        match step(operation, &changes.after) {
            Ok(Some(landing)) => changes.take(landing),
            Ok(None) => {}
            Err(fault) => return Err(Invalid(vec![fault])),
        }
    }
    if changes.steps.is_empty() {
        return Err(Invalid(vec![Fault::Nothing]));
    }
    Ok(changes)
}

impl Changes {
    fn take(&mut self, landing: Landing) {
        match &landing {
            Landing::Write { path, content, .. } => drop(self.after.insert(path.clone(), content.clone())),
            Landing::Delete { path } => drop(self.after.remove(path)),
            Landing::Move { path, to } => {
                if let Some(content) = self.after.remove(path) {
                    self.after.insert(to.clone(), content);
                }
            }
        }
        self.steps.push(landing);
    }
}

/// What one operation makes of the files; nothing when it changes nothing.
fn step(operation: &Operation, files: &BTreeMap<String, String>) -> Result<Option<Landing>, Fault> {
    let there = |path: &String| files.get(path).ok_or_else(|| Fault::Missing(path.clone()));
    match operation {
        Operation::Update { path, hunks } => {
            let before = there(path)?;
            let content = updated(path, hunks, before)?;
            Ok((content != *before).then(|| Landing::Write {
                path: path.clone(),
                content,
                is_new: false,
            }))
        }
        Operation::Add { path, lines } => Ok(Some(Landing::Write {
            path: path.clone(),
            content: added(lines),
            is_new: true,
        })),
        Operation::Delete { path } => there(path).map(|_| Some(Landing::Delete { path: path.clone() })),
        Operation::Move { path, to } => {
            there(path)?;
            if files.contains_key(to) {
                return Err(Fault::Taken(to.clone()));
            }
            Ok(Some(Landing::Move {
                path: path.clone(),
                to: to.clone(),
            }))
        }
    }
}

fn updated(path: &str, hunks: &[Hunk], before: &str) -> Result<String, Fault> {
    let mut content = before.to_owned();
    for (place, hunk) in hunks.iter().enumerate() {
        content = hunk.apply(&content).map_err(|why| Fault::Hunk {
            path: path.to_owned(),
            number: place + 1,
            near: match (&why, hunk.passage()) {
                (Unfit::Passage(NotReplaced::NotFound), Some(passage)) => did_you_mean(&content, &passage),
                _ => String::new(),
            },
            why,
        })?;
    }
    Ok(content)
}

/// Only added lines make a new file.
fn added(lines: &[Line]) -> String {
    let own: Vec<Line> = lines.iter().filter(|line| line.sign == Sign::Add).cloned().collect();
    after(&own)
}
