//! The tools of one session: what is offered and why the rest is not. The same
//! value is shown to clients, sent to the model and checked at dispatch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::registry::Entry;
use super::search;
use crate::model::client_tool::ClientTool;

/// A tool that the selection names and the session does not get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Absent {
    pub name: String,
    pub reason: String,
}

#[derive(Clone, Default)]
pub struct SessionTools {
    offered: Vec<Arc<Entry>>,
    /// Those that the client carries out.
    clients: Vec<ClientTool>,
    absent: Vec<Absent>,
    /// Of the offered ones those that the model has to search for.
    deferred: Vec<Arc<Entry>>,
    search: search::Settings,
    definitions: Option<Arc<RawValue>>,
}

impl SessionTools {
    /// Tools are sorted by name, so that the definitions are byte-stable.
    pub fn new(mut offered: Vec<Arc<Entry>>, mut absent: Vec<Absent>) -> Self {
        offered.sort_by(|a, b| a.name().cmp(b.name()));
        absent.sort_by(|a, b| a.name.cmp(&b.name));
        let mut tools = Self {
            offered,
            absent,
            ..Self::default()
        };
        tools.define();
        tools
    }

    /// The same tools, those that came at run time left to be searched for where
    /// the settings want it for a model of this window.
    #[must_use]
    pub fn searchable(mut self, settings: &search::Settings, window: Option<usize>) -> Self {
        let deferrable = self.offered.iter().filter(|tool| search::is_deferrable(tool));
        let deferrable: Vec<Arc<Entry>> = deferrable.cloned().collect();
        if !search::is_wanted(settings, &deferrable, window) {
            return self;
        }
        self.deferred = deferrable;
        self.search = *settings;
        self.offered.extend(search::bridges());
        self.offered.sort_by(|a, b| a.name().cmp(b.name()));
        self.define();
        self
    }

    fn define(&mut self) {
        let names = self.names();
        let described = self.offered.iter().filter(|tool| !self.is_deferred(tool.name()));
        let own = described.map(|tool| tool.definition(&names));
        let definitions: Vec<Value> = own.chain(self.clients.iter().map(ClientTool::definition)).collect();
        // Values made of strings and maps always serialise.
        self.definitions = if definitions.is_empty() {
            None
        } else {
            to_raw_value(&definitions).ok().map(Arc::from)
        };
    }

    /// Those that the model has to search for.
    pub fn deferred(&self) -> &[Arc<Entry>] {
        &self.deferred
    }

    pub fn is_deferred(&self, name: &str) -> bool {
        self.deferred.iter().any(|tool| tool.name() == name)
    }

    pub fn search(&self) -> &search::Settings {
        &self.search
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        let at = self.offered.binary_search_by(|tool| tool.name().cmp(name)).ok()?;
        self.offered.get(at)
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
    pub fn parameters(&self, name: &str) -> Option<Value> {
        let own = self.get(name).map(|tool| tool.schema().clone());
        own.or_else(|| self.client(name).map(ClientTool::parameters))
    }

    pub fn names(&self) -> Vec<&str> {
        let own = self.offered.iter().map(|tool| tool.name());
        own.chain(self.clients.iter().map(ClientTool::name)).collect()
    }

    /// The same without tools of these names, for that reason.
    #[must_use]
    pub fn without(mut self, names: &[&str], reason: &str) -> Self {
        let before = self.offered.len();
        self.offered.retain(|tool| {
            let stays = !names.contains(&tool.name());
            if !stays {
                self.absent.push(Absent {
                    name: tool.name().to_owned(),
                    reason: reason.to_owned(),
                });
            }
            stays
        });
        if self.offered.len() < before {
            self.absent.sort_by(|a, b| a.name.cmp(&b.name));
            self.define();
        }
        self
    }

    /// The same with these tools of the client. One that has the name of a tool
    /// of the server is left out.
    pub fn and_clients(&self, clients: &[ClientTool]) -> Self {
        let mut tools = self.clone();
        let fresh = clients.iter().filter(|tool| self.get(tool.name()).is_none());
        tools.clients = fresh.cloned().collect();
        tools.clients.sort_by(|a, b| a.name().cmp(b.name()));
        tools.define();
        tools
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
