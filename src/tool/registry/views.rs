//! Tools and toolsets as clients see them.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::live::Offers;
use super::{Entry, Registry};
use crate::tool::toolset::Info;

/// A tool as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ToolView {
    pub name: String,
    pub toolset: String,
    pub description: String,
    pub emoji: String,
    /// JSON Schema of the arguments.
    #[schema(value_type = Object)]
    pub parameters: Value,
    /// Environment variables the tool wants; for display.
    pub requires_env: Vec<String>,
    /// `built_in`, or the plugin or tool server that brought it.
    pub source: String,
    pub available: bool,
    /// Why it is not available.
    pub reason: Option<String>,
}

/// A toolset as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolsetView {
    #[serde(flatten)]
    pub info: Info,
    /// The name with its sign, for people.
    pub label: String,
    /// At least one of its tools can be offered.
    pub available: bool,
    /// Sessions have its tools unless they say otherwise.
    pub enabled: bool,
    /// All that its tools need is there.
    pub configured: bool,
    /// The names of its tools, as `resolved_tools`.
    pub tools: Vec<String>,
}

impl Registry {
    /// Every tool, sorted by name.
    pub fn tool_views(&self, offers: Offers<'_>) -> Vec<ToolView> {
        self.all().iter().map(|tool| view(tool, offers)).collect()
    }

    /// Every toolset, sorted by name; `presets` are what sessions begin with.
    pub fn toolset_views(&self, offers: Offers<'_>, presets: &[String]) -> Vec<ToolsetView> {
        let is_offered = |name: &String| self.get(name).is_some_and(|tool| offers.refused(tool).is_none());
        let begun_with = self.catalog().select(Some(presets), &[]).tools;
        let names = self.catalog().names().into_iter();
        let infos = names.filter_map(|name| self.catalog().info(&name));
        infos
            .map(|info| {
                let resolved = &info.resolved_tools;
                let sign = resolved.iter().find_map(|name| self.get(name).map(|tool| tool.emoji()));
                let sign = sign.filter(|sign| !sign.is_empty()).unwrap_or("⚡");
                ToolsetView {
                    label: format!("{sign} {}", info.name.replace(['_', '-'], " ")),
                    available: resolved.iter().any(is_offered),
                    enabled: !resolved.is_empty() && resolved.iter().all(|name| begun_with.contains(name)),
                    configured: !resolved.is_empty() && resolved.iter().all(is_offered),
                    tools: resolved.clone(),
                    info,
                }
            })
            .collect()
    }
}

fn view(tool: &Entry, offers: Offers<'_>) -> ToolView {
    let reason = offers.refused(tool);
    ToolView {
        name: tool.name().to_owned(),
        toolset: tool.toolset().to_owned(),
        description: tool.description().to_owned(),
        emoji: tool.emoji().to_owned(),
        parameters: tool.schema().clone(),
        requires_env: tool.requires_env().to_vec(),
        source: tool.source().name().to_owned(),
        available: reason.is_none(),
        reason,
    }
}
