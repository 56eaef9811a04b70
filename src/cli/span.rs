//! Spans of time as people type them: `90s`, `15m`, `12h`, `30d`.

use std::str::FromStr;
use std::time::Duration;

/// A span of at least a second and at most ten years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("allowed: a whole number of s, m, h or d, such as 90s, 15m, 12h or 30d, and at most 3650d")]
pub struct SpanError;

const DAY: u64 = 24 * 60 * 60;
const LONGEST: u64 = 3650 * DAY;

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let unit = match text.chars().next_back() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 60 * 60,
            Some('d') => DAY,
            _ => return Err(SpanError),
        };
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        // `+5s` and `5 s` parse as numbers elsewhere; here they are slips.
        if digits.len() + 1 != text.len() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(SpanError);
        }
        let seconds = digits
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(unit))
            .ok_or(SpanError)?;
        if seconds == 0 || LONGEST < seconds {
            Err(SpanError)
        } else {
            Ok(Self(Duration::from_secs(seconds)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_are_a_span() {
        for (text, seconds) in [
            ("1s", 1),
            ("15m", 900),
            ("12h", 43_200),
            ("30d", 2_592_000),
            ("3650d", LONGEST),
        ] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_secs(seconds))), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "5",
            "s",
            "0d",
            "3651d",
            "1w",
            "1.5h",
            "-1h",
            "+1h",
            "1 h",
            "1hm",
            "99999999999999999999d",
            "1ℎ",
        ] {
            assert_eq!(text.parse::<Span>(), Err(SpanError), "{text}");
        }
    }
}
