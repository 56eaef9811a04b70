//! The tools of one session: what is offered and why the rest is not. The same
//! value is shown to clients, sent to the model and checked at dispatch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::registry::Entry;

/// A tool that the selection names and the session does not get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Absent {
    pub name: String,
    pub reason: String,
}

#[derive(Clone)]
pub struct SessionTools {
    offered: Vec<Arc<Entry>>,
    absent: Vec<Absent>,
    definitions: Option<Arc<RawValue>>,
}

impl SessionTools {
    /// Tools are sorted by name, so that the definitions are byte-stable.
    pub fn new(mut offered: Vec<Arc<Entry>>, mut absent: Vec<Absent>) -> Self {
        offered.sort_by(|a, b| a.name().cmp(b.name()));
        absent.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<&str> = offered.iter().map(|tool| tool.name()).collect();
        let definitions: Vec<serde_json::Value> = offered.iter().map(|tool| tool.definition(&names)).collect();
        // Values made of strings and maps always serialise.
        let definitions = if definitions.is_empty() {
            None
        } else {
            to_raw_value(&definitions).ok().map(Arc::from)
        };
        Self {
            offered,
            absent,
            definitions,
        }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        let at = self.offered.binary_search_by(|tool| tool.name().cmp(name)).ok()?;
        self.offered.get(at)
    }

    pub fn names(&self) -> Vec<&str> {
        self.offered.iter().map(|tool| tool.name()).collect()
    }

    pub fn offered(&self) -> &[Arc<Entry>] {
        &self.offered
    }

    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// The array of OpenAI function tools, serialised once; `None` without tools.
    pub fn definitions(&self) -> Option<Arc<RawValue>> {
        self.definitions.clone()
    }
}
