//! A cursor on one section of the merged tree. Each read names a key, its
//! default and what is allowed, in one line; the cursor notes the effective
//! value, collects problems and, at the end, refuses what nobody read.

use std::fmt::Display;

use serde_json::Value as Json;

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
                let message = format!("{} is not allowed here; expected a section with keys", quoted(&node));
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
        self.known.push(name);
        self.section_named(name, read)
    }

    /// As [`Section::section`], for a name that the operator chose.
    pub(super) fn section_named<T>(&mut self, name: &str, read: impl FnOnce(&mut Section<'_>) -> T) -> T {
        let node = self.take_out(name);
        let mut inner = Section::open(join(&self.path, name), node, self.found);
        let value = read(&mut inner);
        inner.finish();
        value
    }

    /// Takes a key out as it stands; its reader sees to the rest.
    pub(super) fn raw(&mut self, name: &'static str) -> Option<Node> {
        self.known.push(name);
        self.take_out(name)
    }

    fn take_out(&mut self, name: &str) -> Option<Node> {
        let at = self.left.iter().position(|(key, _)| key == name)?;
        Some(self.left.remove(at).1)
    }

    /// The keys that are still unread, for a section whose keys are names that
    /// the operator chose.
    pub(super) fn names(&self) -> Vec<String> {
        self.left.iter().map(|(key, _)| key.clone()).collect()
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

    /// Notes that the value of a key is not one of those allowed.
    pub(super) fn refuse(&mut self, name: &str, node: &Node, allowed: &str) {
        self.complain(
            name,
            node,
            format!("{} is not allowed; allowed: {allowed}", quoted(node)),
        );
    }

    /// As [`Section::refuse`], for a value that must not be shown.
    pub(super) fn refuse_unseen(&mut self, name: &str, node: &Node, allowed: &str) {
        self.complain(
            name,
            node,
            format!("the value (not shown) is not allowed; allowed: {allowed}"),
        );
    }

    fn complain(&mut self, name: &str, node: &Node, message: String) {
        let key = join(&self.path, name);
        self.found.problems.push(Problem {
            key,
            origin: Some(node.origin.clone()),
            message,
        });
    }

    /// Notes the value in force.
    pub(super) fn note(&mut self, name: &str, value: Json, node: Option<&Node>) {
        let origin = node.map(|node| node.origin.clone());
        self.found.settings.push(Setting {
            key: join(&self.path, name),
            value,
            origin,
        });
    }

    /// Reads one key: absent and null mean the default, a value that `read`
    /// does not take is a problem.
    pub(super) fn take<T>(
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
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// A refused value for a message. One with an `@` may be an address that holds
/// a password, in whatever key it was written.
fn quoted(node: &Node) -> String {
    let shown = node.shown();
    if shown.contains('@') {
        "the value (not shown)".to_owned()
    } else {
        format!("`{shown}`")
    }
}
