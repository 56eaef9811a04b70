//! Which files the file tools may not touch, judged by name alone.
//!
//! A second line behind the sandbox and the workspace: it keeps an honest agent
//! from reading a key or breaking a login by mistake. Links must be resolved
//! before; `.` and `..` are resolved here, without looking at the disk.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Why a file may not be touched; the text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("`{0}` is a device that never ends or talks to the terminal")]
    Device(String),
    #[error("`{0}` may hold secrets and is not read; this is a precaution, not a wall")]
    Unreadable(String),
    #[error("`{0}` holds credentials or logins and is not written by tools")]
    Unwritable(String),
    #[error("`{0}` belongs to the system and is not written by tools")]
    System(String),
    #[error("`{0}` is the agent's own configuration and is not written by tools")]
    OwnConfig(String),
    #[error(
        "`{0}` belongs to the agent profile `{1}`, not to this one; set `cross_profile` if the user asked for that"
    )]
    OtherProfile(String, String),
    #[error("`{0}` is a sandbox's copy of an agent's home; set `cross_profile` if the user asked for that")]
    Mirror(String),
    #[error("`{0}` lies outside the folders that may be written (`HERMES_WRITE_SAFE_ROOT`): {1}")]
    OutsideRoots(String, String),
}

/// The folders the judgement is relative to.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub home: PathBuf,
    pub agent_home: PathBuf,
    /// When not empty, nothing outside these is written.
    pub write_roots: Vec<PathBuf>,
}

/// Below the agent's home.
const UNREADABLE_OWN: &[&str] = &[
    "auth.json",
    "auth.lock",
    ".anthropic_oauth.json",
    ".env",
    "webhook_subscriptions.json",
    "auth/google_oauth.json",
    "cache/bws_cache.json",
];
const UNREADABLE_OWN_TREES: &[&str] = &["skills/.hub", "mcp-tokens"];
/// Anywhere, in any case.
const UNREADABLE_NAMES: &[&str] = &[
    ".env",
    ".env.local",
    ".env.development",
    ".env.production",
    ".env.test",
    ".env.staging",
    ".envrc",
];

/// The last ones are trees, which hold for what is inside them: a file in the place of
/// one would do away with it.
const UNWRITABLE_OWN: &[&str] = &[
    ".env",
    ".anthropic_oauth.json",
    "state.db",
    "sessions",
    "mcp-tokens",
    "pairing",
];
const UNWRITABLE_OWN_TREES: &[&str] = &["sessions", "mcp-tokens", "pairing"];
/// Below the user's home; the trees hold for what is inside them.
const UNWRITABLE_HOME: &[&str] = &[".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials"];
const UNWRITABLE_HOME_TREES: &[&str] = &[
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".config/gh",
    ".config/gcloud",
];
const UNWRITABLE_SYSTEM: &[&str] = &["/etc/sudoers", "/etc/passwd", "/etc/shadow"];
const UNWRITABLE_SYSTEM_TREES: &[&str] = &["/etc/sudoers.d", "/etc/systemd"];

/// What makes a profile of the agent what it is.
const PROFILE_AREAS: &[&str] = &["skills", "plugins", "cron", "memories"];

const SYSTEM_TREES: &[&str] = &["/etc", "/boot", "/usr/lib/systemd", "/private/etc", "/private/var"];
const SOCKETS: &[&str] = &["/var/run/docker.sock", "/run/docker.sock"];

const DEVICES: &[&str] = &[
    "zero", "random", "urandom", "full", "stdin", "tty", "console", "stdout", "stderr",
];
const PROCESS_FILES: &[&str] = &[
    "environ",
    "cmdline",
    "maps",
    "smaps",
    "smaps_rollup",
    "numa_maps",
    "mem",
    "auxv",
    "pagemap",
];

