//! Changing the tenant's own skills. A change is checked whole before anything
//! is written, and what is written takes its place in one step: a reader sees
//! the skill before or after, a crash leaves at most a folder that no name finds.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::document::{Document, Malformed};
use super::library::{self, Found, Library, MAX_FILE_BYTES, PINNED, Skill};
use super::name::{self, BadName, Shelf};
use super::plan::{self, Deed, Plan};
use super::scan::{self, Report};
use crate::base::text::first_chars;
use crate::model::skill::SkillOrigin;
use crate::tool::edit::fuzzy;

/// Skills a tenant may have of its own.
const MAX_OWN: usize = 500;
/// Files of one skill, all of which are listed.
const MAX_FILES: usize = 200;
const SKILL: &str = "SKILL.md";
/// Characters of a file that are shown where a passage was not found in it (Hermes).
const PREVIEW_CHARS: usize = 500;

/// What is to become of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Change {
    Create {
        category: Option<String>,
        content: String,
    },
    /// The whole of `SKILL.md`.
    Edit {
        content: String,
    },
    /// One passage of `SKILL.md`, or of a file beside it.
    Patch {
        file: Option<String>,
        old: String,
        new: String,
        all: bool,
    },
    /// `absorbed_into` names the skill that has what this one knew.
    Delete {
        absorbed_into: Option<String>,
    },
    WriteFile {
        file: String,
        #[serde(with = "super::plan::text")]
        content: Vec<u8>,
    },
    RemoveFile {
        file: String,
    },
}

/// A change with the skill that it is asked for, as it waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedChange {
    pub name: String,
    #[serde(flatten)]
    pub change: Change,
}

/// Who stands for a text that the scan finds dangerous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Nobody: it is refused.
    Nobody,
    /// Somebody was shown what the change says. What only comes of it, together
    /// with what is there, nobody saw.
    ToTheChange,
    /// The operator: nothing is looked at.
    Unasked,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The skill's path, `category/name` or `name`.
    pub path: String,
    pub done: &'static str,
    /// What the scan has to say of the skill as it is now.
    pub findings: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Name(#[from] BadName),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("there is a skill `{0}` already; change it with `edit` or `patch`")]
    Exists(String),
    #[error("`{0}` is pinned and cannot be deleted; somebody has to unpin it first")]
    Pinned(String),
    #[error("there is no skill `{0}`")]
    Missing(String),
    #[error("several skills are named so: {paths}; say `category/name`", paths = .0.join(", "))]
    Several(Vec<String>),
    #[error("`{0}` is one of the server's skills and cannot be changed; create one of the same path to take its place")]
    NotOurs(String),
    #[error("the skill `{0}` that is to have taken it up does not exist")]
    NotAbsorbed(String),
    #[error("`{0}` is not there; the skill has {files}", files = if .1.is_empty() { "no such files".to_owned() } else { .1.join(", ") })]
    NoFile(String, Vec<String>),
    /// With the beginning of the file that was to be patched.
    #[error("{why}")]
    NoMatch { why: String, preview: String },
    #[error("a file may have at most {MAX_FILE_BYTES} bytes")]
    Large,
    #[error("a skill may have at most {MAX_FILES} files, and a tenant {MAX_OWN} skills")]
    Full,
    #[error("the scan refused it: {findings}", findings = .0.join("; "))]
    Dangerous(Vec<String>),
    #[error("the skills cannot be written: {0}")]
    Disk(#[from] io::Error),
}

/// The tenant's skills while nobody else changes them, in any process of the
/// machine.
pub struct Alone {
    pub(super) library: Library,
    #[allow(dead_code, reason = "the lock ends with the file")]
    lock: File,
}

impl Alone {
    pub fn with(library: &Library) -> io::Result<Self> {
        fs::create_dir_all(&library.own)?;
        let path = library.own.join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(path)?;
        lock.lock()?;
        Ok(Self {
            library: library.clone(),
            lock,
        })
    }

    /// Carries a change out on the skill that `asked` names.
    pub fn make(&self, asked: &str, change: &Change, consent: Consent) -> Result<Made, Refusal> {
        let plan = self.plan(asked, change, consent)?;
        self.carry_out(&plan)?;
        let folder = self.library.own.join(&plan.path);
        Ok(Made {
            findings: Scan { change, consent }.of_folder(&folder),
            path: plan.path,
            done: plan.done,
        })
    }

    /// What a change comes to as things are; everything that could refuse it has
    /// been asked, and nothing is written.
    pub fn plan(&self, asked: &str, change: &Change, consent: Consent) -> Result<Plan, Refusal> {
        let (shelf, name) = name::asked(asked)?;
        let scan = Scan { change, consent };
        let (path, file, done, deed) = if let Change::Create { category: own, content } = change {
            let category = own.as_deref().or(match shelf {
                Shelf::Any => None,
                Shelf::Category(category) => Some(category),
                Shelf::Plugin(_) => return Err(Refusal::NotOurs(asked.to_owned())),
            });
            let category = category.map(name::part).transpose()?;
            let path = create(&self.library, category, name, content, &scan)?;
            (path, SKILL, "created", Deed::put(content))
        } else {
            let skill = own(&self.library, shelf, name, asked)?;
            let (file, done, deed) = match change {
                Change::Create { .. } => return Err(Refusal::Exists(asked.to_owned())),
                Change::Edit { content } => {
                    edit(&skill, content, &scan)?;
                    (SKILL, "changed", Deed::put(content))
                }
                Change::Patch { file, old, new, all } => {
                    let text = patch(&skill, file.as_deref(), (old, new, *all), &scan)?;
                    (file.as_deref().unwrap_or(SKILL), "changed", Deed::put(&text))
                }
                Change::Delete { absorbed_into } => {
                    delete(&self.library, &skill, absorbed_into.as_deref())?;
                    (SKILL, "deleted", Deed::Drop)
                }
                Change::WriteFile { file, content } => {
                    write_file(&skill, file, content, &scan)?;
                    (
                        file.as_str(),
                        "written",
                        Deed::Put {
                            content: content.clone(),
                        },
                    )
                }
                Change::RemoveFile { file } => {
                    remove_file(&skill, file)?;
                    (file.as_str(), "removed", Deed::Remove)
                }
            };
            (skill.path(), file, done, deed)
        };
        Ok(Plan {
            before: plan::state(&self.library.own.join(&path).join(file)),
            file: file.to_owned(),
            path,
            done,
            deed,
        })
    }

    /// Keeps a skill of the tenant from being deleted, or lets it go.
    pub fn pin(&self, asked: &str, pinned: bool) -> Result<(), Refusal> {
        let (shelf, name) = name::asked(asked)?;
        let skill = own(&self.library, shelf, name, asked)?;
        let mark = skill.folder.join(PINNED);
        match (pinned, skill.pinned) {
            (true, false) => Ok(plan::put(&mark, b"")?),
            (false, true) => Ok(fs::remove_file(&mark)?),
            _ => Ok(()),
        }
    }
}

/// How what comes of a change is looked through.
struct Scan<'a> {
    change: &'a Change,
    consent: Consent,
}

