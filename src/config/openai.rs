//! `model`, `model_routes` and `openai`: which model answers, and where its server
//! is.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::base::Secret;

use super::node::{Node, Value};
use super::original;
use super::section::Section;

/// A model server that speaks OpenAI chat completions.
#[derive(Clone, Debug)]
pub struct OpenAi {
    /// Without it the built-in demo model answers.
    pub base_url: Option<String>,
    pub api_key: Option<Secret>,
    /// Longest silence of a stream.
    pub idle_timeout: Duration,
}

impl OpenAi {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            base_url: section.http_url("base_url"),
            api_key: section.secret("api_key", "text, numbers in quotes", |_| true),
            idle_timeout: section.seconds("idle_timeout_seconds", 120, 1..=3600),
        }
    }
}

/// `model` is a name; the original also writes a section with the name under
/// `default` (or `model`) and the account beside it.
pub(super) fn read_model(root: &mut Section<'_>) -> Option<String> {
    if !matches!(root.peek("model"), Some(Value::Map(_))) {
        return root.optional_text("model");
    }
    root.section("model", |section| {
        section.ignore(original::MODEL);
        let (default, model) = (section.optional_text("default"), section.optional_text("model"));
        default.or(model)
    })
}

/// `model_routes`: other names for models, each with the model that answers to it
/// or, as the original writes it, with a section that has it as `model`.
pub(super) fn read_routes(root: &mut Section<'_>) -> BTreeMap<String, String> {
    let allowed = "for each name the name of a model, or a section with it as `model`";
    root.take("model_routes", BTreeMap::new(), allowed, routes, |routes| json!(routes))
}

fn routes(node: &Node) -> Option<BTreeMap<String, String>> {
    let Value::Map(entries) = &node.value else { return None };
    let routes = entries.iter().map(|(alias, node)| {
        let model = match &node.value {
            Value::Map(fields) => fields.iter().find(|(key, _)| key == "model").map(|(_, node)| node)?,
            _ => node,
        };
        let model = model.text().map(str::trim).filter(|model| !model.is_empty())?;
        (!alias.trim().is_empty()).then(|| (alias.clone(), model.to_owned()))
    });
    routes.collect()
}
