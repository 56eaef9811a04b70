//! How a model writes its answers: sampling, length, form. A session holds
//! defaults; a turn is created with its own on top of them and keeps the result,
//! so that whoever takes the turn over asks the model the same way.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is absent is the model server's choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sampling {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// Of one answer of the model, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
}

impl Sampling {
    /// These settings, with those of `defaults` where nothing is said.
    pub fn or(self, defaults: &Sampling) -> Self {
        Self {
            temperature: self.temperature.or(defaults.temperature),
            top_p: self.top_p.or(defaults.top_p),
            max_output_tokens: self.max_output_tokens.or(defaults.max_output_tokens),
            reasoning_effort: self.reasoning_effort.or(defaults.reasoning_effort),
            tool_choice: self.tool_choice.or_else(|| defaults.tool_choice.clone()),
            response_format: self.response_format.or_else(|| defaults.response_format.clone()),
        }
    }

    /// The tool that the model has to call, if it is named.
    pub fn named_tool(&self) -> Option<&str> {
        match &self.tool_choice {
            Some(ToolChoice::Named(named)) => Some(&named.function.name),
            _ => None,
        }
    }
}

/// A change of the settings; `None` leaves one as it is, `Some(None)` removes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplingChanges {
    pub temperature: Option<Option<f64>>,
    pub top_p: Option<Option<f64>>,
    pub max_output_tokens: Option<Option<u32>>,
    pub reasoning_effort: Option<Option<ReasoningEffort>>,
    pub tool_choice: Option<Option<ToolChoice>>,
    pub response_format: Option<Option<ResponseFormat>>,
}

impl SamplingChanges {
    pub fn applied(self, to: &Sampling) -> Sampling {
        Sampling {
            temperature: self.temperature.unwrap_or(to.temperature),
            top_p: self.top_p.unwrap_or(to.top_p),
            max_output_tokens: self.max_output_tokens.unwrap_or(to.max_output_tokens),
            reasoning_effort: self.reasoning_effort.unwrap_or(to.reasoning_effort),
            tool_choice: self.tool_choice.unwrap_or_else(|| to.tool_choice.clone()),
            response_format: self.response_format.unwrap_or_else(|| to.response_format.clone()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
}

/// Which tools the model may or must call. `required` and a named function bind
/// the first answer of a turn; the later ones are free, or no turn would end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected `auto`, `none`, `required` or {\"type\": \"function\", \"function\": {\"name\": …}}"
)]
pub enum ToolChoice {
    Mode(ToolChoiceMode),
    Named(NamedTool),
}

impl ToolChoice {
    /// Whether the model has no other way than to call a tool.
    pub fn forces(&self) -> bool {
        !matches!(self, Self::Mode(ToolChoiceMode::Auto | ToolChoiceMode::None))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoiceMode {
    Auto,
    None,
    Required,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedTool {
    #[serde(rename = "type")]
    pub kind: FunctionKind,
    pub function: FunctionName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FunctionKind {
    Function,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionName {
    pub name: String,
}

/// The form of the model's answers in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema { json_schema: JsonSchemaFormat },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonSchemaFormat {
    /// Letters, digits, `_` and `-`, at most 64.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9_-]+$")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A JSON Schema.
    #[schema(value_type = Object)]
    pub schema: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_turn_overrides_its_session_field_by_field() {
        let read = |value| serde_json::from_value::<Sampling>(value).unwrap();
        let turn = read(json!({"temperature": 0.0, "tool_choice": "none"}));
        let session = read(json!({"temperature": 1.0, "top_p": 0.5, "tool_choice": "required"}));
        assert_eq!(
            serde_json::to_value(turn.or(&session)).unwrap(),
            json!({"temperature": 0.0, "top_p": 0.5, "tool_choice": "none"})
        );
    }

    #[test]
    fn choices_have_the_form_of_chat_completions() {
        for value in [
            json!("auto"),
            json!({"type": "function", "function": {"name": "terminal"}}),
        ] {
            let choice: ToolChoice = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(choice).unwrap(), value);
        }
        assert!(serde_json::from_value::<ToolChoice>(json!({"type": "function"})).is_err());
    }
}
