//! Text as it is compared: compatibility forms, case and the width of gaps do
//! not count. Both stores get the same folded text, so that finding depends on
//! neither's idea of letters.

use unicode_normalization::UnicodeNormalization;

/// The text as people read it: composed, every gap one space.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.nfkc() {
        if !char.is_whitespace() {
            plain.push(char);
        } else if !plain.ends_with(' ') {
            plain.push(' ');
        }
    }
    plain
}

/// The text as it is compared.
pub fn fold(text: &str) -> String {
    plain(text).chars().flat_map(char::to_lowercase).collect()
}

/// The bytes of `plain` where a folded text is found first.
pub fn find(plain: &str, folded: &str) -> Option<std::ops::Range<usize>> {
    let mut whole = String::with_capacity(plain.len());
    // For each byte of the folded text: where its character begins and ends.
    let mut places = Vec::with_capacity(plain.len());
    for (start, char) in plain.char_indices() {
        whole.extend(char.to_lowercase());
        places.resize(whole.len(), start..start + char.len_utf8());
    }
    let at = whole.find(folded)?;
    let first = places.get(at)?.start;
    let last = places.get((at + folded.len()).checked_sub(1)?)?.end;
    Some(first..last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_cases_and_gaps_do_not_count() {
        for (text, folded) in [
            ("Straße\n\t  ÄÖ", "straße äö"),
            ("ＦＵＬＬ　ｗｉｄｔｈ", "full width"),
            ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}", "한글"),
            ("e\u{301}", "é"),
        ] {
            assert_eq!(fold(text), folded);
        }
    }

    #[test]
    fn a_find_is_told_in_the_readable_text() {
        let found = |text: &str, term: &str| find(text, &fold(term)).map(|range| text[range].to_owned());
        assert_eq!(found("The Wall stands", "WALL").as_deref(), Some("Wall"));
        // Its lower case has one character more.
        assert_eq!(found("xİSTANBUL!", "stan").as_deref(), Some("STAN"));
        assert_eq!(found("서울의 봄", "울의").as_deref(), Some("울의"));
        assert_eq!(found("abc", "d"), None);
    }
}