impl Scan<'_> {
    /// Refuses a file that is dangerous by what nobody answers for; what was there
    /// `before` somebody answered for then.
    fn check(&self, path: &str, content: &[u8], before: &[u8]) -> Result<(), Refusal> {
        let mut critical = match self.consent {
            Consent::Unasked => return Ok(()),
            Consent::Nobody | Consent::ToTheChange => scan::file(path, content).critical().to_vec(),
        };
        if self.consent == Consent::ToTheChange && !critical.is_empty() {
            let shown = self.change.report().and(&scan::file(path, before));
            critical.retain(|finding| !shown.critical().contains(finding));
        }
        match critical.is_empty() {
            true => Ok(()),
            false => Err(Refusal::Dangerous(critical)),
        }
    }

    fn of_folder(&self, folder: &Path) -> Vec<String> {
        match self.consent {
            Consent::Unasked => Vec::new(),
            Consent::Nobody | Consent::ToTheChange => self.change.report().and(&scan::folder(folder)).findings,
        }
    }
}

impl Change {
    /// Whether it could be made at all, apart from what is there.
    pub fn check(&self, name: &str) -> Result<(), Refusal> {
        name::asked(name)?;
        match self {
            Self::Create { content, .. } | Self::Edit { content } => drop(Document::read(content)?),
            Self::WriteFile { file, content } => {
                name::support(file)?;
                checked_size(content.len())?;
            }
            Self::Patch { file: Some(file), .. } | Self::RemoveFile { file } => drop(name::support(file)?),
            Self::Patch { file: None, .. } | Self::Delete { .. } => {}
        }
        Ok(())
    }

    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Edit { .. } => "edit",
            Self::Patch { .. } => "patch",
            Self::Delete { .. } => "delete",
            Self::WriteFile { .. } => "write_file of",
            Self::RemoveFile { .. } => "remove_file of",
        }
    }

    /// What the scan says of the texts that the change itself brings.
    pub fn report(&self) -> Report {
        match self {
            Self::Create { content, .. } | Self::Edit { content } => scan::file("SKILL.md", content.as_bytes()),
            Self::Patch { file, new, .. } => scan::file(file.as_deref().unwrap_or("SKILL.md"), new.as_bytes()),
            Self::WriteFile { file, content } => scan::file(file, content),
            Self::Delete { .. } | Self::RemoveFile { .. } => scan::scan(""),
        }
    }
}

