//! The names and descriptions of a tenant's skills, as a prompt shows them. Kept
//! for half a minute (Hermes), since every model call asks for them and they lie
//! on a disk; a change that was made here is seen at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::library::{Library, Skill};
use crate::base::text::first_chars;
use crate::model::id::TenantId;

const FRESH: Duration = Duration::from_secs(30);
/// Tenants that are kept; a full table starts over.
const MAX_TENANTS: usize = 1_024;
/// Of a description; the skill itself says the rest.
const DESCRIPTION_CHARS: usize = 160;
/// Of the whole, so that many skills leave room for the talk.
const MAX_CHARS: usize = 20_000;

#[derive(Debug, Default)]
pub struct Index {
    known: Mutex<HashMap<TenantId, (Instant, Arc<str>)>>,
}

impl Index {
    /// The block of the prompt; empty where there are no skills, or where they
    /// cannot be read.
    pub async fn block(&self, tenant: TenantId, library: Library) -> Arc<str> {
        if let Some((at, block)) = self.known().get(&tenant)
            && at.elapsed() < FRESH
        {
            return Arc::clone(block);
        }
        let listed = tokio::task::spawn_blocking(move || library.list()).await;
        let block: Arc<str> = match listed {
            Ok(Ok(mut skills)) => {
                skills.retain(Skill::is_available);
                written(&skills).into()
            }
            Ok(Err(error)) => {
                tracing::warn!(%tenant, %error, "the skills cannot be read");
                return Arc::from("");
            }
            Err(_) => return Arc::from(""),
        };
        let mut known = self.known();
        if MAX_TENANTS <= known.len() {
            known.clear();
        }
        known.insert(tenant, (Instant::now(), Arc::clone(&block)));
        block
    }

    /// The tenant's skills changed.
    pub fn forget(&self, tenant: TenantId) {
        self.known().remove(&tenant);
    }

    /// Everybody's may have changed.
    pub fn forget_all(&self) {
        self.known().clear();
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<TenantId, (Instant, Arc<str>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn written(skills: &[Skill]) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let mut block = String::from(
        "Skills say how things are done here. Before you reply, look whether one fits the task; if so, read it with \
         `skill_view` and follow it.\n",
    );
    for (place, skill) in skills.iter().enumerate() {
        let line = first_chars(skill.document.description.trim(), DESCRIPTION_CHARS).replace('\n', " ");
        if MAX_CHARS < block.len() + line.len() {
            block.push_str(&format!("\n({} more: `skills_list` shows them)", skills.len() - place));
            break;
        }
        block.push_str(&format!("\n- {}: {line}", skill.path()));
    }
    block
}
