//! Arguments brought to the types their schema asks for, where the text leaves
//! no doubt: `"42"` for an integer, `"[1]"` for an array.
//!
//! Never fails and never drops anything: a value that does not fit stays as the
//! model wrote it, and the tool's own reading reports it.

use serde_json::{Map, Number, Value};

/// Above this a double no longer holds every integer.
const EXACT_LIMIT: f64 = 9_007_199_254_740_992.0;
/// Above this an integer is kept as a double.
const INTEGER_LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// Coerces every argument the schema's `properties` know.
pub fn coerce(schema: &Value, args: Map<String, Value>) -> Map<String, Value> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return args;
    };
    args.into_iter()
        .map(|(key, value)| match properties.get(&key) {
            Some(property) if !value.is_null() => {
                let value = nested(property, top(property, value));
                (key, value)
            }
            _ => (key, value),
        })
        .collect()
}

/// Coercion of an argument itself.
fn top(schema: &Value, value: Value) -> Value {
    let kind = schema.get("type");
    let is_list = kind.and_then(Value::as_str) == Some("array");
    match value {
        Value::String(text) => match from_text(schema, kind, &text) {
            Some(value) => value,
            None if is_list => Value::Array(vec![Value::String(text)]),
            None => Value::String(text),
        },
        // A model that has one item often forgets the brackets.
        value if is_list && !value.is_array() => Value::Array(vec![value]),
        value => value,
    }
}

fn from_text(schema: &Value, kind: Option<&Value>, text: &str) -> Option<Value> {
    if may_be_null(schema) && text.trim().eq_ignore_ascii_case("null") {
        return Some(Value::Null);
    }
    match kind? {
        Value::String(kind) => from_text_as(kind, text),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find_map(|kind| from_text_as(kind, text)),
        _ => None,
    }
}

fn from_text_as(kind: &str, text: &str) -> Option<Value> {
    let trimmed = text.trim();
    match kind {
        "integer" => number(trimmed).filter(|number| !number.is_f64()).map(Value::Number),
        "number" => number(trimmed).map(Value::Number),
        "boolean" if trimmed.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        "boolean" if trimmed.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        "array" => serde_json::from_str(trimmed).ok().filter(Value::is_array),
        "object" => serde_json::from_str(trimmed).ok().filter(Value::is_object),
        _ => None,
    }
}

/// An integer where there is no fraction, else a finite double.
fn number(text: &str) -> Option<Number> {
    let text = ungrouped(text);
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    if let Ok(integer) = text.parse::<u64>() {
        return Some(integer.into());
    }
    let double: f64 = text.parse().ok().filter(|double: &f64| double.is_finite())?;
    if double.fract() != 0.0 {
        return Number::from_f64(double);
    }
    // Beyond the limit digits would be made up, unless they were left to an exponent.
    match double.abs() {
        size if size <= EXACT_LIMIT => Some(Number::from(double as i64)),
        _ if !text.contains(['e', 'E']) => None,
        size if size < INTEGER_LIMIT => Some(Number::from(double as i64)),
        _ => Number::from_f64(double),
    }
}

/// The digits without the underscores that group them, as some languages allow.
fn ungrouped(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let is_digit = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(char::is_ascii_digit);
    let groups = |at: usize| is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1));
    let kept = letters
        .iter()
        .enumerate()
        .filter(|(at, letter)| **letter != '_' || !groups(*at));
    kept.map(|(_, letter)| *letter).collect()
}

/// Below the argument itself only text that should be a list or an object is
/// read, because models like to write nested JSON as a string.
fn nested(schema: &Value, value: Value) -> Value {
    let value = match value {
        Value::String(text) => return from_nested_text(schema, text),
        value => value,
    };
    match value {
        Value::Array(items) => match inside(schema, "items") {
            Some(item) => Value::Array(items.into_iter().map(|value| nested(item, value)).collect()),
            None => Value::Array(items),
        },
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, value)| match property(schema, &key) {
                    Some(property) => (key, nested(property, value)),
                    None => (key, value),
                })
                .collect(),
        ),
        value => value,
    }
}

fn from_nested_text(schema: &Value, text: String) -> Value {
    let trimmed = text.trim();
    let wanted = match trimmed.chars().next() {
        Some('[') => "array",
        Some('{') => "object",
        _ => return Value::String(text),
    };
    if !accepts(schema, wanted) {
        return Value::String(text);
    }
    match serde_json::from_str::<Value>(trimmed) {
        Ok(value) => nested(schema, value),
        Err(_) => Value::String(text),
    }
}

/// The schema and, level by level, the alternatives it is composed of.
fn alternatives(schema: &Value) -> Vec<&Value> {
    let mut all = vec![schema];
    let mut next = 0;
    while let Some(schema) = all.get(next).copied() {
        next += 1;
        for word in ["anyOf", "oneOf", "allOf"] {
            all.extend(schema.get(word).and_then(Value::as_array).into_iter().flatten());
        }
    }
    all
}

fn accepts(schema: &Value, wanted: &str) -> bool {
    alternatives(schema).iter().any(|schema| names_type(schema, wanted))
}

fn names_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == wanted,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
        _ => false,
    }
}

fn may_be_null(schema: &Value) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true)) || accepts(schema, "null")
}

fn inside<'a>(schema: &'a Value, word: &str) -> Option<&'a Value> {
    alternatives(schema)
        .into_iter()
        .find_map(|schema| schema.get(word))
        .filter(|found| found.is_object())
}

fn property<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    alternatives(schema)
        .into_iter()
        .find_map(|schema| schema.get("properties")?.get(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coerced(schema: &Value, args: Value) -> Value {
        let Value::Object(args) = args else {
            panic!("arguments must be an object")
        };
        Value::Object(coerce(schema, args))
    }

    #[test]
    fn a_list_that_arrives_as_text_is_walked_too() {
        let schema = json!({"properties": {"l": {"type": "array", "items": {"type": "object"}}}});
        assert_eq!(
            coerced(&schema, json!({"l": "[\"{\\\"a\\\": 1}\"]"})),
            json!({"l": [{"a": 1}]})
        );
    }

    #[test]
    fn no_digit_is_made_up() {
        let schema = json!({"properties": {"n": {"type": "integer"}}});
        for (text, expected) in [
            ("9007199254740993", json!(9_007_199_254_740_993_u64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("99999999999999999999", json!("99999999999999999999")),
            ("1e400", json!("1e400")),
            ("2.5", json!("2.5")),
            ("1e16", json!(10_000_000_000_000_000_u64)),
            ("1_000", json!(1_000)),
            ("1__0", json!("1__0")),
            ("_1", json!("_1")),
        ] {
            assert_eq!(coerced(&schema, json!({"n": text})), json!({"n": expected}));
        }
    }

    #[test]
    fn a_schema_without_properties_changes_nothing() {
        assert_eq!(coerced(&json!(true), json!({"n": "1"})), json!({"n": "1"}));
    }
}