/// The tenant's skill of this name.
fn own(library: &Library, shelf: Shelf<'_>, name: &str, asked: &str) -> Result<Skill, Refusal> {
    match library.find(shelf, name)? {
        Found::One(skill) if skill.origin == SkillOrigin::Tenant => Ok(*skill),
        Found::One(skill) => Err(Refusal::NotOurs(skill.path())),
        Found::Several(paths) => Err(Refusal::Several(paths)),
        Found::None => Err(Refusal::Missing(asked.to_owned())),
    }
}

fn create(
    library: &Library,
    category: Option<&str>,
    name: &str,
    content: &str,
    scan: &Scan<'_>,
) -> Result<String, Refusal> {
    Document::read(content)?;
    let path = category.map_or(name.to_owned(), |category| format!("{category}/{name}"));
    let listed = library.list()?;
    let own = listed.iter().filter(|skill| skill.origin == SkillOrigin::Tenant);
    if MAX_OWN <= own.clone().count() {
        return Err(Refusal::Full);
    }
    let folder = library.own.join(&path);
    if own.clone().any(|skill| skill.path() == path) || folder.join("SKILL.md").exists() {
        return Err(Refusal::Exists(path));
    }
    scan.check("SKILL.md", content.as_bytes(), b"")?;
    Ok(path)
}

fn edit(skill: &Skill, content: &str, scan: &Scan<'_>) -> Result<(), Refusal> {
    Document::read(content)?;
    let path = skill.folder.join("SKILL.md");
    let before = library::read_file(&path).unwrap_or_default();
    scan.check("SKILL.md", content.as_bytes(), &before)
}

/// The file's text as the patch leaves it.
fn patch(
    skill: &Skill,
    file: Option<&str>,
    (old, new, all): (&str, &str, bool),
    scan: &Scan<'_>,
) -> Result<String, Refusal> {
    let path = match file {
        Some(file) => skill.folder.join(name::support(file)?),
        None => skill.folder.join("SKILL.md"),
    };
    let missing = || Refusal::NoFile(file.unwrap_or("SKILL.md").to_owned(), files(skill));
    let text = library::read_file(&path).map_err(|_| missing())?;
    let text = String::from_utf8(text).map_err(|_| Refusal::NoMatch {
        why: "the file is no text".to_owned(),
        preview: String::new(),
    })?;
    let replaced = fuzzy::replace(&text, old, new, all).map_err(|error| Refusal::NoMatch {
        why: error.to_string(),
        preview: first_chars(&text, PREVIEW_CHARS).to_owned(),
    })?;
    match file {
        None => edit(skill, &replaced.content, scan)?,
        Some(file) => {
            checked_size(replaced.content.len())?;
            scan.check(file, replaced.content.as_bytes(), text.as_bytes())?;
        }
    }
    Ok(replaced.content)
}

fn delete(library: &Library, skill: &Skill, absorbed_into: Option<&str>) -> Result<(), Refusal> {
    if skill.pinned {
        return Err(Refusal::Pinned(skill.path()));
    }
    if let Some(into) = absorbed_into {
        let (shelf, name) = name::asked(into)?;
        let found = library.find(shelf, name)?;
        if !matches!(found, Found::One(other) if other.folder != skill.folder) {
            return Err(Refusal::NotAbsorbed(into.to_owned()));
        }
    }
    Ok(())
}

fn write_file(skill: &Skill, file: &str, content: &[u8], scan: &Scan<'_>) -> Result<(), Refusal> {
    let path = skill.folder.join(name::support(file)?);
    checked_size(content.len())?;
    let known = files(skill);
    if MAX_FILES <= known.len() && !known.iter().any(|known| known == file) {
        return Err(Refusal::Full);
    }
    let before = library::support_file(&skill.folder, Path::new(file)).unwrap_or_default();
    scan.check(file, content, &before)?;
    Ok(plan::checked_parents(&skill.folder, &path)?)
}

fn remove_file(skill: &Skill, file: &str) -> Result<(), Refusal> {
    let path = skill.folder.join(name::support(file)?);
    if !fs::symlink_metadata(&path).is_ok_and(|about| about.is_file()) {
        return Err(Refusal::NoFile(file.to_owned(), files(skill)));
    }
    Ok(())
}

fn files(skill: &Skill) -> Vec<String> {
    library::support_files(&skill.folder)
        .into_iter()
        .flat_map(|(_, files)| files)
        .collect()
}

fn checked_size(bytes: usize) -> Result<(), Refusal> {
    match u64::try_from(bytes) {
        Ok(bytes) if bytes <= MAX_FILE_BYTES => Ok(()),
        _ => Err(Refusal::Large),
    }
}
