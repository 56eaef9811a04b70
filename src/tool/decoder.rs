//! Bytes of a stream as text, however they are cut.

use crate::base::text::without_nul;

/// Bytes of one stream as text, whole characters only.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The beginning of a character whose end is still to come.
    open: Vec<u8>,
}

impl Decoder {
    /// The text of the bytes so far that can be told; what is no UTF-8 becomes
    /// U+FFFD, and so does U+0000.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> String {
        let mut input = std::mem::take(&mut self.open);
        input.extend_from_slice(bytes);
        let mut text = String::with_capacity(input.len());
        let mut rest = input.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, after) = rest.split_at(error.valid_up_to());
            text.push_str(std::str::from_utf8(valid).unwrap_or_default());
            let Some(length) = error.error_len() else {
                self.open = after.to_vec();
                return without_nul(text);
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = after.get(length..).unwrap_or_default();
        }
        text.push_str(std::str::from_utf8(rest).unwrap_or_default());
        without_nul(text)
    }

    /// What stands for a character that never came to its end.
    pub(super) fn finish(self) -> &'static str {
        if self.open.is_empty() { "" } else { "\u{fffd}" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(pieces: &[&[u8]]) -> String {
        let mut decoder = Decoder::default();
        let mut text: String = pieces.iter().map(|piece| decoder.decode(piece)).collect();
        text.push_str(decoder.finish());
        text
    }

    #[test]
    fn characters_survive_any_cut() {
        let text = "a한😀é\0b";
        for at in 0..=text.len() {
            let (one, two) = text.as_bytes().split_at(at);
            assert_eq!(decoded(&[one, two]), "a한😀é\u{fffd}b", "{at}");
        }
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(decoded(&single), "a한😀é\u{fffd}b");
    }

    #[test]
    fn what_is_no_text_is_marked() {
        assert_eq!(decoded(&[b"a\xff\xfeb"]), "a\u{fffd}\u{fffd}b");
        assert_eq!(decoded(&[b"a\xed\x95"]), "a\u{fffd}");
        assert_eq!(decoded(&[b"\xed\x95", b"x"]), "\u{fffd}x");
    }
}
