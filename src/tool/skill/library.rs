//! The skills that a tenant sees: its own before the server's, and those of
//! plugins under the plugins' names. Reading only.
//!
//! A link is never followed: whoever can write into one of the directories must
//! not be able to show what lies elsewhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::document::Document;
use super::name::{self, Shelf};
use crate::model::skill::{self, SkillEntry, SkillOrigin, SkillState};

/// Skills that are listed; more would fill a prompt.
const MAX_SKILLS: usize = 500;
/// The largest file of a skill that is read.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Lies beside `SKILL.md` of a skill that is not to be deleted.
pub const PINNED: &str = ".pinned";
/// Files of a skill that are listed.
const MAX_FILES: usize = 200;

/// The directories that hold a tenant's skills.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// The tenant's own.
    pub own: PathBuf,
    pub system: Vec<PathBuf>,
    /// Those of plugins, each with the plugin's name.
    pub plugins: Vec<(String, PathBuf)>,
    /// Names or paths of those that no agent is shown.
    pub disabled: Vec<String>,
}

/// A skill in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    pub plugin: Option<String>,
    pub category: Option<String>,
    /// The name of its folder, which it is asked for by.
    pub name: String,
    pub origin: SkillOrigin,
    pub state: SkillState,
    pub pinned: bool,
    pub folder: PathBuf,
    pub document: Document,
}

impl Skill {
    /// `category/name`, `plugin:name`, or the name alone.
    pub fn path(&self) -> String {
        match (&self.plugin, &self.category) {
            (Some(plugin), _) => format!("{plugin}:{}", self.name),
            (None, Some(category)) => format!("{category}/{}", self.name),
            (None, None) => self.name.clone(),
        }
    }

    pub fn is_available(&self) -> bool {
        self.state == SkillState::Available
    }

    /// A bare name is never a plugin's skill.
    fn is_asked(&self, shelf: Shelf<'_>, name: &str) -> bool {
        let is_there = match shelf {
            Shelf::Any => self.plugin.is_none(),
            Shelf::Category(category) => self.plugin.is_none() && self.category.as_deref() == Some(category),
            Shelf::Plugin(plugin) => self.plugin.as_deref() == Some(plugin),
        };
        is_there && self.name == name
    }

    pub fn entry(&self) -> SkillEntry {
        SkillEntry {
            name: self.name.clone(),
            description: self.document.description.clone(),
            category: self.category.clone(),
            path: self.path(),
            origin: self.origin,
            tags: self.document.tags.clone(),
            state: self.state,
            pinned: self.pinned,
        }
    }

    /// The skill as clients see it.
    pub fn shown(&self) -> io::Result<skill::Skill> {
        let content = read_file(&self.folder.join("SKILL.md"))?;
        Ok(skill::Skill {
            entry: self.entry(),
            content: String::from_utf8_lossy(&content).into_owned(),
            files: support_files(&self.folder)
                .into_iter()
                .flat_map(|(_, files)| files)
                .collect(),
            allowed_tools: self.document.allowed_tools.clone(),
            required_commands: self.document.commands.clone(),
        })
    }
}

/// What asking for a name found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    One(Box<Skill>),
    /// Several of this name, in different categories.
    Several(Vec<String>),
    None,
}

impl Library {
    /// All skills by category and name; of two at one path the tenant's counts.
    pub fn list(&self) -> io::Result<Vec<Skill>> {
        let mut skills = Vec::new();
        collect(&self.own, SkillOrigin::Tenant, &mut skills)?;
        for directory in &self.system {
            collect(directory, SkillOrigin::System, &mut skills)?;
        }
        for (plugin, directory) in &self.plugins {
            for (name, folder) in folders(directory)? {
                let found = skill(&folder, None, &name, SkillOrigin::Plugin);
                skills.extend(found.map(|skill| Skill {
                    plugin: Some(plugin.clone()),
                    ..skill
                }));
            }
        }
        // Stable: of equal paths the tenant's stays in front.
        let order = |skill: &Skill| (skill.plugin.clone(), skill.category.clone(), skill.name.clone());
        skills.sort_by_cached_key(order);
        skills.dedup_by(|later, first| later.path() == first.path());
        skills.truncate(MAX_SKILLS);
        for skill in &mut skills {
            skill.state = self.state(skill);
        }
        Ok(skills)
    }

    fn state(&self, skill: &Skill) -> SkillState {
        let path = skill.path();
        let is_off = |name: &String| *name == path || (skill.plugin.is_none() && *name == skill.name);
        match self.disabled.iter().any(is_off) {
            true => SkillState::Disabled,
            false if !skill.document.is_for(std::env::consts::OS) => SkillState::Unsupported,
            false => SkillState::Available,
        }
    }

    /// The skill of this name, or of the one path that ends in it.
    pub fn find(&self, shelf: Shelf<'_>, name: &str) -> io::Result<Found> {
        let mut matching = self.list()?;
        matching.retain(|skill| skill.is_asked(shelf, name));
        Ok(match matching.len() {
            0 => Found::None,
            1 => matching.pop().map_or(Found::None, |skill| Found::One(Box::new(skill))),
            _ => Found::Several(matching.iter().map(Skill::path).collect()),
        })
    }
}

/// The skills of a directory, and of its categories.
fn collect(directory: &Path, origin: SkillOrigin, skills: &mut Vec<Skill>) -> io::Result<()> {
    for (name, folder) in folders(directory)? {
        if let Some(skill) = skill(&folder, None, &name, origin) {
            skills.push(skill);
            continue;
        }
        for (inner, folder) in folders(&folder)? {
            skills.extend(skill(&folder, Some(&name), &inner, origin));
        }
    }
    Ok(())
}

