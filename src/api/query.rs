//! The parameters after the question mark, read strictly: an unknown or repeated
//! name, or a value of the wrong form, is refused by name.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::failure::Failure;
use super::state::ApiState;

pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<ApiState> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, Failure> {
        parse(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn parse<T: DeserializeOwned>(query: &str) -> Result<T, Failure> {
    let reader = serde_urlencoded::Deserializer::new(url::form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        // `.` stands for the whole query.
        let parameter = if path == "." { "query" } else { &path };
        Failure::field(parameter, error.into_inner().to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::page::Limit;
    use crate::model::id::SessionId;
    use crate::model::turn::TurnStatus;
    use serde::Deserialize;

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
}
