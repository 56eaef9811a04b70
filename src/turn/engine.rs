//! The engine: what every turn of this process shares, and the tasks that run
//! them. It owns no turn's state; that is the owner task's, or the store's.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

mod offered;

use super::admission::Ceilings;
use super::delegation::Delegation;
use super::policies::Ready;
use super::state::State;
use super::world::{Rules, World};
use super::{owner, run};
use crate::base::Clock;
use crate::guard::policy::Compiled;
use crate::live::hub::Hub;
use crate::model::approval::{OnAsk, OnExpiry, Recovery};
use crate::model::budget::{BudgetScope, Budgets};
use crate::model::client_tool;
use crate::model::grant::Grant;
use crate::model::guardrail;
use crate::model::id::{NodeId, ProcessId, SessionId, TenantId, TurnId};
use crate::model::memory::Limits;
use crate::model::record::{SessionRecord, TurnRecord};
use crate::model::session::ApprovalMode;
use crate::model::usage::Prices;
use crate::provider::Provider;
use crate::provider::retry::Policy;
use crate::store::Store;
use crate::tool::Host;
use crate::tool::hook::Hooks;
use crate::tool::plugin::Plugins;
use crate::tool::registry::live::Live;
use crate::tool::registry::{Recent, Selection};
use crate::tool::search;
use crate::tool::session_tools::SessionTools;

/// What the configuration says about turns.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model of sessions and turns that name none.
    pub model: String,
    /// Other names for models, with the model that answers to each.
    pub model_routes: BTreeMap<String, String>,
    pub max_steps: u32,
    /// Running time of a turn; parked time does not count.
    pub max_duration: Duration,
    /// Time without any sign of life of model or tools.
    pub inactivity: Duration,
    pub retry: Policy,
    pub mode: ApprovalMode,
    /// Of the model that is asked first in mode `smart`.
    pub review: Reviewing,
    pub on_ask: OnAsk,
    /// `None` waits for ever.
    pub approval_timeout: Option<Duration>,
    /// `None` waits for ever.
    pub clarify_timeout: Option<Duration>,
    pub on_expiry: OnExpiry,
    pub recovery: Recovery,
    pub allow_permanent: bool,
    pub allowlist: Vec<String>,
    pub budgets: Budgets,
    pub delegation: Delegation,
    /// Runs of jobs ask nobody: all that would be asked is allowed, or refused.
    pub jobs_approve: bool,
    /// Longest silence within a run.
    pub job_inactivity: Duration,
    /// How long the script of a run may take.
    pub job_script_timeout: Duration,
    /// Runs of a job that its history keeps.
    pub job_runs_kept: u32,
    /// Toolsets of runs that name none.
    pub job_toolsets: Vec<String>,
    pub guardrail: guardrail::Limits,
    pub search: search::Settings,
    /// The model is shown the images of results.
    pub vision: bool,
    /// Tokens of the model's window, where that is known.
    pub window: Option<usize>,
    pub prices: Prices,
    /// What prices and costs are in.
    pub currency: String,
    /// How long a commit is retried while the store is away.
    pub store_retry: Duration,
    pub memory: Limits,
    /// A session's prompt shows what a file of its workspace says of the project.
    pub context_files: bool,
    pub ceilings: Ceilings,
}

/// How a model reviews approvals.
#[derive(Clone, Debug)]
pub struct Reviewing {
    /// The turn's own where there is none.
    pub model: Option<String>,
    /// After that a person decides.
    pub timeout: Duration,
}

impl Settings {
    /// The model that answers to this name, or where none is asked for.
    pub fn routed(&self, asked: Option<&String>) -> String {
        let asked = asked.unwrap_or(&self.model);
        self.model_routes.get(asked).unwrap_or(asked).clone()
    }
}

/// A cheap handle; clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    parts: Parts,
    running: Mutex<HashMap<TurnId, Running>>,
    tasks: TaskTracker,
    /// No new work; turns stop at their next stored step.
    draining: CancellationToken,
    /// Stop now: commands are killed, nothing more is awaited. A new token
    /// takes the place of one that was used while the process lives on.
    stopping: Mutex<CancellationToken>,
    nudges: Nudges,
    selections: Recent,
    policies: Ready,
}

/// Wake-ups of the tasks that work without a request.
#[derive(Default)]
pub struct Nudges {
    /// An approval that expires was asked.
    pub due: Notify,
    /// A job was made or changed.
    pub jobs: Notify,
    /// Sessions that answers of jobs are to be told to, once they are idle.
    awaited: Mutex<BTreeSet<SessionId>>,
    /// A change that was let in could not be put on the disk.
    pub approved: Notify,
    /// A deleted session has nothing running any more.
    pub purge: Notify,
    /// A process was found dead: it may have left something undone.
    pub departed: Notify,
}

impl Nudges {
    /// The ends of turns of these sessions wake who delivers answers of jobs from
    /// now on; whether one of them did not before, and so may have ended unheard.
    pub fn wait_for_idle(&self, sessions: BTreeSet<SessionId>) -> bool {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !sessions.is_subset(&awaited);
        *awaited = sessions;
        is_new
    }

