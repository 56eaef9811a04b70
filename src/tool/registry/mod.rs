//! Every tool of this server, collected from where each registers itself.
//!
//! A value, sorted by name: nothing here is global but the collecting. What a
//! selection of toolsets means for a session is decided here, with a reason for
//! every tool that the session does not get.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::session_tools::{Absent, SessionTools};
use super::toolset::{Catalog, Info};
use super::{Host, Tool};
use crate::base::similarity::closest;
use crate::model::session::ToolsetSelection;

/// What a tool's file submits.
pub struct Registered(pub &'static dyn Tool);

inventory::collect!(Registered);

/// How alike a name must be to be suggested for an unknown one (the figure of
/// the repair of tool names, less a little: a person reads this).
const SUGGESTION: f64 = 0.6;

pub struct Registry {
    tools: Vec<&'static dyn Tool>,
    collisions: Vec<Collision>,
    catalog: Catalog,
}

/// A second tool of a name that is taken; the tool whose toolset comes first
/// stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tool `{name}` of toolset `{toolset}` is left out: `{kept}` has a tool of this name")]
pub struct Collision {
    pub name: String,
    pub toolset: String,
    pub kept: String,
}

/// What a turn may choose from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// Toolsets to begin with: the session's preset, or those the
    /// configuration names where it has none.
    pub presets: &'a [String],
    /// Of the session.
    pub session: Option<&'a ToolsetSelection>,
    /// Of the turn, in place of the session's.
    pub turn: Option<&'a ToolsetSelection>,
    /// Names of the tools the principal may use at most.
    pub ceiling: Option<&'a [String]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownToolset {
    pub name: String,
    pub nearest: Option<String>,
}

impl std::error::Error for UnknownToolset {}

impl std::fmt::Display for UnknownToolset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no toolset `{}`", self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

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
    pub available: bool,
    /// Why it is not available.
    pub reason: Option<String>,
}

/// A toolset as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolsetView {
    #[serde(flatten)]
    pub info: Info,
    /// At least one of its tools can be offered.
    pub available: bool,
}

impl Registry {
    /// The sign that stands for each tool.
    pub fn emojis(&self) -> HashMap<&'static str, &'static str> {
        self.tools
            .iter()
            .map(|tool| (tool.spec().name, tool.spec().emoji))
            .collect()
    }

    /// Every tool whose file is part of this binary.
    pub fn collect() -> Self {
        Self::of(inventory::iter::<Registered>().map(|registered| registered.0))
    }

    fn of(tools: impl Iterator<Item = &'static dyn Tool>) -> Self {
        let mut all: Vec<&'static dyn Tool> = tools.collect();
        // The order of collecting is not defined.
        all.sort_by_key(|tool| (tool.spec().name, tool.spec().toolset));
        let mut tools: Vec<&'static dyn Tool> = Vec::with_capacity(all.len());
        let mut collisions = Vec::new();
        for tool in all {
            let spec = tool.spec();
            match tools
                .last()
                .map(|last| last.spec())
                .filter(|last| last.name == spec.name)
            {
                Some(kept) => collisions.push(Collision {
                    name: spec.name.to_owned(),
                    toolset: spec.toolset.to_owned(),
                    kept: kept.toolset.to_owned(),
                }),
                None => tools.push(tool),
            }
        }
        let catalog = Catalog::new(tools.iter().map(|tool| (tool.spec().name, tool.spec().toolset)), []);
        Self {
            tools,
            collisions,
            catalog,
        }
    }

    /// Tools that were left out; a server with any was built wrongly.
    pub fn collisions(&self) -> &[Collision] {
        &self.collisions
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub fn get(&self, name: &str) -> Option<&'static dyn Tool> {
        let at = self.tools.binary_search_by_key(&name, |tool| tool.spec().name).ok()?;
        self.tools.get(at).copied()
    }

    /// Sorted by name.
    pub fn all(&self) -> &[&'static dyn Tool] {
        &self.tools
    }

    /// The tools of a session or of one of its turns.
    pub fn select(&self, selection: &Selection<'_>, host: &Host) -> Result<SessionTools, UnknownToolset> {
        let chosen = selection.turn.or(selection.session);
        let added = chosen.and_then(|chosen| chosen.enabled.as_deref()).unwrap_or_default();
        let enabled: Vec<String> = selection.presets.iter().chain(added).cloned().collect();
        let disabled = chosen.map(|chosen| chosen.disabled.as_slice()).unwrap_or_default();
        let resolved = self.catalog.select(Some(&enabled), disabled);
        if let Some(name) = resolved.unknown.into_iter().next() {
            let known = self.catalog.names();
            let nearest = closest(&name, known.iter().map(String::as_str), SUGGESTION).map(str::to_owned);
            return Err(UnknownToolset { name, nearest });
        }
        let mut offered = Vec::new();
        let mut absent = Vec::new();
        for name in resolved.tools {
            match self.offer(&name, selection.ceiling, host) {
                Ok(tool) => offered.push(tool),
                Err(reason) => absent.push(Absent { name, reason }),
            }
        }
        Ok(SessionTools::new(offered, absent))
    }

    fn offer(&self, name: &str, ceiling: Option<&[String]>, host: &Host) -> Result<&'static dyn Tool, String> {
        let tool = self.get(name).ok_or("not built into this server")?;
        if let Some(reason) = tool.unavailable(host) {
            return Err(reason);
        }
        if ceiling.is_some_and(|ceiling| !ceiling.iter().any(|allowed| allowed == name)) {
            return Err("not permitted by the API key".to_owned());
        }
        Ok(tool)
    }

    /// Every tool, sorted by name.
    pub fn tool_views(&self, host: &Host) -> Vec<ToolView> {
        self.tools.iter().map(|tool| view(*tool, host)).collect()
    }

    /// Every toolset, sorted by name.
    pub fn toolset_views(&self, host: &Host) -> Vec<ToolsetView> {
        let is_offered = |name: &String| self.get(name).is_some_and(|tool| tool.unavailable(host).is_none());
        let infos = self
            .catalog
            .names()
            .into_iter()
            .filter_map(|name| self.catalog.info(&name));
        infos
            .map(|info| ToolsetView {
                available: info.resolved_tools.iter().any(is_offered),
                info,
            })
            .collect()
    }
}

fn view(tool: &dyn Tool, host: &Host) -> ToolView {
    let spec = tool.spec();
    let reason = tool.unavailable(host);
    ToolView {
        name: spec.name.to_owned(),
        toolset: spec.toolset.to_owned(),
        description: spec.description.to_owned(),
        emoji: spec.emoji.to_owned(),
        parameters: tool.parameters(),
        requires_env: spec.requires_env.iter().map(|name| (*name).to_owned()).collect(),
        available: reason.is_none(),
        reason,
    }
}

#[cfg(test)]
mod tests;
