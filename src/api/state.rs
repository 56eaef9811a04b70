//! What every request shares: the store, the limits, who may call. Built once
//! by the application; a request clones a pointer.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::base::{Clock, Secret};
use crate::config::{Config, Isolation};
use crate::model::precondition::Precondition;
use crate::store::Store;
use crate::turn::engine::Engine;

use super::auth::jwks::JwksError;
use super::auth::jwt::Verifier;
use super::failure::Failure;
use super::hosts::Hosts;
use super::origins::Origins;
use super::rate::limiter::Limiter;
use super::refusals::Refusals;

/// A cheap handle; clones are the same state.
#[derive(Clone)]
pub struct ApiState(Arc<Parts>);

pub struct Parts {
    pub engine: Engine,
    /// The engine's.
    pub store: Store,
    pub access: Access,
    pub hosts: Hosts,
    pub origins: Origins,
    pub body: BodyLimits,
    /// Nothing where no rate is limited.
    pub rates: Option<Limiter>,
    /// The span between two heartbeats of a stream.
    pub heartbeat: Duration,
    /// The toolsets of sessions that name none.
    pub toolsets: Vec<String>,
    /// Owns what outlives its request: a change that was begun, a cancel after
    /// a disconnect.
    pub tasks: TaskTracker,
    /// Streams and waits end when this is cancelled.
    pub closing: CancellationToken,
    /// Held while a file is changed under a condition: between the look at it and
    /// the change no other such change comes.
    files: Mutex<()>,
}

/// How callers are recognised.
pub struct Access {
    /// The key of the environment; never stored.
    pub environment_key: Option<Secret>,
    pub verifier: Option<Verifier>,
    /// A tenant that no row knows appears on its first token.
    pub create_tenants: bool,
    /// Keys that were refused lately.
    pub refusals: Refusals,
    /// Why only the default tenant is served, if so: commands that run without
    /// isolation would let tenants meet.
    pub single_tenant: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    pub max_bytes: usize,
    /// Characters of text in a turn's input.
    pub max_input_chars: usize,
    /// The longest a client may take to send a body.
    pub timeout: Duration,
}

impl ApiState {
    /// The state as configured. `closing` ends streams and waits; `tasks` is
    /// waited for before the engine's store is closed.
    pub fn new(
        config: &Config,
        engine: Engine,
        tasks: TaskTracker,
        closing: CancellationToken,
    ) -> Result<Self, JwksError> {
        let server = &config.server;
        let access = Access {
            environment_key: config.auth.api_key.clone(),
            verifier: Verifier::new(&config.auth.jwt, engine.clock().now(), &tasks)?,
            create_tenants: config.auth.jwt.create_tenants,
            refusals: Refusals::default(),
            single_tenant: single_tenant(config.terminal.isolation, &engine),
        };
        Ok(Self(Arc::new(Parts {
            store: engine.store().clone(),
            engine,
            access,
            hosts: Hosts::new(server.listen, &server.allowed_hosts, config.auth.is_configured()),
            origins: Origins::new(&server.allowed_origins),
            body: BodyLimits {
                max_bytes: server.max_body_bytes,
                max_input_chars: server.max_input_chars,
                timeout: server.body_timeout,
            },
            rates: Limiter::new(&config.limits),
            heartbeat: server.heartbeat,
            toolsets: config.platform_toolsets.api_server.clone(),
            tasks,
            closing,
            files: Mutex::default(),
        })))
    }

    /// Waits for other changes of files under conditions; one without needs no
    /// turn.
    pub async fn one_change_of_files(&self, condition: &Precondition) -> Option<MutexGuard<'_, ()>> {
        match condition.is_empty() {
            true => None,
            false => Some(self.files.lock().await),
        }
    }

    /// Refuses new work once the server is shutting down.
    pub fn takes_work(&self) -> Result<(), Failure> {
        if self.engine.is_draining() || self.closing.is_cancelled() {
            Err(Failure::draining())
        } else {
            Ok(())
        }
    }

    /// Does `work` to its end even if the client leaves in the middle: what is
    /// committed must also be carried out.
    pub async fn finish<T, E, F>(&self, work: F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Into<Failure> + Send + 'static,
    {
        let done = self.tasks.spawn(work.in_current_span()).await;
        done.map_err(Failure::internal)?.map_err(Into::into)
    }

    pub fn clock(&self) -> &Clock {
        self.store.clock()
    }
}

impl Deref for ApiState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Tenants are kept apart by the sandbox; without one there is only one tenant.
fn single_tenant(isolation: Isolation, engine: &Engine) -> Option<String> {
    if isolation == Isolation::None {
        return Some("`terminal.isolation` is `none`, so that commands of tenants could meet".to_owned());
    }
    engine.host().no_commands()
}
