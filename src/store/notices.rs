//! Who waits for news of a whole tenant, within this process: the bell of its
//! lists. A notice says which events of which session were committed; their
//! text is in the log. Whoever falls behind is told so and reads the lists anew:
//! nothing is kept for a reader that does not read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::model::event_types::is_of_tenant;
use crate::model::id::{SessionId, TenantId};
use crate::model::record::{NewEvent, SessionRecord};

/// Notices that wait for the slowest reader of a tenant, at most.
const KEPT: usize = 512;

/// Something that a tenant's lists show was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub tenant: TenantId,
    pub session: SessionId,
    /// Who owns the session.
    pub user: String,
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Events of these numbers, the last included.
    Events {
        first: i64,
        last: i64,
        approvals: bool,
    },
    Deleted,
}

impl Notice {
    /// What the lists show of a commit, if anything. `first` is the number of
    /// the first event.
    pub(super) fn of(session: &SessionRecord, events: &[NewEvent], first: i64) -> Option<Self> {
        let shown = |event: &NewEvent| is_of_tenant(event.kind.name());
        let approval = |event: &NewEvent| event.kind.name().starts_with("approval.");
        if session.deleted_at.is_some() || !events.iter().any(shown) {
            return None;
        }
        Some(Self {
            tenant: session.tenant_id,
            session: session.session_id,
            user: session.user_id.clone(),
            change: Change::Events {
                first,
                last: session.head_seq,
                approvals: events.iter().any(approval),
            },
        })
    }
}

/// A cheap handle; clones speak to the same readers.
#[derive(Clone, Debug, Default)]
pub struct Notices(Arc<Mutex<Tenants>>);

/// One channel for each tenant that somebody listens to.
type Tenants = HashMap<TenantId, broadcast::Sender<Arc<Notice>>>;

/// Notices of one tenant since the subscription.
#[derive(Debug)]
pub struct NoticeReceiver {
    tenant: TenantId,
    /// `None` only while it is dropped.
    receiver: Option<broadcast::Receiver<Arc<Notice>>>,
    notices: Notices,
}

/// The reader was too slow: notices are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed;

impl Notices {
    /// Listens to one tenant. Subscribe first, then read.
    pub fn subscribe(&self, tenant: TenantId) -> NoticeReceiver {
        let receiver = self
            .tenants()
            .entry(tenant)
            .or_insert_with(|| broadcast::channel(KEPT).0)
            .subscribe();
        NoticeReceiver {
            tenant,
            receiver: Some(receiver),
            notices: self.clone(),
        }
    }

    pub(super) fn publish(&self, notices: Vec<Notice>) {
        if notices.is_empty() {
            return;
        }
        let listened = self.tenants();
        for notice in notices {
            if let Some(sender) = listened.get(&notice.tenant) {
                // Fails only when the last reader is about to leave.
                let _unheard = sender.send(Arc::new(notice));
            }
        }
    }

    /// No user code runs under this lock and no state is half-made when it is
    /// released, so a poisoned one is as good as new.
    fn tenants(&self) -> MutexGuard<'_, Tenants> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NoticeReceiver {
    /// The next notice. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<Notice>, Missed> {
        let heard = match &mut self.receiver {
            Some(receiver) => receiver.recv().await,
            None => Err(RecvError::Closed),
        };
        match heard {
            Ok(notice) => Ok(notice),
            Err(RecvError::Lagged(_)) => Err(Missed),
            // The sender stays in the map while this receiver lives.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for NoticeReceiver {
    fn drop(&mut self) {
        let mut tenants = self.notices.tenants();
        // Gone under the lock: of two that leave at once the second sees none.
        self.receiver = None;
        if tenants
            .get(&self.tenant)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            tenants.remove(&self.tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn notice(tenant: u128, session: u128) -> Notice {
        Notice {
            tenant: TenantId::from_bits(tenant),
            session: SessionId::from_bits(session),
            user: "ada".to_owned(),
            change: Change::Deleted,
        }
    }

    #[test]
    fn a_tenant_hears_its_own_and_nothing_is_kept_for_those_who_left() {
        let notices = Notices::default();
        let mut own = notices.subscribe(TenantId::from_bits(1));
        let mut other = notices.subscribe(TenantId::from_bits(2));
        notices.publish(vec![notice(1, 5), notice(3, 6)]);
        assert_eq!(
            own.next().now_or_never().unwrap().unwrap().session,
            SessionId::from_bits(5)
        );
        assert!(other.next().now_or_never().is_none() && own.next().now_or_never().is_none());
        drop((own, other));
        assert!(notices.tenants().is_empty());
        notices.publish(vec![notice(1, 5)]);
    }

    #[test]
    fn a_reader_that_does_not_read_is_told_what_it_missed_and_costs_no_more() {
        let notices = Notices::default();
        let mut slow = notices.subscribe(TenantId::from_bits(1));
        for session in 0..10 * KEPT {
            notices.publish(vec![notice(1, session as u128)]);
        }
        assert_eq!(slow.next().now_or_never(), Some(Err(Missed)));
        let mut left = 0;
        while slow.next().now_or_never().is_some() {
            left += 1;
        }
        assert_eq!(left, KEPT);
    }
}
