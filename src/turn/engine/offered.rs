//! The tools of sessions and turns: worked out once for each selection, since
//! every commit of every turn asks for them. Nothing here decides what a selection
//! holds; that is the registry's.

use super::*;

impl Engine {
    /// The tools of a selection: worked out once, since every commit of every
    /// turn asks for them.
    pub(super) fn selected(
        &self,
        tenant: TenantId,
        selection: &Selection<'_>,
        clients: &[ClientTool],
        blocked: &[&str],
    ) -> Arc<SessionTools> {
        let (registry, now) = (self.registry(tenant), self.clock().now());
        let key = match clients {
            [] => format!("{} {selection:?} {blocked:?}", registry.generation()),
            clients => format!("{} {selection:?} {blocked:?} {clients:?}", registry.generation()),
        };
        let known = || self.0.selections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tools)) = known().get(&key).filter(|(at, _)| now.since(*at) < KEPT) {
            return Arc::clone(tools);
        }
        // Names were checked when they were set; should a toolset be gone
        // since, the turn has no tools rather than other ones. Checks run
        // here, so no lock is held.
        let tools = registry.select(selection, self.tools().offers(self.host()));
        let tools = tools.unwrap_or_else(|_| SessionTools::new(Vec::new(), Vec::new()));
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
        tools
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
