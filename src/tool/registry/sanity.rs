//! Schemas in the form that strict model servers take. A well-formed one stays
//! as it is; what tool servers and manifests often get wrong is put right.

use serde_json::{Map, Value, json};

/// Deeper than any schema that somebody wrote.
const MAX_DEPTH: usize = 32;
/// Keywords whose value is a schema.
const ONE: &[&str] = &["items", "additionalProperties", "not", "contains", "propertyNames"];
/// Keywords whose value is a list of schemas.
const MANY: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
const NAMED: &[&str] = &["properties", "$defs", "definitions", "patternProperties"];

/// No arguments at all.
pub(super) fn empty() -> Value {
    json!({"type": "object", "properties": {}})
}

/// The schema of a tool's arguments, which is an object's.
pub(super) fn sanitised(schema: Value) -> Result<Value, &'static str> {
    let mut schema = match schema {
        Value::Null => empty(),
        Value::Object(fields) => Value::Object(fields),
        _ => return Err("it is not an object"),
    };
    match schema.get("type") {
        None | Some(Value::Null) => {
            if let Some(fields) = schema.as_object_mut() {
                fields.insert("type".to_owned(), json!("object"));
            }
        }
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("arguments are an object"),
    }
    mend(&mut schema, 0)?;
    Ok(schema)
}

fn mend(schema: &mut Value, depth: usize) -> Result<(), &'static str> {
    if MAX_DEPTH < depth {
        return Err("it is nested too deeply");
    }
    // `"string"` stands for `{"type": "string"}` in many hand-written ones.
    if let Value::String(kind) = schema {
        *schema = match kind.as_str() {
            "object" => empty(),
            "string" | "number" | "integer" | "boolean" | "array" | "null" => json!({"type": kind}),
            _ => json!({}),
        };
    }
    let Value::Object(fields) = schema else {
        // `true` and `false` are schemas; anything else says nothing.
        if !schema.is_boolean() {
            *schema = json!({});
        }
        return Ok(());
    };
    let is_object = fields.get("type").is_some_and(|kind| kind == "object");
    if is_object && !fields.get("properties").is_some_and(Value::is_object) {
        fields.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    if fields.get("required").is_some_and(|required| !required.is_array()) {
        fields.remove("required");
    }
    within(fields, depth)?;
    only_known_are_required(fields);
    Ok(())
}

fn within(fields: &mut Map<String, Value>, depth: usize) -> Result<(), &'static str> {
    for (keyword, value) in fields.iter_mut() {
        let keyword = keyword.as_str();
        match value {
            Value::Object(named) if NAMED.contains(&keyword) => {
                named.values_mut().try_for_each(|schema| mend(schema, depth + 1))?;
            }
            Value::Array(list) if MANY.contains(&keyword) => {
                list.iter_mut().try_for_each(|schema| mend(schema, depth + 1))?;
            }
            schema if ONE.contains(&keyword) => mend(schema, depth + 1)?,
            _ => {}
        }
    }
    Ok(())
}

/// A required field that the schema does not describe is refused by strict
/// servers, and can never be given.
fn only_known_are_required(fields: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = fields.get("properties").cloned() else {
        return;
    };
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_well_formed_schema_stays_as_it_is() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "enum": ["x", "y"], "description": "d"},
            "b": {"type": ["array", "null"], "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            "c": {"type": "object", "properties": {}, "additionalProperties": false},
        }, "required": ["a"], "$defs": {"x": {"type": "object", "properties": {"y": true}}}});
        assert_eq!(sanitised(schema.clone()), Ok(schema));
    }

    #[test]
    fn common_slips_are_put_right() {
        for (given, right) in [
            (json!(null), empty()),
            (json!({}), empty()),
            (json!({"type": "object"}), empty()),
            (
                json!({"type": "object", "properties": {"a": "string", "b": "object", "c": 5, "d": {"type": "object"}}}),
                json!({"type": "object", "properties": {"a": {"type": "string"}, "b": empty(), "c": {}, "d": empty()}}),
            ),
            (
                json!({"properties": {"a": {"items": "integer"}}, "required": "a"}),
                json!({"properties": {"a": {"items": {"type": "integer"}}}, "type": "object"}),
            ),
            (
                json!({"type": "object", "properties": {"a": {}}, "required": ["a", "ghost"]}),
                json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            ),
        ] {
            assert_eq!(sanitised(given.clone()), Ok(right), "{given}");
        }
    }

    #[test]
    fn what_can_be_no_schema_of_arguments_is_refused() {
        for wrong in [json!([]), json!("object"), json!(true), json!({"type": "array"})] {
            assert!(sanitised(wrong.clone()).is_err(), "{wrong}");
        }
        let deep = (0..40).fold(
            json!({}),
            |inner, _| json!({"type": "object", "properties": {"a": inner}}),
        );
        assert_eq!(sanitised(deep), Err("it is nested too deeply"));
    }
}
