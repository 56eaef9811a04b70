//! A cursor on one section of the merged tree. Each read names a key, its
//! default and what is allowed, in one line; the cursor notes the effective
//! value, collects problems and, at the end, refuses what nobody read.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::base::Secret;

use super::error::Problem;
use super::nearest::nearest;
use super::node::{Node, Origin, Value};

/// One key as it is in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    pub key: String,
    /// The value, with secrets replaced.
    pub value: Json,
    /// Where it was written; nothing for a default.
    pub origin: Option<Origin>,
}

impl Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.key, self.value)?;
        match &self.origin {
            Some(origin) => write!(f, "  # {origin}"),
            None => Ok(()),
        }
    }
}

/// What reading the tree has found so far.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) settings: Vec<Setting>,
    pub(super) problems: Vec<Problem>,
    pub(super) ignored: Vec<String>,
}

/// What a secret looks like wherever the configuration is shown.
pub(super) const REDACTED: &str = "[redacted]";

/// The keys of one section. `finish` must be called: it refuses unread keys.
pub(super) struct Section<'a> {
    path: String,
    left: Vec<(String, Node)>,
    known: Vec<&'static str>,
    found: &'a mut Findings,
}

impl<'a> Section<'a> {
    /// The whole tree.
    pub(super) fn root(tree: Node, found: &'a mut Findings) -> Self {
        Self::open(String::new(), Some(tree), found)
    }

    fn open(path: String, node: Option<Node>, found: &'a mut Findings) -> Self {
        let left = match node {
            None => Vec::new(),
            Some(Node { value: Value::Null, .. }) => Vec::new(),
            Some(Node {
                value: Value::Map(entries),
                ..
            }) => entries,
            Some(node) => {
                let message = format!("`{}` is not allowed here; expected a section with keys", node.shown());
                found.problems.push(Problem {
                    key: path.clone(),
                    origin: Some(node.origin),
                    message,
                });
                Vec::new()
            }
        };
        Self {
            path,
            left,
            known: Vec::new(),
            found,
        }
    }

