//! Shell-style patterns over whole commands, as operators write them to refuse
//! what the rules would allow: `*`, `?` and `[…]`, upper and lower case alike.

use regex::{RegexSet, RegexSetBuilder};

/// Compiled once, asked for every command.
#[derive(Clone, Debug)]
pub struct Globs(RegexSet);

impl Globs {
    /// The text is taken literally but for the wildcards. `None` when the
    /// patterns together are too large to compile.
    pub fn new(patterns: &[String]) -> Option<Self> {
        let expressions: Vec<String> = patterns.iter().map(|pattern| expression(pattern)).collect();
        let set = RegexSetBuilder::new(expressions)
            .case_insensitive(true)
            .dot_matches_new_line(true)
            .build();
        set.ok().map(Self)
    }

    /// The place of the first pattern that matches the whole text.
    pub fn first_match(&self, text: &str) -> Option<usize> {
        self.0.matches(text.trim()).into_iter().next()
    }
}

fn expression(glob: &str) -> String {
    let mut expression = String::from("^");
    let mut rest = glob.trim().chars();
    while let Some(character) = rest.next() {
        match character {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' => match class(rest.as_str()) {
                Some((class, tail)) => {
                    expression.push_str(&class);
                    rest = tail.chars();
                }
                None => expression.push_str("\\["),
            },
            other => expression.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    expression.push('$');
    expression
}

/// A bracket expression and what follows it; `None` when it is not closed, and
/// the bracket is then a character like others.
fn class(text: &str) -> Option<(String, &str)> {
    let (negated, body) = match text.strip_prefix(['!', '^']) {
        Some(body) => (true, body),
        None => (false, text),
    };
    // A closing bracket in the first place is a member.
    let end = body.char_indices().skip(1).find(|(_, character)| *character == ']')?.0;
    let (members, tail) = (body.get(..end)?, body.get(end + 1..)?);
    let mut class = String::from(if negated { "[^" } else { "[" });
    for member in members.chars() {
        // A dash keeps its meaning of a range; all else is literal.
        if !member.is_alphanumeric() && member != '-' {
            class.push('\\');
        }
        class.push(member);
    }
    class.push(']');
    regex::Regex::new(&class).ok().map(|_| (class, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_whole_command() {
        let cases = [
            ("git push*", "git push --force", true),
            ("git push*", "  GIT Push  ", true),
            ("git push", "git push --force", false),
            ("*secret*", "cat a\nsecret\nb", true),
            ("rm ?", "rm a", true),
            ("rm [ab]", "rm b", true),
            ("rm [!ab]", "rm b", false),
            ("rm [a-c]x", "rm bx", true),
            ("a.b", "aXb", false),
            ("echo [", "echo [", true),
            ("[z-a]", "[z-a]", true),
        ];
        for (pattern, text, expected) in cases {
            let globs = Globs::new(&[pattern.to_owned()]).unwrap();
            assert_eq!(globs.first_match(text).is_some(), expected, "{pattern} on {text:?}");
        }
    }
}
