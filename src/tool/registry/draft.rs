//! A registry in the making: tools come in one after another, and the rules say
//! which of two tools of one name stays.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::entry::{Entry, Source};

/// A tool that wants to be in the registry.
#[derive(Clone, Debug)]
pub struct Registration {
    pub tool: Arc<Entry>,
    /// It asks to take the place of a tool of another toolset.
    pub overrides: bool,
    /// The operator allows its source to do so.
    pub may_override: bool,
}

impl Registration {
    pub fn plain(tool: Arc<Entry>) -> Self {
        Self {
            tool,
            overrides: false,
            may_override: false,
        }
    }
}

/// A tool that is not in the registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    #[error("the tool `{name}` of toolset `{toolset}` is left out: `{kept}` has a tool of this name")]
    Taken {
        name: String,
        toolset: String,
        kept: String,
        source_name: String,
    },
    #[error(
        "the tool `{name}` of `{source_name}` may not take the place of another: the operator has not allowed it \
         (`plugins.entries.{source_name}.allow_tool_override`)"
    )]
    NotAllowed { name: String, source_name: String },
    #[error("a tool is left out: it failed when it was asked for its name")]
    Nameless,
}

impl LeftOut {
    /// Who wanted to bring it.
    pub fn source(&self) -> Option<&str> {
        match self {
            Self::Taken { source_name, .. } | Self::NotAllowed { source_name, .. } => Some(source_name),
            Self::Nameless => None,
        }
    }

    pub fn tool(&self) -> Option<&String> {
        match self {
            Self::Taken { name, .. } | Self::NotAllowed { name, .. } => Some(name),
            Self::Nameless => None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Draft {
    tools: BTreeMap<String, Arc<Entry>>,
    aliases: BTreeMap<String, String>,
    left_out: Vec<LeftOut>,
}

impl Draft {
    pub(super) fn leave_out(&mut self, left_out: LeftOut) {
        tracing::error!("{left_out}");
        self.left_out.push(left_out);
    }

    /// Takes a tool in, or notes why not.
    pub(super) fn register(&mut self, wanted: &Registration) {
        let tool = &wanted.tool;
        let settled = match self.tools.get(tool.name()) {
            None => Ok(()),
            Some(there) => settled(there, wanted),
        };
        match settled {
            Ok(()) => {
                self.tools.insert(tool.name().to_owned(), Arc::clone(tool));
            }
            Err(left_out) => self.leave_out(left_out),
        }
    }

    pub(super) fn alias(&mut self, alias: &str, toolset: &str) {
        let before = self.aliases.insert(alias.to_owned(), toolset.to_owned());
        if let Some(before) = before.filter(|before| before != toolset) {
            tracing::warn!(alias, toolset, before, "an alias of a toolset points elsewhere now");
        }
    }

    /// Tools sorted by name; aliases of toolsets that have tools.
    pub(super) fn finish(mut self) -> (Vec<Arc<Entry>>, BTreeMap<String, String>, Vec<LeftOut>) {
        let tools: Vec<Arc<Entry>> = self.tools.into_values().collect();
        self.aliases
            .retain(|_, toolset| tools.iter().any(|tool| tool.toolset() == toolset));
        (tools, self.aliases, self.left_out)
    }
}

/// Whether a tool takes the place of one that is there. What is part of the
/// binary goes for nothing less than an override that the operator allowed.
fn settled(there: &Entry, wanted: &Registration) -> Result<(), LeftOut> {
    let tool = &wanted.tool;
    let is_server = |tool: &Entry| tool.toolset().starts_with("mcp-");
    let is_again = there.toolset() == tool.toolset() && there.source() != &Source::BuiltIn;
    if is_again || (is_server(there) && is_server(tool)) {
        return Ok(());
    }
    if !wanted.overrides {
        return Err(LeftOut::Taken {
            name: tool.name().to_owned(),
            toolset: tool.toolset().to_owned(),
            kept: there.toolset().to_owned(),
            source_name: tool.source().name().to_owned(),
        });
    }
    if !wanted.may_override {
        return Err(LeftOut::NotAllowed {
            name: tool.name().to_owned(),
            source_name: tool.source().name().to_owned(),
        });
    }
    tracing::info!(
        tool = tool.name(),
        by = tool.source().name(),
        of = there.toolset(),
        "a tool is overridden"
    );
    Ok(())
}
