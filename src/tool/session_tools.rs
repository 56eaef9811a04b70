//! The tools of one session: what is offered and why the rest is not. The same
//! value is shown to clients, sent to the model and checked at dispatch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::Tool;
use crate::model::client_tool::ClientTool;

/// A tool that the selection names and the session does not get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Absent {
    pub name: String,
    pub reason: String,
}

#[derive(Clone)]
pub struct SessionTools {
    offered: Vec<&'static dyn Tool>,
    /// Those that the client carries out.
    clients: Vec<ClientTool>,
    absent: Vec<Absent>,
    definitions: Option<Arc<RawValue>>,
}

impl SessionTools {
    /// Tools are sorted by name, so that the definitions are byte-stable.
    pub fn new(offered: Vec<&'static dyn Tool>, absent: Vec<Absent>) -> Self {
        Self::with_clients(offered, absent, &[])
    }

    /// With tools of the client. One that has the name of a tool of the server
    /// is left out.
    pub fn with_clients(mut offered: Vec<&'static dyn Tool>, mut absent: Vec<Absent>, clients: &[ClientTool]) -> Self {
        let taken = |name: &str| offered.iter().any(|tool| tool.spec().name == name);
        let mut clients: Vec<ClientTool> = clients.iter().filter(|tool| !taken(tool.name())).cloned().collect();
        clients.sort_by(|a, b| a.name().cmp(b.name()));
        offered.sort_by_key(|tool| tool.spec().name);
        absent.sort_by(|a, b| a.name.cmp(&b.name));
        let own = offered.iter().map(|tool| definition(*tool));
        let definitions: Vec<serde_json::Value> = own.chain(clients.iter().map(ClientTool::definition)).collect();
        // Values made of strings and maps always serialise.
        let definitions = if definitions.is_empty() {
            None
        } else {
            to_raw_value(&definitions).ok().map(Arc::from)
        };
        Self {
            offered,
            clients,
            absent,
            definitions,
        }
    }

    pub fn get(&self, name: &str) -> Option<&'static dyn Tool> {
        self.offered.iter().copied().find(|tool| tool.spec().name == name)
    }

    /// A tool that the client carries out.
    pub fn client(&self, name: &str) -> Option<&ClientTool> {
        self.clients.iter().find(|tool| tool.name() == name)
    }

    pub fn clients(&self) -> &[ClientTool] {
        &self.clients
    }

    /// Whether the model may call a tool of this name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some() || self.client(name).is_some()
    }

    /// JSON Schema of a tool's arguments.
    pub fn parameters(&self, name: &str) -> Option<serde_json::Value> {
        let own = self.get(name).map(Tool::parameters);
        own.or_else(|| self.client(name).map(ClientTool::parameters))
    }

    pub fn names(&self) -> Vec<&str> {
        let own = self.offered.iter().map(|tool| tool.spec().name);
        own.chain(self.clients.iter().map(ClientTool::name)).collect()
    }

    /// The same without tools of these names, for that reason.
    pub fn without(&self, names: &[&str], reason: &str) -> Self {
        let is_out = |tool: &&'static dyn Tool| names.contains(&tool.spec().name);
        let (out, offered): (Vec<_>, Vec<_>) = self.offered.iter().copied().partition(is_out);
        let out = out.into_iter().map(|tool| Absent {
            name: tool.spec().name.to_owned(),
            reason: reason.to_owned(),
        });
        Self::with_clients(offered, self.absent.iter().cloned().chain(out).collect(), &self.clients)
    }

    /// The same with these tools of the client.
    pub fn and_clients(&self, clients: &[ClientTool]) -> Self {
        Self::with_clients(self.offered.clone(), self.absent.clone(), clients)
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
