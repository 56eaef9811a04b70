//! What a question to Postgres says. The protocol's simple form takes several
//! statements at once, so BEGIN can travel with the first and COMMIT with the last;
//! in it values are literals, which only this file writes. Plans are kept
//! all the same: a text is prepared on its first use on a connection.

use std::collections::HashMap;

use super::{Arg, StoreError};

/// Plans that a connection keeps; the program has some hundred texts.
const PLANS: usize = 512;

/// Values of one statement, as it is executed with them.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// Constants, one behind the other.
    literals: String,
    /// Where each of them ends.
    ends: Vec<usize>,
    types: Vec<&'static str>,
}

impl Values {
    pub(super) fn of(args: &[Arg<'_>]) -> Result<Self, StoreError> {
        let mut values = Self::default();
        for arg in args {
            let literals = &mut values.literals;
            match arg {
                Arg::Text(text) | Arg::OptText(Some(text)) => quote(text, literals)?,
                Arg::Owned(text) => quote(text, literals)?,
                Arg::Int(number) | Arg::OptInt(Some(number)) => literals.push_str(&number.to_string()),
                Arg::OptText(None) | Arg::OptInt(None) => literals.push_str("null"),
            }
            values.end(match arg {
                Arg::Text(_) | Arg::OptText(_) | Arg::Owned(_) => "text",
                Arg::Int(_) | Arg::OptInt(_) => "bigint",
            });
        }
        Ok(values)
    }

    pub(super) fn append(&mut self, other: &Self) {
        let before = self.literals.len();
        self.literals.push_str(&other.literals);
        self.ends.extend(other.ends.iter().map(|end| before + end));
        self.types.extend(&other.types);
    }

    /// Appends what rows of the same types have: the first value, which is the same
    /// in all of them, and an array for each other place. `None` where that is not so.
    pub(super) fn append_rows(&mut self, rows: &[&Self]) -> Option<()> {
        let first = rows.first()?;
        let of_all = first.literal(0)?;
        if rows
            .iter()
            .any(|row| row.types != first.types || row.literal(0) != Some(of_all))
        {
            return None;
        }
        for (place, kind) in first.types.iter().enumerate() {
            if place == 0 {
                self.literals.push_str(of_all);
                self.end(kind);
                continue;
            }
            let array = array_of(kind)?;
            self.literals.push_str("array[");
            for (number, row) in rows.iter().enumerate() {
                self.literals.push_str(if number == 0 { "" } else { "," });
                self.literals.push_str(row.literal(place)?);
            }
            self.literals.push_str("]::");
            self.literals.push_str(array);
            self.end(array);
        }
        Some(())
    }

    fn end(&mut self, kind: &'static str) {
        self.ends.push(self.literals.len());
        self.types.push(kind);
    }

    fn literal(&self, place: usize) -> Option<&str> {
        let end = self.ends.get(place)?;
        let begin = match place.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.literals.get(begin..*end)
    }

    pub(super) fn count(&self) -> usize {
        self.types.len()
    }

    pub(super) fn types(&self) -> &[&'static str] {
        &self.types
    }
}

fn array_of(kind: &str) -> Option<&'static str> {
    match kind {
        "text" => Some("text[]"),
        "bigint" => Some("bigint[]"),
        _ => None,
    }
}

/// A string constant that reads the same whatever `standard_conforming_strings`
/// says: backslashes only in the form whose meaning does not depend on it.
fn quote(text: &str, sql: &mut String) -> Result<(), StoreError> {
    sql.reserve(text.len() + 3);
    let escaped = text.contains('\\');
    sql.push_str(if escaped { " E'" } else { "'" });
    let mut rest = text;
    while let Some((before, found, after)) = special(rest) {
        if found == '\0' {
            // A statement ends there; the border lets no such text in.
            return Err(StoreError::bug("a text with U+0000"));
        }
        sql.push_str(before);
        sql.push(found);
        sql.push(found);
        rest = after;
    }
    sql.push_str(rest);
    sql.push('\'');
    Ok(())
}

/// The first character that a constant cannot hold as it is, and what is around it.
fn special(text: &str) -> Option<(&str, char, &str)> {
    let place = text.find(['\'', '\\', '\0'])?;
    let (before, rest) = text.split_at(place);
    let mut rest = rest.chars();
    let found = rest.next()?;
    Some((before, found, rest.as_str()))
}

