//! Cutting and cleaning text without ever splitting a character.

/// The longest prefix of at most `max` characters.
pub fn first_chars(text: &str, max: usize) -> &str {
    match text.char_indices().nth(max) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// The longest suffix of at most `max` characters.
pub fn last_chars(text: &str, max: usize) -> &str {
    if max == 0 {
        return "";
    }
    match text.char_indices().rev().nth(max - 1) {
        Some((start, _)) => text.get(start..).unwrap_or(text),
        None => text,
    }
}

/// The largest index not above `at` that lies between two characters.
pub fn floor_boundary(text: &str, at: usize) -> usize {
    if text.len() <= at {
        return text.len();
    }
    (0..=at).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

/// U+0000 becomes U+FFFD: Postgres cannot store it, and both stores must hold
/// the same text. Applied to everything that enters the server.
pub fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_between_characters() {
        assert_eq!(first_chars("한국어", 2), "한국");
        assert_eq!(last_chars("한국어", 2), "국어");
        assert_eq!(last_chars("abc", 0), "");
        assert_eq!(first_chars("ab", 9), "ab");
        assert_eq!(floor_boundary("한국", 4), 3);
        assert_eq!(without_nul("a\0b".to_owned()), "a\u{fffd}b");
    }
}
