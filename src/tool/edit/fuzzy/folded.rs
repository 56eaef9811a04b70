//! Text in a simpler form, and the way back: what is found in the form is a
//! range of the text.

use std::ops::Range;

/// A simpler form of a text, with the place that each of its bytes came from.
pub(super) struct Folded {
    pub(super) text: String,
    /// For each byte of `text` the range of the original that it stands for.
    origin: Vec<(usize, usize)>,
}

impl Folded {
    /// Runs of spaces and tabs as one space.
    pub(super) fn spaces(text: &str) -> Self {
        let mut folded = Self::empty(text);
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            if !is_blank(character) {
                folded.push(&mut [0; 4], character, at);
                continue;
            }
            let mut end = at + 1;
            while let Some((next, _)) = characters.next_if(|(_, next)| is_blank(*next)) {
                end = next + 1;
            }
            folded.text.push(' ');
            folded.origin.push((at, end));
        }
        folded
    }

    /// Typography as a keyboard writes it.
    pub(super) fn typography(text: &str) -> Self {
        let mut folded = Self::empty(text);
        for (at, character) in text.char_indices() {
            match plain(character) {
                None => folded.push(&mut [0; 4], character, at),
                Some(plain) => {
                    folded.text.push_str(plain);
                    let origin = (at, at + character.len_utf8());
                    folded.origin.extend(std::iter::repeat_n(origin, plain.len()));
                }
            }
        }
        folded
    }

    fn empty(text: &str) -> Self {
        Self {
            text: String::with_capacity(text.len()),
            origin: Vec::with_capacity(text.len()),
        }
    }

    fn push(&mut self, buffer: &mut [u8; 4], character: char, at: usize) {
        let text = character.encode_utf8(buffer);
        self.text.push_str(text);
        let origin = (at, at + text.len());
        self.origin.extend(std::iter::repeat_n(origin, text.len()));
    }

    /// The range of the original behind a range of the form.
    pub(super) fn original(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let (start, _) = *self.origin.get(range.start)?;
        let (_, end) = *self.origin.get(range.end.checked_sub(1)?)?;
        Some(start..end)
    }

    /// Where the byte of the form comes from.
    pub(super) fn origin(&self, at: usize) -> Option<Range<usize>> {
        self.origin.get(at).map(|(start, end)| *start..*end)
    }
}

fn is_blank(character: char) -> bool {
    character == ' ' || character == '\t'
}

/// What stands for a typographic character.
pub(super) fn plain(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{201c}' | '\u{201d}' => "\"",
        '\u{2018}' | '\u{2019}' => "'",
        '\u{2014}' => "--",
        '\u{2013}' => "-",
        '\u{2026}' => "...",
        '\u{a0}' => " ",
        _ => return None,
    })
}
