//! Words to values: what the shell would hand to the program.

use std::rc::Rc;

use super::{Place, Tracer};
use crate::guard::Span;
use crate::guard::resolve::{Feed, Mark, Origin, Ran, Substitution, Value, expand_braces};
use crate::guard::shell::{Piece, Script, Word};

/// A word longer than this is cut and counts as unknown.
const LONGEST_WORD: usize = 128 * 1024;
/// Bytes of braced words that are expanded.
const LONGEST_BRACED: usize = 2048;

/// A word while it is put together.
struct Draft {
    values: Vec<Value>,
    current: Value,
    /// Something was written, so that an empty word counts too.
    begun: bool,
    /// Unquoted text holds `{` and `}`.
    braced: bool,
    /// Byte ranges of the current text that were written without quotes.
    plain: Vec<(usize, usize)>,
}

impl Tracer<'_> {
    pub(super) fn words(&mut self, words: &[Word], place: &Place<'_>) -> Vec<Value> {
        let mut values = Vec::with_capacity(words.len());
        for word in words {
            self.word(word, place, &mut values);
        }
        values
    }

    /// One word as one value: no splitting, no braces.
    pub(super) fn single(&mut self, word: &Word, place: &Place<'_>) -> Value {
        let mut values = Vec::new();
        self.word(word, place, &mut values);
        let span = place.origin.place(word.span);
        values
            .into_iter()
            .reduce(joined_by_blank)
            .unwrap_or_else(|| Value::literal("", span))
    }

    fn word(&mut self, word: &Word, place: &Place<'_>, out: &mut Vec<Value>) {
        let span = place.origin.place(word.span);
        if !self.charge(8 + word.span.end.saturating_sub(word.span.start), span) {
            return;
        }
        let mut draft = Draft::new(span);
        for piece in &word.pieces {
            self.piece(piece, place, &mut draft);
        }
        draft.current.verbatim = verbatim(word, place);
        if draft.braced && !self.unfold(&mut draft, out) {
            self.ledger.limit(span);
        }
        draft.close();
        out.append(&mut draft.values);
    }

    fn piece(&mut self, piece: &Piece, place: &Place<'_>, draft: &mut Draft) {
        match piece {
            Piece::Text { text, quoted } => draft.text(text, *quoted),
            Piece::Param { param, quoted, span } => {
                let content = self.param(param, place);
                if let Some(secret) = self.tainted.get(&param.name) {
                    draft.current.secret = Some(*secret);
                }
                match content {
                    Some(elements) => self.insert(&elements, *quoted, draft),
                    None => draft.unknown(&spelled(place, *span, || format!("${}", param.name))),
                }
            }
            Piece::Command {
                script,
                quoted,
                backtick,
                rewritten,
                span,
            } => {
                let mut inner = place.clone();
                inner.wrappers.clear();
                inner.feed = None;
                if *rewritten {
                    inner.origin = Origin::From(place.origin.place(*span));
                    inner.text = "";
                }
                let how = if *backtick {
                    Substitution::Backtick
                } else {
                    Substitution::Dollar
                };
                let output = self.substitute(script, &inner, how, &mut draft.current);
                match output {
                    Some(text) => self.insert(&[text.trim_end_matches('\n').to_owned()], *quoted, draft),
                    None => draft.unknown(&spelled(place, *span, || "$(…)".to_owned())),
                }
            }
            Piece::Process { script, reads } => {
                let mut inner = place.clone();
                inner.wrappers.clear();
                inner.feed = reads.then(|| {
                    Rc::new(Feed {
                        span: draft.current.span,
                        ..Feed::default()
                    })
                });
                let content = self.substitute(script, &inner, Substitution::Process, &mut draft.current);
                draft.current.content = content;
                draft.unknown("/dev/fd/63");
            }
            Piece::Arithmetic { inner, span } => {
                self.single(inner, place);
                draft.unknown(&spelled(place, *span, || "$((…))".to_owned()));
            }
        }
    }

    /// Follows a substitution; its output when that is literal.
    fn substitute(
        &mut self,
        script: &Script,
        place: &Place<'_>,
        how: Substitution,
        value: &mut Value,
    ) -> Option<String> {
        if !self.descend(value.span) {
            return None;
        }
        let mark = self.heard.len();
        let cwd = self.cwd.clone();
        let mut inner = place.clone();
        inner.conditional = true;
        inner.background = false;
        let mut output = None;
        for statement in &script.statements {
            if self.work == 0 {
                break;
            }
            output = match (statement.chain.as_slice(), script.statements.len()) {
                ([only], 1) => self.pipeline(only, &inner),
                _ => {
                    self.statement(statement, &inner);
                    None
                }
            };
        }
        self.depth -= 1;
        self.cwd = cwd;
        let started = self.heard.get(mark..).unwrap_or_default();
        value.runs.extend(started.iter().take(16).map(|program| Ran {
            program: program.clone(),
            how,
        }));
        let feed = output.map(Rc::unwrap_or_clone)?;
        value.secret = value.secret.or(feed.secret);
        feed.text
    }

    /// Puts a known expansion into the word; unquoted it is split at blanks.
    fn insert(&mut self, elements: &[String], quoted: bool, draft: &mut Draft) {
        let size: usize = elements.iter().map(String::len).sum();
        if !self.charge(size, draft.current.span) || draft.current.text.len() + size > LONGEST_WORD {
            draft.unknown("…");
            return;
        }
        let separators = if quoted { None } else { self.separators() };
        for (position, element) in elements.iter().enumerate() {
            if position > 0 {
                draft.next();
            }
            match &separators {
                Some(separators) => draft.split(element, separators),
                None => draft.text(element, true),
            }
        }
    }

    /// What unquoted expansions are split at.
    fn separators(&self) -> Option<String> {
        let set = self
            .variables
            .get("IFS")
            .and_then(|values| values.last())
            .and_then(Option::as_ref);
        Some(set.map_or_else(|| " \t\n".to_owned(), |values| values.concat()))
    }

    /// Brace expansion of the word in the making; false when it is too large.
    fn unfold(&mut self, draft: &mut Draft, out: &mut Vec<Value>) -> bool {
        if draft.current.text.len() > LONGEST_BRACED {
            return draft.values.is_empty();
        }
        let mut plain = draft.plain.iter().peekable();
        let marks: Vec<Mark> = draft
            .current
            .text
            .char_indices()
            .map(|(at, character)| {
                while plain.peek().is_some_and(|(_, end)| *end <= at) {
                    plain.next();
                }
                Mark {
                    character,
                    plain: plain.peek().is_some_and(|(start, _)| *start <= at),
                }
            })
            .collect();
        let Some(words) = expand_braces(&marks) else {
            return false;
        };
        if words.len() < 2 {
            return true;
        }
        let size: usize = words.iter().map(Vec::len).sum();
        if !self.charge(size, draft.current.span) {
            return false;
        }
        out.append(&mut draft.values);
        for word in words {
            let text: String = word.iter().map(|mark| mark.character).collect();
            if text.is_empty() {
                continue;
            }
            let unknown_end = if draft.current.known { 0 } else { text.len() };
            out.push(Value {
                text,
                unknown_end,
                verbatim: None,
                ..draft.current.clone()
            });
        }
        draft.begun = false;
        draft.current.text.clear();
        true
    }
}

