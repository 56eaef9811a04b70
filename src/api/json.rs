//! JSON bodies, read strictly: a key that stands twice, an unknown field or a
//! wrong type is refused with a JSON pointer to it. U+0000, which one of the
//! stores cannot hold, becomes U+FFFD in every text on the way in.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_path_to_error::{Path, Segment};

use crate::base::text::without_nul;

use super::failure::Failure;
use super::form::Form;

/// A value takes up to sixteen times the memory of its two bytes on the wire; no
/// request of this surface needs as many.
const MAX_VALUES: u32 = 100_000;

/// Reads a value from a whole body. Nesting deeper than 128 is refused by the
/// parser.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    typed(value(bytes, &Cell::new(MAX_VALUES))?)
}

/// How many values the lines of a file may hold together: it is one request, and
/// most of its bytes are texts.
pub(super) fn values_of_a_file() -> Cell<u32> {
    Cell::new(10 * MAX_VALUES)
}

/// Reads a value of at most `left` values, which it takes from there.
pub(super) fn value(bytes: &[u8], left: &Cell<u32>) -> Result<Value, Failure> {
    if bytes.trim_ascii().is_empty() {
        return Err(Failure::field("", "it is empty; send a JSON object, `{}` at least"));
    }
    let most = left.get();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { left, most }.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| Failure::field("", format!("it is not valid JSON: {error}")))
}

/// An object as the type that it stands for.
pub(super) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    if !value.is_object() {
        return Err(Failure::field("", "expected a JSON object"));
    }
    serde_path_to_error::deserialize(Form(value)).map_err(|error| {
        let pointer = pointer(error.path());
        Failure::field(&pointer, error.into_inner().to_string())
    })
}

/// RFC 6901.
fn pointer(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => text.push_str(&format!("/{index}")),
            Segment::Map { key } => text.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    text
}

/// Reads a JSON value without repeated keys and without U+0000.
#[derive(Clone, Copy)]
struct Strict<'a> {
    /// Values that may still come.
    left: &'a Cell<u32>,
    /// How many they were at first.
    most: u32,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(de::Error::custom(format!("it holds more than {} values", self.most)));
        };
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number is out of range"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(without_nul(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let key = without_nul(key);
            if map.contains_key(&key) {
                entries.next_value::<IgnoredAny>()?;
                return Err(de::Error::custom(format!("the key `{key}` stands twice in one object")));
            }
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    #[derive(Debug, Deserialize, Serialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        name: String,
        #[serde(default)]
        items: Vec<Item>,
        #[serde(default)]
        notes: Value,
    }

    #[derive(Debug, Deserialize, Serialize)]
    #[serde(deny_unknown_fields)]
    struct Item {
        count: u32,
    }

    fn refused(text: &str) -> (String, String) {
        let problem = parse::<Order>(text.as_bytes()).unwrap_err().problem().clone();
        assert_eq!(problem.status, 400, "{text}");
        let error = problem.errors.first().unwrap();
        (error.pointer.clone(), error.detail.clone())
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        let cases = [
            (r#"{"name": 5}"#, "/name", "expected a string"),
            (
                r#"{"name": "a", "items": [{"count": 1}, {"count": -1}]}"#,
                "/items/1/count",
                "expected u32",
            ),
            (
                r#"{"name": "a", "items": [{"count": 1, "a/b": 2}]}"#,
                "/items/0/a~1b",
                "unknown field `a/b`",
            ),
            (r#"{"nme": "a"}"#, "/nme", "unknown field `nme`, expected one of `name`"),
            ("{}", "", "missing field `name`"),
            (r#"["a"]"#, "", "expected a JSON object"),
            (r#"{"name": "a""#, "", "not valid JSON: EOF"),
            (r#"{"name": "a"} x"#, "", "trailing characters at line 1 column 15"),
            (r#"{"name": "\ud800"}"#, "", "not valid JSON"),
            ("", "", "it is empty"),
            ("  \n", "", "it is empty"),
        ];
        for (text, pointer, detail) in cases {
            let (at, said) = refused(text);
            assert_eq!(at, pointer, "{text}: {said}");
            assert!(said.contains(detail), "{text}: {said}");
        }
    }

    #[test]
    fn a_repeated_key_is_refused_at_any_depth() {
        for text in [
            r#"{"name": "a", "name": "b"}"#,
            r#"{"name": "a", "notes": [{"x": {"y": 1, "y": 2}}]}"#,
            "{\"name\": \"a\", \"notes\": {\"\\u0000\": 1, \"\u{fffd}\": 2}}",
        ] {
            assert!(refused(text).1.contains("stands twice"), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_shallow_is_not() {
        let nested = |depth: usize| {
            format!(
                r#"{{"name": "a", "notes": {}{}}}"#,
                "[".repeat(depth),
                "]".repeat(depth)
            )
        };
        assert!(parse::<Order>(nested(120).as_bytes()).is_ok());
        assert!(refused(&nested(200)).1.contains("recursion limit"));
        assert!(refused(&nested(1_000_000)).1.contains("recursion limit"));
    }

    #[test]
    fn a_body_of_too_many_values_is_refused() {
        let many = |count: usize| format!(r#"{{"name": "a", "notes": [{}0]}}"#, "0,".repeat(count));
        assert!(parse::<Order>(many(90_000).as_bytes()).is_ok());
        assert!(refused(&many(100_000)).1.contains("more than 100000 values"));
        let nested = format!(r#"{{"name": "a", "notes": [{}0]}}"#, "{},[],".repeat(50_000));
        assert!(refused(&nested).1.contains("more than 100000 values"));
    }

    #[test]
    fn nul_is_replaced_in_every_text_and_nothing_else_changes() {
        let text =
            r#"{"name": "a\u0000b", "notes": {"k\u0000": ["\u0000", 1, -2, 2.5, 18446744073709551615, null, true]}}"#;
        let order: Order = parse(text.as_bytes()).unwrap();
        assert_eq!(order.name, "a\u{fffd}b");
        assert_eq!(
            order.notes,
            json!({"k\u{fffd}": ["\u{fffd}", 1, -2, 2.5, u64::MAX, null, true]})
        );
    }
}
