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
    channels: Arc<Mutex<HashMap<SessionId, Entry>>>,
}

/// A channel and how many readers and writers hold it. Counted here, under the
/// lock, because a pen may outlive its writer and must not keep the entry.
#[derive(Debug)]
struct Entry {
    channel: Arc<Channel>,
    ends: usize,
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
    now: Option<Run>,
    before: Option<Run>,
    /// Writers so far; a pen writes for its own only.
    writers: u64,
}

#[derive(Debug)]
struct Run {
    writer: u64,
    drafts: Drafts,
}

impl Held {
    /// What belongs to a reader that has seen durable events up to `seq`.
    fn at(&mut self, seq: i64) -> Option<&mut Drafts> {
        let begun = |run: &&mut Run| run.drafts.base_seq <= seq;
        let run = self.now.as_mut().filter(begun).or(self.before.as_mut().filter(begun));
        run.map(|run| &mut run.drafts)
    }

    fn of(&mut self, writer: u64) -> Option<&mut Drafts> {
        let run = self.now.as_mut().filter(|run| run.writer == writer);
        run.map(|run| &mut run.drafts)
    }
}

impl Hub {
    fn hold(&self, session: SessionId) -> Arc<Channel> {
        let mut channels = lock(&self.channels);
        let entry = channels.entry(session).or_insert_with(|| Entry {
            channel: Arc::new(Channel {
                drafts: Mutex::default(),
                changed: watch::channel(()).0,
            }),
            ends: 0,
        });
        entry.ends += 1;
        Arc::clone(&entry.channel)
    }

    /// Drops a channel nobody holds any more.
    fn release(&self, session: SessionId) {
        let mut channels = lock(&self.channels);
        if let Some(entry) = channels.get_mut(&session) {
            entry.ends -= 1;
            if entry.ends == 0 {
                channels.remove(&session);
            }
        }
    }

    /// Begins the drafts of a turn; earlier drafts of the session are void. An
    /// owner that was overtaken before it came here stays mute.
    pub fn write(&self, session: SessionId, turn: TurnId, base_seq: i64) -> Writer {
        let channel = self.hold(session);
        let number = {
            let mut held = lock(&channel.drafts);
            held.writers += 1;
            let writer = held.writers;
            if held.now.as_ref().is_none_or(|now| now.drafts.base_seq <= base_seq) {
                held.before = held.now.take();
                let drafts = Drafts::new(turn, base_seq);
                held.now = Some(Run { writer, drafts });
            }
            writer
        };
        channel.changed.send_replace(());
        Writer {
            hub: self.clone(),
            session,
            turn,
            number,
            channel,
        }
    }

    /// Reads the drafts of a session from now on.
    pub fn read(&self, session: SessionId) -> Reader {
        let channel = self.hold(session);
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
    number: u64,
    channel: Arc<Channel>,
}

impl Writer {
    /// A handle for a task that adds pieces, such as a running command.
    pub fn pen(&self) -> Pen {
        Pen {
            channel: Arc::clone(&self.channel),
            writer: self.number,
        }
    }

    /// Voids what is in flight: numbering starts again after `base_seq`.
    pub fn restart(&self, base_seq: i64) {
        let mut held = lock(&self.channel.drafts);
        if let Some(drafts) = held.of(self.number) {
            *drafts = Drafts::new(self.turn, base_seq);
            held.before = None;
        }
        drop(held);
        self.channel.changed.send_replace(());
    }

    /// Durable events up to `seq` are committed: items that begin from now on
    /// are shown only to readers that have seen them.
    pub fn reached(&self, seq: i64) {
        if let Some(drafts) = lock(&self.channel.drafts).of(self.number) {
            drafts.reached(seq);
        }
    }

    /// The text of an item so far.
    pub fn text(&self, item: Item) -> String {
        lock(&self.channel.drafts)
            .of(self.number)
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
    writer: u64,
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

    /// The turn ends or parks with the durable event `seq`: what was begun and
    /// never finished is void for readers past it.
    pub fn end(&self, seq: i64) {
        self.change(|drafts| drafts.end(seq));
    }

    fn change(&self, work: impl FnOnce(&mut Drafts)) {
        if let Some(drafts) = lock(&self.channel.drafts).of(self.writer) {
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
        let mut held = lock(&self.channel.drafts);
        match held
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

    #[test]
    fn a_pen_that_outlives_its_writer_keeps_nothing_and_writes_nothing_for_a_successor() {
        let hub = Hub::default();
        let (session, turn) = (SessionId::from_bits(1), TurnId::from_bits(2));
        let first = hub.write(session, turn, 3);
        let late = first.pen();
        let second = hub.write(session, turn, 7);
        late.push(Item::Message(MessageId::from_bits(4)), "from a former owner");
        let reader = hub.read(session);
        assert!(reader.frames(None, 7, 0, None).1.is_empty());
        drop((first, second, reader));
        assert!(hub.is_empty(), "the late pen does not count");
    }

    #[test]
    fn an_owner_that_comes_late_does_not_void_the_drafts_of_its_successor() {
        let hub = Hub::default();
        let (session, turn) = (SessionId::from_bits(1), TurnId::from_bits(2));
        let item = Item::Message(MessageId::from_bits(4));
        let successor = hub.write(session, turn, 7);
        successor.pen().push(item, "hi");
        let late = hub.write(session, turn, 3);
        late.pen().push(item, "stale");
        late.restart(9);
        let reader = hub.read(session);
        assert_eq!(reader.frames(None, 7, 0, None).1.len(), 1);
        assert_eq!(successor.text(item), "hi");
        assert_eq!(late.text(item), "");
    }

    #[test]
    fn channels_go_when_the_last_two_ends_leave_at_once() {
        let hub = Hub::default();
        for round in 0..2000_u128 {
            let session = SessionId::from_bits(round);
            let (writer, reader) = (hub.write(session, TurnId::from_bits(2), 3), hub.read(session));
            std::thread::scope(|scope| {
                scope.spawn(move || drop(writer));
                scope.spawn(move || drop(reader));
            });
        }
        assert!(hub.is_empty(), "{} channels are left", hub.len());
    }
}
