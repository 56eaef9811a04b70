//! Following a session: the log from a cursor on, then live, each durable event
//! exactly once and in order, refined by the drafts of what is in flight.
//!
//! Between two heartbeats nothing is asked. With one it is asked, together with all
//! that are due, whether the log went on without being heard, which says too
//! whether the session is still there.
//!
//! The bell only says "look again": subscribe first, read the log, then wait.
//! What this process commits meanwhile lies beside the bell and need not be read.
//! Text in flight goes out at most every few milliseconds, joined, and in any case
//! before the event that makes it final.
//! A follower keeps one page at most; a reader that does not read costs nothing.
//! What the reader does not want to see moves its cursor all the same.

use std::collections::VecDeque;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::cursor::Cursor;
use super::drafts::Item;
use super::hub::{Hub, Reader};
use crate::base::{Clock, Timestamp};
use crate::model::event::{Event, EventBody, HeartbeatData, HelloData, ResetData};
use crate::model::event_types::Types;
use crate::model::id::{SessionId, TurnId};
use crate::store::{BellReceiver, Heard, Scope, StoreError};

/// Events read at once.
const PAGE: u32 = 100;
/// Between two frames of text in flight: far below what anybody sees, and a burst
/// of a hundred words is a few writes instead of a hundred.
const PAUSE: Duration = Duration::from_millis(5);

/// What to follow.
pub struct Follow {
    pub scope: Scope,
    pub hub: Hub,
    pub session: SessionId,
    /// Only this turn; the stream ends with it.
    pub turn: Option<TurnId>,
    pub cursor: Cursor,
    pub shown: Shown,
    pub heartbeat: Duration,
}

/// What of a session a reader wants to see.
#[derive(Clone, Debug)]
pub struct Shown {
    pub types: Types,
    /// Frames of items in flight.
    pub deltas: bool,
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            types: Types::default(),
            deltas: true,
        }
    }
}

/// One frame of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Where a reader that has this frame stands; `None` moves nothing.
    pub cursor: Option<Cursor>,
    pub event: Event,
}

pub struct Follower {
    follow: Follow,
    clock: Clock,
    bell: BellReceiver,
    drafts: Reader,
    cursor: Cursor,
    /// All that concerns this follower was read up to this event, which may be
    /// one that concerns it not.
    seen: i64,
    waiting: VecDeque<Waiting>,
    /// Whether frames of items in flight are wanted at all. Where they are not
    /// their count in the cursor stands still, so that a reader who wants them
    /// after all gets them whole.
    lively: bool,
    /// Until then more text in flight waits, if `stirred` says that there is any.
    paused_until: Option<Instant>,
    stirred: bool,
    /// The log may hold more than was read.
    behind: bool,
    greeted: bool,
    over: bool,
    beat_at: Timestamp,
    /// How far the log reaches, while that is asked.
    asking: Option<BoxFuture<'static, Result<Option<i64>, StoreError>>>,
}

/// What comes next: a frame, or only the way past one that is not wanted.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are frames, and others are joined to one"
)]
enum Waiting {
    Shown(Frame),
    Passed(Cursor),
}

impl Follow {
    /// Subscribes; nothing that happens from now on is missed.
    pub fn start(self, clock: Clock) -> Follower {
        let bell = self.scope.store().bell().subscribe(self.session);
        self.listening(bell, clock)
    }

    /// As [`Follow::start`], for who listened to the session's bell before it
    /// appended what follows the cursor.
    pub fn start_with(self, bell: BellReceiver, clock: Clock) -> Follower {
        let mut follower = self.listening(bell, clock);
        follower.behind = !follower.take_fresh();
        follower
    }

    fn listening(self, bell: BellReceiver, clock: Clock) -> Follower {
        Follower {
            bell,
            drafts: self.hub.read(self.session),
            cursor: self.cursor,
            seen: self.cursor.seq,
            waiting: VecDeque::new(),
            lively: self.shown.deltas && self.shown.types.pass_live(),
            paused_until: None,
            stirred: false,
            behind: true,
            greeted: false,
            over: false,
            beat_at: beat_after(clock.now(), self.heartbeat),
            asking: None,
            follow: self,
            clock,
        }
    }
}

