//! The raw tree that configuration layers are merged in: every value knows
//! where it was written, so that a refusal can point at the line, the variable
//! or the flag. Nothing here knows which keys exist.

use std::fmt;
use std::sync::Arc;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    File { path: Arc<str>, line: u64, column: u64 },
    Variable(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: 0, .. } => write!(f, "{path}"),
            Self::File { path, line, column } => write!(f, "{path}:{line}:{column}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
    /// The text as it was typed, where the layer is a variable or a flag.
    pub(super) typed: Option<String>,
}

/// What YAML can say, as far as a configuration needs it. Keys keep their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    pub(super) fn new(value: Value, origin: Origin) -> Self {
        Self {
            value,
            origin,
            typed: None,
        }
    }

    /// The value as one line for a message.
    pub(super) fn shown(&self) -> String {
        match (&self.typed, &self.value) {
            (Some(typed), _) => typed.clone(),
            (None, Value::Null) => "null".to_owned(),
            (None, Value::Bool(value)) => value.to_string(),
            (None, Value::Integer(value)) => value.to_string(),
            (None, Value::Float(value)) => value.to_string(),
            (None, Value::Text(text)) => text.clone(),
            (None, Value::List(_)) => "a list".to_owned(),
            (None, Value::Map(_)) => "a section".to_owned(),
        }
    }

    /// The value as text. What was typed in a variable is text as it stands,
    /// whatever YAML makes of a `#` or a bracket in it, unless it is quoted; in
    /// a file a number or a boolean is not text.
    pub(super) fn text(&self) -> Option<&str> {
        let plain = self.typed.as_deref().filter(|typed| !typed.starts_with(['\'', '"']));
        match (plain, &self.value) {
            (Some(typed), _) => Some(typed),
            (None, Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Lays `upper` over this node: sections merge key by key, anything else is
    /// replaced whole.
    pub(super) fn overlay(&mut self, upper: Self) {
        match (&mut self.value, upper.value) {
            (Value::Map(lower), Value::Map(upper)) => {
                for (key, node) in upper {
                    match lower.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, below)) => below.overlay(node),
                        None => lower.push((key, node)),
                    }
                }
            }
            (below, value) => {
                *below = value;
                self.origin = upper.origin;
                self.typed = upper.typed;
            }
        }
    }

    /// A tree with `leaf` at the end of `path` and nothing else.
    pub(super) fn at_path(path: &[&str], leaf: Self) -> Self {
        path.iter().rev().fold(leaf, |inner, key| {
            let origin = inner.origin.clone();
            Self::new(Value::Map(vec![((*key).to_owned(), inner)]), origin)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag(value: Value) -> Node {
        Node::new(value, Origin::Flag("--x".to_owned()))
    }

    #[test]
    fn an_upper_layer_replaces_values_and_merges_sections() {
        let mut tree = Node::at_path(&["a", "b"], flag(Value::Integer(1)));
        tree.overlay(Node::at_path(&["a", "c"], flag(Value::Integer(2))));
        tree.overlay(Node::at_path(&["a", "b"], flag(Value::List(vec![]))));
        let inner = flag(Value::Map(vec![
            ("b".to_owned(), flag(Value::List(vec![]))),
            ("c".to_owned(), flag(Value::Integer(2))),
        ]));
        assert_eq!(tree, Node::at_path(&["a"], inner));
    }
}
