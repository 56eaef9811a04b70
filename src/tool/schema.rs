//! Whether arguments fit the schema of a tool, where a person wrote them and can
//! be told. The part of JSON Schema that tools use to describe arguments: types,
//! listed values, bounds, required fields, items. What it does not know it
//! passes: the tool's own reading has the last word.

use serde_json::Value;

/// What does not fit, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// JSON pointer into the arguments.
    pub pointer: String,
    pub detail: String,
}

/// Everything that does not fit, in the order of the schema.
pub fn faults(schema: &Value, arguments: &Value) -> Vec<Fault> {
    let mut found = Vec::new();
    check(schema, arguments, "", &mut found);
    found
}

/// As deep as the schema, which is ours or was bounded when it was loaded.
fn check(schema: &Value, value: &Value, pointer: &str, found: &mut Vec<Fault>) {
    let mut fault = |pointer: &str, detail: String| {
        found.push(Fault {
            pointer: pointer.to_owned(),
            detail,
        });
    };
    let types = type_names(schema);
    if !types.is_empty() && !types.iter().any(|name| is_of_type(name, value)) {
        return fault(pointer, format!("it must be of type `{}`", types.join("` or `")));
    }
    if let Some(listed) = schema.get("enum").and_then(Value::as_array)
        && !listed.contains(value)
    {
        let listed: Vec<String> = listed.iter().map(Value::to_string).collect();
        fault(pointer, format!("it must be one of: {}", listed.join(", ")));
    }
    let (number, bound) = (value.as_f64(), |name: &str| schema.get(name).and_then(Value::as_f64));
    if let (Some(number), Some(least)) = (number, bound("minimum"))
        && number < least
    {
        fault(pointer, format!("it must be at least {least}"));
    }
    if let (Some(number), Some(most)) = (number, bound("maximum"))
        && most < number
    {
        fault(pointer, format!("it must be at most {most}"));
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if let (Some(name), Some(fields)) = (name.as_str(), value.as_object())
            && fields.get(name).is_none_or(Value::is_null)
        {
            fault(&below(pointer, name), "it is required".to_owned());
        }
    }
    within(schema, value, pointer, found);
}

fn within(schema: &Value, value: &Value, pointer: &str, found: &mut Vec<Fault>) {
    if let (Some(properties), Some(fields)) = (schema.get("properties").and_then(Value::as_object), value.as_object()) {
        for (name, property) in properties {
            // An optional argument may be spelt out as nothing.
            if let Some(field) = fields.get(name).filter(|field| !field.is_null()) {
                check(property, field, &below(pointer, name), found);
            }
        }
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        for (place, item) in list.iter().enumerate() {
            check(items, item, &below(pointer, &place.to_string()), found);
        }
    }
}

fn type_names(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        // 3.0 is an integer to JSON Schema.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(schema: &Value, arguments: &Value) -> Vec<String> {
        faults(schema, arguments)
            .into_iter()
            .map(|fault| fault.pointer)
            .collect()
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "mode": {"enum": ["a", "b"]},
                "count": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
                "edits": {"type": "array", "items": {"type": "object", "required": ["a/b"],
                    "properties": {"a/b": {"type": "boolean"}}}},
            },
            "required": ["path"],
        });
        let fits = json!({"path": "x", "mode": "a", "count": 3.0, "edits": [{"a/b": true}], "unknown": 1});
        assert_eq!(pointers(&schema, &fits), [""; 0]);
        assert_eq!(pointers(&schema, &json!({"path": null})), ["/path"]);
        assert_eq!(pointers(&schema, &json!({"path": "x", "count": null})), [""; 0]);
        let wrong = json!({"path": 1, "mode": "c", "count": 10, "edits": [{"a/b": 1}, {}]});
        let mut found = pointers(&schema, &wrong);
        found.sort();
        assert_eq!(found, ["/count", "/edits/0/a~1b", "/edits/1/a~1b", "/mode", "/path"]);
        assert_eq!(pointers(&schema, &json!([])), [""]);
        for count in [json!(0), json!(2.5), json!("2")] {
            assert_eq!(pointers(&schema, &json!({"path": "x", "count": count})), ["/count"]);
        }
    }
}
