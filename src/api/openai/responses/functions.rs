//! Functions that a client of responses brings and carries out: its flat form of
//! their definitions, the choice among them, and what came of a call.

use serde_json::{Map, Value, json};

use crate::api::compat::content;
use crate::api::compat::handed::Output;
use crate::api::failure::Failure;
use crate::model::client_tool::{ClientFunction, ClientTool};
use crate::model::sampling::{FunctionKind, FunctionName, NamedTool, ToolChoice};

/// The functions of a list of tools, each with its place. What the server of
/// another API would carry out is ignored, as by the original.
pub(super) fn tools(list: &Value) -> Result<Vec<(String, ClientTool)>, Failure> {
    let list = match list {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        _ => return Err(Failure::field("/tools", "expected a list of tools")),
    };
    let own = list.iter().enumerate().filter(|(_, tool)| tool["type"] == "function");
    own.map(|(place, one)| {
        let pointer = format!("/tools/{place}");
        tool(one, &pointer).map(|tool| (pointer, tool))
    })
    .collect()
}

/// A function, flat or, as in chat completions, in a member of its own.
fn tool(one: &Value, pointer: &str) -> Result<ClientTool, Failure> {
    let fields = one.get("function").filter(|inner| inner.is_object()).unwrap_or(one);
    let Some(name) = fields["name"].as_str() else {
        return Err(Failure::field(pointer, "a function has a `name`"));
    };
    let parameters: Option<Map<String, Value>> = match &fields["parameters"] {
        Value::Null => None,
        Value::Object(schema) => Some(schema.clone()),
        _ => return Err(Failure::field(pointer, "`parameters` is a JSON Schema")),
    };
    Ok(ClientTool {
        kind: FunctionKind::Function,
        function: ClientFunction {
            name: name.to_owned(),
            description: fields["description"].as_str().map(str::to_owned),
            parameters,
            strict: fields["strict"].as_bool(),
        },
    })
}

/// The choice among tools; what chooses none of the client's is left to the model.
pub(super) fn choice(given: &Value) -> Result<Option<ToolChoice>, Failure> {
    match given {
        Value::String(_) => serde_json::from_value(given.clone())
            .map(Some)
            .map_err(|_| Failure::field("/tool_choice", "expected `auto`, `none`, `required` or a function")),
        Value::Object(fields) if fields.get("type") == Some(&json!("function")) => {
            let name = given.get("name").or_else(|| given.pointer("/function/name"));
            let Some(name) = name.and_then(Value::as_str) else {
                return Err(Failure::field("/tool_choice", "a function has a `name`"));
            };
            Ok(Some(ToolChoice::Named(NamedTool {
                kind: FunctionKind::Function,
                function: FunctionName { name: name.to_owned() },
            })))
        }
        _ => Ok(None),
    }
}

/// What came of a call.
pub(super) fn output(item: &Value) -> Result<Output, Failure> {
    let Some(call) = item["call_id"].as_str() else {
        return Err(Failure::field("/input", "a `function_call_output` has a `call_id`"));
    };
    let text = match &item["output"] {
        Value::Null => return Err(Failure::field("/input", "a `function_call_output` has an `output`")),
        parts @ Value::Array(_) => content::text(parts),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Ok(Output {
        call: call.to_owned(),
        text,
        is_error: item["status"] == "incomplete",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_both_dialects_are_read_and_other_tools_left_out() {
        let schema = json!({"type": "object", "properties": {"order": {"type": "string"}}});
        let list = json!([
            {"type": "web_search"},
            {"type": "function", "name": "look_up", "description": "d", "parameters": schema, "strict": true},
            {"type": "function", "function": {"name": "other"}},
        ]);
        let read = tools(&list).unwrap();
        let [(first, look_up), (second, other)] = read.as_slice() else {
            panic!("two functions: {read:?}");
        };
        assert_eq!((first.as_str(), second.as_str()), ("/tools/1", "/tools/2"));
        assert_eq!((look_up.name(), other.name()), ("look_up", "other"));
        assert_eq!((look_up.parameters(), look_up.function.strict), (schema, Some(true)));
        for wrong in [
            json!({}),
            json!([{"type": "function"}]),
            json!([{"type": "function", "name": "a", "parameters": 5}]),
        ] {
            assert!(tools(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_choice_is_a_word_or_a_function() {
        assert_eq!(choice(&json!(null)).unwrap(), None);
        assert!(choice(&json!("required")).unwrap().unwrap().forces());
        let named = choice(&json!({"type": "function", "name": "look_up"})).unwrap();
        assert!(matches!(named, Some(ToolChoice::Named(named)) if named.function.name == "look_up"));
        assert!(choice(&json!("any")).is_err());
        assert_eq!(choice(&json!({"type": "web_search"})).unwrap(), None);
    }

    #[test]
    fn an_output_is_a_text_or_parts() {
        for (given, text) in [
            (json!("x"), "x"),
            (json!([{"type": "input_text", "text": "x"}]), "x"),
            (json!({"a": 1}), "{\"a\":1}"),
        ] {
            let item = json!({"type": "function_call_output", "call_id": "call_1", "output": given});
            assert_eq!(output(&item).unwrap().text, text);
        }
        assert!(output(&json!({"call_id": "call_1"})).is_err() && output(&json!({"output": "x"})).is_err());
    }
}
