//! The parameters after the question mark, read strictly: an unknown or repeated
//! name, or a value of the wrong form, is refused by name. U+0000 becomes U+FFFD
//! as in bodies: one of the stores cannot even compare with it.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer};

use crate::base::Timestamp;

use super::failure::Failure;
use super::state::ApiState;

pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<ApiState> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, Failure> {
        parse(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// Parameters of a drop-in surface, whose clients send more than is asked for: the
/// last of a name counts, and what no field is named for is ignored.
pub struct Loose<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<ApiState> for Loose<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, Failure> {
        let query = without_nul(parts.uri.query().unwrap_or_default());
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let last: BTreeMap<String, String> = pairs.into_owned().collect();
        let fields = last
            .into_iter()
            .map(|(name, value)| (name, serde_json::Value::String(value)));
        let object = serde_json::Value::Object(fields.collect());
        serde_json::from_value(object)
            .map(Self)
            .map_err(|error| Failure::field("query", error.to_string()))
    }
}

/// Parameters with entries of the metadata among them, `metadata.KEY=VALUE` or
/// `metadata[KEY]=VALUE`, by key.
pub struct WithMetadata<T>(pub T, pub BTreeMap<String, String>);

/// More entries narrow nothing down any more.
const MAX_ENTRIES: usize = 16;

impl<T: DeserializeOwned> FromRequestParts<ApiState> for WithMetadata<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, Failure> {
        parse_with_metadata(parts.uri.query().unwrap_or_default())
    }
}

pub(super) fn parse_with_metadata<T: DeserializeOwned>(query: &str) -> Result<WithMetadata<T>, Failure> {
    let mut others = url::form_urlencoded::Serializer::new(String::new());
    let mut entries = BTreeMap::new();
    let query = without_nul(query);
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let Some(key) = metadata_key(&name) else {
            others.append_pair(&name, &value);
            continue;
        };
        if entries.insert(key.to_owned(), value.into_owned()).is_some() {
            return Err(Failure::field(&name, "it stands twice"));
        }
        if MAX_ENTRIES < entries.len() {
            return Err(Failure::field(
                "metadata",
                format!("at most {MAX_ENTRIES} entries are compared"),
            ));
        }
    }
    parse(&others.finish()).map(|fields| WithMetadata(fields, entries))
}

/// Neither the escape of the byte, which is written in one way, nor the byte
/// itself, which no URL should hold.
fn without_nul(query: &str) -> String {
    query.replace("%00", "%EF%BF%BD").replace('\0', "%EF%BF%BD")
}

fn metadata_key(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("metadata")?;
    let key = match rest.strip_prefix('.') {
        Some(key) => key,
        None => rest.strip_prefix('[')?.strip_suffix(']')?,
    };
    (!key.is_empty()).then_some(key)
}

fn parse<T: DeserializeOwned>(query: &str) -> Result<T, Failure> {
    let query = without_nul(query);
    let reader = serde_urlencoded::Deserializer::new(url::form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        // `.` stands for the whole query.
        let parameter = if path == "." { "query" } else { &path };
        Failure::field(parameter, error.into_inner().to_string())
    })
}

/// A time, or a day, which stands for its beginning.
pub(super) fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let whole = if text.len() == "2026-01-31".len() {
        format!("{text}T00:00:00Z")
    } else {
        text
    };
    let parsed = whole.parse().map(Some);
    parsed.map_err(|_| de::Error::custom("expected an RFC 3339 time or a day such as 2026-01-31"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::page::Limit;
    use crate::model::id::SessionId;
    use crate::model::turn::TurnStatus;
    use serde::Deserialize;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Filter {
        #[serde(default)]
        limit: Limit,
        status: Option<TurnStatus>,
        session_id: Option<SessionId>,
    }

    #[test]
    fn parameters_are_read_by_type() {
        let id = SessionId::from_bits(9);
        let filter: Filter = parse(&format!("limit=7&status=rolled_back&session_id={id}")).unwrap();
        assert_eq!(filter.limit.count(), 7);
        assert_eq!(
            (filter.status, filter.session_id),
            (Some(TurnStatus::RolledBack), Some(id))
        );
        assert_eq!(parse::<Filter>("").unwrap().limit.count(), 50);
    }

    #[test]
    fn entries_of_the_metadata_stand_beside_the_rest() {
        let query = "limit=7&metadata.a.b=1%202&metadata%5Bk%5D=x";
        let WithMetadata(filter, entries) = parse_with_metadata::<Filter>(query).unwrap();
        assert_eq!(filter.limit.count(), 7);
        let expected = [("a.b", "1 2"), ("k", "x")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(entries, BTreeMap::from(expected));
        for query in [
            "metadata.=1",
            "metadata=1",
            "metadata[a=1",
            "metadata.a=1&metadata[a]=2",
            "metadata.a=1&x=2",
        ] {
            assert!(parse_with_metadata::<Filter>(query).is_err(), "{query}");
        }
    }

    #[test]
    fn nul_is_replaced_in_names_and_values() {
        let WithMetadata(filter, entries) =
            parse_with_metadata::<Filter>("metadata[a%00]=%00b&metadata.c=%2500").unwrap();
        assert_eq!(filter.limit.count(), 50);
        let expected =
            [("a\u{fffd}", "\u{fffd}b"), ("c", "%00")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(entries, BTreeMap::from(expected));
        let texts: BTreeMap<String, String> = parse("x=a%00%00&y=%%00").unwrap();
        assert_eq!((&*texts["x"], &*texts["y"]), ("a\u{fffd}\u{fffd}", "%\u{fffd}"));
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        for (query, parameter) in [
            ("limit=0", "limit"),
            ("limit=201", "limit"),
            ("limit=ten", "limit"),
            ("limit=", "limit"),
            ("limit=-1", "limit"),
            ("status=done", "status"),
            ("session_id=turn_1", "session_id"),
            ("limt=5", "limt"),
            ("limit=1&limit=2", "query"),
        ] {
            let failure = parse::<Filter>(query).unwrap_err();
            assert_eq!(failure.problem().errors[0].pointer, parameter, "{query}: {failure:?}");
        }
    }

    #[test]
    fn a_day_stands_for_its_beginning() {
        let read = |text: &'static str| -> Result<Option<Timestamp>, Error> {
            let text: StrDeserializer<'_, Error> = text.into_deserializer();
            instant(text)
        };
        assert_eq!(read("2026-01-31").unwrap(), read("2026-01-31T01:00:00+01:00").unwrap());
        for wrong in ["", "2026-13-01", "yesterday", "1769851800", "2026-01-31T09:30"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