impl Follower {
    /// The next frame; `None` when the followed turn is over, or the session
    /// gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Frame, StoreError>> {
        loop {
            if let Some(frame) = self.ready() {
                return Some(Ok(frame));
            }
            if self.over {
                return None;
            }
            if self.behind {
                match self.read().await {
                    Ok(true) => continue,
                    Ok(false) => return None,
                    Err(error) => {
                        self.over = true;
                        return Some(Err(error));
                    }
                }
            }
            let paused = self.paused_until.filter(|until| Instant::now() < *until);
            if paused.is_none() {
                self.stirred = false;
                if self.take_drafts() {
                    continue;
                }
            }
            let beat = self.clock.sleep_until(self.beat_at);
            let pause = paused.filter(|_| self.stirred);
            tokio::select! {
                heard = self.bell.changed_past(self.seen) => {
                    self.behind = heard == Heard::Other || !self.take_fresh();
                }
                () = self.drafts.changed(), if self.lively && !self.stirred => self.stirred = true,
                () = over(pause) => {}
                head = answered(&mut self.asking), if self.asking.is_some() => {
                    self.asking = None;
                    // Whatever else it is, reading the log tells.
                    self.behind = !matches!(head, Ok(Some(head_seq)) if head_seq <= self.seen);
                }
                () = beat => {
                    self.ask();
                    let body = EventBody::Heartbeat(HeartbeatData { at: self.clock.now() });
                    let event = self.live(None, body, None);
                    self.queue(Frame { cursor: None, event });
                }
            }
        }
    }

    /// Asks how far the log reaches.
    fn ask(&mut self) {
        let (store, tenant) = (self.follow.scope.store().clone(), self.follow.scope.tenant());
        let session = self.follow.session;
        self.asking = Some(Box::pin(
            async move { store.head_across_tenants(tenant, session).await },
        ));
    }

    /// A frame that is there already, so that what waits together can leave
    /// together.
    pub fn ready(&mut self) -> Option<Frame> {
        loop {
            match self.waiting.pop_front()? {
                Waiting::Passed(cursor) => self.cursor = cursor,
                Waiting::Shown(frame) => {
                    self.beat_at = beat_after(self.clock.now(), self.follow.heartbeat);
                    self.cursor = frame.cursor.unwrap_or(self.cursor);
                    return Some(frame);
                }
            }
        }
    }

    /// Puts a frame behind the others, or what is left of it when nobody wants
    /// to see it.
    fn queue(&mut self, frame: Frame) {
        let waiting = match frame.cursor {
            Some(cursor) if !self.follow.shown.types.pass(frame.event.body.name()) => Waiting::Passed(cursor),
            _ => Waiting::Shown(frame),
        };
        if let (Waiting::Passed(_), Some(last @ Waiting::Passed(_))) = (&waiting, self.waiting.back_mut()) {
            *last = waiting;
        } else {
            self.waiting.push_back(waiting);
        }
    }

    /// Takes what lies beside the bell, if that is all there is after what was
    /// seen; `false`: it is not, and the log must be read.
    fn take_fresh(&mut self) -> bool {
        let Some(fresh) = self.bell.fresh(self.seen) else {
            return false;
        };
        let events = fresh.iter().flat_map(|fresh| (fresh.first..).zip(&fresh.events));
        let turn = self.follow.turn;
        let events = events.filter(|(seq, event)| self.seen < *seq && (turn.is_none() || event.turn_id == turn));
        let events: Option<Vec<Event>> = events.map(|(_, event)| event.event.clone()).collect();
        let (Some(events), Some(last)) = (events, fresh.last()) else {
            return false;
        };
        self.greet(last.last());
        let cursor = self.take_events(self.cursor, events);
        self.seen = last.last().max(cursor.seq);
        true
    }

    /// Reads the log after the cursor. `false` when the session is gone.
    async fn read(&mut self) -> Result<bool, StoreError> {
        let (session, turn, after) = (self.follow.session, self.follow.turn, self.cursor.seq);
        let read = self
            .follow
            .scope
            .read(move |mut rows| Box::pin(async move { rows.log(session, turn, after, PAGE).await }));
        let Some((head_seq, events, gap)) = read.await? else {
            return Ok(false);
        };
        self.behind = events.cut || events.items.len() == PAGE as usize;
        self.greet(head_seq);
        let mut cursor = self.cursor;
        if let Some(oldest_seq) = gap {
            cursor = self.reset(oldest_seq);
        }
        let cursor = self.take_events(cursor, events.items);
        self.seen = if self.behind {
            cursor.seq
        } else {
            head_seq.max(cursor.seq)
        };
        Ok(true)
    }

    /// The first frame of every stream.
    fn greet(&mut self, head_seq: i64) {
        if !self.greeted {
            self.greeted = true;
            let body = EventBody::StreamHello(HelloData { head_seq });
            let event = self.live(None, body, None);
            self.queue(Frame {
                cursor: Some(self.cursor),
                event,
            });
        }
    }

    fn take_events(&mut self, from: Cursor, events: Vec<Event>) -> Cursor {
        let take = |cursor, event| self.take_event(cursor, event);
        events.into_iter().fold(from, take)
    }

    /// Tells that events are not kept any more, and goes on behind them. A turn
    /// of which none is kept is over.
    fn reset(&mut self, oldest_seq: i64) -> Cursor {
        let cursor = Cursor {
            seq: oldest_seq - 1,
            d: 0,
        };
        let event = self.live(None, EventBody::StreamReset(ResetData { oldest_seq }), Some(cursor));
        self.queue(Frame {
            cursor: Some(cursor),
            event,
        });
        self.over = self.follow.turn.is_some();
        cursor
    }

    /// Queues a durable event, after the live frames that must precede it.
    fn take_event(&mut self, from: Cursor, event: Event) -> Cursor {
        let mut cursor = from;
        let ends = ends(&event.body);
        if let Some(ends) = ends.filter(|_| self.lively) {
            let seen = self.seen.max(cursor.seq);
            let (turn, frames) = self.drafts.frames(self.follow.turn, seen, cursor.d, Some(&ends));
            for frame in frames {
                cursor.d = frame.d;
                let event = self.live(turn, frame.body, Some(cursor));
                self.queue(Frame {
                    cursor: Some(cursor),
                    event,
                });
            }
        }
        cursor.seq = event.seq;
        if restarts(&event.body) {
            cursor.d = 0;
        }
        self.over = self.follow.turn.is_some() && event.turn_id == self.follow.turn && ends_turn(&event.body);
        self.queue(Frame {
            cursor: Some(cursor),
            event,
        });
        cursor
    }

    /// Queues live frames that are new; `true` if there are any.
    fn take_drafts(&mut self) -> bool {
        if !self.lively {
            return false;
        }
        let (turn, frames) = self.drafts.frames(self.follow.turn, self.seen, self.cursor.d, None);
        // A beginning without text holds nothing up.
        if frames
            .iter()
            .any(|frame| !matches!(frame.body, EventBody::MessageStarted(_)))
        {
            self.paused_until = Some(Instant::now() + PAUSE);
        }
        for frame in frames {
            let cursor = Cursor {
                seq: self.cursor.seq,
                d: frame.d,
            };
            let event = self.live(turn, frame.body, Some(cursor));
            self.queue(Frame {
                cursor: Some(cursor),
                event,
            });
        }
        !self.waiting.is_empty()
    }

    fn live(&self, turn_id: Option<TurnId>, body: EventBody, cursor: Option<Cursor>) -> Event {
        let cursor = cursor.unwrap_or(self.cursor);
        Event {
            id: cursor.to_string(),
            seq: cursor.seq,
            body,
            session_id: self.follow.session,
            turn_id: turn_id.or(self.follow.turn),
            at: self.clock.now(),
        }
    }
}

