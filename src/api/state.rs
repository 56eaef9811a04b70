//! What every request shares: the store, the limits, who may call. Built once
//! by the application; a request clones a pointer.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::{Clock, Secret};
use crate::store::Store;

use super::auth::jwt::Verifier;
use super::failure::Failure;
use super::hosts::Hosts;
use super::origins::Origins;

/// A cheap handle; clones are the same state.
#[derive(Clone)]
pub struct ApiState(Arc<Parts>);

pub struct Parts {
    pub store: Store,
    pub access: Access,
    pub hosts: Hosts,
    pub origins: Origins,
    pub body: BodyLimits,
    /// The span between two heartbeats of a stream.
    pub heartbeat: Duration,
    /// Owns what outlives its request, such as a cancel after a disconnect.
    pub tasks: TaskTracker,
    /// Streams and waits end when this is cancelled.
    pub closing: CancellationToken,
}

/// How callers are recognised.
pub struct Access {
    /// The key of the environment; never stored.
    pub environment_key: Option<Secret>,
    pub verifier: Option<Verifier>,
    /// A tenant that no row knows appears on its first token.
    pub create_tenants: bool,
    /// Why only the default tenant is served, if so: commands that run without
    /// isolation would let tenants meet.
    pub single_tenant: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    pub max_bytes: usize,
    /// The longest a client may take to send a body.
    pub timeout: Duration,
}

impl ApiState {
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// Refuses new work once the server is shutting down.
    pub fn takes_work(&self) -> Result<(), Failure> {
        if self.closing.is_cancelled() {
            Err(Failure::draining())
        } else {
            Ok(())
        }
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
