//! How long an open stream may go on: until the credential that opened it has
//! expired, or a little after its key was revoked. Looked at once between two
//! heartbeats; a stream costs one small read then.

use crate::base::Timestamp;
use crate::model::id::{KeyId, TenantId};

use super::caller::Caller;
use super::state::ApiState;

pub(super) struct Lifetime {
    state: ApiState,
    tenant: TenantId,
    key: Option<KeyId>,
    /// The credential expires.
    until: Option<Timestamp>,
    /// The next look at the key.
    look_at: Timestamp,
}

impl Lifetime {
    pub(super) fn of(state: &ApiState, caller: &Caller) -> Self {
        Self {
            state: state.clone(),
            tenant: caller.principal.tenant,
            key: caller.principal.key,
            until: caller.until,
            look_at: state.clock().now().after(state.heartbeat),
        }
    }

    /// When there is something to look at; never, for a credential that
    /// neither expires nor is revoked.
    fn next(&self) -> Option<Timestamp> {
        let look = self.key.map(|_| self.look_at);
        [look, self.until].into_iter().flatten().min()
    }

    pub(super) fn is_due(&self) -> bool {
        self.next().is_some_and(|next| next <= self.state.clock().now())
    }

    /// Completes when it is time to look. Dropping it loses nothing.
    pub(super) async fn due(&self) {
        match self.next() {
            Some(next) => self.state.clock().sleep_until(next).await,
            None => std::future::pending().await,
        }
    }

    /// Whether the credential still counts. A store that does not answer says
    /// no: the client comes back and is judged anew.
    pub(super) async fn holds(&mut self) -> bool {
        let now = self.state.clock().now();
        if self.until.is_some_and(|until| until <= now) {
            return false;
        }
        let Some(key) = self.key else { return true };
        self.look_at = now.after(self.state.heartbeat);
        let scope = self.state.store.scope(self.tenant);
        let valid = scope.read(move |mut rows| Box::pin(async move { rows.key_is_valid(key).await }));
        valid.await.unwrap_or(false)
    }
}
