//! An instant as the product stores and shows it: whole milliseconds since the
//! Unix epoch in the database, RFC 3339 UTC with milliseconds on the wire.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Datelike, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The instant `span` later; saturates instead of wrapping.
    pub fn after(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// The day of UTC, such as `2026-01-31`.
    pub fn day(self) -> String {
        let at = DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or_default();
        at.date_naive().to_string()
    }

    /// Time from `earlier` to this instant, zero when `earlier` lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or_default();
        f.write_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

/// The text is not an instant that can be shown again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an RFC 3339 time such as 2026-01-31T09:30:00.000Z")]
pub struct ParseTimestampError;

impl std::str::FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at = DateTime::parse_from_rfc3339(text)
            .map_err(|_| ParseTimestampError)?
            .to_utc();
        // An offset may lead out of the years that RFC 3339 can write.
        let can_be_shown = (0..=9999).contains(&at.year());
        can_be_shown
            .then(|| Self(at.timestamp_millis()))
            .ok_or(ParseTimestampError)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl utoipa::PartialSchema for Timestamp {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(
                utoipa::openapi::KnownFormat::DateTime,
            )))
            .into()
    }
}

impl utoipa::ToSchema for Timestamp {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_and_reads_milliseconds_in_utc() {
        let at = Timestamp(1_769_851_800_007);
        assert_eq!(at.to_string(), "2026-01-31T09:30:00.007Z");
        assert_eq!("2026-01-31T10:30:00.007+01:00".parse(), Ok(at));
        assert_eq!(at.day(), "2026-01-31");
    }

    #[test]
    fn only_years_of_four_digits_are_read() {
        for text in ["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"] {
            let at: Timestamp = text.parse().unwrap();
            assert_eq!(at.to_string(), text);
        }
        for text in [
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:00-00:01",
            "+10000-01-01T00:00:00Z",
            "",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(ParseTimestampError), "{text}");
        }
    }
}
