//! The configuration, read once: defaults, then the YAML file, then the
//! environment, then flags, merged as one tree and read into typed sections.
//!
//! Nothing else in the server reads a variable or a configuration file. A key
//! has one line in the file of its section; a wrong value or an unknown key
//! stops the start and says what is allowed.

mod agent;
mod approvals;
mod auth;
mod check;
mod checkpoints;
mod code_execution;
mod cron;
mod delegation;
mod error;
mod files;
mod guardrails;
mod hooks;
mod kinds;
mod layers;
mod limits;
mod log;
mod memory;
mod nearest;
mod node;
mod openai;
mod original;
mod plugins;
mod retention;
mod secrets;
mod section;
mod security;
mod server;
mod skills;
mod spending;
mod store;
mod terminal;
mod tool_search;
mod toolsets;
mod yaml;

#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use approvals::{Approvals, CronMode, Mode, OnAsk, OnExpiry, Recovery};
pub use auth::{Auth, Jwt};
pub use checkpoints::Checkpoints;
pub use code_execution::{CodeExecution, CodeMode};
pub use cron::Cron;
pub use delegation::Delegation;
pub use error::{ConfigError, Problem};
pub use files::Files;
pub use hooks::{Hook, HookAction, HookPoint};
pub use layers::{Flags, Sources, process_environment};
pub use limits::{Limit, Limits, Quota};
pub use log::{Format, Level, Log};
pub use memory::Memory;
pub use node::Origin;
pub use openai::OpenAi;
pub use plugins::{PluginEntry, Plugins};
pub use retention::Retention;
pub use section::Setting;
pub use security::Security;
pub use server::{Lease, Server};
pub use skills::Skills;
pub use spending::Usage;
pub use store::Store;
pub use terminal::{Isolation, Terminal};
pub use tool_search::{ToolSearch, ToolSearchMode};
pub use toolsets::{CustomToolset, PlatformToolsets};

use std::collections::BTreeMap;

use crate::model::budget::Budgets;
use crate::model::guardrail::Limits as Guardrails;
use section::{Findings, Section};

/// Everything the server was told, and what it assumes where it was told nothing.
#[derive(Clone, Debug)]
pub struct Config {
    pub server: Server,
    pub store: Store,
    pub lease: Lease,
    pub auth: Auth,
    /// The model that answers where a session names none.
    pub model: Option<String>,
    /// Other names for models, with the model that answers to each.
    pub model_routes: BTreeMap<String, String>,
    pub openai: OpenAi,
    pub agent: Agent,
    pub approvals: Approvals,
    pub delegation: Delegation,
    pub cron: Cron,
    /// Commands that nobody is asked about: rule names, literal text or globs.
    pub command_allowlist: Vec<String>,
    pub security: Security,
    pub limits: Limits,
    pub usage: Usage,
    pub budgets: Budgets,
    pub terminal: Terminal,
    /// How much is remembered of a user.
    pub memory: Memory,
    pub skills: Skills,
    pub code_execution: CodeExecution,
    pub checkpoints: Checkpoints,
    pub retention: Retention,
    pub files: Files,
    pub log: Log,
    pub platform_toolsets: PlatformToolsets,
    pub custom_toolsets: Vec<CustomToolset>,
    pub guardrails: Guardrails,
    pub tool_search: ToolSearch,
    pub plugins: Plugins,
    pub hooks: Vec<Hook>,
    /// Keys of the original's configuration that mean nothing here.
    pub ignored: Vec<String>,
    settings: Vec<Setting>,
}

impl Config {
    /// Merges the layers and reads them. With no sources at all it gives the
    /// defaults.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut found = Findings::default();
        let tree = layers::merge(sources, &mut found.problems)?;
        let mut root = Section::root(tree, &mut found);
        let mut config = Self::read(&mut root);
        root.ignore(original::TOP_LEVEL);
        root.finish();
        if !found.problems.is_empty() {
            return Err(ConfigError::Invalid(found.problems));
        }
        config.ignored = found.ignored;
        config.settings = found.settings;
        Ok(config)
    }

    fn read(root: &mut Section<'_>) -> Self {
        Self {
            server: root.section("server", Server::read),
            store: root.section("store", Store::read),
            lease: root.section("lease", Lease::read),
            auth: root.section("auth", Auth::read),
            model: openai::read_model(root),
            model_routes: openai::read_routes(root),
            openai: root.section("openai", OpenAi::read),
            agent: root.section("agent", Agent::read),
            approvals: root.section("approvals", Approvals::read),
            command_allowlist: root.texts("command_allowlist"),
            security: root.section("security", Security::read),
            delegation: root.section("delegation", Delegation::read),
            cron: root.section("cron", Cron::read),
            limits: root.section("limits", Limits::read),
            usage: root.section("usage", Usage::read),
            budgets: root.section("budgets", spending::read_budgets),
            terminal: root.section("terminal", Terminal::read),
            files: Files::read(root),
            memory: root.section("memory", Memory::read),
            skills: root.section("skills", Skills::read),
            code_execution: root.section("code_execution", CodeExecution::read),
            checkpoints: root.section("checkpoints", Checkpoints::read),
            retention: root.section("retention", Retention::read),
            log: root.section("log", Log::read),
            platform_toolsets: root.section("platform_toolsets", PlatformToolsets::read),
            custom_toolsets: root.section("custom_toolsets", toolsets::read_custom),
            guardrails: root.section("tool_loop_guardrails", guardrails::read),
            tool_search: root.section("tools", ToolSearch::read),
            plugins: root.section("plugins", Plugins::read),
            hooks: root.section("hooks", hooks::read),
            ignored: Vec::new(),
            settings: Vec::new(),
        }
    }

    /// Every key in force, secrets redacted, in the order of the sections.
    pub fn effective(&self) -> &[Setting] {
        &self.settings
    }
}
