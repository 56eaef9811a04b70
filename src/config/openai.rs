//! `model` and `openai`: which model answers, and where its server is.

use std::time::Duration;

use crate::base::Secret;

use super::node::Value;
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
