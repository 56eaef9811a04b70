//! The arguments a model wrote, read as a JSON object.
//!
//! Small slips that leave no doubt are repaired: a trailing comma, missing or
//! surplus closing braces, raw control characters inside a string. Everything
//! else is an error; no stand-in object is ever made up, so a call never runs
//! with arguments that the model did not write.

use serde_json::{Map, Value};

/// Text that is not, and cannot safely be made, an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The text ends in the middle: the model's answer was cut off.
    #[error("the arguments end in the middle of the JSON text")]
    Truncated,
    #[error("the arguments are not valid JSON: {0}")]
    Malformed(String),
    #[error("the arguments must be a JSON object, not {0}")]
    NotAnObject(&'static str),
}

/// Reads the arguments of a call; blank text and a bare `None` mean no arguments.
pub fn parse(raw: &str) -> Result<Map<String, Value>, Unreadable> {
    let text = raw.trim();
    if text.is_empty() || text == "None" {
        return Ok(Map::new());
    }
    let problem = match serde_json::from_str(text) {
        Ok(value) => return object(value),
        Err(problem) => problem,
    };
    let draft = Draft::of(text);
    match draft.mended.and_then(|mended| serde_json::from_str(&mended).ok()) {
        Some(value) => object(value),
        None if draft.is_open && !text.ends_with(['}', ']']) => Err(Unreadable::Truncated),
        None => Err(Unreadable::Malformed(problem.to_string())),
    }
}

fn object(value: Value) -> Result<Map<String, Value>, Unreadable> {
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Err(Unreadable::NotAnObject("null")),
        Value::Bool(_) => Err(Unreadable::NotAnObject("a boolean")),
        Value::Number(_) => Err(Unreadable::NotAnObject("a number")),
        Value::String(_) => Err(Unreadable::NotAnObject("a string")),
        Value::Array(_) => Err(Unreadable::NotAnObject("an array")),
    }
}

/// What one pass over broken text found.
struct Draft {
    /// The mended text, none when mending would be guessing.
    mended: Option<String>,
    /// The text ends inside a string, an object or an array.
    is_open: bool,
}

impl Draft {
    fn of(text: &str) -> Self {
        let mut scan = Scan {
            mended: String::with_capacity(text.len() + 8),
            ..Scan::default()
        };
        for character in text.chars() {
            scan.take(character);
        }
        let is_open = scan.in_string || !scan.open.is_empty();
        // A missing `]` is not mended: whether the list had more items is unknown.
        let is_certain = !scan.in_string && !scan.is_crossed && scan.open.iter().all(|closer| *closer == '}');
        let mended = is_certain.then(|| {
            scan.mended.extend(scan.open.iter().rev());
            scan.mended
        });
        Self { mended, is_open }
    }
}

#[derive(Default)]
struct Scan {
    mended: String,
    /// The closers that are still due, innermost last.
    open: Vec<char>,
    in_string: bool,
    is_escaped: bool,
    /// A closer did not fit the innermost opener.
    is_crossed: bool,
    /// Length of `mended` before a comma that nothing but blanks followed yet.
    comma_at: Option<usize>,
}

impl Scan {
    fn take(&mut self, character: char) {
        if self.in_string {
            return self.take_in_string(character);
        }
        match character {
            '"' => self.in_string = true,
            '{' => self.open.push('}'),
            '[' => self.open.push(']'),
            '}' | ']' => {
                if let Some(comma) = self.comma_at.take() {
                    self.mended.truncate(comma);
                }
                match self.open.pop() {
                    Some(due) => self.is_crossed |= due != character,
                    // Surplus, after the whole value: leave it out.
                    None if !self.mended.trim().is_empty() => return,
                    None => self.is_crossed = true,
                }
            }
            _ => {}
        }
        if character == ',' {
            self.comma_at = Some(self.mended.len());
        } else if !character.is_whitespace() {
            self.comma_at = None;
        }
        self.mended.push(character);
    }

    fn take_in_string(&mut self, character: char) {
        if u32::from(character) < 0x20 {
            self.mended.push_str(&format!("\\u{:04x}", u32::from(character)));
            self.is_escaped = false;
            return;
        }
        match character {
            _ if self.is_escaped => self.is_escaped = false,
            '\\' => self.is_escaped = true,
            '"' => self.in_string = false,
            _ => {}
        }
        self.mended.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_answer_is_told_from_a_wrong_one() {
        for text in [
            "{\"a\": [1, 2",
            "{\"a\": 1,",
            "{\"command\": \"ls",
            "{\"a\"",
            "{\"a\": \"b\\",
        ] {
            assert_eq!(parse(text), Err(Unreadable::Truncated), "{text}");
        }
        for text in [
            "totally not json",
            "{'a': 1}",
            "{\"a\": [}",
            "{\"a\":1,,}",
            "{\"a\": True}",
            "}{\"a\": 1}",
        ] {
            assert!(matches!(parse(text), Err(Unreadable::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn a_comma_inside_a_string_stays() {
        let map = parse("{\"a\": \"x,}\", \"b\": [1, 2,\n],}").unwrap();
        assert_eq!(Value::Object(map), serde_json::json!({"a": "x,}", "b": [1, 2]}));
    }

    #[test]
    fn nesting_beyond_the_reader_is_an_error_not_a_crash() {
        assert!(parse(&"{\"a\":".repeat(100_000)).is_err());
    }
}