/// What a connection has prepared, by its text.
#[derive(Debug, Default)]
pub(super) struct Plans {
    numbers: HashMap<String, u64>,
    /// Numbers are not used again: a failed question may have prepared its text.
    next: u64,
    /// Texts that the question under way prepares.
    unsure: Vec<String>,
}

impl Plans {
    /// Writes what prepares `sql`, where that was not done yet, and executes it.
    /// Answers how many commands stand before the one that is waited for.
    pub(super) fn write(&mut self, sql: &str, values: &Values, question: &mut String) -> usize {
        if let Some(&number) = self.numbers.get(sql) {
            execute(number, values, question);
            return 0;
        }
        let mut before = 1;
        if self.numbers.len() >= PLANS {
            self.numbers.clear();
            question.push_str("deallocate all;");
            before += 1;
        }
        self.next += 1;
        let number = self.next;
        question.push_str(&format!("prepare p{number}"));
        if values.count() > 0 {
            question.push_str(&format!(" ({})", values.types.join(",")));
        }
        question.push_str(&format!(" as {sql};"));
        execute(number, values, question);
        self.numbers.insert(sql.to_owned(), number);
        self.unsure.push(sql.to_owned());
        before
    }

    /// The question was answered, with an error or without one. After an error
    /// nobody knows what it came to prepare.
    pub(super) fn answered(&mut self, well: bool) {
        for sql in self.unsure.drain(..) {
            if !well {
                self.numbers.remove(&sql);
            }
        }
    }
}

fn execute(number: u64, values: &Values, question: &mut String) {
    question.push_str(&format!("execute p{number}"));
    question.reserve(values.literals.len() + values.count() + 3);
    for (place, literal) in (0..values.count()).filter_map(|place| Some((place, values.literal(place)?))) {
        question.push(if place == 0 { '(' } else { ',' });
        question.push_str(literal);
    }
    question.push_str(if values.count() == 0 { ";" } else { ");" });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(plans: &mut Plans, sql: &str, args: &[Arg<'_>]) -> String {
        let mut question = String::new();
        plans.write(sql, &Values::of(args).unwrap(), &mut question);
        plans.answered(true);
        question
    }

    #[test]
    fn a_text_is_prepared_once() {
        let mut plans = Plans::default();
        let args: [Arg<'_>; 2] = ["it's".into(), Arg::OptInt(None)];
        let sql = "select $1, $2";
        assert_eq!(
            written(&mut plans, sql, &args),
            "prepare p1 (text,bigint) as select $1, $2;execute p1('it''s',null);"
        );
        assert_eq!(
            written(&mut plans, sql, &["\\'".into(), (-7i64).into()]),
            "execute p1( E'\\\\''',-7);"
        );
        assert_eq!(
            written(&mut plans, "select 1", &[]),
            "prepare p2 as select 1;execute p2;"
        );
    }

    #[test]
    fn a_connection_forgets_its_plans_when_there_are_too_many() {
        let mut plans = Plans::default();
        for number in 0..PLANS {
            written(&mut plans, &format!("select {number}"), &[]);
        }
        assert!(written(&mut plans, "select 0", &[]).starts_with("execute p1;"));
        assert!(written(&mut plans, "select 'one more'", &[]).starts_with("deallocate all;prepare p513 as"));
        assert!(written(&mut plans, "select 0", &[]).starts_with("prepare p514 as"));
    }

    #[test]
    fn a_text_that_stands_twice_in_a_question_is_prepared_once_and_anew_after_an_error() {
        let mut plans = Plans::default();
        let mut question = String::new();
        let none = Values::default();
        assert_eq!(plans.write("select 1", &none, &mut question), 1);
        assert_eq!(plans.write("select 1", &none, &mut question), 0);
        assert_eq!(question, "prepare p1 as select 1;execute p1;execute p1;");
        plans.answered(false);
        assert_eq!(
            written(&mut plans, "select 1", &[]),
            "prepare p2 as select 1;execute p2;"
        );
    }

    #[test]
    fn a_text_with_an_end_in_it_is_refused() {
        assert!(Values::of(&["a\0b".into()]).is_err());
    }
}
