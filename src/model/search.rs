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

/// Folded texts that all have to occur in what is found, and those that must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    all: Vec<String>,
    none: Vec<String>,
}

/// Alternatives any more of which help nobody.
const MAX_ALTERNATIVES: usize = 8;

/// What is looked for, in the language of search boxes: words that all have to
/// occur, `OR` between alternatives, `NOT` before a word that must not occur,
/// quotes around words that belong together, `*` behind the beginning of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query(Vec<Terms>);

impl Query {
    /// `None` where an alternative asks for nothing, or more than a search takes.
    pub fn of(text: &str) -> Option<Self> {
        let mut alternatives = vec![Vec::new()];
        let mut negated = false;
        for (word, quoted) in words(text) {
            match word {
                "OR" if !quoted => alternatives.push(Vec::new()),
                "AND" if !quoted => {}
                "NOT" if !quoted => negated = true,
                word => {
                    let word = word.trim_matches(['(', ')']);
                    let word = if quoted { word } else { word.trim_end_matches('*') };
                    if let Some(last) = alternatives.last_mut() {
                        last.push((fold(word), std::mem::take(&mut negated)));
                    }
                }
            }
        }
        let terms = alternatives.into_iter().map(|words| {
            let (none, all): (Vec<_>, Vec<_>) = words.into_iter().partition(|(_, negated)| *negated);
            let texts = |words: Vec<(String, bool)>| words.into_iter().map(|(word, _)| word).collect();
            Terms::checked(texts(all), texts(none))
        });
        let terms: Vec<Terms> = terms.collect::<Option<_>>()?;
        (terms.len() <= MAX_ALTERNATIVES).then_some(Self(terms))
    }

    pub fn alternatives(&self) -> &[Terms] {
        &self.0
    }
}

/// Words between gaps, and whether each stood in double quotes as a whole.
fn words(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split('"').enumerate().flat_map(|(index, piece)| {
        let quoted = index % 2 == 1;
        let words: Vec<&str> = match quoted {
            true => vec![piece.trim()],
            false => piece.split_whitespace().collect(),
        };
        words.into_iter().map(move |word| (word, quoted))
    })
}

impl Terms {
    /// Words between gaps; what stands in double quotes is one.
    pub fn of(text: &str) -> Option<Self> {
        Self::checked(words(text).map(|(word, _)| fold(word)).collect(), Vec::new())
    }

    fn checked(all: Vec<String>, none: Vec<String>) -> Option<Self> {
        let [all, none] = [all, none].map(|texts| {
            let mut texts: Vec<String> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
            texts.sort_unstable();
            texts.dedup();
            texts
        });
        let is_right = (1..=MAX_TERMS).contains(&all.len()) && none.len() <= MAX_TERMS;
        is_right.then_some(Self { all, none })
    }

    /// What has to occur.
    pub fn texts(&self) -> &[String] {
        &self.all
    }

    /// What must not.
    pub fn absent(&self) -> &[String] {
        &self.none
    }

    /// The part of a text around the first of the terms in it.
    pub fn excerpt(&self, text: &str) -> Vec<ExcerptPart> {
        let text = plain(text);
        let first = self
            .all
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
            let next = self.all.iter().filter_map(|term| find(rest, term));
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
    fn a_query_has_alternatives_and_words_that_must_not_occur() {
        let shape = |text| {
            let query = Query::of(text)?;
            let alternatives = query.alternatives().iter();
            Some(
                alternatives
                    .map(|terms| (terms.texts().join("+"), terms.absent().join("+")))
                    .collect::<Vec<_>>(),
            )
        };
        let both = |all: &str, none: &str| (all.to_owned(), none.to_owned());
        assert_eq!(shape("docker AND deploy*"), Some(vec![both("deploy+docker", "")]));
        assert_eq!(
            shape("(\"Red hat\" NOT blue) OR 서울"),
            Some(vec![both("red hat", "blue"), both("서울", "")])
        );
        assert_eq!(shape("\"OR\" x"), Some(vec![both("or+x", "")]));
        for nothing in ["", "NOT x", "a OR", "OR OR", "*"] {
            assert_eq!(shape(nothing), None, "{nothing}");
        }
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
