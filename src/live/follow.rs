//! Following a session: the log from a cursor on, then live, each durable event
//! exactly once and in order, refined by the drafts of what is in flight.
//!
//! The bell only says "look again": subscribe first, read the log, then wait.
//! A follower keeps one page at most; a reader that does not read costs nothing.

use std::collections::VecDeque;
use std::time::Duration;

use super::cursor::Cursor;
use super::drafts::Item;
use super::hub::{Hub, Reader};
use crate::base::{Clock, Timestamp};
use crate::model::event::{Event, EventBody, HeartbeatData, HelloData};
use crate::model::id::{SessionId, TurnId};
use crate::store::{BellReceiver, Scope, StoreError};

/// Events read at once.
const PAGE: u32 = 100;

/// What to follow.
pub struct Follow {
    pub scope: Scope,
    pub hub: Hub,
    pub session: SessionId,
    /// Only this turn; the stream ends with it.
    pub turn: Option<TurnId>,
    pub cursor: Cursor,
    pub heartbeat: Duration,
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
    waiting: VecDeque<Frame>,
    /// The log may hold more than was read.
    behind: bool,
    greeted: bool,
    over: bool,
    beat_at: Timestamp,
}

impl Follow {
    /// Subscribes; nothing that happens from now on is missed.
    pub fn start(self, clock: Clock) -> Follower {
        Follower {
            bell: self.scope.store().bell().subscribe(self.session),
            drafts: self.hub.read(self.session),
            cursor: self.cursor,
            seen: self.cursor.seq,
            waiting: VecDeque::new(),
            behind: true,
            greeted: false,
            over: false,
            beat_at: clock.now().after(self.heartbeat),
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
            if self.behind || !self.greeted {
                match self.read().await {
                    Ok(true) => continue,
                    Ok(false) => return None,
                    Err(error) => {
                        self.over = true;
                        return Some(Err(error));
                    }
                }
            }
            if self.take_drafts() {
                continue;
            }
            let beat = self.clock.sleep_until(self.beat_at);
            tokio::select! {
                () = self.bell.changed() => self.behind = true,
                () = self.drafts.changed() => {}
                () = beat => {
                    self.behind = true;
                    let body = EventBody::Heartbeat(HeartbeatData { at: self.clock.now() });
                    let event = self.live(None, body, None);
                    self.waiting.push_back(Frame { cursor: None, event });
                }
            }
        }
    }

    /// A frame that is there already, so that what waits together can leave
    /// together.
    pub fn ready(&mut self) -> Option<Frame> {
        let frame = self.waiting.pop_front()?;
        self.beat_at = self.clock.now().after(self.follow.heartbeat);
        self.cursor = frame.cursor.unwrap_or(self.cursor);
        Some(frame)
    }

    /// Reads the log after the cursor. `false` when the session is gone.
    async fn read(&mut self) -> Result<bool, StoreError> {
        let (session, turn, after) = (self.follow.session, self.follow.turn, self.cursor.seq);
        let read = self
            .follow
            .scope
            .read(move |mut rows| Box::pin(async move { rows.log(session, turn, after, PAGE).await }));
        let Some((head_seq, events)) = read.await? else {
            return Ok(false);
        };
        self.behind = events.cut || events.items.len() == PAGE as usize;
        if !self.greeted {
            self.greeted = true;
            let body = EventBody::StreamHello(HelloData { head_seq });
            let event = self.live(None, body, None);
            self.waiting.push_back(Frame {
                cursor: Some(self.cursor),
                event,
            });
        }
        let mut cursor = self.cursor;
        for event in events.items {
            cursor = self.take_event(cursor, event);
        }
        self.seen = if self.behind {
            cursor.seq
        } else {
            head_seq.max(cursor.seq)
        };
        Ok(true)
    }

    /// Queues a durable event, after the live frames that must precede it.
    fn take_event(&mut self, from: Cursor, event: Event) -> Cursor {
        let mut cursor = from;
        let ends = ends(&event.body);
        if let Some(ends) = ends {
            let seen = self.seen.max(cursor.seq);
            let (turn, frames) = self.drafts.frames(self.follow.turn, seen, cursor.d, Some(&ends));
            for frame in frames {
                cursor.d = frame.d;
                let event = self.live(turn, frame.body, Some(cursor));
                self.waiting.push_back(Frame {
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
        self.waiting.push_back(Frame {
            cursor: Some(cursor),
            event,
        });
        cursor
    }

    /// Queues live frames that are new; `true` if there are any.
    fn take_drafts(&mut self) -> bool {
        let (turn, frames) = self.drafts.frames(self.follow.turn, self.seen, self.cursor.d, None);
        for frame in frames {
            let cursor = Cursor {
                seq: self.cursor.seq,
                d: frame.d,
            };
            let event = self.live(turn, frame.body, Some(cursor));
            self.waiting.push_back(Frame {
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
