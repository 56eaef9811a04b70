//! The text as a person sees it: without terminal sequences, invisible and
//! look-alike characters. Keeps a map back to the bytes that were given.
//!
//! Only a second reading: the text as written is judged too, because the shell
//! does not normalise.

use unicode_normalization::UnicodeNormalization as _;
use unicode_security::confusable_detection::skeleton;

use super::Span;

/// Titles and links are short; a bound keeps the search linear.
const LONGEST_SEQUENCE: usize = 2048;

pub(crate) struct Normal {
    pub(crate) text: String,
    /// For every byte of the text, where its character starts in the original;
    /// one more for the end.
    map: Vec<usize>,
}

impl Normal {
    pub(crate) fn original(&self, span: Span) -> Span {
        let last = self.map.last().copied().unwrap_or_default();
        let at = |position: usize| self.map.get(position).copied().unwrap_or(last);
        let (start, end) = (at(span.start), at(span.end));
        Span {
            start,
            end: end.max(start),
        }
    }

    fn push(&mut self, character: char, from: usize) {
        self.text.push(character);
        self.map.extend(std::iter::repeat_n(from, character.len_utf8()));
    }
}

/// None when the text is already plain.
pub(crate) fn normalize(text: &str) -> Option<Normal> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return None;
    }
    let mut normal = Normal {
        text: String::with_capacity(text.len()),
        map: Vec::with_capacity(text.len() + 1),
    };
    let mut at = 0;
    // Between here and the end of what was searched no string sequence ends.
    let mut endless = 0;
    // A run of characters without ASCII letters is another script, not a mask.
    let mut beside_ascii = false;
    while let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let skip = sequence_length(text, at, character, &mut endless);
        if skip > 0 {
            at += skip;
            continue;
        }
        let next = text
            .get(at + character.len_utf8()..)
            .and_then(|rest| rest.chars().next());
        beside_ascii = character.is_ascii_alphanumeric() || (beside_ascii && !character.is_whitespace());
        let masks = beside_ascii || next.is_some_and(|next| next.is_ascii_alphanumeric());
        fold(character, next, masks, at, &mut normal);
        at += character.len_utf8();
    }
    normal.map.push(text.len());
    (normal.text != text).then_some(normal)
}

fn fold(character: char, next: Option<char>, masks: bool, at: usize, normal: &mut Normal) {
    match character {
        '\0' => {}
        '\r' => {
            if next != Some('\n') {
                normal.push(' ', at);
            }
        }
        ' '..='~' | '\n' | '\t' => normal.push(character, at),
        _ if is_invisible(character) => {}
        _ if character.is_whitespace() => normal.push(' ', at),
        _ => {
            for folded in std::iter::once(character).nfkc() {
                let shown = if folded.is_ascii() || !masks {
                    folded
                } else {
                    look_alike(folded)
                };
                // A wide `;` is text for the shell; so it stays what it is.
                let kept = if is_harmless(shown) { shown } else { character };
                normal.push(kept, at);
            }
        }
    }
}

/// Characters that a folded one may become without changing the grammar.
fn is_harmless(character: char) -> bool {
    !character.is_ascii() || character.is_ascii_alphanumeric() || "-._/~*+=:,@% ".contains(character)
}

fn look_alike(character: char) -> char {
    let mut buffer = [0; 4];
    let text: &str = character.encode_utf8(&mut buffer);
    let mut shape = skeleton(text);
    match (shape.next(), shape.next()) {
        (Some(plain), None) if plain.is_ascii_alphanumeric() || plain == '/' || plain == '-' => plain,
        _ => character,
    }
}

/// Zero-width, direction and variation marks, tags, soft hyphen.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        || (character.is_control() && !matches!(character, '\n' | '\t' | '\r'))
}

/// Bytes of the terminal sequence (ECMA-48) that starts here; 0 when none.
fn sequence_length(text: &str, at: usize, character: char, endless: &mut usize) -> usize {
    let (kind, head) = match character {
        '\u{1b}' => match text.get(at + 1..).and_then(|rest| rest.chars().next()) {
            Some(kind) => (kind, 1 + kind.len_utf8()),
            None => return 1,
        },
        '\u{80}'..='\u{9f}' => (
            char::from_u32(character as u32 - 0x40).unwrap_or(' '),
            character.len_utf8(),
        ),
        _ => return 0,
    };
    let body = text.get(at + head..).unwrap_or_default();
    head + match kind {
        '[' => control_sequence(body),
        ']' | 'P' | 'X' | '^' | '_' => string_sequence(text, at + head, endless),
        ' '..='/' => {
            let middle = body.bytes().take_while(|byte| matches!(byte, b' '..=b'/')).count();
            middle
                + usize::from(
                    body.as_bytes()
                        .get(middle)
                        .is_some_and(|byte| matches!(byte, b'0'..=b'~')),
                )
        }
        '\n' if character == '\u{1b}' => return 1,
        _ => 0,
    }
}

fn control_sequence(body: &str) -> usize {
    let parameters = body.bytes().take_while(|byte| matches!(byte, b'0'..=b'?')).count();
    let tail = body.as_bytes().get(parameters..).unwrap_or_default();
    let middle = tail.iter().take_while(|byte| matches!(byte, b' '..=b'/')).count();
    let ends = tail.get(middle).is_some_and(|byte| matches!(byte, b'@'..=b'~'));
    parameters + middle + usize::from(ends)
}

/// Up to BEL or the string terminator; without one nothing is swallowed. What was
/// searched in vain is not searched again.
fn string_sequence(text: &str, from: usize, endless: &mut usize) -> usize {
    let end = text.floor_char_boundary(text.len().min(from + LONGEST_SEQUENCE));
    // An escape at the end may belong to a terminator that begins there.
    let begin = from.max(text.floor_char_boundary(endless.saturating_sub(1)));
    let mut rest = text.get(begin..end).unwrap_or_default().char_indices();
    let found = rest.find_map(|(at, character)| match character {
        '\u{7}' => Some(at + 1),
        '\u{9c}' => Some(at + 2),
        '\u{1b}' if text.as_bytes().get(begin + at + 1) == Some(&b'\\') && begin + at + 1 < end => Some(at + 2),
        _ => None,
    });
    if found.is_none() {
        *endless = end;
    }
    found.map_or(0, |length| begin + length - from)
}
