//! Following a tenant's lists: what its sessions and approvals become, from the
//! notices of commits, read from each session's log in its order.
//!
//! There is no cursor: whoever comes back begins anew. The inbox first shows
//! what is pending; other readers read the lists themselves, after the greeting.
//! A follower keeps one page at most; one that missed notices begins anew.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::base::{Clock, Timestamp};
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::event::{ApprovalData, Event};
use crate::model::event_types::Types;
use crate::model::id::{ApprovalId, SessionId};
use crate::model::tenant_event::{
    Counts, CountsData, SessionDeletedData, TenantEvent, TenantEventBody, TenantHeartbeatData,
};
use crate::store::{Change, Missed, Notice, NoticeReceiver, Scope, Slice, StoreError};

/// Events, or pending approvals, read at once: the arguments of an approval are
/// whole and may be long.
const PAGE: u32 = 16;
/// Sessions whose place in the log is remembered; a session that is forgotten
/// is read from where its next notice says.
const REMEMBERED: usize = 256;

/// What to follow.
#[derive(Clone)]
pub struct FollowLists {
    pub scope: Scope,
    /// Approvals alone, and first those that are pending.
    pub inbox: bool,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only approvals that are of this status, with the event.
    pub status: Option<ApprovalStatus>,
    pub types: Types,
    pub heartbeat: Duration,
}

pub struct ListFollower {
    follow: FollowLists,
    clock: Clock,
    notices: NoticeReceiver,
    phase: Phase,
    /// The notice that is being read up to.
    due: Option<Arc<Notice>>,
    told: HashMap<SessionId, Told>,
    waiting: VecDeque<TenantEvent>,
    over: bool,
    beat_at: Timestamp,
}

#[derive(Clone, Copy)]
enum Phase {
    Greeting,
    /// Notices were missed.
    Lost,
    /// Showing what is pending, after this one.
    Pending(Option<ApprovalId>),
    Live,
}

/// The part of a session's log that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    first: i64,
    last: i64,
}

impl FollowLists {
    /// Subscribes; nothing that happens from now on is missed.
    pub fn start(self, clock: Clock) -> ListFollower {
        ListFollower {
            notices: self.scope.store().bell().notices().subscribe(self.scope.tenant()),
            phase: Phase::Greeting,
            due: None,
            told: HashMap::new(),
            waiting: VecDeque::new(),
            over: false,
            beat_at: clock.now().after(self.heartbeat),
            follow: self,
            clock,
        }
    }
}

