//! `hooks`: what the operator wants asked or told around calls, sessions and
//! approvals, by the point where it happens.

use std::time::Duration;

use serde_json::json;
use url::Url;

use super::kinds::trusted_url;
use super::node::{Node, Value};
use super::section::Section;

/// Where a hook stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookPoint {
    /// May replace the arguments of a call.
    ToolRequest,
    /// May refuse a call, or have a person decide.
    PreToolCall,
    /// Stands around a call that runs.
    ToolExecution,
    /// Told of a call that ended.
    PostToolCall,
    /// May replace the text of a result.
    TransformToolResult,
    OnSessionStart,
    OnSessionEnd,
    /// Told that a person is asked, and of the end of it.
    PreApproval,
    PostApproval,
}

impl HookPoint {
    pub const ALL: [Self; 9] = [
        Self::ToolRequest,
        Self::PreToolCall,
        Self::ToolExecution,
        Self::PostToolCall,
        Self::TransformToolResult,
        Self::OnSessionStart,
        Self::OnSessionEnd,
        Self::PreApproval,
        Self::PostApproval,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ToolRequest => "tool_request",
            Self::PreToolCall => "pre_tool_call",
            Self::ToolExecution => "tool_execution",
            Self::PostToolCall => "post_tool_call",
            Self::TransformToolResult => "transform_tool_result",
            Self::OnSessionStart => "on_session_start",
            Self::OnSessionEnd => "on_session_end",
            Self::PreApproval => "pre_approval",
            Self::PostApproval => "post_approval",
        }
    }

    /// The original's longer name of the point.
    fn alias(self) -> Option<&'static str> {
        match self {
            Self::PreApproval => Some("pre_approval_request"),
            Self::PostApproval => Some("post_approval_response"),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAction {
    /// A program and its arguments; no shell reads them.
    Command(Vec<String>),
    Url(Url),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub point: HookPoint,
    pub name: String,
    pub action: HookAction,
    /// A regular expression that the whole name of the tool fits; all where none
    /// is said.
    pub matcher: Option<String>,
    pub timeout: Duration,
}

const ALLOWED: &str = "a list of hooks, each with `command` (a program with its arguments) or `url` (https; http on this \
    machine only), and perhaps `name`, `matcher` (a regular expression of tool names) and `timeout` (1 to 300 seconds)";

/// Points of the original that this server does not have.
#[rustfmt::skip]
const IGNORED: &[&str] = &[
    "api_request_error", "kanban_task_blocked", "kanban_task_claimed", "kanban_task_completed", "on_session_finalize",
    "on_session_reset", "post_api_request", "post_llm_call", "pre_api_request", "pre_gateway_dispatch", "pre_llm_call",
    "pre_verify", "subagent_start", "subagent_stop", "transform_llm_output", "transform_terminal_output",
];

pub(super) fn read(section: &mut Section<'_>) -> Vec<Hook> {
    section.ignore(IGNORED);
    let mut all = Vec::new();
    for point in HookPoint::ALL {
        let names = [Some(point.name()), point.alias()];
        for name in names.into_iter().flatten() {
            if name != point.name() && section.peek(name).is_none() {
                continue;
            }
            let read = |node: &Node| hooks(point, node);
            let show = |hooks: &Vec<Hook>| json!(hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>());
            all.extend(section.take(name, Vec::new(), ALLOWED, read, show));
        }
    }
    all
}

fn hooks(point: HookPoint, node: &Node) -> Option<Vec<Hook>> {
    let Value::List(items) = &node.value else { return None };
    items
        .iter()
        .enumerate()
        .map(|(place, item)| hook(point, place, item))
        .collect()
}

fn hook(point: HookPoint, place: usize, node: &Node) -> Option<Hook> {
    let Value::Map(fields) = &node.value else { return None };
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, node)| node);
    let known = ["name", "command", "url", "matcher", "timeout"];
    if fields.iter().any(|(key, _)| !known.contains(&key.as_str())) {
        return None;
    }
    let action = match (field("command"), field("url")) {
        (Some(command), None) => HookAction::Command(words(command)?),
        (None, Some(url)) => HookAction::Url(trusted_url(url)?),
        _ => return None,
    };
    let matcher = match field("matcher").map(Node::text) {
        None => None,
        Some(text) => Some(text.filter(|text| regex::Regex::new(text).is_ok())?.to_owned()),
    };
    let seconds = match field("timeout").map(|node| &node.value) {
        None => 10,
        Some(Value::Integer(seconds @ 1..=300)) => u64::try_from(*seconds).ok()?,
        Some(_) => return None,
    };
    let name = match field("name") {
        Some(name) => name.text()?.to_owned(),
        None => format!("{}[{place}]", point.name()),
    };
    Some(Hook {
        point,
        name,
        action,
        matcher,
        timeout: Duration::from_secs(seconds),
    })
}

/// A list of words, or one text that blanks and quotes divide.
fn words(node: &Node) -> Option<Vec<String>> {
    let words = match &node.value {
        Value::List(items) => items
            .iter()
            .map(|item| item.text().map(str::to_owned))
            .collect::<Option<_>>()?,
        _ => split(node.text()?)?,
    };
    Some(words).filter(|words: &Vec<String>| words.first().is_some_and(|program| !program.is_empty()))
}

/// As a shell divides words, without anything else that a shell does.
fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), character) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(characters.next()?),
            (None, character) if character.is_whitespace() => words.extend(word.take()),
            (_, character) => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_divided_and_nothing_else() {
        let divided = |text: &str| split(text).map(|words| words.join("|"));
        assert_eq!(
            divided("a  b 'c d' \"e \\\" f\" g\\ h $X").as_deref(),
            Some("a|b|c d|e \" f|g h|$X")
        );
        assert_eq!(divided("a ''").as_deref(), Some("a|"));
        assert_eq!(divided("a 'b"), None);
    }
}
