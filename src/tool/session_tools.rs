//! The tools of one session: what is offered and why the rest is not. The same
//! value is shown to clients, sent to the model and checked at dispatch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::Tool;

/// A tool that the selection names and the session does not get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Absent {
    pub name: String,
    pub reason: String,
}

#[derive(Clone)]
pub struct SessionTools {
    offered: Vec<&'static dyn Tool>,
    absent: Vec<Absent>,
    definitions: Option<Arc<RawValue>>,
}

impl SessionTools {
    /// Tools are sorted by name, so that the definitions are byte-stable.
    pub fn new(mut offered: Vec<&'static dyn Tool>, mut absent: Vec<Absent>) -> Self {
        offered.sort_by_key(|tool| tool.spec().name);
        absent.sort_by(|a, b| a.name.cmp(&b.name));
        let definitions: Vec<serde_json::Value> = offered.iter().map(|tool| definition(*tool)).collect();
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

    pub fn get(&self, name: &str) -> Option<&'static dyn Tool> {
        self.offered.iter().copied().find(|tool| tool.spec().name == name)
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.offered.iter().map(|tool| tool.spec().name).collect()
    }

    pub fn offered(&self) -> &[&'static dyn Tool] {
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

fn definition(tool: &dyn Tool) -> serde_json::Value {
    let spec = tool.spec();
    serde_json::json!({
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": tool.parameters()},
    })
}
