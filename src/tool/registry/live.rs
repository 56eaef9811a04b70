//! The registries of a running server: that of everybody, and one for each
//! tenant that has tools of its own. They are values; a change makes new ones
//! and puts them in place at once, so whoever holds one sees one generation.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use futures::FutureExt;

use super::availability::{Availability, FAILED};
use super::draft::Registration;
use super::{LeftOut, Registry, Setup};
use crate::base::Clock;
use crate::model::id::TenantId;
use crate::tool::Host;
use crate::tool::toolset::Definition;

/// Whose tools change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    Everybody,
    Tenant(TenantId),
}

/// What one plugin or tool server brings: all of it, in place of what it
/// brought before.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    pub tools: Vec<Registration>,
    /// Pairs of alias and toolset.
    pub aliases: Vec<(String, String)>,
}

type Bundles = BTreeMap<String, Bundle>;

/// Shared by the whole process; changed by whoever loads tools.
pub struct Live {
    state: RwLock<State>,
    availability: Availability,
    clock: Clock,
}

struct State {
    generation: u64,
    setup: Setup,
    everybody: (Bundles, Arc<Registry>),
    tenants: HashMap<TenantId, (Bundles, Arc<Registry>)>,
}

impl State {
    /// Makes every registry anew that the change reaches.
    fn rebuild(&mut self, reach: Reach) {
        if reach == Reach::Everybody {
            self.everybody.1 = Self::built(&mut self.generation, &self.setup, [&self.everybody.0]);
        }
        let shared = &self.everybody.0;
        for (tenant, (own, registry)) in &mut self.tenants {
            if reach == Reach::Everybody || reach == Reach::Tenant(*tenant) {
                *registry = Self::built(&mut self.generation, &self.setup, [shared, own]);
            }
        }
        self.tenants.retain(|_, (own, _)| !own.is_empty());
    }

    fn built<const N: usize>(generation: &mut u64, setup: &Setup, layers: [&Bundles; N]) -> Arc<Registry> {
        *generation += 1;
        let bundles = layers.into_iter().flat_map(BTreeMap::values);
        Arc::new(Registry::build(*generation, setup, bundles))
    }
}

impl Live {
    /// The tools of this binary with the operator's own toolsets.
    pub fn new(clock: Clock, custom: BTreeMap<String, Definition>) -> Self {
        let setup = Setup {
            custom,
            ..Setup::default()
        };
        Self::set_up(clock, setup)
    }

    /// The tools of this binary as the operator set them up.
    pub fn set_up(clock: Clock, setup: Setup) -> Self {
        let registry = Arc::new(Registry::build(0, &setup, []));
        Self {
            state: RwLock::new(State {
                generation: 0,
                setup,
                everybody: (Bundles::new(), registry),
                tenants: HashMap::new(),
            }),
            availability: Availability::default(),
            clock,
        }
    }

    /// The registry of everybody.
    pub fn shared(&self) -> Arc<Registry> {
        Arc::clone(&self.read().everybody.1)
    }

    /// What a tenant has, as of now.
    pub fn of(&self, tenant: TenantId) -> Arc<Registry> {
        let state = self.read();
        let own = state.tenants.get(&tenant).map(|(_, registry)| registry);
        Arc::clone(own.unwrap_or(&state.everybody.1))
    }

    /// Puts a bundle in the place of what `source` brought before; `None` takes
    /// it out. What was left out of it comes back.
    pub fn set(&self, reach: Reach, source: &str, bundle: Option<Bundle>) -> Vec<LeftOut> {
        self.set_all(reach, vec![(source.to_owned(), bundle)])
    }

    /// As [`Live::set`], for many sources in one step.
    pub fn set_all(&self, reach: Reach, changes: Vec<(String, Option<Bundle>)>) -> Vec<LeftOut> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let shared = Arc::clone(&state.everybody.1);
        let bundles = match reach {
            Reach::Everybody => &mut state.everybody.0,
            Reach::Tenant(tenant) => &mut state.tenants.entry(tenant).or_insert((Bundles::new(), shared)).0,
        };
        for (source, bundle) in changes {
            match bundle {
                Some(bundle) => drop(bundles.insert(source, bundle)),
                None => drop(bundles.remove(&source)),
            }
        }
        state.rebuild(reach);
        let changed = match reach {
            Reach::Everybody => Some(&state.everybody.1),
            Reach::Tenant(tenant) => state.tenants.get(&tenant).map(|(_, registry)| registry),
        };
        self.availability.invalidate();
        changed.map(|registry| registry.left_out().to_vec()).unwrap_or_default()
    }

    pub fn availability(&self) -> &Availability {
        &self.availability
    }

    /// Asks the checks that take their time, where their answers are old.
    pub async fn refresh(&self, registry: &Registry) {
        let now = self.clock.now();
        let mut asked = Vec::new();
        for tool in registry.all() {
            // What panics is its own check and nobody else's.
            let probed = catch_unwind(AssertUnwindSafe(|| (tool.check_key(), tool.probe())));
            let (key, probe) = probed.unwrap_or_else(|_| (None, Some(Box::pin(failed()))));
            let key = key.unwrap_or_else(|| tool.name().to_owned());
            let is_asked = asked.iter().any(|(known, _)| *known == key);
            if let Some(probe) = probe.filter(|_| !is_asked && self.availability.is_due(&key, now)) {
                asked.push((key, probe));
            }
        }
        let asked = asked.into_iter().map(|(key, probe)| async move {
            let answer = AssertUnwindSafe(probe).catch_unwind().await;
            (key, answer.unwrap_or_else(|_| Some(FAILED.to_owned())))
        });
        for (key, reason) in futures::future::join_all(asked).await {
            self.availability.note(&key, now, reason);
        }
    }

    /// What is offered now, by the shared checks.
    pub fn offers<'a>(&'a self, host: &'a Host) -> Offers<'a> {
        Offers {
            availability: &self.availability,
            host,
            clock: &self.clock,
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn failed() -> Option<String> {
    Some(FAILED.to_owned())
}

/// How a registry finds out what can be offered.
#[derive(Clone, Copy)]
pub struct Offers<'a> {
    availability: &'a Availability,
    host: &'a Host,
    clock: &'a Clock,
}

impl Offers<'_> {
    /// Why the tool cannot be offered now, if it cannot.
    pub fn refused(&self, tool: &super::Entry) -> Option<String> {
        self.availability.of(tool, self.host, self.clock.now())
    }
}
