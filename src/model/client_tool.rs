//! Tools that a client brings and carries out itself: definitions in the shape
//! that chat APIs know. A call to one is handed over and waits for its result;
//! nothing of it runs here, so nothing of it is judged.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::sampling::FunctionKind;

/// More than a model can choose from.
pub const MAX_TOOLS: usize = 128;
/// As long as chat APIs take.
const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 8_000;
/// All definitions together as JSON: every request to the model carries them.
const MAX_BYTES: usize = 256 * 1024;

/// A tool that the client carries out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientTool {
    #[serde(rename = "type")]
    pub kind: FunctionKind,
    pub function: ClientFunction,
}

/// What the model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientFunction {
    /// Letters, digits, `_` and `-`. No tool of the server has this name.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9_-]+$",
        example = "look_up_order"
    )]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 8000)]
    pub description: Option<String>,
    /// JSON Schema of the arguments: an object. Without it there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Map<String, Value>>,
    /// Passed on to model servers that know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

impl ClientTool {
    pub fn name(&self) -> &str {
        &self.function.name
    }

    pub fn description(&self) -> &str {
        self.function.description.as_deref().unwrap_or_default()
    }

    /// JSON Schema of the arguments.
    pub fn parameters(&self) -> Value {
        match &self.function.parameters {
            Some(parameters) => Value::Object(parameters.clone()),
            None => json!({"type": "object", "properties": {}}),
        }
    }

    /// As the model is told of it.
    pub fn definition(&self) -> Value {
        let function = &self.function;
        let mut definition = json!({"name": function.name, "description": self.description(),
            "parameters": self.parameters()});
        if let (Some(fields), Some(strict)) = (definition.as_object_mut(), function.strict) {
            fields.insert("strict".to_owned(), strict.into());
        }
        json!({"type": "function", "function": definition})
    }
}

/// The session's tools with the turn's, which come before those of their name.
pub fn together(session: &[ClientTool], turn: &[ClientTool]) -> Vec<ClientTool> {
    let of_turn = |tool: &&ClientTool| turn.iter().any(|own| own.name() == tool.name());
    let kept = session.iter().filter(|tool| !of_turn(tool));
    kept.chain(turn).cloned().collect()
}

/// What is wrong with definitions, with a pointer into the list.
pub fn fault(tools: &[ClientTool]) -> Option<(String, String)> {
    if MAX_TOOLS < tools.len() {
        let detail = format!("it has {} tools; at most {MAX_TOOLS} are allowed", tools.len());
        return Some((String::new(), detail));
    }
    let bytes = serde_json::to_vec(tools).map_or(usize::MAX, |text| text.len());
    if MAX_BYTES < bytes {
        let detail = format!("it has {bytes} bytes as JSON; at most {MAX_BYTES} are allowed");
        return Some((String::new(), detail));
    }
    tools.iter().enumerate().find_map(|(place, tool)| {
        let before = tools.get(..place).unwrap_or_default();
        let (field, detail) = fault_of(tool, before)?;
        Some((format!("/{place}/function/{field}"), detail))
    })
}

fn fault_of(tool: &ClientTool, before: &[ClientTool]) -> Option<(&'static str, String)> {
    let name = tool.name();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if name.is_empty() || MAX_NAME_CHARS < name.chars().count() || !name.chars().all(is_plain) {
        let detail = format!("expected 1 to {MAX_NAME_CHARS} letters, digits, `_` or `-`");
        return Some(("name", detail));
    }
    if before.iter().any(|earlier| earlier.name() == name) {
        return Some(("name", format!("`{name}` stands above already")));
    }
    if MAX_DESCRIPTION_CHARS < tool.description().chars().count() {
        return Some((
            "description",
            format!("it is longer than {MAX_DESCRIPTION_CHARS} characters"),
        ));
    }
    let kind = tool
        .function
        .parameters
        .as_ref()
        .and_then(|parameters| parameters.get("type"));
    match kind {
        Some(kind) if kind != "object" => Some(("parameters", "the schema is of an object: `type` is `object`".into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ClientTool {
        serde_json::from_value(json!({"type": "function", "function": {"name": name}})).unwrap()
    }

    #[test]
    fn names_are_plain_and_stand_once() {
        assert_eq!(fault(&[tool("look_up"), tool("look-up-2")]), None);
        for (tools, place) in [
            (vec![tool("a b")], 0),
            (vec![tool("")], 0),
            (vec![tool("a"), tool("a")], 1),
        ] {
            let (pointer, _) = fault(&tools).unwrap();
            assert_eq!(pointer, format!("/{place}/function/name"));
        }
        assert!(fault(&vec![tool("a"); 129]).is_some());
    }

    #[test]
    fn arguments_are_an_object() {
        let mut list = tool("a");
        list.function.parameters = json!({"type": "array"}).as_object().cloned();
        assert_eq!(fault(&[list]).unwrap().0, "/0/function/parameters");
        assert_eq!(tool("a").definition()["function"]["parameters"]["type"], "object");
    }

    #[test]
    fn a_turns_tool_stands_for_the_sessions_of_its_name() {
        let mut own = tool("b");
        own.function.description = Some("of the turn".to_owned());
        let all = together(&[tool("a"), tool("b")], &[own.clone()]);
        assert_eq!(all, [tool("a"), own]);
    }
}
