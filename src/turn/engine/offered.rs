//! The tools of sessions and turns: worked out once for each selection, since
//! every commit of every turn asks for them. Nothing here decides what a selection
//! holds; that is the registry's.

use super::*;

impl Engine {
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
        let (registry, now) = (self.registry(tenant), self.clock().now());
        let key = match clients {
            [] => format!("{} {selection:?} {blocked:?}", registry.generation()),
            clients => format!("{} {selection:?} {blocked:?} {clients:?}", registry.generation()),
        };
        let known = || self.0.selections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tools)) = known().get(&key).filter(|(at, _)| now.since(*at) < KEPT) {
            return Ok(Arc::clone(tools));
        }
        // Checks run here, so no lock is held.
        let tools = registry.select(selection, self.tools().offers(self.host()))?;
        let tools = match clients {
            [] => tools,
            clients => tools.and_clients(clients),
        };
        let tools = Arc::new(tools.without(blocked, delegation::REASON));
        let mut known = known();
        if MAX_SELECTIONS <= known.len() {
            known.clear();
        }
        known.insert(key, (now, Arc::clone(&tools)));
        Ok(tools)
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
        let tools = tools.and_clients(&session.tools);
        Ok(tools.without(self.blocked(session), delegation::REASON))
    }

    /// Tools that delegated work does not get.
    pub(super) fn blocked(&self, session: &SessionRecord) -> &'static [&'static str] {
        let lineage = session.lineage.as_ref();
        lineage.map_or(&[], |lineage| self.0.parts.settings.delegation.blocked(lineage))
    }
}
