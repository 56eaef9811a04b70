//! Reads that do not build on one another, as one question. On Postgres each is a
//! list of JSON objects in a column of one row, since a round trip costs more
//! than to read that; on SQLite a read is a call, and they follow one another.

use serde_json::{Map, Value};

use super::together::renumbered;
use super::{Arg, Conn, Kind, Row, StoreError};

/// A statement and its arguments.
pub(super) type Asked<'a> = (&'static str, &'a [Arg<'a>]);

impl Conn {
    /// The rows of each read, in the order in which they were asked for.
    pub(super) async fn several<const N: usize>(&mut self, asked: [Asked<'_>; N]) -> Result<[Vec<Row>; N], StoreError> {
        let mut found = std::array::from_fn(|_| Vec::new());
        if self.dialect() == Kind::Sqlite {
            for (rows, (sql, args)) in found.iter_mut().zip(asked) {
                *rows = self.rows(sql, args).await?;
            }
            return Ok(found);
        }
        let args: Vec<Arg<'_>> = asked.iter().flat_map(|(_, args)| args.iter().cloned()).collect();
        let rows = self.made(joined(&asked), &args).await?;
        let row = rows
            .first()
            .ok_or_else(|| StoreError::bug("several reads without a row"))?;
        for (place, rows) in found.iter_mut().enumerate() {
            let told: Vec<Map<String, Value>> = row.json(&format!("q{place}"))?;
            *rows = told.into_iter().map(Row::Told).collect();
        }
        Ok(found)
    }
}

/// One statement of several; a list keeps the order of its read.
fn joined(asked: &[Asked<'_>]) -> String {
    let mut sql = String::from("select ");
    let mut offset = 0;
    for (place, (text, args)) in asked.iter().enumerate() {
        sql.push_str(if place == 0 { "(" } else { ", (" });
        sql.push_str("select coalesce(json_agg(r), '[]')::text from (");
        renumbered(text, offset, &mut sql);
        sql.push_str(&format!(") as r) as q{place}"));
        offset += args.len();
    }
    sql
}

/// A column of a row that was told as an object.
pub(super) fn told<'r>(row: &'r Map<String, Value>, column: &str) -> Result<&'r Value, StoreError> {
    row.get(column)
        .ok_or_else(|| StoreError::corrupt(format!("column `{column}`: absent")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_count_on_from_read_to_read() {
        let (one, two): ([Arg<'_>; 2], [Arg<'_>; 1]) = (["a".into(), 1i64.into()], ["b".into()]);
        let asked = [
            ("select x from t where a = $1 and b = $2", one.as_slice()),
            ("select y from u where a = $1", two.as_slice()),
        ];
        assert_eq!(
            joined(&asked),
            "select (select coalesce(json_agg(r), '[]')::text from (select x from t where a = $1 and b = $2) as r) as q0, \
             (select coalesce(json_agg(r), '[]')::text from (select y from u where a = $3) as r) as q1"
        );
    }
}
