//! Drafts of one turn: the text of items in flight, cut into numbered pieces.
//!
//! Pieces are numbered by `d` from 1 since the durable event that restarted the
//! numbering. Text is kept whole (of command output: the last part), so a
//! reader asks for what follows its `d` and gets neighbouring pieces joined: no
//! queue per reader, and a slow reader costs nothing.

use std::collections::VecDeque;

use crate::model::event::{EventBody, MessageStartedData, OutputData, OutputStream, TextData};
use crate::model::id::{CallId, MessageId, TurnId};

/// Of a call's output this much is kept for readers (the whole result is the
/// tool's own matter).
const OUTPUT_KEPT: usize = 256 * 1024;
/// Finished items are kept for readers that are about to see their end, up to
/// this much text.
const FINISHED_KEPT: usize = 1024 * 1024;

/// What a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    Started(MessageId),
    Message(MessageId),
    Reasoning(MessageId),
    Output(CallId, OutputStream),
}

#[derive(Debug)]
struct Text {
    item: Item,
    kept: String,
    /// Bytes dropped from the front.
    dropped: usize,
    /// Readers must have seen durable events up to here first, such as the one
    /// that says that the call was started.
    after: i64,
    /// The durable event that made the item final; readers at or past it need
    /// no pieces.
    done_at: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    d: u64,
    item: Item,
    start: usize,
    end: usize,
}

/// A live frame, not yet in an envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub d: u64,
    pub body: EventBody,
}

#[derive(Debug)]
pub struct Drafts {
    pub turn: TurnId,
    /// The durable event that restarted the numbering.
    pub base_seq: i64,
    /// Durable events known to be committed.
    reached: i64,
    /// The durable event with which the turn ended or parked.
    ended_at: Option<i64>,
    last_d: u64,
    /// The newest piece that some reader was given; later ones may still grow.
    given: u64,
    texts: Vec<Text>,
    pieces: VecDeque<Piece>,
}

impl Drafts {
    pub fn new(turn: TurnId, base_seq: i64) -> Self {
        Self {
            turn,
            base_seq,
            reached: base_seq,
            ended_at: None,
            last_d: 0,
            given: 0,
            texts: Vec::new(),
            pieces: VecDeque::new(),
        }
    }

    /// Adds a piece of text to an item.
    pub fn push(&mut self, item: Item, text: &str) {
        // What grows is near the end.
        let index = self
            .texts
            .iter()
            .rposition(|known| known.item == item)
            .unwrap_or_else(|| {
                self.texts.push(Text {
                    item,
                    kept: String::new(),
                    dropped: 0,
                    after: self.reached,
                    done_at: None,
                });
                self.texts.len() - 1
            });
        let Some(entry) = self.texts.get_mut(index) else { return };
        let start = entry.dropped + entry.kept.len();
        entry.kept.push_str(text);
        let end = entry.dropped + entry.kept.len();
        if matches!(item, Item::Output(..)) && 2 * OUTPUT_KEPT < entry.kept.len() {
            let cut = ceil_boundary(&entry.kept, entry.kept.len() - OUTPUT_KEPT);
            entry.kept.drain(..cut);
            entry.dropped += cut;
            let dropped = entry.dropped;
            self.pieces.retain(|piece| piece.item != item || dropped < piece.end);
        }
        // What nobody was given yet leaves together, as one piece.
        if let Some(last) = self.pieces.back_mut()
            && last.item == item
            && last.end == start
            && self.given < last.d
        {
            last.end = end;
            return;
        }
        self.last_d += 1;
        self.pieces.push_back(Piece {
            d: self.last_d,
            item,
            start,
            end,
        });
    }

    /// Durable events up to `seq` are committed.
    pub fn reached(&mut self, seq: i64) {
        self.reached = self.reached.max(seq);
    }

    /// The turn ends or parks with the durable event `seq`.
    pub fn end(&mut self, seq: i64) {
        self.ended_at = Some(seq);
    }

    /// The item is final with the durable event `seq`.
    pub fn finish(&mut self, matches: impl Fn(Item) -> bool, seq: i64) {
        for text in &mut self.texts {
            if matches(text.item) {
                text.done_at = Some(seq);
            }
        }
        let mut kept: usize = self
            .texts
            .iter()
            .filter(|text| text.done_at.is_some())
            .map(|text| text.kept.len())
            .sum();
        while FINISHED_KEPT < kept {
            let Some(oldest) = self
                .texts
                .iter()
                .position(|text| text.done_at.is_some_and(|at| at < seq))
            else {
                break;
            };
            let gone = self.texts.remove(oldest);
            kept -= gone.kept.len();
            self.pieces.retain(|piece| piece.item != gone.item);
        }
    }

