//! The body that asks for a turn. The input is a text or a list of parts; what
//! else is said narrows the session's own settings for this turn.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::api::failure::Failure;
use crate::model::client_tool::ClientTool;
use crate::model::message::Part;
use crate::model::principal::Principal;
use crate::model::sampling::{ReasoningEffort, ResponseFormat, Sampling, ToolChoice};
use crate::model::session::{Metadata, ToolsetSelection};
use crate::model::turn::{OnBusy, OnDisconnect, TurnApprovals, TurnLimits, TurnOptions};
use crate::turn::requests::{NewTurn, TurnPatch};

use super::{answers, bounds};

/// A turn to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TurnRequest {
    input: Input,
    /// What to do when a turn of the session runs or waits already.
    #[serde(default)]
    on_busy: OnBusy,
    /// What becomes of the turn when this request's client leaves.
    #[serde(default)]
    on_disconnect: OnDisconnect,
    /// In place of the session's.
    #[serde(default)]
    model: Option<String>,
    /// Said to the model behind the session's own, in this turn only.
    #[serde(default)]
    instructions: Option<String>,
    /// In place of the session's.
    #[serde(default)]
    toolsets: Option<ToolsetSelection>,
    #[serde(default)]
    limits: TurnLimits,
    #[serde(default)]
    approvals: TurnApprovals,
    /// These, in place of the session's, say how the model answers.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Of one answer of the model, reasoning included.
    #[serde(default)]
    #[schema(minimum = 1)]
    max_output_tokens: Option<u32>,
    #[serde(default)]
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(default)]
    tool_choice: Option<ToolChoice>,
    #[serde(default)]
    response_format: Option<ResponseFormat>,
    /// Tools that you carry out, beside the session's; one takes the place of the
    /// session's of its name.
    #[serde(default)]
    #[schema(max_items = 128)]
    tools: Vec<ClientTool>,
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Metadata,
}

impl TurnRequest {
    pub(super) fn on_disconnect(&self) -> OnDisconnect {
        self.on_disconnect
    }

    pub(super) fn checked(self, principal: &Principal, max_chars: usize) -> Result<NewTurn, Failure> {
        let Input(input) = self.input;
        bounds::said("/input", &input, max_chars)?;
        bounds::model(&self.model)?;
        bounds::instructions(&self.instructions)?;
        bounds::limits(&self.limits)?;
        bounds::metadata(&self.metadata)?;
        bounds::tools(&self.tools)?;
        if let Some(toolsets) = &self.toolsets {
            bounds::toolsets(toolsets)?;
        }
        let sampling = Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            max_output_tokens: self.max_output_tokens,
            reasoning_effort: self.reasoning_effort,
            tool_choice: self.tool_choice,
            response_format: self.response_format,
        };
        answers::check(&sampling)?;
        Ok(NewTurn {
            user_id: principal.user.clone(),
            input,
            on_busy: self.on_busy,
            options: TurnOptions {
                on_disconnect: self.on_disconnect,
                model: self.model,
                instructions: self.instructions,
                toolsets: self.toolsets,
                limits: self.limits,
                approvals: self.approvals,
                sampling: Box::new(sampling),
                tools: self.tools,
                metadata: self.metadata,
                tool_ceiling: principal.tools.clone(),
                key_id: principal.key,
                script: None,
            },
        })
    }
}

/// What changes of a queued turn; what is left out stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TurnChanges {
    #[serde(default)]
    input: Option<Input>,
    /// Replaces the whole metadata.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Metadata>,
}

impl TurnChanges {
    pub(super) fn checked(self, max_chars: usize) -> Result<TurnPatch, Failure> {
        let input = self.input.map(|Input(parts)| parts);
        if let Some(input) = &input {
            bounds::said("/input", input, max_chars)?;
        }
        if let Some(metadata) = &self.metadata {
            bounds::metadata(metadata)?;
        }
        Ok(TurnPatch {
            input,
            metadata: self.metadata,
        })
    }
}

/// A text, or parts.
#[derive(Debug, PartialEq)]
pub(super) struct Input(pub(super) Vec<Part>);

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InputVisitor).map(Self)
    }
}

struct InputVisitor;

impl<'de> Visitor<'de> for InputVisitor {
    type Value = Vec<Part>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<Part>, E> {
        Ok(vec![Part::text(text)])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Vec<Part>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(parts))
    }
}

impl PartialSchema for Input {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let parts = ArrayBuilder::new()
            .items(Ref::from_schema_name(Part::name()))
            .min_items(Some(1));
        OneOfBuilder::new()
            .item(text)
            .item(parts)
            .description(Some("A text, or a list of parts."))
            .into()
    }
}

impl ToSchema for Input {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Part::name().into_owned(), Part::schema()));
        Part::schemas(schemas);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::json;
    use crate::base::Id;
    use crate::model::principal::Scopes;

    fn principal() -> Principal {
        Principal {
            tenant: Id::from_bits(1),
            user: "ada".to_owned(),
            scopes: Scopes::NONE,
            key: None,
            expires_at: None,
            tools: Some(vec!["read_file".to_owned()]),
        }
    }

    fn read(text: &str) -> Result<NewTurn, Failure> {
        json::parse::<TurnRequest>(text.as_bytes())?.checked(&principal(), 20)
    }

    #[test]
    fn a_text_is_one_part_and_the_principal_comes_along() {
        let turn = read(r#"{"input": "hi"}"#).unwrap();
        assert_eq!(turn.input, [Part::text("hi")]);
        assert_eq!((turn.user_id.as_str(), turn.on_busy), ("ada", OnBusy::Reject));
        assert_eq!(
            turn.options.tool_ceiling.as_deref(),
            Some(&["read_file".to_owned()][..])
        );
        let parts = r#"{"input": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}"#;
        assert_eq!(read(parts).unwrap().input.len(), 2);
    }

    #[test]
    fn what_is_wrong_with_a_turn_is_pointed_at() {
        for (text, pointer) in [
            ("{}", ""),
            (r#"{"input": 5}"#, "/input"),
            (r#"{"input": ""}"#, "/input"),
            (r#"{"input": []}"#, "/input"),
            (r#"{"input": "20 characters and one"}"#, "/input"),
            (
                r#"{"input": [{"type": "text", "text": "20 characters"}, {"type": "text", "text": "and more"}]}"#,
                "/input",
            ),
            (
                r#"{"input": [{"type": "text", "text": "a"}, {"type": "audio"}]}"#,
                "/input/1/type",
            ),
            (r#"{"input": [{"type": "text"}]}"#, "/input/0"),
            (r#"{"input": "a", "on_busy": "queue"}"#, "/on_busy"),
            (r#"{"input": "a", "limits": {"max_steps": 0}}"#, "/limits/max_steps"),
            (r#"{"input": "a", "limits": {"max_step": 1}}"#, "/limits/max_step"),
            (r#"{"input": "a", "model": ""}"#, "/model"),
            (
                r#"{"input": "a", "toolsets": {"disabled": "web"}}"#,
                "/toolsets/disabled",
            ),
            (r#"{"input": "a", "inputs": "a"}"#, "/inputs"),
            (r#"{"input": "a", "temperature": "hot"}"#, "/temperature"),
            (r#"{"input": "a", "tool_choice": "any"}"#, "/tool_choice"),
            (
                r#"{"input": "a", "response_format": {"type": "xml"}}"#,
                "/response_format/type",
            ),
        ] {
            let failure = read(text).unwrap_err();
            assert_eq!(failure.problem().errors[0].pointer, pointer, "{text}: {failure:?}");
        }
    }
}
