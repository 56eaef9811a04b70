//! Paths: folded to `~`, and the places that matter.

use std::borrow::Cow;

use crate::guard::Setting;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// `/etc` and its like.
    System,
    /// Keys, shell start files, credentials of the user.
    Sensitive,
    /// The agent's own configuration.
    Agent,
    /// `.env` and `config.yaml` of any project.
    Project,
    /// Places from which something starts by itself.
    Autostart,
    /// Where the programs and libraries of the system lie.
    Programs,
    /// Raw disks.
    Device,
}

const START_FILES: &[&str] = &[
    ".bashrc",
    ".zshrc",
    ".profile",
    ".bash_profile",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".bash_login",
    ".bash_logout",
    ".zlogout",
    ".kshrc",
    ".xprofile",
    ".xsessionrc",
    ".config/fish/config.fish",
    ".login",
    ".cshrc",
    ".tcshrc",
    ".xinitrc",
    ".xsession",
    ".pam_environment",
    ".gitconfig",
    ".config/git/config",
    ".inputrc",
];
const CREDENTIAL_FILES: &[&str] = &[".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".my.cnf"];
const HISTORY_FILES: &[&str] = &[".bash_history", ".zsh_history", ".psql_history", ".mysql_history"];
const CREDENTIAL_FOLDERS: &[&str] = &[
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".config/gh",
    ".config/gcloud",
];
const AUTOSTART_FOLDERS: &[&str] = &[
    ".config/systemd/user",
    ".config/autostart",
    "Library/LaunchAgents",
    ".config/fish/conf.d",
    ".local/share/systemd/user",
];
/// Where macOS keeps temporary files.
const TEMPORARY: &[&str] = &["/private/tmp", "/private/var/tmp", "/private/var/folders"];
const PROGRAM_FOLDERS: &[&str] = &[
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/boot",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/lib",
    "/usr/libexec",
];
const SYSTEM_FOLDERS: &[&str] = &["/etc", "/private/etc", "/private/var", "/private/home"];

/// The path with the agent's home as `~/.hermes`, the user's as `~`, and `.`,
/// `..` and doubled slashes resolved by their letters.
pub(super) fn fold<'t>(text: &'t str, setting: &Setting<'_>) -> Cow<'t, str> {
    // Most words are no paths.
    if !text.contains(['/', '~']) && !setting.home.contains('\\') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(folded(text, setting))
}

fn folded(text: &str, setting: &Setting<'_>) -> String {
    let text = text.strip_prefix("file://").unwrap_or(text);
    let through_proc = ["/proc/self/root", "/proc/1/root"]
        .iter()
        .find_map(|root| text.strip_prefix(root));
    let text = through_proc.map_or(text, |rest| if rest.is_empty() { "/" } else { rest });
    if setting.home.contains('\\') {
        // The shell has eaten the backslashes of a Windows path.
        if let Some(rest) = text.strip_prefix(&setting.home.replace('\\', "")) {
            return format!("~/{rest}");
        }
    }
    let tidy = tidy(text);
    // `~alice` is the home of the user of that name.
    let user = setting.home.rsplit('/').next().filter(|user| !user.is_empty());
    if let Some(rest) = user.and_then(|user| tidy.strip_prefix('~')?.strip_prefix(user))
        && (rest.is_empty() || rest.starts_with('/'))
    {
        return folded(&format!("{}{rest}", setting.home), setting);
    }
    for (home, short) in [(setting.agent_home, "~/.hermes"), (setting.home, "~")] {
        let home = home.trim_end_matches('/');
        if let Some(rest) = tidy.strip_prefix(home)
            && home.len() > 1
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return format!("{short}{rest}");
        }
    }
    tidy
}

fn tidy(text: &str) -> String {
    if !(text.contains("//") || text.contains("/.") || text.ends_with('/') || text.starts_with("./")) {
        return text.to_owned();
    }
    let absolute = text.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != ".." && *last != "~") => {
                parts.pop();
            }
            ".." if absolute => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if absolute { format!("/{joined}") } else { joined }
}

/// What is deleted or changed when the path ends in `/*`: the folder itself.
pub(super) fn without_glob(folded: &str) -> &str {
    let mut path = folded;
    for glob in ["/*", "/.*", "/**", "/{*,.*}", "/.[!.]*", "/?*"] {
        path = path.strip_suffix(glob).unwrap_or(path);
    }
    if path.is_empty() { "/" } else { path }
}

/// The folded path, seen from the working directory where that is known.
pub(super) fn locate<'t>(text: &'t str, setting: &Setting<'_>) -> Cow<'t, str> {
    let folded = fold(text, setting);
    match setting.cwd {
        Some(cwd) if !folded.starts_with(['/', '~']) => Cow::Owned(self::folded(
            &format!("{}/{folded}", cwd.trim_end_matches('/')),
            setting,
        )),
        _ => folded,
    }
}

/// Whether a pattern of the shell may stand for the path: `*` for anything
/// inside one folder, `?` and `[…]` for one character.
pub(super) fn may_match(pattern: &str, path: &str) -> bool {
    let mut patterns = pattern.split('/');
    let mut parts = path.split('/');
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return true,
            (Some(pattern), Some(part)) if part_matches(pattern.as_bytes(), part.as_bytes()) => {}
            _ => return false,
        }
    }
}

