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
    values: Values,
}

#[derive(Debug)]
struct Part {
    sql: &'static str,
    table: &'static str,
    /// Arguments of the parts before it.
    offset: usize,
}

impl Together {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether a statement may travel with those that wait.
    pub(super) fn takes(&self, sql: &'static str, args: &[Arg<'_>]) -> bool {
        let table = written(sql);
        self.values.count() + args.len() <= PARAMETERS && self.parts.iter().all(|part| part.table != table)
    }

    pub(super) fn add(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<(), StoreError> {
        let offset = self.values.count();
        self.values.extend(args)?;
        self.parts.push(Part {
            sql,
            table: written(sql),
            offset,
        });
        Ok(())
    }

    /// All of them as one statement, if there are any.
    pub(super) fn joined(self) -> Option<(Cow<'static, str>, Values)> {
        let sql = match self.parts.as_slice() {
            [] => return None,
            [only] => Cow::Borrowed(only.sql),
            parts => Cow::Owned(joined(parts)),
        };
        Some((sql, self.values))
    }
}

/// One statement of several: the last one is its body.
fn joined(parts: &[Part]) -> String {
    let mut sql = String::with_capacity(parts.iter().map(|part| part.sql.len() + 16).sum());
    for (place, part) in parts.iter().enumerate() {
        let last = place + 1 == parts.len();
        if !last {
            let before = if place == 0 { "with " } else { ", " };
            sql.push_str(&format!("{before}p{place} as ("));
        }
        renumbered(part.sql, part.offset, &mut sql);
        sql.push_str(if last { "" } else { ")" });
    }
    sql
}

/// A part's text, its parameters counted on from those of the parts before it.
pub(super) fn renumbered(part: &str, offset: usize, sql: &mut String) {
    let mut pieces = part.split('$');
    sql.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = piece.split_at(digits);
        match number.parse::<usize>() {
            Ok(number) => sql.push_str(&format!("${}{rest}", number + offset)),
            // No parameter: it stands as it was.
            Err(_) => sql.push_str(&format!("${piece}")),
        }
    }
}

/// The table that a statement writes: the word behind its verb.
fn written(sql: &'static str) -> &'static str {
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
            joined(&together.parts),
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
