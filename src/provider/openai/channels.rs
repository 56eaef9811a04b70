//! Text and reasoning of one answer, told apart while they stream. A `<think>`
//! block at the start of the text is reasoning, and a text that only repeats the
//! reasoning is no text. What may still turn out to be either is held back, so
//! that everything handed out stands.

use super::super::{Delta, Partial};
use crate::base::text::without_nul;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// White space before `<think>` beyond which nobody would look for one.
const MOST_LEADING_BYTES: usize = 64;

/// The two channels of an answer.
#[derive(Default)]
pub(super) struct Channels {
    text: String,
    reasoning: String,
    state: State,
    /// Text that came but is not yet told apart.
    held: String,
    /// The next white space is the gap around a `<think>` block.
    in_gap: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Nothing of the text is decided yet.
    #[default]
    Start,
    /// Inside `<think>`.
    Thinking,
    /// The text so far is the beginning of the reasoning: `matched` bytes of it.
    Echo {
        matched: usize,
    },
    Plain,
}

type OnDelta<'a> = &'a mut (dyn FnMut(Delta) + Send);

impl Channels {
    /// Bytes of the answer so far.
    pub(super) fn len(&self) -> usize {
        self.text.len() + self.reasoning.len() + self.held.len()
    }

    pub(super) fn reasoning(&mut self, piece: String, on_delta: OnDelta<'_>) {
        if !piece.is_empty() {
            let piece = without_nul(piece);
            self.reasoning.push_str(&piece);
            on_delta(Delta::Reasoning(piece));
        }
    }

    pub(super) fn text(&mut self, piece: &str, on_delta: OnDelta<'_>) {
        if piece.is_empty() {
            return;
        }
        match self.state {
            State::Plain if !self.in_gap => self.say(piece.to_owned(), on_delta),
            State::Echo { matched } => self.echo(piece, matched, on_delta),
            _ => {
                self.held.push_str(piece);
                self.advance(on_delta);
            }
        }
    }

