//! Changing the tenant's own skills. A change is checked whole before anything
//! is written, and what is written takes its place in one step: a reader sees
//! the skill before or after, a crash leaves at most a folder that no name finds.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::document::{Document, Malformed};
use super::library::{self, Found, Library, MAX_FILE_BYTES, PINNED, Skill};
use super::name::{self, BadName, Shelf};
use super::scan::{self, Report};
use crate::model::skill::SkillOrigin;
use crate::tool::edit::fuzzy;

/// Skills a tenant may have of its own.
const MAX_OWN: usize = 500;
/// Files of one skill, all of which are listed.
const MAX_FILES: usize = 200;

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
        #[serde(with = "text")]
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
    #[error("{0}")]
    NoMatch(String),
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
pub struct Alone<'a> {
    library: &'a Library,
    #[allow(dead_code, reason = "the lock ends with the file")]
    lock: File,
}

impl<'a> Alone<'a> {
    pub fn with(library: &'a Library) -> io::Result<Self> {
        fs::create_dir_all(&library.own)?;
        let path = library.own.join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(path)?;
        lock.lock()?;
        Ok(Self { library, lock })
    }

    /// Carries a change out on the skill that `asked` names.
    pub fn make(&self, asked: &str, change: &Change, consent: Consent) -> Result<Made, Refusal> {
        let (shelf, name) = name::asked(asked)?;
        let scan = Scan { change, consent };
        if let Change::Create { category: own, content } = change {
            let category = own.as_deref().or(match shelf {
                Shelf::Any => None,
                Shelf::Category(category) => Some(category),
                Shelf::Plugin(_) => return Err(Refusal::NotOurs(asked.to_owned())),
            });
            let category = category.map(name::part).transpose()?;
            return create(self.library, category, name, content, &scan);
        }
        let skill = own(self.library, shelf, name, asked)?;
        let done = match change {
            Change::Create { .. } => return Err(Refusal::Exists(asked.to_owned())),
            Change::Edit { content } => edit(&skill, content, &scan)?,
            Change::Patch { file, old, new, all } => patch(&skill, file.as_deref(), (old, new, *all), &scan)?,
            Change::Delete { absorbed_into } => delete(self.library, &skill, absorbed_into.as_deref())?,
            Change::WriteFile { file, content } => write_file(&skill, file, content, &scan)?,
            Change::RemoveFile { file } => remove_file(&skill, file)?,
        };
        Ok(Made {
            path: skill.path(),
            done,
            findings: scan.of_folder(&skill.folder),
        })
    }

    /// Keeps a skill of the tenant from being deleted, or lets it go.
    pub fn pin(&self, asked: &str, pinned: bool) -> Result<(), Refusal> {
        let (shelf, name) = name::asked(asked)?;
        let skill = own(self.library, shelf, name, asked)?;
        let mark = skill.folder.join(PINNED);
        match (pinned, skill.pinned) {
            (true, false) => Ok(put(&mark, b"")?),
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
) -> Result<Made, Refusal> {
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
    fs::create_dir_all(&folder)?;
    put(&folder.join("SKILL.md"), content.as_bytes())?;
    Ok(Made {
        path,
        done: "created",
        findings: scan.of_folder(&folder),
    })
}

fn edit(skill: &Skill, content: &str, scan: &Scan<'_>) -> Result<&'static str, Refusal> {
    Document::read(content)?;
    let path = skill.folder.join("SKILL.md");
    let before = library::read_file(&path).unwrap_or_default();
    scan.check("SKILL.md", content.as_bytes(), &before)?;
    put(&path, content.as_bytes())?;
    Ok("changed")
}

fn patch(
    skill: &Skill,
    file: Option<&str>,
    (old, new, all): (&str, &str, bool),
    scan: &Scan<'_>,
) -> Result<&'static str, Refusal> {
    let path = match file {
        Some(file) => skill.folder.join(name::support(file)?),
        None => skill.folder.join("SKILL.md"),
    };
    let missing = || Refusal::NoFile(file.unwrap_or("SKILL.md").to_owned(), files(skill));
    let text = library::read_file(&path).map_err(|_| missing())?;
    let text = String::from_utf8(text).map_err(|_| Refusal::NoMatch("the file is no text".to_owned()))?;
    let replaced = fuzzy::replace(&text, old, new, all).map_err(|error| Refusal::NoMatch(error.to_string()))?;
    let Some(file) = file else {
        return edit(skill, &replaced.content, scan);
    };
    checked_size(replaced.content.len())?;
    scan.check(file, replaced.content.as_bytes(), text.as_bytes())?;
    put(&path, replaced.content.as_bytes())?;
    Ok("changed")
}

fn delete(library: &Library, skill: &Skill, absorbed_into: Option<&str>) -> Result<&'static str, Refusal> {
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
    // Gone in one step; what is left of it no name finds.
    let gone = tempfile::Builder::new().prefix(".gone-").tempdir_in(&library.own)?;
    fs::rename(&skill.folder, gone.path().join("skill"))?;
    gone.close()?;
    if skill.category.is_some() {
        // An empty category goes too; one that is not empty stays.
        let _kept = skill.folder.parent().map(fs::remove_dir);
    }
    Ok("deleted")
}

fn write_file(skill: &Skill, file: &str, content: &[u8], scan: &Scan<'_>) -> Result<&'static str, Refusal> {
    let path = skill.folder.join(name::support(file)?);
    checked_size(content.len())?;
    let known = files(skill);
    if MAX_FILES <= known.len() && !known.iter().any(|known| known == file) {
        return Err(Refusal::Full);
    }
    let before = library::support_file(&skill.folder, Path::new(file)).unwrap_or_default();
    scan.check(file, content, &before)?;
    make_parents(&skill.folder, &path)?;
    put(&path, content)?;
    Ok("written")
}

fn remove_file(skill: &Skill, file: &str) -> Result<&'static str, Refusal> {
    let path = skill.folder.join(name::support(file)?);
    if !fs::symlink_metadata(&path).is_ok_and(|about| about.is_file()) {
        return Err(Refusal::NoFile(file.to_owned(), files(skill)));
    }
    fs::remove_file(&path)?;
    Ok("removed")
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

/// Directories on the way to a file; a link among them is refused.
fn make_parents(folder: &Path, path: &Path) -> io::Result<()> {
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
            Err(_) => fs::create_dir(&at)?,
        }
    }
    Ok(())
}

/// Puts the whole file in its place.
fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

/// Bytes as the text that they are; agents write nothing else.
mod text {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        String::deserialize(deserializer).map(String::into_bytes)
    }
}
