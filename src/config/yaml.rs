//! YAML text into the raw tree, each value with its line and column. The text
//! is the operator's own, yet alias bombs and depth are bounded all the same.
//! Messages never quote the text: a line of it may hold a credential.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::error::ConfigError;
use super::node::{Node, Origin, Value};

/// A configuration of thousands of values is a mistake.
const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 32;

/// Parses a whole file; an empty one is an empty tree.
pub(super) fn parse_file(path: &str, text: &str) -> Result<Node, ConfigError> {
    let path: Arc<str> = path.into();
    let tree: Spanned<Raw> = parse(&path, text)?;
    Ok(place(tree, &|line, column| Origin::File {
        path: Arc::clone(&path),
        line,
        column,
    }))
}

/// Parses the value of a variable or a flag: `5`, `true`, `[a, b]` or any text.
pub(super) fn parse_value(typed: &str, origin: &Origin) -> Node {
    // Text that is no YAML (`a: b: c`, `%x`) is still text.
    let tree = parse(&origin.to_string(), typed).unwrap_or_else(|_| Spanned {
        value: Raw::Text(typed.to_owned()),
        referenced: serde_saphyr::Location::UNKNOWN,
        defined: serde_saphyr::Location::UNKNOWN,
    });
    let mut node = place(tree, &|_, _| origin.clone());
    // A value that starts with `#` is no comment here.
    if node.value == Value::Null && typed.trim_start().starts_with('#') {
        node.value = Value::Text(typed.to_owned());
    }
    node.typed = Some(typed.to_owned());
    node
}

fn parse(place: &str, text: &str) -> Result<Spanned<Raw>, ConfigError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MAX_NODES, max_depth: MAX_DEPTH },
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| ConfigError::Malformed {
        place: match error.location() {
            Some(at) => format!("{place}:{}:{}", at.line(), at.column()),
            None => place.to_owned(),
        },
        message: error.without_snippet().to_string(),
    })
}

/// What YAML says, before each value is told its origin.
enum Raw {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(String, Spanned<Raw>)>),
}

fn place(tree: Spanned<Raw>, origin: &impl Fn(u64, u64) -> Origin) -> Node {
    let value = match tree.value {
        Raw::Null => Value::Null,
        Raw::Bool(value) => Value::Bool(value),
        Raw::Integer(value) => Value::Integer(value),
        Raw::Float(value) => Value::Float(value),
        Raw::Text(text) => Value::Text(text),
        Raw::List(items) => Value::List(items.into_iter().map(|item| place(item, origin)).collect()),
        Raw::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(key, item)| (key, place(item, origin)))
                .collect(),
        ),
    };
    Node::new(value, origin(tree.referenced.line(), tree.referenced.column()))
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a configuration value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        // No key takes a number this large; as a float it is refused and shown.
        Ok(i64::try_from(value).map_or(Raw::Float(value as f64), Raw::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag() -> Origin {
        Origin::Flag("--x".to_owned())
    }

    #[test]
    fn every_value_of_a_file_knows_its_line() {
        let tree = parse_file("h.yaml", "server:\n  listen: a\n  hosts:\n    - b\n").unwrap();
        let Value::Map(top) = tree.value else { panic!("no map") };
        let Value::Map(server) = &top[0].1.value else {
            panic!("no section")
        };
        assert_eq!(server[0].1.origin.to_string(), "h.yaml:2:11");
        let Value::List(hosts) = &server[1].1.value else {
            panic!("no list")
        };
        assert_eq!(hosts[0].origin.to_string(), "h.yaml:4:7");
    }

    #[test]
    fn an_empty_file_is_an_empty_tree() {
        assert_eq!(parse_file("h.yaml", "").unwrap().value, Value::Null);
        assert_eq!(parse_file("h.yaml", "# nothing\n").unwrap().value, Value::Null);
    }

    #[test]
    fn broken_text_is_refused_with_its_place_and_without_its_content() {
        let error = parse_file("h.yaml", "a: 1\nkey: \"hunter2\n").unwrap_err().to_string();
        assert!(error.contains("h.yaml:"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        assert!(
            parse_file("h.yaml", "a: 1\na: 2\n")
                .unwrap_err()
                .to_string()
                .contains("h.yaml:2:1")
        );
    }

    #[test]
    fn an_alias_bomb_is_stopped() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..8 {
            let item = format!("*a{}", level - 1);
            text.push_str(&format!("a{level}: &a{level} [{}]\n", [item.as_str(); 9].join(", ")));
        }
        assert!(parse_file("h.yaml", &text).is_err());
    }

    #[test]
    fn a_variable_is_a_scalar_or_a_flow_list_or_just_text() {
        for (typed, value) in [
            ("5", Value::Integer(5)),
            ("true", Value::Bool(true)),
            ("off", Value::Text("off".to_owned())),
            ("127.0.0.1:8642", Value::Text("127.0.0.1:8642".to_owned())),
            ("0123", Value::Text("0123".to_owned())),
            ("a: b: c", Value::Text("a: b: c".to_owned())),
            ("%x", Value::Text("%x".to_owned())),
            ("", Value::Null),
        ] {
            assert_eq!(parse_value(typed, &flag()).value, value, "{typed}");
        }
        let Value::List(items) = parse_value("[a, b]", &flag()).value else {
            panic!("no list")
        };
        assert_eq!(items.len(), 2);
        for typed in ["12", "0x1", "[a]", "{a}", "a #b", "#b", "true"] {
            assert_eq!(parse_value(typed, &flag()).text(), Some(typed));
        }
        assert_eq!(parse_value("'12 #'", &flag()).text(), Some("12 #"));
    }
}