/// When the next heartbeat is due: a little early rather than late, and at the
/// same moment as those of other streams, so that many wake up as one.
fn beat_after(now: Timestamp, heartbeat: Duration) -> Timestamp {
    let Timestamp(latest) = now.after(heartbeat);
    let grid = i64::try_from(heartbeat.as_millis() / 10).unwrap_or(1).max(1);
    Timestamp(latest - latest % grid)
}

async fn answered<T>(asking: &mut Option<BoxFuture<'static, T>>) -> T {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

/// Completes at the end of a pause; without one, never.
async fn over(pause: Option<Instant>) {
    match pause {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// The items that a durable event makes final.
fn ends(body: &EventBody) -> Option<impl Fn(Item) -> bool + use<>> {
    let (message, call) = match body {
        EventBody::MessageCompleted(data) => (Some(data.message.id), None),
        EventBody::ReasoningCompleted(data) => (Some(data.message_id), None),
        EventBody::ToolCallCompleted(data) | EventBody::ToolCallCancelled(data) | EventBody::ToolCallUnknown(data) => {
            (None, Some(data.tool_call.id))
        }
        _ => return None,
    };
    Some(move |item| match item {
        Item::Started(own) | Item::Message(own) | Item::Reasoning(own) => Some(own) == message,
        Item::Output(own, _) => Some(own) == call,
    })
}

fn restarts(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::TurnStarted(_) | EventBody::TurnResumed(_) | EventBody::ModelRetrying(_)
    )
}

fn ends_turn(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::TurnCompleted(_)
            | EventBody::TurnFailed(_)
            | EventBody::TurnCancelled(_)
            | EventBody::TurnInterrupted(_)
            | EventBody::TurnRolledBack(_)
    )
}
