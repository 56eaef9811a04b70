//! Lists in pages: how many, from where on, what comes next. A cursor is opaque
//! to clients; inside it is the last id or place of the page before.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, schema::Type};

use crate::store::Slice;

use super::failure::Failure;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub data: Vec<T>,
    pub has_more: bool,
    /// Send it as `after` to get what follows. Lists that grow at their end give
    /// it always, the others while there is more.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// A page out of what was found when one more than `limit` was asked for;
    /// `key` is what the store continues after.
    pub fn cut<K: Display>(mut found: Vec<T>, limit: Limit, key: impl Fn(&T) -> K) -> Self {
        let wanted = limit.count() as usize;
        let has_more = wanted < found.len();
        found.truncate(wanted);
        let last = found.last().filter(|_| has_more).map(key);
        Self {
            next_cursor: last.map(cursor),
            data: found,
            has_more,
        }
    }

    /// A page of a log that grows at its end: it always says where to go on,
    /// also when nothing more is there yet.
    pub fn log(found: Slice<T>, limit: Limit, key: impl Fn(&T) -> String, after: Option<String>) -> Self {
        let Slice { items: mut found, cut } = found;
        let wanted = limit.count() as usize;
        let has_more = cut || wanted < found.len();
        found.truncate(wanted);
        Self {
            next_cursor: found.last().map(key).or(after),
            data: found,
            has_more,
        }
    }

    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page {
            data: self.data.into_iter().map(change).collect(),
            has_more: self.has_more,
            next_cursor: self.next_cursor,
        }
    }
}

/// A key as the client carries it.
pub fn cursor(key: impl Display) -> String {
    URL_SAFE_NO_PAD.encode(key.to_string())
}

/// The key in the cursor that the client sent as `after`.
pub fn after<K: FromStr>(given: Option<&str>) -> Result<Option<K>, Failure> {
    let Some(given) = given else { return Ok(None) };
    let key = URL_SAFE_NO_PAD
        .decode(given)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .and_then(|text| text.parse().ok());
    key.map(Some)
        .ok_or_else(|| Failure::invalid_cursor("after", "send the `next_cursor` of the page before, unchanged"))
}

/// How many entries a page holds at most: 1 to 200, 50 where nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(u32);

impl Limit {
    const MAX: u32 = 200;
    const DEFAULT: u32 = 50;

    pub fn count(self) -> u32 {
        self.0
    }

    /// To ask the store for: one more says whether there is a next page.
    pub fn and_one(self) -> u32 {
        self.0 + 1
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(Self::DEFAULT)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let count = text.parse().ok().filter(|count| (1..=Self::MAX).contains(count));
        count
            .map(Self)
            .ok_or_else(|| de::Error::custom(format!("expected a number from 1 to {}", Self::MAX)))
    }
}

impl utoipa::PartialSchema for Limit {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(Self::MAX))
            .default(Some(Self::DEFAULT.into()))
            .into()
    }
}

impl ToSchema for Limit {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::SessionId;

    #[test]
    fn a_full_page_says_where_the_next_begins() {
        let ids: Vec<SessionId> = (1..=3).map(SessionId::from_bits).collect();
        let page = Page::cut(ids.clone(), Limit(2), |id| *id);
        assert_eq!((page.data.as_slice(), page.has_more), (&ids[..2], true));
        assert_eq!(after(page.next_cursor.as_deref()).unwrap(), Some(ids[1]));
        let page = Page::cut(ids.clone(), Limit(3), |id| *id);
        assert_eq!((page.data, page.has_more, page.next_cursor), (ids, false, None));
    }

    #[test]
    fn what_is_no_cursor_of_that_list_is_refused() {
        for given in [
            "",
            "x",
            "ses_00000000000000000000000000",
            &cursor("turn_1"),
            &cursor("\u{fffd}"),
        ] {
            let failure = after::<SessionId>(Some(given)).unwrap_err();
            assert_eq!(failure.problem().status, 400, "{given}");
            assert_eq!(failure.problem().kind, "/problems/invalid_cursor");
        }
        assert!(after::<SessionId>(None).unwrap().is_none());
    }
}
