//! Every tool of this server, collected from where each registers itself, and
//! what plugins and tool servers bring at run time.
//!
//! A registry is a value, sorted by name: nothing here is global but the
//! collecting. What a selection of toolsets means for a session is decided here,
//! with a reason for every tool that the session does not get.

mod availability;
mod draft;
mod entry;
pub mod live;
mod recent;
mod sanity;
mod setup;
mod views;

use std::sync::Arc;

use super::Tool;
use super::session_tools::{Absent, SessionTools};
use super::toolset::Catalog;
use crate::base::similarity::closest;
use crate::model::session::ToolsetSelection;

pub use availability::{Availability, KEPT};
pub use draft::{LeftOut, Registration};
pub use entry::{Entry, Source};
pub use recent::Recent;
pub use setup::{DelegationLimits, Setup};
pub use views::{ToolView, ToolsetView};

use draft::Draft;
use live::{Bundle, Offers};

/// What a tool's file submits.
pub struct Registered(pub &'static dyn Tool);

inventory::collect!(Registered);

/// How alike a name must be to be suggested for an unknown one (the figure of
/// the repair of tool names, less a little: a person reads this).
const SUGGESTION: f64 = 0.6;

pub struct Registry {
    tools: Vec<Arc<Entry>>,
    left_out: Vec<LeftOut>,
    catalog: Catalog,
    generation: u64,
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

impl Registry {
    /// Every tool whose file is part of this binary.
    pub fn collect() -> Self {
        Self::build(0, &Setup::default(), [])
    }

    fn build<'a>(generation: u64, setup: &Setup, bundles: impl IntoIterator<Item = &'a Bundle>) -> Self {
        let built_in = inventory::iter::<Registered>().map(|registered| registered.0);
        Self::of(built_in, generation, setup, bundles)
    }

    fn of<'a>(
        built_in: impl Iterator<Item = &'static dyn Tool>,
        generation: u64,
        setup: &Setup,
        bundles: impl IntoIterator<Item = &'a Bundle>,
    ) -> Self {
        let mut draft = Draft::default();
        let mut own: Vec<Arc<Entry>> = Vec::new();
        for tool in built_in {
            match Entry::built_in_as(tool, setup) {
                Some(tool) => own.push(tool),
                None => draft.leave_out(LeftOut::Nameless),
            }
        }
        // The order of collecting is not defined.
        own.sort_by(|a, b| (a.name(), a.toolset()).cmp(&(b.name(), b.toolset())));
        for tool in own {
            draft.register(&Registration::plain(tool));
        }
        for bundle in bundles {
            bundle.tools.iter().for_each(|tool| draft.register(tool));
            for (alias, toolset) in &bundle.aliases {
                draft.alias(alias, toolset);
            }
        }
        let (tools, aliases, left_out) = draft.finish();
        let placed = |is_built_in: bool| {
            let tools = tools.iter();
            let tools = tools.filter(move |tool| (tool.source() == &Source::BuiltIn) == is_built_in);
            tools.map(|tool| (tool.name(), tool.toolset()))
        };
        let aliases = aliases
            .iter()
            .map(|(alias, toolset)| (alias.as_str(), toolset.as_str()));
        let mut catalog = Catalog::with_built_in(placed(true), placed(false), aliases);
        for (name, definition) in &setup.custom {
            catalog.define(name, definition.clone());
        }
        Self {
            tools,
            left_out,
            catalog,
            generation,
        }
    }

    /// Tools that were left out; a server whose own are among them was built
    /// wrongly.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Grows with every change; the same number means the same tools.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        let at = self.tools.binary_search_by(|tool| tool.name().cmp(name)).ok()?;
        self.tools.get(at)
    }

    /// Sorted by name.
    pub fn all(&self) -> &[Arc<Entry>] {
        &self.tools
    }

    /// The tools of a session or of one of its turns.
    pub fn select(&self, selection: &Selection<'_>, offers: Offers<'_>) -> Result<SessionTools, UnknownToolset> {
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
            match self.offer(&name, selection.ceiling, offers) {
                Ok(tool) => offered.push(tool),
                Err(reason) => absent.push(Absent { name, reason }),
            }
        }
        Ok(SessionTools::new(offered, absent))
    }

    fn offer(&self, name: &str, ceiling: Option<&[String]>, offers: Offers<'_>) -> Result<Arc<Entry>, String> {
        let tool = self.get(name).ok_or("not built into this server")?;
        if let Some(reason) = offers.refused(tool) {
            return Err(reason);
        }
        if ceiling.is_some_and(|ceiling| !ceiling.iter().any(|allowed| allowed == name)) {
            return Err("not permitted by the API key".to_owned());
        }
        Ok(Arc::clone(tool))
    }
}

#[cfg(test)]
mod tests;
