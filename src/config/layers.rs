//! The layers of a configuration and their order: the YAML file, then the
//! environment, then flags, each laid over the one before. Defaults are not a
//! layer: every key's reader has its own.

use std::path::{Path, PathBuf};

use super::error::{ConfigError, Problem};
use super::node::{Node, Origin, Value};
use super::yaml;

/// Everything a configuration is made from. The default is nothing at all,
/// which gives the defaults of every key.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub flags: Flags,
    /// Variables as pairs; see [`process_environment`].
    pub environment: Vec<(String, String)>,
    /// Where `hermes.yaml` is looked for when no file is named.
    pub directory: Option<PathBuf>,
}

/// The flags of `serve`, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub listen: Option<String>,
    pub data_dir: Option<String>,
    pub database_url: Option<String>,
}

/// The variables of this process. Those that are not Unicode cannot be ours.
pub fn process_environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The file that is read when it lies in the working directory.
const FILE: &str = "hermes.yaml";
/// What names a file instead.
const FILE_VARIABLE: &str = "HERMES_CONFIG";
/// `HERMES__SERVER__LISTEN` is `server.listen`.
const PREFIX: &str = "HERMES__";

/// Variables with a name of their own, and the keys they set. Of two for one
/// key the later wins.
const NAMED: [(&str, &[&str]); 8] = [
    ("DATABASE_URL", &["store", "url"]),
    ("OPENAI_BASE_URL", &["openai", "base_url"]),
    ("OPENAI_API_KEY", &["openai", "api_key"]),
    ("HERMES_MODEL", &["model"]),
    ("HERMES_WRITE_SAFE_ROOT", &["terminal", "write_safe_root"]),
    ("TIRITH_BIN", &["security", "tirith_path"]),
    ("API_SERVER_KEY", &["auth", "api_key"]),
    ("HERMES_API_KEY", &["auth", "api_key"]),
];

/// A number, of the scanner.
const TIRITH_TIMEOUT: &str = "TIRITH_TIMEOUT";

/// Variables of the scanner that are a yes when they say so, and else a no.
const YES_OR_NO: [(&str, &[&str]); 2] = [
    ("TIRITH_ENABLED", &["security", "tirith_enabled"]),
    ("TIRITH_FAIL_OPEN", &["security", "tirith_fail_open"]),
];

/// All layers as one tree.
pub(super) fn merge(sources: &Sources, problems: &mut Vec<Problem>) -> Result<Node, ConfigError> {
    let mut tree = match file(sources) {
        None => Node::new(Value::Map(Vec::new()), Origin::Flag(String::new())),
        Some(path) => read(&path)?,
    };
    if tree.value == Value::Null {
        tree.value = Value::Map(Vec::new());
    }
    if !matches!(tree.value, Value::Map(_)) {
        let message = "the file must hold keys such as `server:`".to_owned();
        return Err(ConfigError::Malformed {
            place: tree.origin.to_string(),
            message,
        });
    }
    for (name, path) in NAMED {
        if let Some(value) = variable(sources, name) {
            tree.overlay(Node::at_path(path, verbatim(value, Origin::Variable(name.to_owned()))));
        }
    }
    if let Some(value) = variable(sources, TIRITH_TIMEOUT) {
        let origin = Origin::Variable(TIRITH_TIMEOUT.to_owned());
        let node = yaml::parse_value(value, &origin);
        tree.overlay(Node::at_path(&["security", "tirith_timeout"], node));
    }
    for (name, path) in YES_OR_NO {
        if let Some(value) = variable(sources, name) {
            let yes = ["1", "true", "yes"].contains(&value.trim().to_ascii_lowercase().as_str());
            let word = if yes { "true" } else { "false" };
            tree.overlay(Node::at_path(path, verbatim(word, Origin::Variable(name.to_owned()))));
        }
    }
    let set = sources.environment.iter().filter(|(_, value)| !value.is_empty());
    for (name, value) in set {
        if let Some(rest) = name.strip_prefix(PREFIX) {
            overlay_variable(&mut tree, name, rest, value, problems);
        }
    }
    for (flag, path, value) in typed_flags(&sources.flags) {
        tree.overlay(Node::at_path(path, verbatim(value, Origin::Flag(flag.to_owned()))));
    }
    Ok(tree)
}

fn overlay_variable(tree: &mut Node, name: &str, rest: &str, value: &str, problems: &mut Vec<Problem>) {
    let origin = Origin::Variable(name.to_owned());
    let rest = rest.to_ascii_lowercase();
    let path: Vec<&str> = rest.split("__").collect();
    if path.iter().any(|key| key.is_empty()) {
        let message = "not the name of a key; expected a name such as `HERMES__SERVER__LISTEN`".to_owned();
        problems.push(Problem {
            key: name.to_owned(),
            origin: None,
            message,
        });
        return;
    }
    tree.overlay(Node::at_path(&path, yaml::parse_value(value, &origin)));
}

fn typed_flags(flags: &Flags) -> impl Iterator<Item = (&'static str, &'static [&'static str], &str)> {
    const LISTEN: &[&str] = &["server", "listen"];
    const DATA_DIR: &[&str] = &["server", "data_dir"];
    const URL: &[&str] = &["store", "url"];
    let all = [
        ("--listen", LISTEN, flags.listen.as_deref()),
        ("--data-dir", DATA_DIR, flags.data_dir.as_deref()),
        ("--database-url", URL, flags.database_url.as_deref()),
    ];
    all.into_iter()
        .filter_map(|(flag, path, value)| Some((flag, path, value?)))
}

/// The file to read: one that is named must exist, the usual one may.
fn file(sources: &Sources) -> Option<PathBuf> {
    let named = sources
        .flags
        .config
        .clone()
        .or_else(|| variable(sources, FILE_VARIABLE).map(PathBuf::from));
    named.or_else(|| {
        sources
            .directory
            .as_ref()
            .map(|directory| directory.join(FILE))
            .filter(|path| path.exists())
    })
}

fn read(path: &Path) -> Result<Node, ConfigError> {
    let shown = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => yaml::parse_file(&shown, &text),
        Err(source) => Err(ConfigError::Unreadable { path: shown, source }),
    }
}

/// An empty variable is one that is not set: compose files pass those on.
fn variable<'s>(sources: &'s Sources, name: &str) -> Option<&'s str> {
    let found = sources.environment.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
}

fn verbatim(value: &str, origin: Origin) -> Node {
    Node {
        value: Value::Text(value.to_owned()),
        origin,
        typed: Some(value.to_owned()),
    }
}
