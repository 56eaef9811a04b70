//! One process: its output as it grows, what is typed to it, its end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::News;
use super::rolling::Rolling;
use super::watch::{Breaker, Told, Watch};
use crate::base::Timestamp;
use crate::base::text::last_chars;
use crate::environment::Chunk;
use crate::model::background::{BackgroundEnd, BackgroundRecord, Completion, WatchChange};
use crate::model::id::{BackgroundId, SessionId, TenantId};
use crate::tool::decoder::Decoder;

/// How long typed text may wait until the process reads.
const TYPING_PATIENCE: Duration = Duration::from_secs(5);
/// Of the output in the note of an end (the original's figure). Twice as much is
/// taken, since what is masked is masked whole.
const TOLD_CHARS: usize = 2_000;
/// Notices that wait for the record.
const KEPT_NOTICES: usize = 16;

/// What somebody sees of a process now.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub record: BackgroundRecord,
    /// The end of its output, as it came.
    pub output: String,
    /// Lines before that, which are not kept.
    pub dropped_lines: usize,
    /// A line that was watched for was seen.
    pub was_hit: bool,
}

/// Why typed text did not arrive; the text is for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    #[error("the process has ended")]
    Ended,
    #[error("the process has no terminal, so nothing can be typed to it: start it with `pty: true`")]
    NoTerminal,
    #[error("the process does not read what was typed before")]
    Full,
}

#[derive(Debug)]
pub struct Entry {
    typed: Option<mpsc::Sender<Bytes>>,
    pub(super) cancel: CancellationToken,
    state: Mutex<State>,
    /// Whether it has ended.
    over: watch::Sender<bool>,
    /// Whether the store knows it.
    known: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    record: BackgroundRecord,
    has_run: bool,
    output: Rolling,
    decoders: [Decoder; 2],
    watch: Watch,
    was_hit: bool,
    /// Why it ends, once somebody wants it to.
    ends_as: Option<Completion>,
    /// Nobody is to be told of the end: it was seen.
    is_seen: bool,
    /// Who waits for the end now.
    waiting: usize,
    early: Vec<(Told, mpsc::Sender<News>)>,
}

impl Entry {
    pub(super) fn new(record: BackgroundRecord, typed: Option<mpsc::Sender<Bytes>>, cancel: CancellationToken) -> Self {
        let watch = Watch::new(record.notices.patterns.clone());
        Self {
            typed,
            cancel,
            state: Mutex::new(State {
                record,
                has_run: false,
                output: Rolling::default(),
                decoders: Default::default(),
                watch,
                was_hit: false,
                ends_as: None,
                is_seen: false,
                waiting: 0,
                early: Vec::new(),
            }),
            over: watch::Sender::new(false),
            known: watch::Sender::new(false),
        }
    }

    /// One that ended with its server.
    pub(super) fn lost(record: BackgroundRecord) -> Self {
        let entry = Self::new(record, None, CancellationToken::new());
        entry.over.send_replace(true);
        entry.known.send_replace(true);
        entry
    }

    pub fn id(&self) -> BackgroundId {
        self.state().record.id
    }

    pub(super) fn key(&self) -> (TenantId, SessionId) {
        let state = self.state();
        (state.record.tenant_id, state.record.session_id)
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut state = self.state();
        let (output, dropped_lines) = state.output.read();
        Snapshot {
            record: state.record.clone(),
            output,
            dropped_lines,
            was_hit: state.was_hit,
        }
    }

    pub fn end(&self) -> Option<BackgroundEnd> {
        self.state().record.end
    }

    pub(super) fn runs(&self, pid: Option<u32>) {
        let mut state = self.state();
        state.has_run = true;
        state.record.pid = pid.map(i64::from);
    }

    pub(super) fn has_run(&self) -> bool {
        self.state().has_run
    }

    /// Takes output in and gives it back as text.
    pub(super) fn take(&self, chunk: &Chunk) -> String {
        let mut state = self.state();
        // Output comes from what runs, even before its number was told.
        state.has_run = true;
        let stream = usize::from(matches!(chunk, Chunk::Stderr(_)));
        let text = state
            .decoders
            .get_mut(stream)
            .map(|decoder| decoder.decode(chunk.bytes()));
        let text = text.unwrap_or_default();
        state.output.push(&text);
        text
    }