    /// The text of an item so far (of output: what is kept).
    pub fn text(&self, item: Item) -> Option<&str> {
        self.texts
            .iter()
            .find(|text| text.item == item)
            .map(|text| text.kept.as_str())
    }

    /// Frames after `d` for a reader that has seen durable events up to `seq`,
    /// neighbouring pieces of one item joined. With `until`, only as far as the
    /// last piece of the items it picks: what must precede their final event.
    pub fn frames(&mut self, seq: i64, d: u64, until: Option<&dyn Fn(Item) -> bool>) -> Vec<Frame> {
        if seq < self.base_seq || self.ended_at.is_some_and(|end| end <= seq) {
            return Vec::new();
        }
        let last = match until {
            None => u64::MAX,
            Some(picks) => self
                .pieces
                .iter()
                .rev()
                .find(|piece| picks(piece.item))
                .map_or(0, |piece| piece.d),
        };
        let first = self.pieces.partition_point(|piece| piece.d <= d);
        let mut joined: Vec<Piece> = Vec::new();
        let due = self.pieces.iter().skip(first).take_while(|piece| piece.d <= last);
        for piece in due.take_while(|piece| self.after(piece.item) <= seq) {
            match joined.last_mut() {
                Some(before) if before.item == piece.item && before.end == piece.start => {
                    before.end = piece.end;
                    before.d = piece.d;
                }
                _ => joined.push(*piece),
            }
        }
        if let Some(last) = joined.last() {
            self.given = self.given.max(last.d);
        }
        joined.into_iter().filter_map(|piece| self.frame(piece, seq)).collect()
    }

    fn after(&self, item: Item) -> i64 {
        let text = self.texts.iter().rfind(|text| text.item == item);
        text.map_or(0, |text| text.after)
    }

    fn frame(&self, piece: Piece, seq: i64) -> Option<Frame> {
        let text = self.texts.iter().find(|text| text.item == piece.item)?;
        if text.done_at.is_some_and(|done| done <= seq) {
            return None;
        }
        let start = piece.start.max(text.dropped);
        let content = text
            .kept
            .get(start - text.dropped..piece.end - text.dropped)?
            .to_owned();
        let body = match piece.item {
            Item::Started(message_id) => EventBody::MessageStarted(MessageStartedData { message_id }),
            Item::Message(message_id) => EventBody::MessageDelta(TextData {
                message_id,
                text: content,
            }),
            Item::Reasoning(message_id) => EventBody::ReasoningDelta(TextData {
                message_id,
                text: content,
            }),
            Item::Output(tool_call_id, stream) => EventBody::ToolCallOutputDelta(OutputData {
                tool_call_id,
                stream,
                text: content,
                skipped_bytes: (piece.start < start).then_some((start - piece.start) as u64),
            }),
        };
        Some(Frame { d: piece.d, body })
    }
}

fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|index| text.is_char_boundary(*index))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(n: u128) -> MessageId {
        MessageId::from_bits(n)
    }

    fn texts(frames: &[Frame]) -> Vec<String> {
        frames
            .iter()
            .map(|frame| match &frame.body {
                EventBody::MessageDelta(data) => format!("m:{}", data.text),
                EventBody::ReasoningDelta(data) => format!("r:{}", data.text),
                EventBody::ToolCallOutputDelta(data) => format!("o:{}:{:?}", data.text.len(), data.skipped_bytes),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn neighbours_are_joined_and_carry_the_last_number() {
        let mut drafts = Drafts::new(TurnId::from_bits(1), 5);
        drafts.push(Item::Reasoning(message(1)), "hm");
        drafts.push(Item::Message(message(1)), "a");
        drafts.push(Item::Message(message(1)), "b");
        let frames = drafts.frames(5, 0, None);
        assert_eq!(texts(&frames), ["r:hm", "m:ab"]);
        assert_eq!(frames[1].d, 2, "what nobody had seen is one piece");
        drafts.push(Item::Message(message(1)), "c");
        drafts.push(Item::Message(message(1)), "d");
        assert_eq!(texts(&drafts.frames(5, 2, None)), ["m:cd"]);
        let frames = drafts.frames(5, 0, None);
        assert_eq!(texts(&frames), ["r:hm", "m:abcd"]);
        assert_eq!(frames[1].d, 3);
        assert!(
            drafts.frames(4, 0, None).is_empty(),
            "the reader has to see the restart first"
        );
    }

    #[test]
    fn a_reader_past_the_final_event_gets_no_pieces() {
        let mut drafts = Drafts::new(TurnId::from_bits(1), 5);
        drafts.push(Item::Message(message(1)), "a");
        drafts.finish(|item| item == Item::Message(message(1)), 9);
        assert_eq!(drafts.frames(8, 0, None).len(), 1);
        assert!(drafts.frames(9, 0, None).is_empty());
    }

    #[test]
    fn output_waits_for_the_reader_to_see_that_its_call_started() {
        let mut drafts = Drafts::new(TurnId::from_bits(1), 5);
        drafts.push(Item::Message(message(1)), "a");
        drafts.reached(9);
        drafts.push(Item::Output(CallId::from_bits(1), OutputStream::Stdout), "out");
        assert_eq!(texts(&drafts.frames(5, 0, None)), ["m:a"]);
        assert_eq!(texts(&drafts.frames(9, 1, None)), ["o:3:None"]);
    }

    #[test]
    fn what_never_got_finished_is_not_shown_past_the_end_of_the_turn() {
        let mut drafts = Drafts::new(TurnId::from_bits(1), 5);
        drafts.push(Item::Started(message(1)), "");
        drafts.end(8);
        assert_eq!(drafts.frames(7, 0, None).len(), 1);
        assert!(drafts.frames(8, 0, None).is_empty());
    }

    #[test]
    fn a_long_answer_that_nobody_reads_is_one_piece() {
        let mut drafts = Drafts::new(TurnId::from_bits(1), 5);
        for _ in 0..10_000 {
            drafts.push(Item::Message(message(1)), "word ");
        }
        assert_eq!(drafts.pieces.len(), 1);
    }

    #[test]
    fn only_the_end_of_long_output_is_kept_and_the_gap_is_named() {
        let mut drafts = Drafts::new(TurnId::from_bits(1), 1);
        let item = Item::Output(CallId::from_bits(1), OutputStream::Stdout);
        let chunk = "x".repeat(100_000);
        for _ in 0..10 {
            drafts.push(item, &chunk);
        }
        let frames = drafts.frames(1, 0, None);
        let EventBody::ToolCallOutputDelta(data) = &frames[0].body else {
            panic!("{frames:?}")
        };
        let all: usize = frames
            .iter()
            .map(|frame| match &frame.body {
                EventBody::ToolCallOutputDelta(data) => data.text.len(),
                _ => 0,
            })
            .sum();
        assert!(all < 700_000, "{all}");
        assert!(data.skipped_bytes.is_some());
    }

    proptest! {
        #[test]
        fn any_cut_resumes_to_the_same_text(
            pieces in prop::collection::vec((0u8..2, "[a-z한]{0,3}", any::<bool>()), 1..40),
            cut in 0usize..40,
        ) {
            let mut drafts = Drafts::new(TurnId::from_bits(1), 0);
            let collect = |frames: &[Frame]| frames.iter().fold(String::new(), |mut all, frame| {
                if let EventBody::MessageDelta(data) = &frame.body { all.push_str(&data.text); }
                all
            });
            // One reader looks now and then, and is cut off for good somewhere.
            let (mut seen, mut d) = (String::new(), 0);
            for (number, (which, text, look)) in pieces.iter().enumerate() {
                let item = if *which == 0 { Item::Message(message(1)) } else { Item::Reasoning(message(1)) };
                drafts.push(item, text);
                if *look && number < cut {
                    let frames = drafts.frames(0, d, None);
                    seen.push_str(&collect(&frames));
                    d = frames.last().map_or(d, |frame| frame.d);
                }
            }
            let whole: String = pieces.iter().filter(|piece| piece.0 == 0).map(|piece| piece.1.as_str()).collect();
            prop_assert_eq!(&collect(&drafts.frames(0, 0, None)), &whole);
            prop_assert_eq!(seen + &collect(&drafts.frames(0, d, None)), whole);
        }
    }
}
