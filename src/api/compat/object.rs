//! Fields put into JSON objects that are made here: what is no object stays what it
//! is.

use serde_json::Value;

pub(in crate::api) fn set(object: &mut Value, name: &str, field: Value) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), field);
    }
}

/// Puts a field into the object that stands under `outer`.
pub(in crate::api) fn set_in(object: &mut Value, outer: &str, name: &str, field: Value) {
    if let Some(inner) = object.get_mut(outer) {
        set(inner, name, field);
    }
}
