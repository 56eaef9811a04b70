//! Values on their way into a statement and out of a row. Columns are only text
//! and bigint on both databases; ids, instants and JSON are made from those
//! here. What does not decode is a corrupt row, never a panic.

use rusqlite::types::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use sqlx::postgres::{PgRow, Postgres};
use sqlx::{Decode, Row as _, Type};

use crate::base::id::Kind as IdKind;
use crate::base::{Id, Timestamp};

use super::StoreError;
use super::several::told;
use super::sqlite_link::SqliteRow;

/// One bound value, in the order of `$1`, `$2`, ….
#[derive(Clone, Debug)]
pub enum Arg<'a> {
    Text(&'a str),
    OptText(Option<&'a str>),
    Owned(String),
    Int(i64),
    OptInt(Option<i64>),
}

impl Arg<'_> {
    /// A value as JSON text.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, StoreError> {
        let text = serde_json::to_string(value);
        text.map(Arg::Owned)
            .map_err(|error| StoreError::Database(std::sync::Arc::new(error)))
    }

    /// An absent value is SQL null, not the JSON word.
    pub fn opt_json<T: Serialize>(value: Option<&T>) -> Result<Self, StoreError> {
        value.map_or(Ok(Arg::OptText(None)), Self::json)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Arg::Text(text)
    }
}
impl<'a> From<&'a String> for Arg<'a> {
    fn from(text: &'a String) -> Self {
        Arg::Text(text)
    }
}
impl From<String> for Arg<'_> {
    fn from(text: String) -> Self {
        Arg::Owned(text)
    }
}
impl<'a> From<Option<&'a str>> for Arg<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Arg::OptText(text)
    }
}
impl<'a> From<&'a Option<String>> for Arg<'a> {
    fn from(text: &'a Option<String>) -> Self {
        Arg::OptText(text.as_deref())
    }
}
impl From<Option<String>> for Arg<'_> {
    fn from(text: Option<String>) -> Self {
        text.map_or(Arg::OptText(None), Arg::Owned)
    }
}
impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Arg::Int(number)
    }
}
impl From<u32> for Arg<'_> {
    fn from(number: u32) -> Self {
        Arg::Int(i64::from(number))
    }
}
/// Stored as 0 or 1.
impl From<bool> for Arg<'_> {
    fn from(flag: bool) -> Self {
        Arg::Int(i64::from(flag))
    }
}
impl From<Option<i64>> for Arg<'_> {
    fn from(number: Option<i64>) -> Self {
        Arg::OptInt(number)
    }
}
impl<K: IdKind> From<Id<K>> for Arg<'_> {
    fn from(id: Id<K>) -> Self {
        Arg::Owned(id.to_string())
    }
}
impl<K: IdKind> From<Option<Id<K>>> for Arg<'_> {
    fn from(id: Option<Id<K>>) -> Self {
        id.map_or(Arg::OptText(None), Arg::from)
    }
}
impl From<Timestamp> for Arg<'_> {
    fn from(instant: Timestamp) -> Self {
        Arg::Int(instant.0)
    }
}
impl From<Option<Timestamp>> for Arg<'_> {
    fn from(instant: Option<Timestamp>) -> Self {
        Arg::OptInt(instant.map(|instant| instant.0))
    }
}

/// One row, whichever database it came from.
#[derive(Debug)]
pub enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
    /// One of several answers that came together.
    Told(Map<String, Json>),
}

impl Row {
    pub fn text(&self, column: &str) -> Result<String, StoreError> {
        self.str(column).map(str::to_owned)
    }

    pub fn opt_text(&self, column: &str) -> Result<Option<String>, StoreError> {
        Ok(self.opt_str(column)?.map(str::to_owned))
    }

    /// The text as the row holds it.
    pub fn str(&self, column: &str) -> Result<&str, StoreError> {
        self.opt_str(column)?.ok_or_else(|| unlike(column, "null"))
    }

    pub fn opt_str(&self, column: &str) -> Result<Option<&str>, StoreError> {
        match self {
            Row::Postgres(row) => decoded(row, column),
            Row::Told(row) => match told(row, column)? {
                Json::Null => Ok(None),
                Json::String(text) => Ok(Some(text)),
                _ => Err(unlike(column, "no text")),
            },
            Row::Sqlite(row) => match value(row, column)? {
                Value::Null => Ok(None),
                Value::Text(text) => Ok(Some(text)),
                _ => Err(unlike(column, "no text")),
            },
        }
    }

    pub fn int(&self, column: &str) -> Result<i64, StoreError> {
        self.opt_int(column)?.ok_or_else(|| unlike(column, "null"))
    }

    pub fn opt_int(&self, column: &str) -> Result<Option<i64>, StoreError> {
        match self {
            Row::Postgres(row) => decoded(row, column),
            Row::Told(row) => match told(row, column)? {
                Json::Null => Ok(None),
                Json::Number(number) => number
                    .as_i64()
                    .map(Some)
                    .ok_or_else(|| unlike(column, "no whole number")),
                _ => Err(unlike(column, "no whole number")),
            },
            Row::Sqlite(row) => match value(row, column)? {
                Value::Null => Ok(None),
                Value::Integer(number) => Ok(Some(*number)),
                _ => Err(unlike(column, "no whole number")),
            },
        }
    }

    pub fn id<K: IdKind>(&self, column: &str) -> Result<Id<K>, StoreError> {
        parsed_id(column, self.str(column)?)
    }

    pub fn opt_id<K: IdKind>(&self, column: &str) -> Result<Option<Id<K>>, StoreError> {
        self.opt_str(column)?.map(|text| parsed_id(column, text)).transpose()
    }

    pub fn timestamp(&self, column: &str) -> Result<Timestamp, StoreError> {
        self.int(column).map(Timestamp)
    }

    pub fn opt_timestamp(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.opt_int(column)?.map(Timestamp))
    }

    pub fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreError> {
        parsed_json(column, self.str(column)?)
    }

    pub fn opt_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, StoreError> {
        self.opt_str(column)?.map(|text| parsed_json(column, text)).transpose()
    }
}

fn value<'r>(row: &'r SqliteRow, column: &str) -> Result<&'r Value, StoreError> {
    row.get(column).ok_or_else(|| unlike(column, "absent"))
}

fn unlike(column: &str, what: &str) -> StoreError {
    StoreError::corrupt(format!("column `{column}`: {what}"))
}

fn decoded<'r, T>(row: &'r PgRow, column: &str) -> Result<T, StoreError>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(column)
        .map_err(|error| StoreError::corrupt(format!("column `{column}`: {error}")))
}

fn parsed_id<K: IdKind>(column: &str, text: &str) -> Result<Id<K>, StoreError> {
    text.parse()
        .map_err(|error| StoreError::corrupt(format!("column `{column}`: {error}")))
}

fn parsed_json<T: DeserializeOwned>(column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::corrupt(format!("column `{column}`: {error}")))
}
