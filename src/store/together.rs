//! Statements whose answers nobody waits for, kept back until somebody waits: on
//! Postgres a statement costs its round trip, so they travel as one, as parts of
//! a `with`. All parts see the database as it was before the first of them, so
//! there is at most one for each table; a second one sends the others first.

use std::borrow::Cow;

use super::postgres_text::Values;
use super::{Arg, StoreError};

/// Parameters of one statement; Postgres counts them in 16 bits.
const PARAMETERS: usize = 30_000;

#[derive(Debug, Default)]
pub(super) struct Together {
    parts: Vec<Part>,
}

#[derive(Debug)]
pub(super) struct Part {
    pub(super) sql: &'static str,
    pub(super) table: &'static str,
    pub(super) values: Values,
}

impl Part {
    /// What is the same of parts that differ in their values only.
    pub(super) fn words(&self) -> (&'static str, &[&'static str]) {
        (self.sql, self.values.types())
    }
}

impl Together {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether a statement may travel with those that wait.
    pub(super) fn takes(&self, sql: &'static str, args: &[Arg<'_>]) -> bool {
        let table = written(sql);
        let waiting: usize = self.parts.iter().map(|part| part.values.count()).sum();
        waiting + args.len() <= PARAMETERS && self.parts.iter().all(|part| part.table != table)
    }

    pub(super) fn add(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<(), StoreError> {
        self.parts.push(Part {
            sql,
            table: written(sql),
            values: Values::of(args)?,
        });
        Ok(())
    }

    /// All of them as one statement, if there are any.
    pub(super) fn joined(&self) -> Option<(Cow<'static, str>, Values)> {
        joined(&self.parts.iter().collect::<Vec<_>>())
    }
}

/// Parts as one statement, if there are any.
pub(super) fn joined(parts: &[&Part]) -> Option<(Cow<'static, str>, Values)> {
    let mut values = Values::default();
    if let [only] = parts {
        values.append(&only.values);
        return Some((Cow::Borrowed(only.sql), values));
    }
    let mut texts = Vec::with_capacity(parts.len());
    for part in parts {
        let mut text = String::with_capacity(part.sql.len() + 64);
        renumbered(part.sql, values.count(), &mut text);
        texts.push(text);
        values.append(&part.values);
    }
    with(&texts).map(|sql| (Cow::Owned(sql), values))
}

/// One statement of several, if there are any: the last one is its body.
pub(super) fn with(texts: &[String]) -> Option<String> {
    let (body, before) = texts.split_last()?;
    let mut sql = String::with_capacity(texts.iter().map(|text| text.len() + 16).sum());
    for (place, text) in before.iter().enumerate() {
        let opening = if place == 0 { "with " } else { ", " };
        sql.push_str(&format!("{opening}p{place} as ({text})"));
    }
    sql.push_str(body);
    Some(sql)
}

/// A part's text, its parameters counted on from those of the parts before it.
pub(super) fn renumbered(part: &str, offset: usize, sql: &mut String) {
    parameters_written(part, |number| format!("${}", number + offset), sql);
}

/// A text with something else for each of its parameters.
pub(super) fn parameters_written(text: &str, written: impl Fn(usize) -> String, sql: &mut String) {
    let mut pieces = text.split('$');
    sql.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = piece.split_at(digits);
        match number.parse::<usize>() {
            Ok(number) => {
                sql.push_str(&written(number));
                sql.push_str(rest);
            }
            // No parameter: it stands as it was.
            Err(_) => sql.push_str(&format!("${piece}")),
        }
    }
}

/// The table that a statement writes: the word behind its verb.
pub(super) fn written(sql: &str) -> &str {
    let mut words = sql.split_ascii_whitespace();
    let verb = words.next();
    let table = match verb {
        Some("update") => words.next(),
        // `insert into`, `delete from`
        _ => words.nth(1),
    };
    table.unwrap_or(sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(together: &mut Together, sql: &'static str, args: &[Arg<'_>]) -> bool {
        let takes = together.takes(sql, args);
        if takes {
            together.add(sql, args).unwrap();
        }
        takes
    }

    #[test]
    fn parts_become_one_statement_with_parameters_in_one_row() {
        let mut together = Together::default();
        assert!(add(
            &mut together,
            "insert into a (x, y) values ($1, $2)",
            &["1".into(), 2i64.into()]
        ));
        assert!(add(
            &mut together,
            "\n  update b set x = $2 where y = $1",
            &["3".into(), 4i64.into()]
        ));
        assert!(add(
            &mut together,
            "delete from c where x = $1 and y = '$' and z = $1",
            &["5".into()]
        ));
        assert_eq!(
            together.joined().unwrap().0,
            "with p0 as (insert into a (x, y) values ($1, $2)), p1 as (\n  update b set x = $4 where y = $3)\
             delete from c where x = $5 and y = '$' and z = $5"
        );
    }

    #[test]
    fn a_table_is_written_once_in_a_statement() {
        let mut together = Together::default();
        assert!(add(&mut together, "insert into turn (x) values ($1)", &["1".into()]));
        assert!(!add(&mut together, "update turn set x = $1", &["1".into()]));
        assert!(add(&mut together, "update turn_note set x = $1", &["1".into()]));
        assert!(!add(&mut together, "delete from turn_note where x = $1", &["1".into()]));
    }
}