/// Folders with plain names, links left out; none where there is no directory.
fn folders(directory: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name::part(name).is_ok()) else {
            continue;
        };
        if entry.file_type()?.is_dir() {
            folders.push((name.to_owned(), entry.path()));
        }
    }
    Ok(folders)
}

/// The skill in a folder; one that cannot be read is no skill.
fn skill(folder: &Path, category: Option<&str>, name: &str, origin: SkillOrigin) -> Option<Skill> {
    let text = read_file(&folder.join("SKILL.md")).ok()?;
    let document = Document::read(std::str::from_utf8(&text).ok()?).ok()?;
    Some(Skill {
        plugin: None,
        category: category.map(str::to_owned),
        name: name.to_owned(),
        origin,
        state: SkillState::Available,
        pinned: fs::symlink_metadata(folder.join(PINNED)).is_ok(),
        folder: folder.to_owned(),
        document,
    })
}

/// The bytes of a plain file of bounded size.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let about = fs::symlink_metadata(path)?;
    if !about.is_file() || MAX_FILE_BYTES < about.len() {
        let fault = "not a plain file of at most 1 MiB";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
    }
    fs::read(path)
}

/// The bytes of a file beside `SKILL.md`; a link on the way would lead out of the
/// skill.
pub fn support_file(folder: &Path, path: &Path) -> io::Result<Vec<u8>> {
    let mut on_the_way = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    if on_the_way.any(|part| fs::symlink_metadata(folder.join(part)).is_ok_and(|about| about.is_symlink())) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "a link is on the way"));
    }
    read_file(&folder.join(path))
}

/// Files beside `SKILL.md`, by folder, as paths within the skill.
pub fn support_files(folder: &Path) -> Vec<(&'static str, Vec<String>)> {
    let mut groups = Vec::new();
    for group in name::FOLDERS {
        let mut files = Vec::new();
        walk(&folder.join(group), Path::new(group), &mut files);
        if !files.is_empty() {
            files.sort();
            groups.push((group, files));
        }
    }
    let others = others(folder);
    if !others.is_empty() {
        groups.push(("other", others));
    }
    groups
}

/// What lies in none of the four folders, as skills from elsewhere have it.
fn others(folder: &Path) -> Vec<String> {
    let (mut files, Ok(entries)) = (Vec::new(), fs::read_dir(folder)) else {
        return Vec::new();
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
            continue;
        };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !name::FOLDERS.contains(&name) => {
                walk(&entry.path(), Path::new(name), &mut files);
            }
            Ok(kind) if kind.is_file() && name != "SKILL.md" && files.len() < MAX_FILES => files.push(name.to_owned()),
            _ => {}
        }
    }
    files.sort();
    files
}

fn walk(directory: &Path, within: &Path, files: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if MAX_FILES <= files.len() {
            return;
        }
        let path = within.join(entry.file_name());
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), &path, files),
            Ok(kind) if kind.is_file() => files.extend(path.to_str().map(str::to_owned)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(directory: &Path, path: &str, name: &str) {
        let folder = directory.join(path);
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join("SKILL.md"),
            format!("---\nname: {name}\ndescription: d\n---\nbody\n"),
        )
        .unwrap();
    }

    #[test]
    fn the_tenants_skill_stands_before_the_servers_of_the_same_path() {
        let [own, system] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        put(own.path(), "ops/deploy", "mine");
        put(system.path(), "ops/deploy", "theirs");
        put(system.path(), "web/deploy", "other");
        put(system.path(), "plain", "plain");
        fs::create_dir_all(system.path().join("broken")).unwrap();
        fs::write(system.path().join("broken/SKILL.md"), "no front matter").unwrap();
        std::os::unix::fs::symlink("/etc", system.path().join("linked")).unwrap();
        let library = Library {
            own: own.path().to_owned(),
            system: vec![system.path().to_owned(), PathBuf::from("/nonexistent")],
            ..Library::default()
        };
        let listed: Vec<(String, SkillOrigin)> = library
            .list()
            .unwrap()
            .iter()
            .map(|skill| (skill.path(), skill.origin))
            .collect();
        let expected = [
            ("plain", SkillOrigin::System),
            ("ops/deploy", SkillOrigin::Tenant),
            ("web/deploy", SkillOrigin::System),
        ];
        assert_eq!(listed, expected.map(|(path, origin)| (path.to_owned(), origin)));
        assert_eq!(
            library.find(Shelf::Any, "deploy").unwrap(),
            Found::Several(vec!["ops/deploy".to_owned(), "web/deploy".to_owned()])
        );
        assert!(
            matches!(library.find(Shelf::Category("ops"), "deploy").unwrap(), Found::One(skill) if skill.document.name == "mine")
        );
        assert_eq!(library.find(Shelf::Category("x"), "plain").unwrap(), Found::None);
    }

    #[test]
    fn links_and_large_files_of_a_skill_are_not_read() {
        let own = tempfile::tempdir().unwrap();
        put(own.path(), "a", "a");
        let scripts = own.path().join("a/scripts");
        fs::create_dir(&scripts).unwrap();
        fs::write(scripts.join("run.sh"), "true").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", scripts.join("secret")).unwrap();
        fs::create_dir_all(own.path().join("a/ooxml")).unwrap();
        for other in ["forms.md", "ooxml/a.xsd", ".pinned", "scripts/.new-1"] {
            fs::write(own.path().join("a").join(other), "x").unwrap();
        }
        std::os::unix::fs::symlink("/etc", own.path().join("a/etc")).unwrap();
        assert_eq!(
            support_files(&own.path().join("a")),
            [
                ("scripts", vec!["scripts/run.sh".to_owned()]),
                ("other", vec!["forms.md".to_owned(), "ooxml/a.xsd".to_owned()])
            ]
        );
        assert!(read_file(&scripts.join("secret")).is_err());
    }
}
