//! The cursor of a stream: last durable event and last live frame sent.

use std::fmt;
use std::str::FromStr;

/// `<seq>.<d>` on the wire; a bare `<seq>` reads as `<seq>.0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The last durable event that was sent.
    pub seq: i64,
    /// The last live frame that was sent, counted from the turn's last event
    /// that restarts the numbering.
    pub d: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.d)
    }
}

/// The text is not a cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is `<seq>` or `<seq>.<d>`, as in the `id:` line of a frame")]
pub struct ParseCursorError;

impl FromStr for Cursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if plain {
                digits.parse::<i64>().map_err(|_| ParseCursorError)
            } else {
                Err(ParseCursorError)
            }
        };
        let (seq, d) = text.split_once('.').unwrap_or((text, "0"));
        Ok(Self {
            seq: number(seq)?,
            d: number(d)?.unsigned_abs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_nothing_else() {
        assert_eq!("12.7".parse(), Ok(Cursor { seq: 12, d: 7 }));
        assert_eq!("12".parse(), Ok(Cursor { seq: 12, d: 0 }));
        assert_eq!(Cursor { seq: 3, d: 1 }.to_string(), "3.1");
        for text in [
            "",
            ".",
            "1.",
            ".1",
            "-1",
            "1.2.3",
            "+1",
            "1e3",
            "99999999999999999999",
            "１",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(ParseCursorError), "{text}");
        }
    }
}
