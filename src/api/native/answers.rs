//! What a client says of how the model shall answer, checked where it comes in:
//! a value that every model server would refuse is refused here, by its name.

use jsonschema::Draft;
use serde_json::Value;

use crate::api::failure::Failure;
use crate::model::sampling::{JsonSchemaFormat, ResponseFormat, Sampling};

/// What chat completions take.
const MAX_NAME: usize = 64;
/// Goes out with every step of a turn.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
const MAX_DESCRIPTION_CHARS: usize = 4096;
const SCHEMA: &str = "/response_format/json_schema";

pub(super) fn check(sampling: &Sampling) -> Result<(), Failure> {
    within("/temperature", sampling.temperature, 2.0)?;
    within("/top_p", sampling.top_p, 1.0)?;
    if sampling.max_output_tokens == Some(0) {
        return Err(Failure::field("/max_output_tokens", "expected 1 or more"));
    }
    if let Some(name) = sampling.named_tool() {
        check_name("/tool_choice/function/name", name)?;
    }
    match &sampling.response_format {
        Some(ResponseFormat::JsonSchema { json_schema }) => check_format(json_schema),
        Some(ResponseFormat::Text | ResponseFormat::JsonObject) | None => Ok(()),
    }
}

fn within(pointer: &str, value: Option<f64>, most: f64) -> Result<(), Failure> {
    match value {
        Some(value) if !(0.0..=most).contains(&value) => {
            Err(Failure::field(pointer, format!("expected a number from 0 to {most}")))
        }
        _ => Ok(()),
    }
}

fn check_name(pointer: &str, name: &str) -> Result<(), Failure> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    let detail = format!("expected 1 to {MAX_NAME} of the characters a-z, A-Z, 0-9, `_` and `-`");
    Err(Failure::field(pointer, detail))
}

fn check_format(format: &JsonSchemaFormat) -> Result<(), Failure> {
    check_name(&format!("{SCHEMA}/name"), &format.name)?;
    let description = format.description.as_deref().unwrap_or_default();
    if MAX_DESCRIPTION_CHARS < description.chars().count() {
        let detail = format!("it is longer than {MAX_DESCRIPTION_CHARS} characters");
        return Err(Failure::field(&format!("{SCHEMA}/description"), detail));
    }
    check_schema(&format.schema)
}

/// Whether it is a JSON Schema, by the schema of its own dialect where it names
/// a known one.
fn check_schema(schema: &Value) -> Result<(), Failure> {
    let pointer = format!("{SCHEMA}/schema");
    if !schema.is_object() {
        return Err(Failure::field(&pointer, "expected a JSON Schema, which is an object"));
    }
    let bytes = schema.to_string().len();
    if MAX_SCHEMA_BYTES < bytes {
        let detail = format!("it has {bytes} bytes as JSON; at most {MAX_SCHEMA_BYTES} are allowed");
        return Err(Failure::field(&pointer, detail));
    }
    if let Some(dialect) = schema.get("$schema")
        && !dialect.as_str().is_some_and(is_known)
    {
        let detail = "the dialect is not known; leave it out, or name a published draft of json-schema.org";
        return Err(Failure::field(&format!("{pointer}/$schema"), detail));
    }
    let draft = Draft::Draft202012.detect(schema);
    if let Err(error) = jsonschema::options().with_draft(draft).build(schema) {
        let place = format!("{pointer}{}", error.instance_path());
        return Err(Failure::field(&place, format!("it is no JSON Schema: {error}")));
    }
    Ok(())
}

fn is_known(dialect: &str) -> bool {
    let name = dialect.trim_end_matches('#');
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-04/schema",
    ]
    .contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(value: Value) -> String {
        let sampling = serde_json::from_value(value).unwrap();
        let failure = check(&sampling).unwrap_err();
        failure.problem().errors[0].pointer.clone()
    }

    fn of_schema(schema: &Value) -> Value {
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}})
    }

    #[test]
    fn what_no_model_server_takes_is_named() {
        let named = |name: &str| json!({"tool_choice": {"type": "function", "function": {"name": name}}});
        for (value, pointer) in [
            (json!({"temperature": 2.5}), "/temperature"),
            (json!({"temperature": -0.1}), "/temperature"),
            (json!({"top_p": 1.01}), "/top_p"),
            (json!({"max_output_tokens": 0}), "/max_output_tokens"),
            (named(""), "/tool_choice/function/name"),
            (named("rm -rf"), "/tool_choice/function/name"),
            (of_schema(&json!([])), "/response_format/json_schema/schema"),
            (
                of_schema(&json!({"type": "text"})),
                "/response_format/json_schema/schema/type",
            ),
            (
                of_schema(&json!({"properties": {"a": {"minimum": "1"}}})),
                "/response_format/json_schema/schema/properties/a/minimum",
            ),
            (
                of_schema(&json!({"$schema": "https://example.org/mine"})),
                "/response_format/json_schema/schema/$schema",
            ),
            (
                of_schema(&json!({"description": "x".repeat(MAX_SCHEMA_BYTES)})),
                "/response_format/json_schema/schema",
            ),
        ] {
            assert_eq!(refused(value.clone()), pointer, "{value}");
        }
    }

    #[test]
    fn schemas_of_every_published_draft_are_taken() {
        for schema in [
            json!({}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "string"}},
                "required": ["a"], "additionalProperties": false}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"const": 1}}}),
        ] {
            let sampling = serde_json::from_value(of_schema(&schema)).unwrap();
            assert!(check(&sampling).is_ok());
        }
    }

    /// A schema may name others; none of them is fetched.
    #[test]
    fn a_reference_to_elsewhere_is_refused_and_not_followed() {
        let place = refused(of_schema(&json!({"$ref": "https://example.org/other.json"})));
        assert!(place.starts_with("/response_format/json_schema/schema"), "{place}");
    }
}
