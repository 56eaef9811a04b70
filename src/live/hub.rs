//! The drafts of all sessions that run on this process, and the wake-up of
//! their readers. One writer a session (the owner of its turn), many readers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::drafts::{Drafts, Frame, Item};
use crate::model::id::{SessionId, TurnId};

/// A cheap handle; clones share the drafts.
#[derive(Clone, Debug, Default)]
pub struct Hub {
    channels: Arc<Mutex<HashMap<SessionId, Arc<Channel>>>>,
}

#[derive(Debug)]
struct Channel {
    drafts: Mutex<Held>,
    changed: watch::Sender<()>,
}

/// The drafts of the turn that runs, and those of the run before it: a reader
/// that has not seen the new beginning yet still gets the end of the old one.
#[derive(Debug, Default)]
struct Held {
    now: Option<Drafts>,
    before: Option<Drafts>,
}

impl Held {
    /// What belongs to a reader that has seen durable events up to `seq`.
    fn at(&self, seq: i64) -> Option<&Drafts> {
        let begun = |drafts: &&Drafts| drafts.base_seq <= seq;
        self.now.as_ref().filter(begun).or(self.before.as_ref().filter(begun))
    }
}

impl Hub {
    fn channel(&self, session: SessionId) -> Arc<Channel> {
        let mut channels = lock(&self.channels);
        let fresh = || {
            Arc::new(Channel {
                drafts: Mutex::default(),
                changed: watch::channel(()).0,
            })
        };
        Arc::clone(channels.entry(session).or_insert_with(fresh))
    }

    /// Drops a channel nobody holds any more.
    fn release(&self, session: SessionId) {
        let mut channels = lock(&self.channels);
        // One reference is the map's, one the caller's.
        if channels
            .get(&session)
            .is_some_and(|channel| Arc::strong_count(channel) <= 2)
        {
            channels.remove(&session);
        }
    }

    /// Begins the drafts of a turn; earlier drafts of the session are void.
    pub fn write(&self, session: SessionId, turn: TurnId, base_seq: i64) -> Writer {
        let channel = self.channel(session);
        {
            let mut held = lock(&channel.drafts);
            held.before = held.now.take();
            held.now = Some(Drafts::new(turn, base_seq));
        }
        channel.changed.send_replace(());
        Writer {
            hub: self.clone(),
            session,
            turn,
            channel,
        }
    }

    /// Reads the drafts of a session from now on.
    pub fn read(&self, session: SessionId) -> Reader {
        let channel = self.channel(session);
        let changed = channel.changed.subscribe();
        Reader {
            hub: self.clone(),
            session,
            channel,
            changed,
        }
    }

    /// Channels alive; a test of leaks reads it.
    pub fn len(&self) -> usize {
        lock(&self.channels).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The owner's end.
#[derive(Debug)]
pub struct Writer {
    hub: Hub,
    session: SessionId,
    turn: TurnId,
    channel: Arc<Channel>,
}

impl Writer {
    /// A handle for a task that adds pieces, such as a running command.
    pub fn pen(&self) -> Pen {
        Pen {
            channel: Arc::clone(&self.channel),
            turn: self.turn,
        }
    }

    /// Voids what is in flight: numbering starts again after `base_seq`.
    pub fn restart(&self, base_seq: i64) {
        *lock(&self.channel.drafts) = Held {
            now: Some(Drafts::new(self.turn, base_seq)),
            before: None,
        };
        self.channel.changed.send_replace(());
    }

    /// The text of an item so far.
    pub fn text(&self, item: Item) -> String {
        let drafts = lock(&self.channel.drafts);
        drafts
            .now
            .as_ref()
            .and_then(|drafts| drafts.text(item))
            .unwrap_or_default()
            .to_owned()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.hub.release(self.session);
    }
}

/// Adds pieces to the drafts of one turn.
#[derive(Clone, Debug)]
pub struct Pen {
    channel: Arc<Channel>,
    turn: TurnId,
}

impl Pen {
    pub fn push(&self, item: Item, text: &str) {
        self.change(|drafts| drafts.push(item, text));
    }

    /// Items picked are final with the durable event `seq`. Called inside the
    /// transaction that stores it: should that fail, the number is overwritten
    /// by the next try.
    pub fn finish(&self, picks: impl Fn(Item) -> bool, seq: i64) {
        self.change(|drafts| drafts.finish(picks, seq));
    }

    fn change(&self, work: impl FnOnce(&mut Drafts)) {
        if let Some(drafts) = lock(&self.channel.drafts)
            .now
            .as_mut()
            .filter(|drafts| drafts.turn == self.turn)
        {
            work(drafts);
        }
        self.channel.changed.send_replace(());
    }
}

/// A viewer's end.
#[derive(Debug)]
pub struct Reader {
    hub: Hub,
    session: SessionId,
    channel: Arc<Channel>,
    changed: watch::Receiver<()>,
}

impl Reader {
    /// Completes when drafts changed since the last call.
    pub async fn changed(&mut self) {
        // The sender lives in the channel this reader holds.
        let _closed = self.changed.changed().await;
    }

    /// Whether drafts changed since the last look, without waiting.
    pub fn take_changed(&mut self) -> bool {
        let changed = self.changed.has_changed().unwrap_or(false);
        self.changed.mark_unchanged();
        changed
    }

    /// Frames that follow; see [`Drafts::frames`]. Empty when the drafts are of
    /// another turn than `turn`, where one is given.
    pub fn frames(
        &self,
        turn: Option<TurnId>,
        seq: i64,
        d: u64,
        until: Option<&dyn Fn(Item) -> bool>,
    ) -> (Option<TurnId>, Vec<Frame>) {
        let drafts = lock(&self.channel.drafts);
        match drafts
            .at(seq)
            .filter(|drafts| turn.is_none_or(|turn| turn == drafts.turn))
        {
            Some(drafts) => (Some(drafts.turn), drafts.frames(seq, d, until)),
            None => (None, Vec::new()),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.hub.release(self.session);
    }
}

/// A poisoned lock only says that a reader or writer panicked between two
/// complete changes; the drafts stay consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::MessageId;

    #[tokio::test]
    async fn a_reader_sees_the_end_of_a_turn_that_is_over() {
        let hub = Hub::default();
        let session = SessionId::from_bits(1);
        let mut reader = hub.read(session);
        let writer = hub.write(session, TurnId::from_bits(2), 3);
        writer.pen().push(Item::Message(MessageId::from_bits(4)), "hi");
        reader.changed().await;
        drop(writer);
        assert_eq!(reader.frames(None, 3, 0, None).1.len(), 1);
        drop(reader);
        assert!(hub.is_empty());
    }

    #[test]
    fn nothing_is_kept_for_nobody() {
        let hub = Hub::default();
        drop(hub.write(SessionId::from_bits(1), TurnId::from_bits(2), 3));
        assert!(hub.is_empty());
    }
}
