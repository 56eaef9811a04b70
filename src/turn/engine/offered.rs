//! What the engine offers its turns: tools, what stands around them, and how
//! long their results may be.

use std::sync::Arc;

use super::Engine;
use crate::model::client_tool::ClientTool;
use crate::model::id::TenantId;
use crate::model::record::SessionRecord;
use crate::tool::budget::Budget;
use crate::tool::hook::Hooks;
use crate::tool::plugin::Plugins;
use crate::tool::registry::live::Live;
use crate::tool::registry::{Registry, Selection, UnknownToolset};
use crate::tool::session_tools::SessionTools;
use crate::turn::delegation;

impl Engine {
    /// The tools that this server and its plugins have.
    pub fn tools(&self) -> &Live {
        &self.0.parts.tools
    }

    pub fn plugins(&self) -> &Plugins {
        &self.0.parts.plugins
    }

    pub fn hooks(&self) -> &Hooks {
        &self.0.parts.hooks
    }

    /// How long results may be.
    pub(in crate::turn) fn budget(&self) -> Budget {
        self.settings().window.map_or_else(Budget::default, Budget::for_window)
    }

    /// Those of a tenant, as of now.
    pub fn registry(&self, tenant: TenantId) -> Arc<Registry> {
        self.0.parts.tools.of(tenant)
    }

    /// The tools of a selection whose names were checked when they were set: should
    /// a toolset be gone since, the turn has no tools rather than other ones.
    pub(super) fn selected(
        &self,
        tenant: TenantId,
        selection: &Selection<'_>,
        clients: &[ClientTool],
        blocked: &[&str],
    ) -> Arc<SessionTools> {
        let tools = self.offered(tenant, selection, clients, blocked);
        tools.unwrap_or_else(|_| Arc::new(SessionTools::new(Vec::new(), Vec::new()).and_clients(clients)))
    }

    /// The tools of a selection: worked out once, since every new session and
    /// every commit of every turn asks for them.
    fn offered(
        &self,
        tenant: TenantId,
        selection: &Selection<'_>,
        clients: &[ClientTool],
        blocked: &[&str],
    ) -> Result<Arc<SessionTools>, UnknownToolset> {
        let registry = self.registry(tenant);
        let made = || {
            let tools = registry.select(selection, self.tools().offers(self.host()))?;
            let tools = self.searchable(tools);
            let tools = match clients {
                [] => tools,
                clients => tools.and_clients(clients),
            };
            Ok(tools.without(blocked, delegation::REASON))
        };
        let now = self.clock().now();
        self.0
            .selections
            .of((&registry, selection), (clients, blocked), now, made)
    }

    /// The tools that turns of this session get, as of a moment ago.
    pub(in crate::turn) fn recent_tools(&self, session: &SessionRecord) -> Result<Arc<SessionTools>, UnknownToolset> {
        let selection = Selection {
            presets: std::slice::from_ref(&session.preset),
            session: Some(&session.toolsets),
            turn: None,
            ceiling: None,
        };
        self.offered(session.tenant_id, &selection, &session.tools, self.blocked(session))
    }

    /// The tools a turn of this session would get now.
    pub fn session_tools(
        &self,
        session: &SessionRecord,
        ceiling: Option<&[String]>,
    ) -> Result<SessionTools, UnknownToolset> {
        let registry = self.registry(session.tenant_id);
        let selection = Selection {
            presets: std::slice::from_ref(&session.preset),
            session: Some(&session.toolsets),
            turn: None,
            ceiling,
        };
        let tools = registry.select(&selection, self.tools().offers(self.host()))?;
        let tools = self.searchable(tools).and_clients(&session.tools);
        Ok(tools.without(self.blocked(session), delegation::REASON))
    }

    fn searchable(&self, tools: SessionTools) -> SessionTools {
        let settings = self.settings();
        tools.searchable(&settings.search, settings.window)
    }

    /// Tools that delegated work does not get.
    pub(super) fn blocked(&self, session: &SessionRecord) -> &'static [&'static str] {
        let lineage = session.lineage.as_ref();
        lineage.map_or(&[], |lineage| self.0.parts.settings.delegation.blocked(lineage))
    }
}
