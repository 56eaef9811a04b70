//! The numbers of a response's events. They grow and are not dense: a number is
//! the place of its frame in the turn's log, so that any server can go on behind
//! it without having kept anything.

use crate::live::cursor::Cursor;

/// Bits of the deltas of a turn and of what a frame becomes; the rest, up to the
/// 53 that JavaScript counts exactly, is the event's.
const SEQ_SHIFT: u32 = 28;
const D_SHIFT: u32 = 5;
const D_MAX: u64 = (1 << (SEQ_SHIFT - D_SHIFT)) - 1;
const OPEN: i64 = 1 << 4;
const SUB_MAX: i64 = OPEN - 1;

/// Where the events of stored frames begin; below are those of a delta.
pub(super) const STORED: i64 = 4;
/// The text of a delta itself; below is what opens its message.
pub(super) const TEXT: i64 = 2;

/// An event's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number {
    pub cursor: Cursor,
    /// A message is under way, which this client was told of.
    pub open: bool,
    /// Which of the events of the frame.
    pub sub: i64,
}

impl Number {
    pub(super) fn encode(self) -> i64 {
        let d = i64::try_from(self.cursor.d.min(D_MAX)).unwrap_or_default();
        let open = if self.open { OPEN } else { 0 };
        (self.cursor.seq << SEQ_SHIFT) | (d << D_SHIFT) | open | self.sub.min(SUB_MAX)
    }

    /// The place of a number; anything that is no number of ours is somewhere too.
    pub(super) fn decode(number: i64) -> Self {
        let number = number.max(0);
        Self {
            cursor: Cursor {
                seq: number >> SEQ_SHIFT,
                d: u64::try_from(number >> D_SHIFT).unwrap_or_default() & D_MAX,
            },
            open: number & OPEN != 0,
            sub: number & SUB_MAX,
        }
    }

    /// From where the log is followed again. A delta that was only announced is
    /// still to come.
    pub(super) fn resume(self) -> Cursor {
        let again = u64::from(self.sub < TEXT && 0 < self.cursor.d);
        Cursor {
            seq: self.cursor.seq,
            d: self.cursor.d - again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_with_what_they_stand_for() {
        let at = |seq, d, sub, open| {
            Number {
                cursor: Cursor { seq, d },
                open,
                sub,
            }
            .encode()
        };
        let order = [
            at(1, 0, STORED, false),
            at(1, 1, 0, true),
            at(1, 1, TEXT, true),
            at(1, 2, TEXT, true),
            at(2, 2, STORED, false),
            at(2, 2, STORED + 1, false),
            at(2, 3, 0, true),
        ];
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(at(1 << 24, D_MAX, SUB_MAX, true) < 1 << 53);
    }

    #[test]
    fn a_number_says_where_to_go_on() {
        let number = Number {
            cursor: Cursor { seq: 7, d: 3 },
            open: true,
            sub: TEXT,
        };
        assert_eq!(Number::decode(number.encode()), number);
        assert_eq!(number.resume(), Cursor { seq: 7, d: 3 });
        assert_eq!(Number { sub: 1, ..number }.resume(), Cursor { seq: 7, d: 2 });
        assert_eq!(Number::decode(-5), Number::default());
    }
}