impl ListFollower {
    /// The next event; `None` after an error. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<TenantEvent, StoreError>> {
        loop {
            if let Some(event) = self.ready() {
                return Some(Ok(event));
            }
            if self.over {
                return None;
            }
            if let Err(error) = self.advance().await {
                self.over = true;
                return Some(Err(error));
            }
        }
    }

    /// An event that is there already, so that what waits together can leave
    /// together.
    pub fn ready(&mut self) -> Option<TenantEvent> {
        let event = self.waiting.pop_front()?;
        self.beat_at = self.clock.now().after(self.follow.heartbeat);
        Some(event)
    }

    async fn advance(&mut self) -> Result<(), StoreError> {
        match (self.phase, self.due.clone()) {
            (Phase::Greeting, _) => self.begin(TenantEventBody::StreamHello).await,
            (Phase::Lost, _) => self.begin(TenantEventBody::StreamReset).await,
            (Phase::Pending(after), _) => self.show_pending(after).await,
            (Phase::Live, Some(notice)) => self.tell(&notice).await,
            (Phase::Live, None) => self.listen().await,
        }
    }

    async fn begin(&mut self, frame: fn(CountsData) -> TenantEventBody) -> Result<(), StoreError> {
        let counts = self.counts().await?;
        self.stream_frame(frame(CountsData { counts }));
        self.phase = match self.follow.inbox {
            true => Phase::Pending(None),
            false => Phase::Live,
        };
        Ok(())
    }

    async fn show_pending(&mut self, after: Option<ApprovalId>) -> Result<(), StoreError> {
        let session = self.follow.session;
        let read = self
            .follow
            .scope
            .read(move |mut rows| Box::pin(async move { rows.pending_approvals(session, after, PAGE).await }));
        let page = read.await?;
        let last = page.last().filter(|_| page.len() == PAGE as usize);
        if let Some(last) = last.map(|approval| approval.id) {
            self.phase = Phase::Pending(Some(last));
        } else {
            let counts = self.counts().await?;
            self.phase = Phase::Live;
            self.show_all(page);
            self.stream_frame(TenantEventBody::StreamReady(CountsData { counts }));
            return Ok(());
        }
        self.show_all(page);
        Ok(())
    }

    fn show_all(&mut self, page: Vec<Approval>) {
        for approval in page {
            self.show(TenantEvent {
                seq: None,
                session_id: Some(approval.session_id),
                turn_id: Some(approval.turn_id),
                at: approval.requested_at,
                body: TenantEventBody::ApprovalRequested(ApprovalData { approval }),
            });
        }
    }

    async fn listen(&mut self) -> Result<(), StoreError> {
        let beat = self.clock.sleep_until(self.beat_at);
        let heard = tokio::select! {
            heard = self.notices.next() => Some(heard),
            () = beat => None,
        };
        match heard {
            Some(Ok(notice)) => self.due = Some(notice).filter(|notice| self.concerns(notice)),
            Some(Err(Missed)) => {
                self.told.clear();
                self.phase = Phase::Lost;
            }
            None => {
                let counts = self.counts().await?;
                let at = self.clock.now();
                self.stream_frame(TenantEventBody::Heartbeat(TenantHeartbeatData { at, counts }));
            }
        }
        Ok(())
    }

    fn concerns(&self, notice: &Notice) -> bool {
        let follow = &self.follow;
        let kind = match notice.change {
            Change::Events { approvals, .. } => approvals || !follow.inbox,
            Change::Deleted => true,
        };
        kind && follow.scope.sees(&notice.user) && follow.session.is_none_or(|session| session == notice.session)
    }

    /// Reads what a notice is about. It stays due until all of that was read.
    async fn tell(&mut self, notice: &Notice) -> Result<(), StoreError> {
        let session = notice.session;
        let (first, last) = match notice.change {
            Change::Events { first, last, .. } => (first, last),
            Change::Deleted => {
                self.told.remove(&session);
                self.due = None;
                self.show(TenantEvent {
                    seq: None,
                    body: TenantEventBody::SessionDeleted(SessionDeletedData { session_id: session }),
                    session_id: Some(session),
                    turn_id: None,
                    at: self.clock.now(),
                });
                return Ok(());
            }
        };
        let Some(from) = unread(self.told.get(&session).copied(), first, last) else {
            self.due = None;
            return Ok(());
        };
        let inbox = self.follow.inbox;
        let read = self.follow.scope.read(move |mut rows| {
            Box::pin(async move {
                let Some(record) = rows.session_record(session).await? else {
                    return Ok(None);
                };
                let events = rows.list_events(session, inbox, from - 1, PAGE).await?;
                Ok(events.map(|events| (record.head_seq, events)))
            })
        });
        match read.await? {
            Some((head, events)) => self.take(notice, from, head, events),
            // Gone meanwhile; that has a notice of its own.
            None => self.due = None,
        }
        Ok(())
    }

    fn take(&mut self, notice: &Notice, from: i64, head: i64, events: Slice<Event>) {
        let more = events.cut || events.items.len() == PAGE as usize;
        let last = events.items.last().map(|event| event.seq).filter(|_| more);
        if REMEMBERED <= self.told.len() && !self.told.contains_key(&notice.session) {
            self.told.clear();
        }
        let told = Told {
            first: from,
            last: last.unwrap_or(head),
        };
        self.told
            .entry(notice.session)
            .and_modify(|before| {
                before.first = before.first.min(told.first);
                before.last = told.last;
            })
            .or_insert(told);
        if last.is_none() {
            self.due = None;
        }
        for event in events.items {
            let Some(body) = TenantEventBody::of(event.body) else {
                continue;
            };
            self.show(TenantEvent {
                seq: Some(event.seq),
                body,
                session_id: Some(event.session_id),
                turn_id: event.turn_id,
                at: event.at,
            });
        }
    }

    /// Queues an event that the reader wants to see.
    fn show(&mut self, event: TenantEvent) {
        let of_status = |approval: &Approval| self.follow.status.is_none_or(|status| status == approval.status);
        if self.follow.types.pass(event.body.name()) && event.body.approval().is_none_or(of_status) {
            self.waiting.push_back(event);
        }
    }

    fn stream_frame(&mut self, body: TenantEventBody) {
        self.waiting.push_back(TenantEvent {
            seq: None,
            body,
            session_id: None,
            turn_id: None,
            at: self.clock.now(),
        });
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let session = self.follow.session;
        let read = self
            .follow
            .scope
            .read(move |mut rows| Box::pin(async move { rows.count_pending(session).await }));
        Ok(Counts { pending: read.await? })
    }
}

/// From where on a session's log is to be read after a notice of events `first`
/// to `last`; `None` if nothing of it is new. Commits may be told in another
/// order than they were made: what was overtaken is told with all that follows
/// it, so that the last word on everything is the newest.
fn unread(told: Option<Told>, first: i64, last: i64) -> Option<i64> {
    match told {
        Some(told) if last < told.first => Some(first),
        Some(told) if last <= told.last => None,
        Some(told) => Some(told.last + 1),
        None => Some(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_read_once_unless_it_was_overtaken() {
        let told = Some(Told { first: 5, last: 9 });
        assert_eq!(unread(None, 5, 6), Some(5));
        assert_eq!(unread(told, 6, 8), None);
        assert_eq!(unread(told, 10, 11), Some(10));
        assert_eq!(unread(told, 12, 13), Some(10), "what lies between is committed too");
        assert_eq!(unread(told, 3, 4), Some(3), "told late");
    }
}