    pub(super) fn watch(&self, text: &str, now: Timestamp, breaker: &mut Breaker) -> Vec<Told> {
        let mut state = self.state();
        let told = state.watch.take(text, now, breaker);
        for told in &told {
            match told {
                Told::Matched(_) => state.was_hit = true,
                Told::Changed {
                    change: WatchChange::Disabled,
                    ..
                } => {
                    state.record.notices.patterns.clear();
                    state.record.notices.on_completion = true;
                }
                Told::Changed { .. } => {}
            }
        }
        told
    }

    /// The store knows the process as this record.
    pub(super) fn recorded(&self, record: BackgroundRecord) {
        let early = {
            let mut state = self.state();
            (state.record.turn_id, state.record.owner) = (record.turn_id, record.owner);
            std::mem::take(&mut state.early)
        };
        self.known.send_replace(true);
        for (told, news) in early {
            let record = self.state().record.clone();
            drop(news.try_send(News::Watched { record, told }));
        }
    }

    pub(super) fn keep_for_later(&self, told: Told, news: &mpsc::Sender<News>) {
        let mut state = self.state();
        if state.early.len() < KEPT_NOTICES {
            state.early.push((told, news.clone()));
        }
    }

    /// The record, if the store knows it.
    pub(super) fn record_now(&self) -> Option<BackgroundRecord> {
        self.known.borrow().then(|| self.state().record.clone())
    }

    /// The record, once the store knows it.
    pub(super) async fn record(&self) -> Option<BackgroundRecord> {
        let mut known = self.known.subscribe();
        known.wait_for(|known| *known).await.ok()?;
        Some(self.state().record.clone())
    }

    /// Notes the end; what is to be told of it comes back.
    pub(super) fn close(&self, exit_code: Option<i64>, at: Timestamp) -> (BackgroundEnd, Option<String>) {
        let (end, tell) = {
            let mut state = self.state();
            let completion = match (state.ends_as, exit_code) {
                (Some(asked), _) => asked,
                (None, Some(_)) => Completion::Exited,
                (None, None) => Completion::Lost,
            };
            let exit_code = exit_code.filter(|_| completion != Completion::Lost);
            let end = BackgroundEnd {
                exit_code,
                completion,
                at,
            };
            state.record.end = Some(end);
            let is_told = state.record.notices.on_completion && !state.is_seen && state.waiting == 0;
            let tell = is_told.then(|| last_chars(&state.output.read().0, 2 * TOLD_CHARS).to_owned());
            (end, tell)
        };
        self.over.send_replace(true);
        (end, tell)
    }

    /// Asks the whole tree to end. The first reason stands.
    pub fn ask_to_end(&self, why: Completion) {
        self.mark(why);
        self.cancel.cancel();
    }

    pub(super) fn mark(&self, why: Completion) {
        let mut state = self.state();
        if state.record.end.is_none() {
            state.ends_as.get_or_insert(why);
        }
    }

    /// The end needs no telling any more.
    pub fn silence(&self) {
        self.state().is_seen = true;
    }

    /// Waits for the end.
    pub async fn ended(&self) {
        let mut over = self.over.subscribe();
        let _ = over.wait_for(|over| *over).await;
    }

    /// Waits for the end as somebody who will tell it.
    pub async fn seen_to_end(&self) {
        let waiting = Waiting::on(self);
        self.ended().await;
        drop(waiting);
    }

    /// Types text; gives back how many bytes that are.
    pub async fn write(&self, text: String) -> Result<usize, Unread> {
        if self.end().is_some() {
            return Err(Unread::Ended);
        }
        let typed = self.typed.as_ref().ok_or(Unread::NoTerminal)?;
        let length = text.len();
        match timeout(TYPING_PATIENCE, typed.send(Bytes::from(text))).await {
            Ok(Ok(())) => Ok(length),
            Ok(Err(_)) => Err(Unread::Ended),
            Err(_) => Err(Unread::Full),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counted while somebody waits, also when that is given up.
struct Waiting<'e>(&'e Entry);

impl<'e> Waiting<'e> {
    fn on(entry: &'e Entry) -> Self {
        entry.state().waiting += 1;
        Self(entry)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting = state.waiting.saturating_sub(1);
    }
}