impl Places {
    /// Whether a file's content may be shown.
    pub fn may_read(&self, path: &Path) -> Result<(), Refusal> {
        let path = normalised(path);
        if is_device(&path) {
            return Err(Refusal::Device(shown(&path)));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_own = path.strip_prefix(&self.agent_home).is_ok_and(|inner| {
            is_one_of(inner, UNREADABLE_OWN) || UNREADABLE_OWN_TREES.iter().any(|tree| inner.starts_with(tree))
        });
        if is_own || holds_environment(&name) {
            return Err(Refusal::Unreadable(shown(&path)));
        }
        Ok(())
    }

    /// [`Places::may_read`] for many files of one directory, which is looked at once.
    pub fn files_of<'p>(&'p self, directory: &'p Path) -> FilesOf<'p> {
        let is_special = ["/dev", "/proc"].iter().any(|special| directory.starts_with(special))
            || directory.starts_with(&self.agent_home)
            || normalised(directory) != directory;
        FilesOf {
            places: self,
            directory,
            is_special,
        }
    }

    /// Whether a file may be written: not the system's, not the agent's own
    /// configuration, no login, and within the roots.
    pub fn may_write(&self, path: &Path) -> Result<(), Refusal> {
        let path = normalised(path);
        if is_system(&path) {
            return Err(Refusal::System(shown(&path)));
        }
        if path == self.agent_home.join("config.yaml") {
            return Err(Refusal::OwnConfig(shown(&path)));
        }
        self.is_kept(&path)
    }

    /// Whether a file belongs to this agent and to no other profile beside it; a
    /// soft guard, which a call may ask to pass.
    pub fn stays_in_profile(&self, path: &Path) -> Result<(), Refusal> {
        let path = normalised(path);
        if is_mirror(&path) {
            return Err(Refusal::Mirror(shown(&path)));
        }
        match self.profile(&path) {
            Some(profile) => Err(Refusal::OtherProfile(shown(&path), profile)),
            None => Ok(()),
        }
    }

    /// The other profile that a file shapes: its skills, plugins, jobs, memories.
    fn profile(&self, path: &Path) -> Option<String> {
        let own = self.agent_home.as_path();
        let profiles = own.parent().filter(|parent| parent.ends_with("profiles"));
        let root = profiles.and_then(Path::parent).unwrap_or(own);
        let inner = path.strip_prefix(root).ok()?;
        let parts: Vec<&str> = inner.iter().filter_map(|part| part.to_str()).collect();
        match parts.as_slice() {
            ["profiles", name, area, ..]
                if PROFILE_AREAS.contains(area) && !path.starts_with(root.join("profiles").join(own.file_name()?)) =>
            {
                Some((*name).to_owned())
            }
            [area, ..] if PROFILE_AREAS.contains(area) && root != own => Some("default".to_owned()),
            _ => None,
        }
    }

    /// The part of [`Places::may_write`] that is about credentials and roots.
    pub fn is_kept(&self, path: &Path) -> Result<(), Refusal> {
        let holds_login = is_one_of(path, UNWRITABLE_SYSTEM)
            || UNWRITABLE_SYSTEM_TREES
                .iter()
                .any(|tree| is_inside(path, Path::new(tree)))
            || is_kept_in(path, &self.home, UNWRITABLE_HOME, UNWRITABLE_HOME_TREES)
            || is_kept_in(path, &self.agent_home, UNWRITABLE_OWN, UNWRITABLE_OWN_TREES);
        if holds_login {
            return Err(Refusal::Unwritable(shown(path)));
        }
        if !self.write_roots.is_empty() && !self.write_roots.iter().any(|root| path.starts_with(root)) {
            let roots: Vec<String> = self.write_roots.iter().map(|root| shown(root)).collect();
            return Err(Refusal::OutsideRoots(shown(path), roots.join(":")));
        }
        Ok(())
    }
}

/// The files of one directory.
#[derive(Clone, Copy, Debug)]
pub struct FilesOf<'p> {
    places: &'p Places,
    directory: &'p Path,
    /// More counts there than a file's own name.
    is_special: bool,
}

impl FilesOf<'_> {
    /// Whether the content of the file of this name may be shown.
    pub fn may_read(&self, name: &OsStr) -> bool {
        if self.is_special {
            return self.places.may_read(&self.directory.join(name)).is_ok();
        }
        !name.to_str().is_some_and(holds_environment)
    }
}

/// Whether a file of this name usually holds variables with secrets.
pub fn holds_environment(name: &str) -> bool {
    UNREADABLE_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The path without `.` and `..`, as text says it, not as the disk does.
pub fn normalised(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match plain.components().next_back() {
                Some(Component::Normal(_)) => {
                    plain.pop();
                }
                Some(Component::RootDir) => {}
                _ => plain.push(".."),
            },
            other => plain.push(other),
        }
    }
    plain
}

/// A container's copy of an agent's home, which the container replaces:
/// `sandboxes/<backend>/<task>/home/.hermes/…`.
fn is_mirror(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let is_home = |window: &[&str]| matches!(window, ["sandboxes", _, _, "home", ".hermes", _]);
    parts.windows(6).any(is_home)
}

fn is_one_of(path: &Path, names: &[&str]) -> bool {
    names.iter().any(|name| path == Path::new(name))
}

fn is_kept_in(path: &Path, home: &Path, files: &[&str], trees: &[&str]) -> bool {
    let inner = path.strip_prefix(home);
    inner.is_ok_and(|inner| is_one_of(inner, files) || trees.iter().any(|tree| is_inside(inner, Path::new(tree))))
}

