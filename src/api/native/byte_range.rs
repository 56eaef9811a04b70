//! The header `Range` of a file that is sent: one range of bytes, or all of it.

/// Which bytes are wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Range {
    Whole,
    /// Both ends are in it.
    Part {
        from: u64,
        to: u64,
    },
    Behind,
}

impl Range {
    /// A header that is not understood asks for nothing in particular.
    pub(super) fn read(text: &str, length: u64) -> Self {
        let Some((from, to)) = text
            .trim()
            .strip_prefix("bytes=")
            .and_then(|range| range.split_once('-'))
        else {
            return Self::Whole;
        };
        let last = length.saturating_sub(1);
        let (from, to) = match (from.trim().parse::<u64>(), to.trim().parse::<u64>()) {
            (Ok(from), Ok(to)) if from <= to => (from, to.min(last)),
            (Ok(from), Err(_)) if to.trim().is_empty() => (from, last),
            (Err(_), Ok(count)) if from.trim().is_empty() => match count {
                0 => return Self::Behind,
                count => (length.saturating_sub(count), last),
            },
            _ => return Self::Whole,
        };
        if length <= from {
            Self::Behind
        } else {
            Self::Part { from, to }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_meant() {
        let part = |from, to| Range::Part { from, to };
        for (text, range) in [
            ("bytes=0-3", part(0, 3)),
            ("bytes=4-", part(4, 9)),
            ("bytes=-3", part(7, 9)),
            ("bytes=-30", part(0, 9)),
            ("bytes=9-99", part(9, 9)),
            ("bytes=10-", Range::Behind),
            ("bytes=-0", Range::Behind),
            ("bytes=3-1", Range::Whole),
            ("bytes=0-1,4-5", Range::Whole),
            ("lines=1-2", Range::Whole),
            ("bytes=-", Range::Whole),
        ] {
            assert_eq!(Range::read(text, 10), range, "{text}");
        }
        assert_eq!(Range::read("bytes=0-", 0), Range::Behind);
    }
}