    pub fn is_awaited(&self, session: SessionId) -> bool {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.contains(&session)
    }
}

/// What the engine is made of.
#[derive(Clone)]
pub struct Parts {
    pub store: Store,
    pub clock: Clock,
    pub hub: Hub,
    pub host: Arc<Host>,
    pub tools: Arc<Live>,
    pub plugins: Arc<Plugins>,
    pub hooks: Hooks,
    pub provider: Provider,
    pub settings: Settings,
    pub process: ProcessId,
    pub node: NodeId,
    /// Every process sees the same data directory (`server.data_dir_shared`).
    pub shared: bool,
}

/// Less than that of any turn that somebody owns.
const UNCLAIMED: i64 = 0;

/// A turn whose owner task lives in this process.
struct Running {
    epoch: i64,
}

/// What one turn is decided with, apart from its record.
#[derive(Clone)]
pub(super) struct Scene {
    pub tools: Arc<SessionTools>,
    pub rules: Rules,
    pub workspace: std::path::PathBuf,
    pub model: String,
    /// Only another process may run the session's turns.
    pub elsewhere: bool,
}

impl Engine {
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            parts,
            running: Mutex::default(),
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
            stopping: Mutex::default(),
            nudges: Nudges::default(),
            selections: Recent::default(),
            policies: Ready::default(),
        }))
    }

    pub fn store(&self) -> &Store {
        &self.0.parts.store
    }

    pub fn clock(&self) -> &Clock {
        &self.0.parts.clock
    }

    pub fn hub(&self) -> &Hub {
        &self.0.parts.hub
    }

    pub fn host(&self) -> &Arc<Host> {
        &self.0.parts.host
    }

    pub fn settings(&self) -> &Settings {
        &self.0.parts.settings
    }

    pub fn process(&self) -> ProcessId {
        self.0.parts.process
    }

    /// The session's files lie in a data directory that this process does not
    /// have: only a process that has it may run its turns.
    pub fn is_elsewhere(&self, node: Option<NodeId>) -> bool {
        let parts = &self.0.parts;
        !parts.shared && node.is_some_and(|node| node != parts.node)
    }

    pub(super) fn policies(&self) -> &Ready {
        &self.0.policies
    }

    pub(super) fn provider(&self) -> &Provider {
        &self.0.parts.provider
    }

    /// The token of the present; taken once at a turn's start.
    pub(super) fn stopping(&self) -> CancellationToken {
        self.0.stopping.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn nudges(&self) -> &Nudges {
        &self.0.nudges
    }

    pub fn is_draining(&self) -> bool {
        self.0.draining.is_cancelled()
    }

    /// Turns with an owner task here, or about to get one.
    pub fn executing(&self) -> usize {
        self.running().len()
    }

    /// Keeps a place for a turn that has no owner task yet; where there is none,
    /// the limit.
    pub(super) fn keep_place(&self, turn: TurnId, limit: Option<u32>) -> Result<(), u32> {
        let mut running = self.running();
        if let Some(limit) = limit.filter(|limit| *limit as usize <= running.len()) {
            return Err(limit);
        }
        running.entry(turn).or_insert(Running { epoch: UNCLAIMED });
        Ok(())
    }

    /// Gives up the place of a turn that got no owner task.
    pub(super) fn free(&self, turn: TurnId) {
        let mut running = self.running();
        if running.get(&turn).is_some_and(|running| running.epoch == UNCLAIMED) {
            running.remove(&turn);
        }
    }

    /// Whether this process runs the turn at this epoch.
    pub fn runs(&self, turn: TurnId, epoch: i64) -> bool {
        self.running().get(&turn).is_some_and(|running| running.epoch == epoch)
    }

    /// No lock is held across an await and no code of others runs under it.
    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<TurnId, Running>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a turn that this process has just claimed in a committed
    /// transaction.
    pub(super) fn spawn(&self, tenant: TenantId, state: State, opening: Option<owner::Opening>) {
        let (turn, epoch) = (state.turn.turn_id, state.turn.epoch);
        match self.running().entry(turn) {
            // Claimed once, run once.
            Entry::Occupied(running) if epoch <= running.get().epoch => return,
            Entry::Occupied(mut running) => running.get_mut().epoch = epoch,
            Entry::Vacant(place) => {
                place.insert(Running { epoch });
            }
        }
        let engine = self.clone();
        let session = state.session.session_id;
        let span = tracing::info_span!("turn", %tenant, %session, %turn);
        let running = async move {
            let owned = owner::Owned::new(&engine, tenant, state, opening);
            // The task is one allocation anyway; the future within would make it large.
            let ran = AssertUnwindSafe(Box::pin(run::run(&engine, owned)))
                .catch_unwind()
                .await;
            // A bug; the turn is nobody's now and is taken over like another.
            let gone = ran.unwrap_or_else(|_| {
                tracing::error!(%turn, "the owner of a turn panicked");
                true
            });
            if gone {
                engine.nudges().purge.notify_one();
            }
            let mut running = engine.running();
            // A successor of this process may have claimed it meanwhile.
            if running.get(&turn).is_some_and(|running| running.epoch == epoch) {
                running.remove(&turn);
            }
        };
        self.0.tasks.spawn(running.instrument(span));
    }

    /// Runs a request to its end even if whoever asked goes away: a turn that
    /// it claimed in a committed transaction must also be run.
    pub(super) async fn whole<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> T {
        match self
            .0
            .tasks
            .spawn(request)
            .await
            .map_err(tokio::task::JoinError::try_into_panic)
        {
            Ok(verdict) => verdict,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // Nobody aborts it but the end of the runtime.
            Err(Err(_)) => std::future::pending().await,
        }
    }

    /// Work beside the turns; it ends by itself, or when everything is stopped.
    pub(super) fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        if !self.0.tasks.is_closed() {
            self.0.tasks.spawn(work.in_current_span());
        }
    }

    /// Lets turns come to their next stored step, then stops what is left.
    /// After this no task of the engine is alive.
    pub async fn drain(&self, grace: Duration) {
        self.0.draining.cancel();
        self.0.tasks.close();
        tokio::select! {
            () = self.0.tasks.wait() => return self.hooks().close().await,
            () = tokio::time::sleep(grace) => {}
        }
        self.stop().await;
    }

    /// Stops at once: commands are killed, their calls get a result that says
    /// so, and the turns go on at the next start.
    pub async fn stop(&self) {
        self.0.draining.cancel();
        self.stopping().cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.hooks().close().await;
    }

    /// Lets go of every turn, killing its commands: this process may count as
    /// dead for the others. It goes on afterwards with what it claims anew.
    pub fn abandon(&self) {
        self.host().processes().abandon();
        let mut stopping = self.0.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *stopping).cancel();
    }

    pub(super) fn scene(&self, session: &SessionRecord, turn: &TurnRecord) -> Scene {
        let parts = &self.0.parts;
        let selection = Selection {
            presets: std::slice::from_ref(&session.preset),
            session: Some(&session.toolsets),
            turn: turn.options.toolsets.as_ref(),
            ceiling: turn.options.tool_ceiling.as_deref(),
        };
        Scene {
            tools: self.selected(
                session.tenant_id,
                &selection,
                &client_tool::together(&session.tools, &turn.options.tools),
                self.blocked(session),
            ),
            rules: self.rules(session, turn),
            workspace: parts.host.workspace_path(session.tenant_id, session.home()),
            elsewhere: self.is_elsewhere(session.node_id),
            model: parts
                .settings
                .routed(turn.options.model.as_ref().or(session.model.as_ref())),
        }
    }

    fn rules(&self, session: &SessionRecord, turn: &TurnRecord) -> Rules {
        let settings = &self.0.parts.settings;
        let policy = &session.approvals;
        let timeout = match policy.timeout_seconds {
            Some(seconds) => i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000),
            None => millis(settings.approval_timeout),
        };
        let limits = &turn.options.limits;
        let limit = limits.max_steps.unwrap_or(u32::MAX);
        let mut budgets = settings.budgets.clone();
        budgets.narrow(BudgetScope::Turn, limits.max_tokens, limits.max_cost_nanos);
        let own = session.budget;
        budgets.narrow(BudgetScope::Session, own.max_tokens, own.max_cost_nanos);
        Rules {
            max_steps: settings.max_steps.min(limit),
            mode: policy.mode.unwrap_or(settings.mode),
            on_ask: turn
                .options
                .approvals
                .on_ask
                .or(policy.on_ask)
                .unwrap_or(settings.on_ask),
            approval_timeout_ms: timeout,
            clarify_timeout_ms: millis(settings.clarify_timeout),
            on_expiry: policy.on_expiry.unwrap_or(settings.on_expiry),
            recovery: policy.recovery.unwrap_or(settings.recovery),
            allow_permanent: settings.allow_permanent,
            allowlist: settings.allowlist.clone(),
            budgets,
            delegation: settings.delegation.clone(),
            guardrail: settings.guardrail,
            memory: settings.memory,
        }
    }

    pub(super) fn world<'a>(
        &'a self,
        scene: &'a Scene,
        grants: &'a [Grant],
        policies: &'a [Arc<Compiled>],
    ) -> World<'a> {
        World {
            now: self.clock().now(),
            ids: self.clock(),
            owner: (!self.is_draining() && !scene.elsewhere).then_some(self.process()),
            node: self.0.parts.node,
            tools: &scene.tools,
            host: self.host(),
            workspace: scene.workspace.clone(),
            grants,
            policies,
            rules: &scene.rules,
            unread: None,
        }
    }

    /// The directory of a session's files.
    pub fn workspace_path(&self, tenant: TenantId, session: SessionId) -> std::path::PathBuf {
        self.0.parts.host.workspace_path(tenant, session)
    }
}

/// 0 is never.
fn millis(timeout: Option<Duration>) -> i64 {
    timeout.map_or(0, |timeout| i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX))
}
