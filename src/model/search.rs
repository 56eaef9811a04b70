//! Looking for words in titles and messages: what is looked for, what is found,
//! and the excerpt that shows where.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{MessageId, SessionId, TurnId};
use super::message::Role;
use crate::base::Timestamp;
use crate::base::fold::{find, fold, plain};
use crate::base::text::{first_chars, last_chars};

/// More words narrow nothing down any more.
const MAX_TERMS: usize = 8;
/// Of an excerpt, before the words that were found.
const BEFORE_CHARS: usize = 60;
const EXCERPT_CHARS: usize = 240;

/// Folded texts that all have to occur in what is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms(Vec<String>);

impl Terms {
    /// Words between gaps; what stands in double quotes is one.
    pub fn of(text: &str) -> Option<Self> {
        let quoted = text.split('"').enumerate().flat_map(|(index, piece)| {
            let whole = index % 2 == 1;
            let words: Vec<&str> = match whole {
                true => vec![piece.trim()],
                false => piece.split_whitespace().collect(),
            };
            words
        });
        let mut terms: Vec<String> = quoted.map(fold).filter(|term| !term.trim().is_empty()).collect();
        terms.sort_unstable();
        terms.dedup();
        (1..=MAX_TERMS).contains(&terms.len()).then_some(Self(terms))
    }

    pub fn texts(&self) -> &[String] {
        &self.0
    }

    /// The part of a text around the first of the terms in it.
    pub fn excerpt(&self, text: &str) -> Vec<ExcerptPart> {
        let text = plain(text);
        let first = self
            .0
            .iter()
            .filter_map(|term| find(&text, term))
            .min_by_key(|range| range.start);
        let start = first.map_or(0, |range| {
            let before = text.get(..range.start).unwrap_or_default();
            range.start - last_chars(before, BEFORE_CHARS).len()
        });
        let tail = text.get(start..).unwrap_or_default();
        let cut = first_chars(tail, EXCERPT_CHARS);
        let (lead, trail) = (
            if 0 < start { "…" } else { "" },
            if cut.len() < tail.len() { "…" } else { "" },
        );
        let mut parts = Vec::new();
        push(&mut parts, lead, false);
        self.mark(cut, &mut parts);
        push(&mut parts, trail, false);
        parts
    }

    /// Splits a text at every occurrence of a term.
    fn mark(&self, text: &str, parts: &mut Vec<ExcerptPart>) {
        let mut rest = text;
        loop {
            let next = self.0.iter().filter_map(|term| find(rest, term));
            let Some(found) = next.min_by_key(|range| (range.start, usize::MAX - range.end)) else {
                return push(parts, rest, false);
            };
            push(parts, rest.get(..found.start).unwrap_or_default(), false);
            push(parts, rest.get(found.clone()).unwrap_or_default(), true);
            rest = rest.get(found.end..).unwrap_or_default();
        }
    }
}

fn push(parts: &mut Vec<ExcerptPart>, text: &str, found: bool) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.found == found => last.text.push_str(text),
        _ => parts.push(ExcerptPart {
            text: text.to_owned(),
            found,
        }),
    }
}

/// A piece of an excerpt; the pieces in their order are the excerpt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExcerptPart {
    pub text: String,
    /// It is one of the texts that were looked for.
    pub found: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchHitKind {
    Title,
    Message,
}

/// Where the words were found: the title of a session, or one of its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SearchHit {
    pub kind: SearchHitKind,
    pub session_id: SessionId,
    pub session_title: Option<String>,
    /// Of a message; absent of a title.
    pub message_id: Option<MessageId>,
    pub turn_id: Option<TurnId>,
    pub role: Option<Role>,
    pub excerpt: Vec<ExcerptPart>,
    /// When the message was said, or the session made.
    pub created_at: Timestamp,
}

/// The place of a hit in the order of hits: the better first, of equal ones the
/// newer. It follows from the text and the words alone, so that what is written
/// meanwhile moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    pub score: i64,
    pub entry: i64,
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.score, self.entry)
    }
}

impl FromStr for Rank {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (score, entry) = text.split_once('.').unwrap_or((text, ""));
        Ok(Self {
            score: score.parse()?,
            entry: entry.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(query: &str, text: &str) -> String {
        let parts = Terms::of(query).unwrap().excerpt(text);
        let show = |part: ExcerptPart| match part.found {
            true => format!("[{}]", part.text),
            false => part.text,
        };
        parts.into_iter().map(show).collect()
    }

    #[test]
    fn words_stand_between_gaps_or_in_quotes() {
        let terms = |text| Terms::of(text).map(|terms| terms.texts().to_vec());
        assert_eq!(terms("b  A b"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(
            terms("\"two words\" x"),
            Some(vec!["two words".to_owned(), "x".to_owned()])
        );
        assert_eq!(terms("\"open end"), Some(vec!["open end".to_owned()]));
        assert_eq!(
            (terms(" "), terms("\"\""), terms("1 2 3 4 5 6 7 8 9")),
            (None, None, None)
        );
    }

    #[test]
    fn an_excerpt_shows_the_words_where_they_stand() {
        assert_eq!(shown("wall", "The Wall and the wall."), "The [Wall] and the [wall].");
        assert_eq!(shown("봄", "서울의\n봄"), "서울의 [봄]");
        assert_eq!(shown("ab abc", "xabcx"), "x[abc]x");
        let long = format!("{}NEEDLE{}", "x ".repeat(200), " y".repeat(200));
        let text = shown("needle", &long);
        assert!(text.starts_with("…") && text.ends_with("…") && text.contains("[NEEDLE]"));
        assert!(text.chars().count() <= EXCERPT_CHARS + 4);
    }

    #[test]
    fn a_rank_is_read_as_it_is_written() {
        let rank = Rank { score: 12, entry: 7 };
        assert_eq!(rank.to_string().parse(), Ok(rank));
        assert!("12".parse::<Rank>().is_err() && "a.b".parse::<Rank>().is_err());
    }
}
