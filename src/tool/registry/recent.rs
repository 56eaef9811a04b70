//! Selections worked out lately: every new session and every commit of every
//! turn asks for its tools, and hosts use a handful of selections. What is here
//! may be gone at any time; it is never older than the checks behind it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{KEPT, Registry, Selection};
use crate::base::Timestamp;
use crate::model::client_tool::ClientTool;
use crate::tool::session_tools::SessionTools;

/// Selections kept; a full map starts over.
const MOST: usize = 256;

#[derive(Default)]
pub struct Recent(Mutex<HashMap<String, (Timestamp, Arc<SessionTools>)>>);

impl Recent {
    /// The tools of a selection as they were a moment ago, or as `made` now. No
    /// lock is held meanwhile, since checks may run in there.
    pub fn of<E>(
        &self,
        (registry, selection): (&Registry, &Selection<'_>),
        (clients, blocked): (&[ClientTool], &[&str]),
        now: Timestamp,
        made: impl FnOnce() -> Result<SessionTools, E>,
    ) -> Result<Arc<SessionTools>, E> {
        let key = match clients {
            [] => format!("{} {selection:?} {blocked:?}", registry.generation()),
            clients => format!("{} {selection:?} {blocked:?} {clients:?}", registry.generation()),
        };
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tools)) = known().get(&key).filter(|(at, _)| now.since(*at) < KEPT) {
            return Ok(Arc::clone(tools));
        }
        let tools = Arc::new(made()?);
        let mut known = known();
        if MOST <= known.len() {
            known.clear();
        }
        known.insert(key, (now, Arc::clone(&tools)));
        Ok(tools)
    }
}