    /// The stream is over: what is held is decided.
    pub(super) fn finish(mut self, on_delta: OnDelta<'_>) -> Partial {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thinking => self.reasoning(held, on_delta),
            State::Start | State::Echo { .. } if !held.trim().is_empty() && held.trim() == self.reasoning.trim() => {}
            // A gap with nothing behind it.
            State::Start | State::Plain | State::Echo { .. } if self.in_gap && held.trim().is_empty() => {}
            State::Start | State::Plain | State::Echo { .. } => self.say(held, on_delta),
        }
        Partial {
            text: self.text,
            reasoning: self.reasoning,
        }
    }

    /// Decides as much of `held` as can be decided.
    fn advance(&mut self, on_delta: OnDelta<'_>) {
        if self.state == State::Start {
            let begun = self.held.trim_start();
            if MOST_LEADING_BYTES < self.held.len() - begun.len() {
                self.leave_start(on_delta);
                return;
            }
            if let Some(inside) = begun.strip_prefix(OPEN) {
                self.held = inside.to_owned();
                self.state = State::Thinking;
                self.in_gap = true;
            } else if !OPEN.starts_with(begun) {
                self.leave_start(on_delta);
                return;
            }
        }
        if self.state == State::Thinking {
            self.think(on_delta);
        } else if self.state == State::Plain {
            self.close_gap();
            if !self.in_gap {
                self.leave_start(on_delta);
            }
        }
    }

    /// Drops the white space around a block once something follows it.
    fn close_gap(&mut self) {
        if self.in_gap {
            let kept = self.held.trim_start();
            self.in_gap = kept.is_empty();
            self.held = kept.to_owned();
        }
    }

    /// Hands out reasoning up to the closing tag, or up to what may become one.
    fn think(&mut self, on_delta: OnDelta<'_>) {
        self.close_gap();
        if let Some((inside, after)) = self.held.split_once(CLOSE) {
            let (inside, after) = (inside.to_owned(), after.to_owned());
            self.reasoning(inside, on_delta);
            self.held = after;
            self.state = State::Plain;
            self.in_gap = true;
            self.advance(on_delta);
            return;
        }
        let kept = (1..CLOSE.len())
            .rev()
            .find(|len| CLOSE.get(..*len).is_some_and(|part| self.held.ends_with(part)));
        let tail = self.held.split_off(self.held.len() - kept.unwrap_or(0));
        let inside = std::mem::replace(&mut self.held, tail);
        self.reasoning(inside, on_delta);
    }

    /// `held` is text, unless it repeats the reasoning.
    fn leave_start(&mut self, on_delta: OnDelta<'_>) {
        let held = std::mem::take(&mut self.held);
        if self.reasoning.trim().is_empty() {
            self.state = State::Plain;
            self.say(held, on_delta);
        } else {
            self.echo(&held, 0, on_delta);
        }
    }

    /// Holds text back as long as it continues to repeat the reasoning.
    fn echo(&mut self, piece: &str, matched: usize, on_delta: OnDelta<'_>) {
        let fresh = if matched == 0 { piece.trim_start() } else { piece };
        let expected = self
            .reasoning
            .trim_start()
            .as_bytes()
            .get(matched..)
            .unwrap_or_default();
        let same = fresh
            .bytes()
            .zip(expected)
            .take_while(|(ours, theirs)| ours == *theirs)
            .count();
        let surplus = fresh.as_bytes().get(same..).unwrap_or_default().trim_ascii();
        let missing = expected.get(same..).unwrap_or_default().trim_ascii();
        self.held.push_str(piece);
        if same == fresh.len() {
            self.state = State::Echo {
                matched: matched + same,
            };
        } else if surplus.is_empty() && missing.is_empty() {
            // The same but for white space at the end: only more of it may follow.
            self.state = State::Echo { matched: usize::MAX };
        } else {
            self.state = State::Plain;
            let held = std::mem::take(&mut self.held);
            self.say(held, on_delta);
        }
    }

    fn say(&mut self, piece: String, on_delta: OnDelta<'_>) {
        if !piece.is_empty() {
            let piece = without_nul(piece);
            self.text.push_str(&piece);
            on_delta(Delta::Text(piece));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reasoning and content pieces, in order, and what they come to.
    fn run(pieces: &[(&str, &str)]) -> (String, String) {
        let mut joined = (String::new(), String::new());
        let mut on_delta = |delta| match delta {
            Delta::Text(piece) => joined.0.push_str(&piece),
            Delta::Reasoning(piece) => joined.1.push_str(&piece),
        };
        let mut channels = Channels::default();
        for (reasoning, text) in pieces {
            channels.reasoning((*reasoning).to_owned(), &mut on_delta);
            channels.text(text, &mut on_delta);
        }
        let whole = channels.finish(&mut on_delta);
        assert_eq!(
            (&whole.text, &whole.reasoning),
            (&joined.0, &joined.1),
            "deltas join to the answer"
        );
        joined
    }

    /// Every way to cut the content in two and one piece a character come to the same.
    fn check(reasoning: &str, content: &str, text: &str, thought: &str) {
        let expected = (text.to_owned(), thought.to_owned());
        assert_eq!(run(&[(reasoning, content)]), expected, "{content:?}");
        for (at, _) in content.char_indices() {
            assert_eq!(
                run(&[(reasoning, &content[..at]), ("", &content[at..])]),
                expected,
                "{content:?} cut at {at}"
            );
        }
        let letters: Vec<String> = content.chars().map(String::from).collect();
        let mut pieces: Vec<(&str, &str)> = vec![(reasoning, "")];
        pieces.extend(letters.iter().map(|letter| ("", letter.as_str())));
        assert_eq!(run(&pieces), expected, "{content:?} letter by letter");
    }

    #[test]
    fn a_think_block_at_the_start_is_reasoning() {
        check("", "<think>a < b</think>\n\nyes", "yes", "a < b");
        check("", " \n<think>\nhm\n</think>yes </think>", "yes </think>", "hm\n");
        check("", "<think></think>yes", "yes", "");
        check("", "<think>never </thin closed", "", "never </thin closed");
        check("", "<think>only</think>\n ", "", "only");
        check("first ", "<think>second</think>yes", "yes", "first second");
    }

    #[test]
    fn text_stays_text() {
        check("", "<b>bold</b>", "<b>bold</b>", "");
        check("", "<thinking>", "<thinking>", "");
        check("", "say <think> aloud", "say <think> aloud", "");
        check("", "<thi", "<thi", "");
        check("", "  \n", "  \n", "");
        check("", "한국어\0", "한국어\u{fffd}", "");
        let far = " ".repeat(70) + "<think>x</think>";
        check("", &far, &far, "");
    }

    #[test]
    fn a_text_that_repeats_the_reasoning_is_no_text() {
        check("think A", "think A", "", "think A");
        check("think A\n", "\n think A \n", "", "think A\n");
        check("", "<think>A b</think>A b", "", "A b");
        check("think A", "think A!", "think A!", "think A");
        check("think A", "think", "think", "think A");
        check("think A", "think A think A", "think A think A", "think A");
        check("think A", "other", "other", "think A");
        assert_eq!(run(&[("a ", "a "), ("b", "b")]), (String::new(), "a b".to_owned()));
    }

    #[test]
    fn text_is_handed_out_as_soon_as_it_is_certain() {
        let mut deltas = Vec::new();
        let mut channels = Channels::default();
        channels.text("<", &mut |delta| deltas.push(delta));
        assert!(deltas.is_empty());
        let mut channels_deltas = |delta| deltas.push(delta);
        channels.text("b", &mut channels_deltas);
        channels.text(">", &mut channels_deltas);
        assert_eq!(deltas, [Delta::Text("<b".to_owned()), Delta::Text(">".to_owned())]);
    }
}
