//! One tool as the registry keeps it: what it says of itself, read once, and why
//! it is broken if it is. A tool that panics here breaks nothing but itself.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Setup, sanity};
use crate::tool::Tool;
use crate::tool::budget::ResultLimit;

/// Who brought a tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// It is part of this binary.
    BuiltIn,
    /// A plugin or a tool server, by its name.
    Loaded(String),
}

impl Source {
    pub fn name(&self) -> &str {
        match self {
            Self::BuiltIn => "built_in",
            Self::Loaded(name) => name,
        }
    }
}

pub struct Entry {
    body: Body,
    name: String,
    toolset: String,
    description: String,
    emoji: String,
    result_limit: ResultLimit,
    requires_env: Vec<String>,
    schema: Value,
    source: Source,
    broken: Option<String>,
}

enum Body {
    BuiltIn(&'static dyn Tool),
    Loaded(Arc<dyn Tool>),
}

impl Deref for Entry {
    type Target = dyn Tool;

    fn deref(&self) -> &Self::Target {
        match &self.body {
            Body::BuiltIn(tool) => *tool,
            Body::Loaded(tool) => tool.as_ref(),
        }
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.toolset, self.name)
    }
}

impl Entry {
    /// `None` when the tool cannot even say its name.
    pub fn built_in(tool: &'static dyn Tool) -> Option<Arc<Self>> {
        Self::built_in_as(tool, &Setup::default())
    }

    /// The same in the words that fit the server's configuration.
    pub fn built_in_as(tool: &'static dyn Tool, setup: &Setup) -> Option<Arc<Self>> {
        Self::read(Body::BuiltIn(tool), Source::BuiltIn, setup)
    }

    /// A tool that came at run time, from the plugin or server named.
    pub fn loaded(tool: Arc<dyn Tool>, source: &str) -> Option<Arc<Self>> {
        Self::read(Body::Loaded(tool), Source::Loaded(source.to_owned()), &Setup::default())
    }

    fn read(body: Body, source: Source, setup: &Setup) -> Option<Arc<Self>> {
        let tool: &dyn Tool = match &body {
            Body::BuiltIn(tool) => *tool,
            Body::Loaded(tool) => tool.as_ref(),
        };
        // A panic leaves nothing half done: these only read.
        let spec = catch_unwind(AssertUnwindSafe(|| tool.spec())).ok()?;
        let worded = catch_unwind(AssertUnwindSafe(|| tool.configured(setup)));
        let worded = worded.ok().flatten().unwrap_or_default();
        let schema = catch_unwind(AssertUnwindSafe(|| {
            worded.parameters.unwrap_or_else(|| tool.parameters())
        }));
        let (schema, broken) = match schema {
            Ok(schema) => match sanity::sanitised(schema) {
                Ok(schema) => (schema, None),
                Err(fault) => (sanity::empty(), Some(format!("its schema is broken: {fault}"))),
            },
            Err(_) => (
                sanity::empty(),
                Some("its schema is broken: making it failed".to_owned()),
            ),
        };
        let (name, toolset) = (spec.name.to_owned(), spec.toolset.to_owned());
        let description = worded.description.unwrap_or_else(|| spec.description.to_owned());
        let emoji = spec.emoji.to_owned();
        let requires_env = spec.requires_env.iter().map(|name| (*name).to_owned()).collect();
        let result_limit = spec.result_limit;
        Some(Arc::new(Self {
            body,
            name,
            toolset,
            description,
            emoji,
            result_limit,
            requires_env,
            schema,
            source,
            broken,
        }))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn toolset(&self) -> &str {
        &self.toolset
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn emoji(&self) -> &str {
        &self.emoji
    }

    pub fn result_limit(&self) -> ResultLimit {
        self.result_limit
    }

    pub fn requires_env(&self) -> &[String] {
        &self.requires_env
    }

    /// JSON Schema of the arguments, in the form that strict servers take.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Why it can never be offered, if so.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// What the model is told of it beside the tools that are offered: description
    /// and parameters. Where the tool cannot say it, it stands as registered.
    pub fn told(&self, offered: &[&str]) -> (String, Value) {
        let made = catch_unwind(AssertUnwindSafe(|| self.worded(offered)));
        let worded = made.unwrap_or_else(|_| {
            tracing::warn!(tool = self.name, "the description by the offered tools failed");
            None
        });
        let worded = worded.unwrap_or_default();
        let parameters = worded.parameters.map(sanity::sanitised);
        (
            worded.description.unwrap_or_else(|| self.description.clone()),
            parameters.and_then(Result::ok).unwrap_or_else(|| self.schema.clone()),
        )
    }

    /// The OpenAI function tool, as of the tools that are offered beside it.
    pub fn definition(&self, offered: &[&str]) -> Value {
        let (description, parameters) = self.told(offered);
        json!({"type": "function",
            "function": {"name": self.name, "description": description, "parameters": parameters}})
    }
}
