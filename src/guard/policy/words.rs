//! A pattern as its words, read as the shell reads a line: what is quoted or
//! escaped is literal, so that a command that was saved as it stood stands for
//! itself. Only a bare `*`, `**` or `?` is a wildcard.

/// One place of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    One(char),
    /// `?`: any character.
    Any,
    /// `*`: any characters.
    Star,
    /// `**`: any characters, `/` too where that matters.
    Stars,
}

pub(super) type Word = Vec<Mark>;

/// The words of a pattern. A quote that is not closed is a character.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' | '"' => match quoted(character, rest.as_str()) {
                Some((marks, left)) => {
                    word.get_or_insert_default().extend(marks);
                    rest = left.chars();
                }
                None => word.get_or_insert_default().push(Mark::One(character)),
            },
            '\\' => {
                let next = rest.next().unwrap_or('\\');
                word.get_or_insert_default().push(Mark::One(next));
            }
            '*' => {
                let word = word.get_or_insert_default();
                match word.last_mut() {
                    Some(last @ (Mark::Star | Mark::Stars)) => *last = Mark::Stars,
                    _ => word.push(Mark::Star),
                }
            }
            '?' => word.get_or_insert_default().push(Mark::Any),
            other => word.get_or_insert_default().push(Mark::One(other)),
        }
    }
    words.extend(word);
    words
}

/// The text up to the closing quote, and what follows it.
fn quoted(quote: char, text: &str) -> Option<(Word, &str)> {
    let mut marks = Vec::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character == quote {
            return Some((marks, rest.as_str()));
        }
        let escapes = quote == '"' && character == '\\' && rest.as_str().starts_with(['"', '\\', '$', '`']);
        let literal = if escapes { rest.next()? } else { character };
        marks.push(Mark::One(literal));
    }
    None
}

/// The text of a word without wildcards.
pub(super) fn literal(word: &[Mark]) -> Option<String> {
    word.iter()
        .map(|mark| match mark {
            Mark::One(character) => Some(*character),
            Mark::Any | Mark::Star | Mark::Stars => None,
        })
        .collect()
}

/// The word ends in a wildcard that stands for any number of characters.
pub(super) fn is_open(word: &[Mark]) -> bool {
    matches!(word.last(), Some(Mark::Star | Mark::Stars))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_and_escaped_wildcards_are_characters() {
        let literals = |text: &str| words(text).iter().map(|word| literal(word)).collect::<Vec<_>>();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            literals("grep 'a*' \"b?\\\"\" c\\*"),
            [some("grep"), some("a*"), some("b?\""), some("c*")]
        );
        assert_eq!(literals("echo *"), [some("echo"), None]);
        assert_eq!(literals("don't  stop"), [some("don't"), some("stop")]);
        assert_eq!(words("a** ''"), [vec![Mark::One('a'), Mark::Stars], vec![]]);
    }
}