    /// Reads a section within this one, to its end.
    pub(super) fn section<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Section<'_>) -> T) -> T {
        let node = self.raw(name);
        let mut inner = Section::open(self.key(name), node, self.found);
        let value = read(&mut inner);
        inner.finish();
        value
    }

    /// Takes a key out as it stands; its reader sees to the rest.
    pub(super) fn raw(&mut self, name: &'static str) -> Option<Node> {
        self.known.push(name);
        let at = self.left.iter().position(|(key, _)| key == name)?;
        Some(self.left.remove(at).1)
    }

    /// The value of a key that is still unread.
    pub(super) fn peek(&self, name: &str) -> Option<&Value> {
        self.left
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, node)| &node.value)
    }

    /// Drops keys that mean something in the original and nothing here.
    pub(super) fn ignore(&mut self, names: &[&str]) {
        let path = self.path.clone();
        let (ignored, left) = std::mem::take(&mut self.left)
            .into_iter()
            .partition(|(key, _)| names.contains(&key.as_str()));
        self.left = left;
        self.found
            .ignored
            .extend(ignored.iter().map(|(key, _): &(String, Node)| join(&path, key)));
    }

    /// Refuses every key that was not read, with the nearest known name.
    pub(super) fn finish(self) {
        for (key, node) in self.left {
            let message = match nearest(&key, &self.known) {
                Some(known) => format!("unknown key; did you mean `{}`?", join(&self.path, known)),
                None => format!("unknown key; known here: {}", self.known.join(", ")),
            };
            let problem = Problem {
                key: join(&self.path, &key),
                origin: Some(node.origin),
                message,
            };
            self.found.problems.push(problem);
        }
    }

    fn key(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// Notes that the value of a key is not one of those allowed.
    pub(super) fn refuse(&mut self, name: &str, node: &Node, allowed: &str) {
        // A refused address may hold a password before its `@`.
        let shown = Some(node.shown()).filter(|shown| !shown.contains('@'));
        let shown = shown.map_or("the value (not shown)".to_owned(), |shown| format!("`{shown}`"));
        let message = format!("{shown} is not allowed; allowed: {allowed}");
        self.found.problems.push(Problem {
            key: self.key(name),
            origin: Some(node.origin.clone()),
            message,
        });
    }

    /// Notes the value in force.
    pub(super) fn note(&mut self, name: &str, value: Json, node: Option<&Node>) {
        let origin = node.map(|node| node.origin.clone());
        self.found.settings.push(Setting {
            key: self.key(name),
            value,
            origin,
        });
    }

    /// Reads one key: absent and null mean the default, a value that `read`
    /// does not take is a problem.
    fn take<T>(
        &mut self,
        name: &'static str,
        default: T,
        allowed: &str,
        read: impl FnOnce(&Node) -> Option<T>,
        show: impl FnOnce(&T) -> Json,
    ) -> T {
        let node = self.raw(name).filter(|node| node.value != Value::Null);
        let value = match node.as_ref().map(read) {
            None => default,
            Some(Some(value)) => value,
            Some(None) => {
                if let Some(node) = &node {
                    self.refuse(name, node, allowed);
                }
                default
            }
        };
        self.note(name, show(&value), node.as_ref());
        value
    }

    pub(super) fn text(&mut self, name: &'static str, default: &str) -> String {
        self.take(name, default.to_owned(), "text (numbers in quotes)", filled, |text| {
            json!(text)
        })
    }

    pub(super) fn optional_text(&mut self, name: &'static str) -> Option<String> {
        self.take(
            name,
            None,
            "text (numbers in quotes)",
            |node| filled(node).map(Some),
            |text| json!(text),
        )
    }

    pub(super) fn path(&mut self, name: &'static str, default: &str) -> PathBuf {
        self.take(
            name,
            default.into(),
            "a path",
            |node| filled(node).map(Into::into),
            |path| json!(path),
        )
    }

    pub(super) fn optional_path(&mut self, name: &'static str) -> Option<PathBuf> {
        self.take(
            name,
            None,
            "a path",
            |node| filled(node).map(|text| Some(text.into())),
            |path| json!(path),
        )
    }

    pub(super) fn flag(&mut self, name: &'static str, default: bool) -> bool {
        self.take(name, default, "true, false", truth, |flag| json!(flag))
    }

    pub(super) fn address(&mut self, name: &'static str, default: SocketAddr) -> SocketAddr {
        let allowed = "an address and a port such as 127.0.0.1:8642 or [::1]:8642";
        self.take(
            name,
            default,
            allowed,
            |node| node.text()?.parse().ok(),
            |address| json!(address.to_string()),
        )
    }

    pub(super) fn number<N>(&mut self, name: &'static str, default: N, range: RangeInclusive<N>) -> N
    where
        N: TryFrom<i64> + PartialOrd + Display + serde::Serialize,
    {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let read = |node: &Node| {
            integer(node)
                .and_then(|n| N::try_from(n).ok())
                .filter(|n| range.contains(n))
        };
        self.take(name, default, &allowed, read, |number| json!(number))
    }

    /// A span in whole seconds; the key says so in its name.
    pub(super) fn seconds(&mut self, name: &'static str, default: u64, range: RangeInclusive<u64>) -> Duration {
        Duration::from_secs(self.number(name, default, range))
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy + PartialEq>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
        default: T,
    ) -> T {
        let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let read = |node: &Node| {
            let text = node.text()?;
            words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
        };
        let show = |value: &T| json!(words.iter().find(|(_, known)| known == value).map(|(word, _)| *word));
        self.take(name, default, &allowed.join(", "), read, show)
    }

    /// A list of texts; one text alone, with or without commas, is a list too
    /// when a variable or a flag holds it.
    pub(super) fn texts(&mut self, name: &'static str) -> Vec<String> {
        self.texts_or(name, &[])
    }

    /// As [`Section::texts`], each item held to a rule.
    pub(super) fn texts_where(
        &mut self,
        name: &'static str,
        allowed: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let read = |node: &Node| texts(node).filter(|list| list.iter().all(|item| fits(item)));
        self.take_list(name, &[], allowed, read)
    }

    /// As [`Section::texts`], with a default.
    pub(super) fn texts_or(&mut self, name: &'static str, default: &[&str]) -> Vec<String> {
        self.take_list(name, default, "a list of texts", texts)
    }

    /// A list of absolute paths.
    pub(super) fn paths(&mut self, name: &'static str) -> Vec<PathBuf> {
        let absolute = |text: &str| Path::new(text).is_absolute();
        self.texts_where(name, "a list of absolute paths", absolute)
            .into_iter()
            .map(PathBuf::from)
            .collect()
    }

    fn take_list(
        &mut self,
        name: &'static str,
        default: &[&str],
        allowed: &str,
        read: impl FnOnce(&Node) -> Option<Vec<String>>,
    ) -> Vec<String> {
        let default = default.iter().map(|item| (*item).to_owned()).collect();
        self.take(name, default, allowed, read, |list| json!(list))
    }

    /// The base address of an HTTP server, without a slash at its end.
    pub(super) fn http_url(&mut self, name: &'static str) -> Option<String> {
        let allowed = "an http or https URL without credentials, such as https://api.openai.com/v1";
        self.take(name, None, allowed, |node| http_url(node).map(Some), |url| json!(url))
    }

    /// A credential. Neither its value nor a refused value is ever shown.
    pub(super) fn secret(&mut self, name: &'static str, allowed: &str, fits: impl Fn(&str) -> bool) -> Option<Secret> {
        let node = self.raw(name).filter(|node| node.value != Value::Null);
        let secret = node
            .as_ref()
            .and_then(filled)
            .filter(|text| fits(text))
            .map(Secret::new);
        if let (Some(node), None) = (&node, &secret) {
            let message = format!("the value (not shown) is not allowed; allowed: {allowed}");
            self.found.problems.push(Problem {
                key: self.key(name),
                origin: Some(node.origin.clone()),
                message,
            });
        }
        self.note(name, json!(secret.as_ref().map(|_| REDACTED)), node.as_ref());
        secret
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn filled(node: &Node) -> Option<String> {
    node.text()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn integer(node: &Node) -> Option<i64> {
    match node.value {
        Value::Integer(number) => Some(number),
        _ => None,
    }
}

fn http_url(node: &Node) -> Option<String> {
    let text = filled(node)?;
    let url = url::Url::parse(&text).ok()?;
    let plain = url.username().is_empty() && url.password().is_none();
    let fits = matches!(url.scheme(), "http" | "https") && url.has_host() && plain;
    fits.then(|| text.trim_end_matches('/').to_owned())
}

/// YAML 1.1 files still say `yes` and `off` where they mean a boolean.
pub(super) fn truth(node: &Node) -> Option<bool> {
    match &node.value {
        Value::Bool(value) => Some(*value),
        Value::Text(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn texts(node: &Node) -> Option<Vec<String>> {
    match &node.value {
        Value::List(items) => items.iter().map(filled).collect(),
        _ => {
            let typed = node.typed.as_deref()?;
            Some(
                typed
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(str::to_owned)
                    .collect(),
            )
        }
    }
}
