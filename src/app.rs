//! Builds everything from the configuration, in this one place, and takes it
//! down again: what was opened last is closed first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::Clock;
use crate::config::{Config, Mode, OnAsk, OnExpiry, Recovery, ToolSearchMode};
use crate::environment::{PROGRAM_OF_SCANNER, ScannerSettings};
use crate::fetch::Documents;
use crate::fetch::release::Release;
use crate::guard;
use crate::live::hub::Hub;
use crate::model::approval;
use crate::model::budget::BudgetUnit;
use crate::model::id::TenantId;
use crate::model::session::ApprovalMode;
use crate::provider::retry::Policy;
use crate::provider::{Demo, Provider, openai};
use crate::schedule;
use crate::schedule::scanner::Installing;
use crate::store::node::Node;
use crate::store::{Probe, Store, StoreError, StoreOptions, Target, process, tenants};
use crate::tool::hook::Hooks;
use crate::tool::plugin::{Allowance, Plugins};
use crate::tool::registry::live::Live;
use crate::tool::registry::{DelegationLimits, Setup};
use crate::tool::{Host, HostError, HostSettings, search, toolset};
use crate::turn::admission::Ceilings;
use crate::turn::engine::{Engine, Parts, Reviewing, Settings};

/// The name of the built-in model.
pub const DEMO_MODEL: &str = "demo";

/// What is not configuration: the outside world of the process.
#[derive(Clone)]
pub struct Surroundings {
    pub clock: Clock,
    /// Watches and fails commits, for tests.
    pub probe: Option<Probe>,
    /// The binary that supervises commands.
    pub exec_program: PathBuf,
    pub environment: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("`store.url` (DATABASE_URL): cannot reach the database; expected the address of one that runs")]
    NoDatabase(#[source] StoreError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("the client for hooks and plugins cannot be made: {0}")]
    Client(String),
    #[error("`openai.base_url`: {0}")]
    Model(String),
    #[error(
        "commands would run without isolation (`terminal.isolation: none`) while {0} tenants exist; choose `auto`, or \
         keep one tenant"
    )]
    Unconfined(i64),
    #[error("`security.tirith_url`: {0}")]
    Scanner(String),
    #[error("`custom_toolsets.{0}`: a toolset of this name is part of the server; choose another name")]
    ToolsetTaken(String),
    #[error(
        "`custom_toolsets.{0}.includes`: there is no toolset `{1}`; `hermes-server tools` and `GET /v1/toolsets` name all"
    )]
    UnknownToolset(String, String),
}

/// The running server without its HTTP side.
pub struct App {
    engine: Engine,
    tenant: TenantId,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Keeps other processes away from the data directory.
    _node: Node,
}