/// Greedy, with one step back to the last star.
fn part_matches(pattern: &[u8], part: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < part.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, read));
                at += 1;
            }
            Some(b'?') => (at, read) = (at + 1, read + 1),
            Some(b'[') => {
                let rest = pattern.get(at..).unwrap_or_default();
                let close = rest
                    .iter()
                    .skip(2)
                    .position(|byte| *byte == b']')
                    .map_or(1, |end| end + 3);
                (at, read) = (at + close, read + 1);
            }
            Some(byte) if part.get(read) == Some(byte) => (at, read) = (at + 1, read + 1),
            _ => match star {
                Some((behind, from)) => {
                    star = Some((behind, from + 1));
                    (at, read) = (behind, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

/// Some file systems do not tell `/ETC` from `/etc`.
pub(super) fn classify(text: &str, setting: &Setting<'_>) -> Option<Class> {
    let folded = locate(text, setting);
    class_of(&folded, setting).or_else(|| {
        let has_capitals = folded.bytes().any(|byte| byte.is_ascii_uppercase());
        has_capitals.then(|| class_of(&folded.to_ascii_lowercase(), setting))?
    })
}

fn class_of(folded: &str, setting: &Setting<'_>) -> Option<Class> {
    if is_block_device(folded) {
        return Some(Class::Device);
    }
    if in_any(folded, SYSTEM_FOLDERS) && !in_any(folded, TEMPORARY) {
        return Some(Class::System);
    }
    if in_any(folded, PROGRAM_FOLDERS) && !folded.contains("/lib/systemd/") {
        return Some(Class::Programs);
    }
    if in_any(
        folded,
        &[
            "/var/spool/cron",
            "/Library/LaunchDaemons",
            "/Library/LaunchAgents",
            "/lib/systemd",
            "/usr/lib/systemd",
        ],
    ) || folded.contains(".git/hooks/")
    {
        return Some(Class::Autostart);
    }
    let base = folded.rsplit('/').next().unwrap_or_default();
    if let Some(inside) = in_home(folded) {
        if matches!(inside, ".hermes/.env" | ".hermes/config.yaml") {
            return Some(Class::Agent);
        }
        let listed = START_FILES.contains(&inside) || CREDENTIAL_FILES.contains(&inside);
        if listed || CREDENTIAL_FOLDERS.iter().any(|folder| under(inside, folder)) {
            return Some(Class::Sensitive);
        }
        if AUTOSTART_FOLDERS.iter().any(|folder| under(inside, folder)) {
            return Some(Class::Autostart);
        }
    }
    // Agents often work in the home directory without saying so.
    if setting.cwd.is_none() && (START_FILES.contains(&folded) || folded.starts_with(".ssh/")) {
        return Some(Class::Sensitive);
    }
    is_project_file(base).then_some(Class::Project)
}

/// The path inside a home directory, whoever's it is.
pub(super) fn in_home(folded: &str) -> Option<&str> {
    if let Some(rest) = folded.strip_prefix('~') {
        return rest.split_once('/').map(|(_, inside)| inside);
    }
    if let Some(rest) = folded.strip_prefix("/root/") {
        return Some(rest);
    }
    let rest = folded
        .strip_prefix("/home/")
        .or_else(|| folded.strip_prefix("/Users/"))?;
    rest.split_once('/').map(|(_, inside)| inside)
}

fn under(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) fn in_any(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| under(path, folder))
}

fn is_project_file(base: &str) -> bool {
    if base == ".env" || base == "config.yaml" {
        return true;
    }
    base.strip_prefix(".env.").is_some_and(|suffix| {
        let template = ["example", "sample", "template", "dist", "tpl"]
            .iter()
            .any(|word| suffix.contains(word));
        !suffix.is_empty()
            && !template
            && suffix
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    })
}

pub(super) fn is_block_device(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else {
        return false;
    };
    let letter_after = |prefix: &str| {
        name.strip_prefix(prefix)
            .and_then(|rest| rest.bytes().next())
            .is_some_and(|byte| byte.is_ascii_lowercase())
    };
    let digit_after = |prefix: &str| {
        name.strip_prefix(prefix)
            .and_then(|rest| rest.bytes().next())
            .is_some_and(|byte| byte.is_ascii_digit())
    };
    ["sd", "hd", "vd", "xvd"].into_iter().any(letter_after)
        || ["nvme", "mmcblk", "disk", "rdisk", "md", "dm-"]
            .into_iter()
            .any(digit_after)
        || name.starts_with("mapper/")
        || name.starts_with("disk/by-")
}

/// Who has an account here: no secret on the machine, but nobody's elsewhere.
pub(super) fn is_account_file(text: &str, setting: &Setting<'_>) -> bool {
    let folded = fold(text, setting);
    matches!(
        folded.as_ref(),
        "/etc/passwd" | "/etc/group" | "/etc/krb5.keytab" | "/etc/hosts.equiv"
    ) || folded.starts_with("/proc/") && text.ends_with("/environ")
}

/// `.env` and its like, templates excepted.
pub(super) fn is_environment_file(base: &str) -> bool {
    base.starts_with(".env") && is_project_file(base)
}

/// Files whose content must not leave the machine.
pub(super) fn is_secret(text: &str, setting: &Setting<'_>) -> bool {
    let folded = fold(text, setting);
    if matches!(folded.as_ref(), "/etc/shadow" | "/etc/gshadow" | "/etc/sudoers") {
        return true;
    }
    let Some(inside) = in_home(&folded) else { return false };
    let public = inside.ends_with(".pub") || inside.ends_with("known_hosts") || inside == ".ssh/config";
    !public
        && (CREDENTIAL_FILES.contains(&inside)
            || HISTORY_FILES.contains(&inside)
            || inside == ".hermes/.env"
            || CREDENTIAL_FOLDERS.iter().any(|folder| under(inside, folder)))
}
