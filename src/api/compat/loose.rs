//! Values as clients of the drop-in surfaces send them: a flag may be a number or
//! a word, and what cannot be read counts as absent.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Yes, no, or nothing that could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::api) struct Flag(pub Option<bool>);

impl Flag {
    pub(in crate::api) fn is_set(self) -> bool {
        self.0 == Some(true)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(flag(&value)))
    }
}

/// A yes in a query.
pub(in crate::api) fn is_yes(text: Option<&str>) -> bool {
    text.is_some_and(|text| ["1", "true", "yes", "on"].contains(&text.to_ascii_lowercase().as_str()))
}

fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => Some(number.as_f64() != Some(0.0)),
        Value::String(word) => match word.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Some(true),
            "0" | "false" | "no" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

impl PartialSchema for Flag {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Boolean).into()
    }
}

impl ToSchema for Flag {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flag_may_be_a_word_or_a_number() {
        for (value, read) in [
            (json!(true), Some(true)),
            (json!(0), Some(false)),
            (json!(" Yes "), Some(true)),
            (json!("off"), Some(false)),
            (json!("maybe"), None),
            (json!(null), None),
            (json!([]), None),
        ] {
            assert_eq!(flag(&value), read, "{value}");
        }
    }
}