impl App {
    /// Opens the store, brings it up to date, and begins to work: turns that an
    /// earlier process of this data directory left are taken over at once.
    pub async fn start(config: &Config, around: Surroundings) -> Result<Self, StartError> {
        let data_dir = &config.server.data_dir;
        warn_of_missing_prices(config);
        let store = open_store(config, &around).await.map_err(unreached)?;
        let node = Node::claim(data_dir, &around.clock)?;
        let tenant = tenants::ensure_default(&store).await?;
        let host = open_host(config, &around).await?;
        confined(config, &store).await?;
        let registration = process::register(&store, node.id(), config.lease.duration).await?;
        let (host, tools) = (Arc::new(host), Arc::new(tools(config, &around.clock)?));
        let documents = Documents::new().map_err(|error| StartError::Client(error.to_string()))?;
        let plugins = plugins(config, documents.clone());
        plugins.load(&tools, &host).await;
        let hooks = Hooks::new(&config.hooks, Arc::clone(&host), documents);
        let engine = Engine::new(Parts {
            store,
            clock: around.clock.clone(),
            hub: Hub::default(),
            host,
            tools,
            plugins: Arc::new(plugins),
            hooks,
            provider: provider(config, &around.clock)?,
            settings: settings(config),
            process: registration.id(),
            node: node.id(),
            shared: config.server.data_dir_shared,
        });
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let spans = schedule::Spans {
            lease: config.lease.duration,
            events_days: config.retention.events_days,
        };
        // The first command that somebody sends waits for no table.
        tasks.spawn_blocking(guard::prepare);
        schedule::start(&engine, node.id(), registration, spans, &tasks, &stop);
        if let Some(installing) = installing(config, &around)? {
            let scanner = Arc::clone(engine.host().scanner());
            tasks.spawn(schedule::scanner::keep(installing, scanner, stop.clone()));
        }
        Ok(Self {
            engine,
            tenant,
            tasks,
            stop,
            _node: node,
        })
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The tenant of the environment's key and of the first key.
    pub fn default_tenant(&self) -> TenantId {
        self.tenant
    }

    /// Leaves everything as a killed process would: nothing is handed over and
    /// nobody signs off; only what the operating system would free is freed.
    pub async fn crash(self) {
        self.tasks.close();
        self.engine.stop().await;
        self.engine.host().processes().stop().await;
        self.engine.store().close().await;
        self.stop.cancel();
        self.tasks.wait().await;
    }

    /// Hands turns over at their next stored step, at the latest after `grace`;
    /// no task is left when this returns.
    pub async fn shutdown(self, grace: Duration) {
        self.engine.drain(grace).await;
        self.engine.host().processes().stop().await;
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.engine.store().close().await;
    }
}

/// Without prices no ceiling of cost is ever reached.
fn warn_of_missing_prices(config: &Config) {
    let mut ceilings = config.budgets.ceilings.iter();
    if config.usage.prices.0.is_empty() && ceilings.any(|own| own.unit == BudgetUnit::CostNanos) {
        tracing::warn!("a budget of cost is set, but `usage.prices` is empty: no call will ever cost anything");
    }
}

/// Opens the store that the configuration names.
pub async fn open_store(config: &Config, around: &Surroundings) -> Result<Store, StoreError> {
    let options = StoreOptions {
        target: target(config),
        clock: around.clock.clone(),
        probe: around.probe.clone(),
    };
    Store::open(options).await
}

fn unreached(error: StoreError) -> StartError {
    match error {
        StoreError::Unavailable(_) => StartError::NoDatabase(error),
        error => StartError::Store(error),
    }
}

/// The database that the configuration names.
pub fn target(config: &Config) -> Target {
    let url = config.store.url_in(&config.server.data_dir);
    match url.expose().strip_prefix("sqlite:") {
        Some(path) => Target::Sqlite {
            path: Path::new(path.trim_start_matches("//")).to_owned(),
        },
        None => Target::Postgres {
            url,
            max_connections: config.store.max_connections,
        },
    }
}

/// Finds out what tools can run on here.
pub async fn open_host(config: &Config, around: &Surroundings) -> Result<Host, HostError> {
    let home = around.environment.iter().find(|(name, _)| name == "HOME");
    let home = home.map_or_else(|| PathBuf::from("/"), |(_, home)| PathBuf::from(home));
    Host::open(HostSettings {
        exec_program: around.exec_program.clone(),
        data_dir: config.server.data_dir.clone(),
        terminal: config.terminal.clone(),
        files: config.files.clone(),
        deny: config.approvals.deny.clone(),
        policy: config.approvals.policy.clone(),
        container_guard: config.approvals.container_guard,
        known: config.known_secrets(),
        scanner: ScannerSettings {
            enabled: config.security.tirith_enabled,
            program: config.security.tirith_path.clone(),
            timeout: config.security.tirith_timeout,
            fail_open: config.security.tirith_fail_open,
            variables: around.environment.clone(),
            fallback: installs(config).then(|| scanner_directory(config).join(PROGRAM_OF_SCANNER)),
        },
        variables: around.environment.clone(),
        skills: config.skills.clone(),
        memory_approval: config.memory.write_approval,
        code: config.code_execution.clone(),
        checkpoints: config.checkpoints.clone(),
        agent_home: home.join(".hermes"),
        home,
    })
    .await
}

/// The scanner is fetched where it is not installed; a path that was set is never
/// replaced by another.
fn installs(config: &Config) -> bool {
    let security = &config.security;
    security.tirith_enabled && security.tirith_auto_install && security.tirith_path == PROGRAM_OF_SCANNER
}

fn scanner_directory(config: &Config) -> PathBuf {
    config.server.data_dir.join("bin")
}

fn installing(config: &Config, around: &Surroundings) -> Result<Option<Installing>, StartError> {
    if !installs(config) {
        return Ok(None);
    }
    let security = &config.security;
    let Some(url) = security.tirith_url.clone() else {
        return Ok(None);
    };
    let release = Release::at(url, security.tirith_pin);
    Ok(Some(Installing {
        release: release.map_err(|error| StartError::Scanner(error.to_string()))?,
        cosign: security.tirith_cosign,
        directory: scanner_directory(config),
        variables: around.environment.clone(),
        clock: around.clock.clone(),
    }))
}

/// Unconfined commands and a second tenant exclude each other.
async fn confined(config: &Config, store: &Store) -> Result<(), StartError> {
    if config.terminal.isolation != crate::config::Isolation::None {
        return Ok(());
    }
    match crate::store::across_tenants::tenant_count(store).await? {
        count if 1 < count => Err(StartError::Unconfined(count)),
        _ => Ok(()),
    }
}

/// The tools of this binary, with the operator's own toolsets.
pub fn tools(config: &Config, clock: &Clock) -> Result<Live, StartError> {
    let mut custom = BTreeMap::new();
    for own in &config.custom_toolsets {
        if toolset::is_taken(&own.name) {
            return Err(StartError::ToolsetTaken(own.name.clone()));
        }
        let definition = toolset::Definition {
            description: own.description.clone(),
            tools: own.tools.iter().cloned().collect(),
            includes: own.includes.clone(),
            is_posture: false,
        };
        custom.insert(own.name.clone(), definition);
    }
    let delegation = DelegationLimits {
        children: config.delegation.max_concurrent_children,
        further_levels: match config.delegation.orchestrator_enabled {
            true => config.delegation.max_spawn_depth.saturating_sub(1),
            false => 0,
        },
    };
    let setup = Setup {
        custom,
        delegation: Some(delegation),
    };
    let tools = Live::set_up(clock.clone(), setup);
    let known = tools.shared();
    for own in &config.custom_toolsets {
        let mut named = own.includes.iter();
        if let Some(unknown) = named.find(|name| !known.catalog().is_valid(name)).cloned() {
            return Err(StartError::UnknownToolset(own.name.clone(), unknown));
        }
    }
    Ok(tools)
}

/// The plugins that the configuration names, before they are loaded.
pub fn plugins(config: &Config, documents: Documents) -> Plugins {
    let directory = config.plugins.directory.clone();
    let directory = directory.unwrap_or_else(|| config.server.data_dir.join("plugins"));
    let entries = config.plugins.entries.iter().map(|entry| {
        let allowance = Allowance {
            enabled: entry.enabled,
            may_override: entry.allow_tool_override,
        };
        (entry.name.clone(), allowance)
    });
    // Commands find what lies in there by its whole path.
    let directory = directory.canonicalize().unwrap_or(directory);
    Plugins::new(directory, entries.collect(), documents)
}

/// The model server, or the demo model where none is configured.
pub fn provider(config: &Config, clock: &Clock) -> Result<Provider, StartError> {
    let Some(base_url) = &config.openai.base_url else {
        return Ok(Provider::Demo(Demo::new(clock.clone())));
    };
    let wrong = |error: &dyn std::fmt::Display| StartError::Model(error.to_string());
    let base_url = base_url.parse().map_err(|error: url::ParseError| wrong(&error))?;
    let mut settings = openai::Settings::new(base_url, config.openai.api_key.clone());
    settings.idle_timeout = config.openai.idle_timeout;
    let client = openai::client().map_err(|error| wrong(&error))?;
    let open = openai::OpenAi::new(client, settings, clock.clone()).map_err(|error| wrong(&error))?;
    Ok(Provider::OpenAi(open))
}

fn settings(config: &Config) -> Settings {
    let demo = config.openai.base_url.is_none();
    let named = config.model.clone();
    Settings {
        model: if demo {
            DEMO_MODEL.to_owned()
        } else {
            named.unwrap_or_default()
        },
        model_routes: config.model_routes.clone(),
        max_steps: config.agent.max_turns,
        max_duration: config.agent.max_duration,
        inactivity: config.agent.inactivity,
        retry: Policy {
            max_retries: config.agent.api_max_retries,
            base: config.agent.retry_base,
            ..Policy::default()
        },
        mode: match config.approvals.mode {
            Mode::Manual => ApprovalMode::Manual,
            Mode::Smart => ApprovalMode::Smart,
            Mode::Off => ApprovalMode::Off,
        },
        review: Reviewing {
            model: config.approvals.reviewer_model.clone(),
            timeout: config.approvals.reviewer_timeout,
        },
        on_ask: match config.approvals.on_ask {
            OnAsk::Wait => approval::OnAsk::Wait,
            OnAsk::Deny => approval::OnAsk::Deny,
        },
        approval_timeout: config.approvals.timeout,
        clarify_timeout: config.agent.clarify_timeout,
        on_expiry: match config.approvals.on_expiry {
            OnExpiry::Deny => approval::OnExpiry::Deny,
            OnExpiry::Halt => approval::OnExpiry::Halt,
        },
        recovery: match config.approvals.recovery {
            Recovery::Tell => approval::Recovery::Tell,
            Recovery::Ask => approval::Recovery::Ask,
        },
        allow_permanent: config.approvals.allow_permanent,
        allowlist: config.command_allowlist.clone(),
        budgets: config.budgets.clone(),
        delegation: delegation(&config.delegation),
        jobs_approve: config.approvals.cron_mode == crate::config::CronMode::Approve,
        job_inactivity: config.cron.inactivity,
        job_script_timeout: config.cron.script_timeout,
        job_runs_kept: config.cron.runs_kept,
        job_toolsets: config.platform_toolsets.api_server.clone(),
        guardrail: config.guardrails,
        search: search::Settings {
            mode: match config.tool_search.mode {
                ToolSearchMode::Auto => search::Mode::Auto,
                ToolSearchMode::On => search::Mode::On,
                ToolSearchMode::Off => search::Mode::Off,
            },
            threshold_percent: config.tool_search.threshold_percent,
            default_limit: config.tool_search.default_limit,
            max_limit: config.tool_search.max_limit,
        },
        vision: config.agent.vision,
        window: config.agent.context_length,
        prices: config.usage.prices.clone(),
        currency: config.usage.currency.clone(),
        store_retry: config.store.retry,
        memory: config.memory.limits,
        context_files: config.agent.context_files,
        ceilings: Ceilings {
            server: config.limits.server.executing_turns,
            tenant: config.limits.tenant.executing_turns,
            key: config.limits.key.executing_turns,
        },
    }
}

fn delegation(config: &crate::config::Delegation) -> crate::turn::delegation::Delegation {
    crate::turn::delegation::Delegation {
        max_children: config.max_concurrent_children,
        max_depth: config.max_spawn_depth,
        orchestrators: config.orchestrator_enabled,
        max_steps: config.max_iterations,
        timeout: config.child_timeout,
        model: config.model.clone(),
        max_summary_chars: config.max_summary_chars,
        auto_approve: config.subagent_auto_approve,
    }
}
