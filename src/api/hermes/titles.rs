//! Titles as the original keeps them: one line without what cannot be seen, at
//! most a hundred characters, and no two sessions of a user with the same.

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::model::id::SessionId;

const MAX_CHARS: usize = 100;
/// More forks of one title are not counted.
const MOST_COPIES: u32 = 1_000;

/// The title as it is kept; nothing of one that is empty.
pub(super) fn cleaned(title: &str) -> Result<Option<String>, Failure> {
    let visible: String = title
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| is_seen(*c))
        .collect();
    let title = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    match title.chars().count() {
        0 => Ok(None),
        count if MAX_CHARS < count => Err(invalid(format!(
            "it has {count} characters; at most {MAX_CHARS} are allowed"
        ))),
        _ => Ok(Some(title)),
    }
}

fn is_seen(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

pub(super) fn invalid(detail: String) -> Failure {
    Failure::field("/title", detail).known_as("invalid_title")
}

/// Refuses a title that another session has.
pub(super) async fn free(caller: &Caller, title: &str, except: Option<SessionId>) -> Result<(), Failure> {
    match is_taken(caller, title, except).await? {
        true => Err(invalid("another session has this title".to_owned())),
        false => Ok(()),
    }
}

async fn is_taken(caller: &Caller, title: &str, except: Option<SessionId>) -> Result<bool, Failure> {
    let title = title.to_owned();
    let taken = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.title_is_taken(&title, except).await }));
    Ok(taken.await?)
}

/// `title #2`, or the next number that is free.
pub(super) async fn next(caller: &Caller, title: &str) -> Result<String, Failure> {
    let stem = match title.rsplit_once(" #") {
        Some((stem, number)) if number.parse::<u32>().is_ok() => stem,
        _ => title,
    };
    for number in 2..MOST_COPIES {
        let candidate = format!("{stem} #{number}");
        if !is_taken(caller, &candidate, None).await? {
            return Ok(candidate);
        }
    }
    Err(invalid("there are too many sessions of this title".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_of_what_can_be_seen() {
        assert_eq!(cleaned("  a\n\t b\u{200b}c\u{7} ").unwrap().as_deref(), Some("a bc"));
        assert_eq!(cleaned(" \u{200b} ").unwrap(), None);
        assert!(cleaned(&"한".repeat(100)).is_ok() && cleaned(&"한".repeat(101)).is_err());
    }
}