impl Draft {
    fn new(span: Span) -> Self {
        let current = Value {
            known: true,
            span,
            ..Value::default()
        };
        Self {
            values: Vec::new(),
            current,
            begun: false,
            braced: false,
            plain: Vec::new(),
        }
    }

    fn text(&mut self, text: &str, quoted: bool) {
        let start = self.current.text.len();
        self.current.text.push_str(text);
        self.current.sole &= text.is_empty();
        self.begun |= quoted || !text.is_empty();
        if !quoted {
            self.plain.push((start, self.current.text.len()));
            self.braced |= text.contains('{') || (self.braced && text.contains('}'));
        }
    }

    fn unknown(&mut self, spelled: &str) {
        self.current.sole = self.current.text.is_empty();
        self.current.text.push_str(spelled);
        self.current.known = false;
        self.current.unknown_end = self.current.text.len();
        self.begun = true;
    }

    fn split(&mut self, text: &str, separators: &str) {
        let blank = |character: char| separators.contains(character);
        if text.starts_with(blank) && self.begun {
            self.next();
        }
        for (position, field) in text.split(blank).filter(|field| !field.is_empty()).enumerate() {
            if position > 0 {
                self.next();
            }
            self.text(field, true);
        }
        if text.ends_with(blank) && self.begun {
            self.next();
        }
    }

    /// Ends the current word and begins another.
    fn next(&mut self) {
        self.close();
        let span = self.current.span;
        self.current = Value {
            known: true,
            span,
            ..Value::default()
        };
        self.plain.clear();
    }

    fn close(&mut self) {
        if self.begun {
            self.values.push(std::mem::take(&mut self.current));
            self.current.span = self.values.last().map(|value| value.span).unwrap_or_default();
        }
        self.begun = false;
    }
}

/// Where the text of a word stands byte for byte: a bare word, or one that is
/// wholly in one pair of quotes.
fn verbatim(word: &Word, place: &Place<'_>) -> Option<usize> {
    let [Piece::Text { text, quoted }] = word.pieces.as_slice() else {
        return None;
    };
    let Origin::At(offset) = place.origin else { return None };
    let length = word.span.end.saturating_sub(word.span.start);
    match (quoted, length.checked_sub(text.len())) {
        (false, Some(0)) => Some(offset + word.span.start),
        (true, Some(2)) => Some(offset + word.span.start + 1),
        (true, Some(0)) => Some(offset + word.span.start),
        _ => None,
    }
}

fn joined_by_blank(mut left: Value, right: Value) -> Value {
    left.text.push(' ');
    let offset = left.text.len();
    left.text.push_str(&right.text);
    left.known &= right.known;
    if right.unknown_end > 0 {
        left.unknown_end = offset + right.unknown_end;
    }
    left.runs.extend(right.runs);
    left.secret = left.secret.or(right.secret);
    left.verbatim = None;
    left.sole = false;
    left
}

/// A part as it is written, or a stand-in when its text was made on the way.
fn spelled(place: &Place<'_>, span: Span, stand_in: impl FnOnce() -> String) -> String {
    place
        .text
        .get(span.start..span.end)
        .map_or_else(stand_in, str::to_owned)
}
