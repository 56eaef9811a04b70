//! Who waits for news of a session, within this process. A ring says "look at
//! the log again" and up to which event, so that who knows that much need not;
//! it is never lost between subscribing and waiting, and several rings may arrive
//! as one. The newest events lie beside it for whoever was there before them.
//! Only the commit path rings.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::model::id::SessionId;

use super::fresh::Fresh;
use super::notices::{Notice, Notices};

/// Commits whose events are kept for listeners: the beginning of a turn and its
/// quick end, before whoever asked for it is awake.
const FRESH: usize = 3;

/// What a transaction rings for once it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The log reaches up to this event now.
    Events(i64),
    /// Something that no event tells: a cancel, a removal.
    Other,
}

/// What a wait was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Events, and nothing but events.
    Events,
    /// Something that no event tells, maybe events too.
    Other,
}

/// All rings of a session in short.
#[derive(Debug, Default)]
struct Rung {
    head_seq: i64,
    others: u64,
    /// Oldest first.
    fresh: VecDeque<Arc<Fresh>>,
}

/// A cheap handle; clones ring the same bell.
#[derive(Clone, Debug)]
pub struct Bell(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// One channel for each session that somebody listens to.
    sessions: Mutex<HashMap<SessionId, watch::Sender<Rung>>>,
    any: watch::Sender<()>,
    audits: watch::Sender<()>,
    notices: Notices,
}

/// What one commit has to say.
#[derive(Debug, Default)]
pub(super) struct Rings {
    pub(super) sessions: Vec<(SessionId, News)>,
    pub(super) fresh: Vec<(SessionId, Fresh)>,
    pub(super) notices: Vec<Notice>,
    /// The audit trail grew.
    pub(super) audited: bool,
}

impl Rings {
    /// The same when nobody knows whether it was committed: the log tells.
    pub(super) fn unclear(mut self) -> Self {
        self.fresh.clear();
        self
    }
}

/// Rings of one session since the subscription or the last wait.
#[derive(Debug)]
pub struct BellReceiver {
    session: SessionId,
    /// `None` only while it is dropped.
    receiver: Option<watch::Receiver<Rung>>,
    /// Those without a number that were heard.
    others: u64,
    bell: Bell,
}

impl Bell {
    pub(super) fn new() -> Self {
        let ((any, _), (audits, _)) = (watch::channel(()), watch::channel(()));
        Self(Arc::new(Shared {
            sessions: Mutex::default(),
            any,
            audits,
            notices: Notices::default(),
        }))
    }

    /// Listens to one session. Subscribe first, then read the log: a commit
    /// after the read is then always heard.
    pub fn subscribe(&self, session: SessionId) -> BellReceiver {
        let receiver = self
            .sessions()
            .entry(session)
            .or_insert_with(|| watch::channel(Rung::default()).0)
            .subscribe();
        let others = receiver.borrow().others;
        BellReceiver {
            session,
            others,
            receiver: Some(receiver),
            bell: self.clone(),
        }
    }

    /// Changes on every commit that rang for any session.
    pub fn subscribe_all(&self) -> watch::Receiver<()> {
        self.0.any.subscribe()
    }

    /// Changes on every commit that wrote to the audit trail.
    pub fn subscribe_audits(&self) -> watch::Receiver<()> {
        self.0.audits.subscribe()
    }

    /// Where whole tenants are listened to.
    pub fn notices(&self) -> &Notices {
        &self.0.notices
    }

    pub(super) fn ring_all(&self, rings: Rings) {
        self.lay_out(rings.fresh);
        self.ring(&rings.sessions);
        self.0.notices.publish(rings.notices);
        if rings.audited {
            self.0.audits.send_replace(());
        }
    }

    /// Whether anybody listens to the session now.
    pub(super) fn is_heard(&self, session: SessionId) -> bool {
        self.sessions().contains_key(&session)
    }

    /// Puts events beside the bell before it is rung for them.
    fn lay_out(&self, fresh: Vec<(SessionId, Fresh)>) {
        if fresh.is_empty() {
            return;
        }
        let listened = self.sessions();
        for (session, fresh) in fresh {
            if let Some(sender) = listened.get(&session) {
                // Who is woken is woken by the ring.
                sender.send_if_modified(|rung| {
                    if rung.fresh.len() == FRESH {
                        rung.fresh.pop_front();
                    }
                    rung.fresh.push_back(Arc::new(fresh));
                    false
                });
            }
        }
    }

    pub(super) fn ring(&self, rings: &[(SessionId, News)]) {
        if rings.is_empty() {
            return;
        }
        {
            let listened = self.sessions();
            for (session, news) in rings {
                if let Some(sender) = listened.get(session) {
                    sender.send_modify(|rung| match news {
                        News::Events(head_seq) => rung.head_seq = rung.head_seq.max(*head_seq),
                        News::Other => rung.others += 1,
                    });
                }
            }
        }
        self.0.any.send_replace(());
    }

    #[cfg(test)]
    pub(super) fn listened(&self) -> usize {
        self.sessions().len()
    }

    /// No user code runs under this lock and no state is half-made when it is
    /// released, so a poisoned one is as good as new.
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, watch::Sender<Rung>>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BellReceiver {
    /// Completes at the next ring, at once if one came since the last call.
    /// Dropping the future loses nothing.
    pub async fn changed(&mut self) {
        // The sender stays in the bell's map while this receiver lives.
        let heard = match &mut self.receiver {
            Some(receiver) => receiver.changed().await.is_ok(),
            None => false,
        };
        if !heard {
            std::future::pending::<()>().await;
        }
    }

    /// As [`BellReceiver::changed`], but not for events up to `known`.
    pub async fn changed_past(&mut self, known: i64) -> Heard {
        loop {
            self.changed().await;
            let Some(receiver) = &self.receiver else { continue };
            let rung = receiver.borrow();
            if self.others != rung.others {
                self.others = rung.others;
                return Heard::Other;
            }
            if known < rung.head_seq {
                return Heard::Events;
            }
        }
    }

    /// The newest events after `known`, without a gap, if all of them lie beside
    /// the bell and nothing else was rung for since the last wait.
    pub fn fresh(&self, known: i64) -> Option<Vec<Arc<Fresh>>> {
        let rung = self.receiver.as_ref()?.borrow();
        if self.others != rung.others {
            return None;
        }
        let mut reached = known;
        let mut found = Vec::new();
        for fresh in rung.fresh.iter().filter(|fresh| known < fresh.last()) {
            if reached + 1 < fresh.first {
                return None;
            }
            reached = fresh.last();
            found.push(Arc::clone(fresh));
        }
        (known < reached && rung.head_seq <= reached).then_some(found)
    }

    pub fn session(&self) -> SessionId {
        self.session
    }
}

impl Drop for BellReceiver {
    fn drop(&mut self) {
        let mut sessions = self.bell.sessions();
        // Gone under the lock: of two that leave at once the second sees none.
        self.receiver = None;
        if sessions
            .get(&self.session)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            sessions.remove(&self.session);
        }
    }
}
