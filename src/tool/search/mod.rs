//! Large catalogues: tools that plugins and tool servers brought are not all
//! described to the model. It searches them, reads the description of one, and
//! calls it through a bridge; what runs is the tool itself, under its own name.

mod bridge;
mod rank;

use std::sync::Arc;

use serde_json::{Value, json};

use super::registry::{Entry, Source};
use crate::base::text::first_chars;

pub use bridge::{CALL, DESCRIBE, SEARCH, bridges, unwrap};

/// What an unknown window is taken for when the size of schemas is judged
/// (the original's figure).
const UNKNOWN_WINDOW_TOKENS: usize = 20_000;
/// Characters a token, about.
const CHARS_PER_TOKEN: usize = 4;
/// Of a description in a list of matches.
const SHOWN_CHARS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When the schemas take too much of the model's window.
    Auto,
    On,
    Off,
}

/// `tools.tool_search`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub mode: Mode,
    pub threshold_percent: u32,
    pub default_limit: u32,
    pub max_limit: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            threshold_percent: 10,
            default_limit: 5,
            max_limit: 20,
        }
    }
}

/// Whether a tool may be left to be searched for: what is part of the binary is
/// always described.
pub fn is_deferrable(tool: &Entry) -> bool {
    tool.source() != &Source::BuiltIn
}

/// Whether these tools are left to be searched for.
pub fn is_wanted(settings: &Settings, deferrable: &[Arc<Entry>], window: Option<usize>) -> bool {
    if deferrable.is_empty() {
        return false;
    }
    match settings.mode {
        Mode::On => true,
        Mode::Off => false,
        Mode::Auto => {
            let chars: usize = deferrable
                .iter()
                .map(|tool| tool.definition(&[]).to_string().chars().count())
                .sum();
            let threshold = match window {
                Some(tokens) => tokens.saturating_mul(settings.threshold_percent as usize) / 100,
                None => UNKNOWN_WINDOW_TOKENS,
            };
            threshold <= chars / CHARS_PER_TOKEN
        }
    }
}

/// What a search for tools answers.
fn found(query: &str, limit: usize, tools: &[Arc<Entry>]) -> Value {
    let matches = rank::ranked(query, tools).into_iter().take(limit);
    let matches = matches.map(|tool| {
        json!({"name": tool.name(), "source": kind(tool), "source_name": tool.source().name(),
            "description": first_chars(tool.description(), SHOWN_CHARS)})
    });
    json!({"query": query, "total_available": tools.len(), "matches": matches.collect::<Vec<_>>()})
}

fn kind(tool: &Entry) -> &'static str {
    match tool.source() {
        _ if tool.toolset().starts_with("mcp-") => "mcp",
        Source::Loaded(_) => "plugin",
        Source::BuiltIn => "other",
    }
}
