//! Telling what `read_file` shows from what belongs in a file: models copy the
//! one where they mean the other.

/// What a read says that would show again what the model has seen.
pub(super) const UNCHANGED: &str = "The file has not changed since these lines were last shown; the content stands in \
    that earlier result and is not repeated.";

/// Whether the text is that answer, or little more than it.
pub(super) fn is_unchanged_notice(content: &str) -> bool {
    content.contains(UNCHANGED) && content.len() < 2 * UNCHANGED.len()
}

/// Whether the text is numbered lines as `read_file` shows them: two at least,
/// and six of ten that are not blank, counting up.
pub(super) fn is_numbered_display(content: &str) -> bool {
    let lines: Vec<&str> = content.lines().filter(|line| !line.trim().is_empty()).collect();
    let numbers: Vec<u64> = lines.iter().filter_map(|line| number(line)).collect();
    let counts_up = numbers
        .windows(2)
        .all(|pair| matches!(pair, [one, next] if one.checked_add(1) == Some(*next)));
    2 <= numbers.len() && lines.len() * 3 <= numbers.len() * 5 && counts_up
}

/// `12` of `12|text`.
fn number(line: &str) -> Option<u64> {
    let (digits, _) = line.trim_start().split_once('|')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_is_told_from_text_about_it() {
        let whole = format!("{{\"status\": \"unchanged\", \"message\": \"{UNCHANGED}\"}}");
        assert!(is_unchanged_notice(UNCHANGED) && is_unchanged_notice(&whole));
        assert!(!is_unchanged_notice(&format!(
            "{UNCHANGED}\n{}",
            "and more ".repeat(40)
        )));
    }

    #[test]
    fn displays_are_told_from_content() {
        for text in ["1|a\n2|b", "  7|a\n  8|\n\n  9|c", "1|a\n2|b\n3|c\nx\ny"] {
            assert!(is_numbered_display(text), "{text}");
        }
        for text in ["", "1|only", "a|b\nc|d", "1|a\n3|b", "1|a\n2|b\nx\ny", "10|a\n9|b"] {
            assert!(!is_numbered_display(text), "{text}");
        }
    }
}