fn is_inside(path: &Path, tree: &Path) -> bool {
    path != tree && path.starts_with(tree)
}

fn is_system(path: &Path) -> bool {
    is_one_of(path, SOCKETS) || SYSTEM_TREES.iter().any(|tree| is_inside(path, Path::new(tree)))
}

/// Devices that block or never end, and the windows into a process.
fn is_device(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["/", "dev", name] => DEVICES.contains(name),
        ["/", "dev", "fd", "0" | "1" | "2"] => true,
        ["/", "proc", .., "fd", "0" | "1" | "2"] => true,
        ["/", "proc", _, .., name] => PROCESS_FILES.contains(name),
        _ => false,
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            home: "/home/alice".into(),
            agent_home: "/home/alice/.hermes".into(),
            write_roots: Vec::new(),
        }
    }

    #[test]
    fn devices_and_windows_into_processes_are_not_read() {
        for path in [
            "/dev/zero",
            "/dev/fd/1",
            "/proc/self/fd/0",
            "/proc/self/environ",
            "/proc/1/task/1/mem",
            "/tmp/../dev/./tty",
        ] {
            assert!(
                matches!(places().may_read(Path::new(path)), Err(Refusal::Device(_))),
                "{path}"
            );
        }
        for path in [
            "/dev/null",
            "/proc/cpuinfo",
            "/proc/self/status",
            "/srv/proc/1/environ",
            "/proc/environ",
        ] {
            assert_eq!(places().may_read(Path::new(path)), Ok(()), "{path}");
        }
    }

    #[test]
    fn files_of_a_directory_are_judged_as_each_alone() {
        let directories = [
            "/",
            "/dev",
            "/proc/self",
            "/srv/../dev",
            "/srv/work",
            "/home/alice",
            "/home/alice/.hermes",
            "/home/alice/.hermes/auth",
            "/home/alice/.hermes/skills/.hub",
        ];
        let names = [
            "zero",
            "environ",
            ".env",
            ".Env.Local",
            "auth.json",
            "google_oauth.json",
            "main.rs",
            "..",
        ];
        for directory in directories.map(Path::new) {
            let places = places();
            let files = places.files_of(directory);
            for name in names {
                let alone = places.may_read(&directory.join(name)).is_ok();
                assert_eq!(files.may_read(OsStr::new(name)), alone, "{name} in {directory:?}");
            }
        }
    }

    #[test]
    fn the_system_and_the_own_configuration_are_not_written() {
        for path in ["/etc/hosts", "/boot/grub/grub.cfg", "/srv/../etc/x", "/run/docker.sock"] {
            assert!(
                matches!(places().may_write(Path::new(path)), Err(Refusal::System(_))),
                "{path}"
            );
        }
        let own = places().may_write(Path::new("/home/alice/.hermes/config.yaml"));
        assert!(matches!(own, Err(Refusal::OwnConfig(_))));
        assert_eq!(places().may_write(Path::new("/etcetera/x")), Ok(()));
    }

    #[test]
    fn other_profiles_and_mirrors_of_homes_are_kept_apart() {
        let profile = |agent_home: &str, path: &str| {
            let places = Places {
                agent_home: agent_home.into(),
                ..places()
            };
            match places.stays_in_profile(Path::new(path)) {
                Err(Refusal::OtherProfile(_, profile)) => profile,
                Err(other) => panic!("{other}"),
                Ok(()) => String::new(),
            }
        };
        let (root, work) = ("/h/.hermes", "/h/.hermes/profiles/work");
        for (own, path, other) in [
            (root, "/h/.hermes/profiles/work/skills/a/SKILL.md", "work"),
            (root, "/h/.hermes/skills/a/SKILL.md", ""),
            (root, "/h/.hermes/profiles/work/logs/a", ""),
            (work, "/h/.hermes/profiles/work/memories/USER.md", ""),
            (work, "/h/.hermes/profiles/home/cron/jobs.json", "home"),
            (work, "/h/.hermes/plugins/x.py", "default"),
            (work, "/srv/skills/a", ""),
        ] {
            assert_eq!(profile(own, path), other, "{own} {path}");
        }
        let mirror = Path::new("/h/.hermes/sandboxes/docker/t1/home/.hermes/skills/a");
        assert!(matches!(places().stays_in_profile(mirror), Err(Refusal::Mirror(_))));
        assert_eq!(
            places().stays_in_profile(Path::new("/h/sandboxes/x/home/.hermes")),
            Ok(())
        );
    }

    #[test]
    fn dots_do_not_climb_above_the_root() {
        assert_eq!(normalised(Path::new("/../../a/./b/..")), Path::new("/a"));
        assert_eq!(normalised(Path::new("a/../../b")), Path::new("../b"));
    }
}
