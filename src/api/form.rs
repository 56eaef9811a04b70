//! JSON values as the types they stand for, more strictly than the format's own
//! reader: it would take a list for the fields of an object, in the order in
//! which they are declared, and that order is no promise to anybody.
//!
//! What a type with a tag holds is read by Serde's own buffer, which this does
//! not reach.

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

/// A value to be read.
pub(super) struct Form(pub Value);

impl<'de> IntoDeserializer<'de, Error> for Form {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

fn entries(map: Map<String, Value>) -> impl Iterator<Item = (String, Form)> {
    map.into_iter().map(|(key, value)| (key, Form(value)))
}

impl<'de> Deserializer<'de> for Form {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(list) => {
                let mut list = SeqDeserializer::new(list.into_iter().map(Self));
                let value = visitor.visit_seq(&mut list)?;
                list.end().map(|()| value)
            }
            Value::Object(map) => {
                let mut map = MapDeserializer::new(entries(map));
                let value = visitor.visit_map(&mut map)?;
                map.end().map(|()| value)
            }
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.0.is_array() {
            return Err(Error::custom("invalid type: list, expected a JSON object"));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(map) if map.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(entries(map))))
            }
            Value::Object(_) => Err(Error::invalid_value(Unexpected::Map, &"an object with a single key")),
            plain => plain.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(default)]
        a: u8,
        b: Option<Kind>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Plain,
        Wrapped(Box<Inner>),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Outer {
        inner: Option<Inner>,
        #[serde(default)]
        list: Vec<Inner>,
        #[serde(default)]
        map: BTreeMap<String, Inner>,
        #[serde(default)]
        pair: (u8, i64),
        #[serde(default)]
        free: Value,
    }

    fn read(value: Value) -> Result<Outer, Error> {
        Outer::deserialize(Form(value))
    }

    #[test]
    fn what_fits_is_read_as_the_usual_reader_does() {
        for value in [
            json!({}),
            json!({"inner": null, "free": [[1, {"x": [2.5]}], null]}),
            json!({"inner": {"a": 7, "b": "plain"}, "pair": [1, -2]}),
            json!({"list": [{"a": 1}, {}], "map": {"k": {"b": {"wrapped": {"a": 3}}}}}),
        ] {
            assert_eq!(read(value.clone()).unwrap(), serde_json::from_value(value).unwrap());
        }
        for value in [
            json!({"inner": {"a": 256}}),
            json!({"inner": {"a": "1"}}),
            json!({"inner": {"x": 1}}),
            json!({"inner": {"b": "other"}}),
            json!({"inner": {"b": 1}}),
            json!({"inner": {"b": {"wrapped": {}, "plain": null}}}),
            json!({"inner": 1}),
            json!({"pair": [1]}),
            json!({"pair": [1, 2, 3]}),
            json!({"map": []}),
        ] {
            assert!(serde_json::from_value::<Outer>(value.clone()).is_err(), "{value}");
            assert!(read(value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn a_list_is_no_object_at_any_depth() {
        for value in [
            json!([]),
            json!({"inner": []}),
            json!({"inner": [1, "plain"]}),
            json!({"list": [[1]]}),
            json!({"map": {"k": []}}),
            json!({"inner": {"b": {"wrapped": [1]}}}),
        ] {
            assert!(read(value.clone()).is_err(), "{value}");
        }
    }
}
