//! Conditional requests: `If-Match` and `If-None-Match` as they are sent, the
//! entity tag of what is answered, 304. What a condition means stands in
//! `model::precondition`; a change checks it in its own transaction.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::IntoParams;

use crate::model::policy::NamedPolicy;
use crate::model::precondition::{EntityTag, Precondition, Reading, Tags};
use crate::model::session::Session;
use crate::model::skill::Skill;
use crate::model::turn::Turn;
use crate::model::version::Version;

use super::failure::Failure;

/// The headers of an operation that heeds them, for its description.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "says what the headers are; `of` reads them")]
pub(super) struct ConditionHeaders {
    /// Entity tags, or `*`. The request is refused with 412 unless one of them
    /// is the present one.
    #[param(rename = "If-Match")]
    if_match: Option<String>,
    /// Entity tags, or `*`. If one of them is the present one, a read is
    /// answered 304 without a body, and a change is refused with 412.
    #[param(rename = "If-None-Match")]
    if_none_match: Option<String>,
}

/// What has an entity tag.
pub(super) trait Versioned: Serialize {
    fn version(&self) -> Version;
}

impl Versioned for Session {
    fn version(&self) -> Version {
        Version::of_session(self)
    }
}

impl Versioned for Turn {
    fn version(&self) -> Version {
        Version::of_turn(self)
    }
}

impl Versioned for Skill {
    fn version(&self) -> Version {
        Version::of_whole(self)
    }
}

impl Versioned for NamedPolicy {
    fn version(&self) -> Version {
        Version::of_policy(self)
    }
}

/// The thing with its tag.
pub(super) fn tagged(thing: impl Versioned) -> Response {
    (etag(&thing.version().tag()), Json(thing)).into_response()
}

/// The header of a tag.
pub(super) fn etag(tag: &str) -> HeaderMap {
    let value = HeaderValue::from_str(tag).ok();
    value.map(|value| (ETAG, value)).into_iter().collect()
}

/// The answer to a read under its conditions.
pub(super) fn read(thing: impl Versioned, condition: &Precondition) -> Result<Response, Failure> {
    let version = thing.version();
    match condition.reading(&version) {
        Reading::Whole => Ok((etag(&version.tag()), Json(thing)).into_response()),
        Reading::NotModified => Ok((StatusCode::NOT_MODIFIED, etag(&version.tag())).into_response()),
        Reading::Failed(problem) => Err(problem.into()),
    }
}

/// The conditions of a request.
pub(super) fn of(headers: &HeaderMap) -> Result<Precondition, Failure> {
    Ok(Precondition {
        if_match: tags(headers, &IF_MATCH, "If-Match")?,
        if_none_match: tags(headers, &IF_NONE_MATCH, "If-None-Match")?,
    })
}

/// The tags of a header; its lines are one list.
fn tags(headers: &HeaderMap, name: &HeaderName, shown: &str) -> Result<Option<Tags>, Failure> {
    let lines: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let parsed = match lines.as_slice() {
        [only] if only.trim_ascii() == b"*" => Some(Tags::Any),
        lines => list(&lines.join(&b',')).map(Tags::OneOf),
    };
    parsed.map(Some).ok_or_else(|| {
        let detail = "expected `*`, or entity tags such as `\"abc\"` with commas between them, in quotes as the header \
                      `ETag` has them";
        Failure::field(shown, detail)
    })
}

/// One entity tag at least, with commas between them; RFC 9110 lets a list have
/// empty places.
fn list(text: &[u8]) -> Option<Vec<EntityTag>> {
    let mut tags = Vec::new();
    let mut rest = text.trim_ascii();
    loop {
        while let Some(after) = rest.strip_prefix(b",") {
            rest = after.trim_ascii_start();
        }
        if rest.is_empty() {
            return Some(tags).filter(|tags| !tags.is_empty());
        }
        let (tag, after) = entity_tag(rest)?;
        tags.push(tag);
        rest = after.trim_ascii_start();
        if !rest.is_empty() && !rest.starts_with(b",") {
            return None;
        }
    }
}

/// RFC 9110, section 8.8.3; `W/` is in capitals.
fn entity_tag(text: &[u8]) -> Option<(EntityTag, &[u8])> {
    let (weak, quoted) = match text.strip_prefix(b"W/") {
        Some(quoted) => (true, quoted),
        None => (false, text),
    };
    let inner = quoted.strip_prefix(b"\"")?;
    let end = inner.iter().position(|byte| *byte == b'"')?;
    let (opaque, after) = inner.split_at_checked(end)?;
    let visible = |byte: &u8| *byte == 0x21 || (0x23..=0x7e).contains(byte) || 0x80 <= *byte;
    let tag = EntityTag {
        weak,
        opaque: String::from_utf8_lossy(opaque).into_owned(),
    };
    opaque.iter().all(visible).then_some((tag, after.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&[u8]]) -> Result<Option<Tags>, Failure> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(IF_MATCH, HeaderValue::from_bytes(line).unwrap());
        }
        of(&headers).map(|condition| condition.if_match)
    }

    fn strong(opaque: &str) -> EntityTag {
        EntityTag {
            weak: false,
            opaque: opaque.to_owned(),
        }
    }

    #[test]
    fn tags_are_read_as_the_rfc_writes_them() {
        let weak = EntityTag {
            weak: true,
            ..strong("b")
        };
        for (lines, tags) in [
            (&[&b"*"[..]][..], Tags::Any),
            (&[b" * "], Tags::Any),
            (&[b"\"a\""], Tags::OneOf(vec![strong("a")])),
            (&[b"\"\""], Tags::OneOf(vec![strong("")])),
            (&[b"\"a,b\""], Tags::OneOf(vec![strong("a,b")])),
            (&[b"\"a\" , W/\"b\""], Tags::OneOf(vec![strong("a"), weak.clone()])),
            (&[b",\"a\",,"], Tags::OneOf(vec![strong("a")])),
            (&[b"\"a\"", b"W/\"b\""], Tags::OneOf(vec![strong("a"), weak])),
            (&[b"\"\xff\""], Tags::OneOf(vec![strong("\u{fffd}")])),
        ] {
            assert_eq!(read(lines).unwrap(), Some(tags), "{lines:?}");
        }
        assert_eq!(read(&[]).unwrap(), None);
    }

    #[test]
    fn what_is_no_list_of_tags_is_refused_by_name() {
        for lines in [
            &[&b""[..]][..],
            &[b","],
            &[b"a"],
            &[b"\"a"],
            &[b"a\""],
            &[b"'a'"],
            &[b"w/\"a\""],
            &[b"W/ \"a\""],
            &[b"\"a b\""],
            &[b"\"a\" \"b\""],
            &[b"\"a\"b"],
            &[b"*, \"a\""],
            &[b"\"a\", *"],
            &[b"*", b"*"],
            &[b"\"a\"", b"*"],
        ] {
            let problem = read(lines).unwrap_err().problem().clone();
            assert_eq!(
                (problem.status, problem.errors[0].pointer.as_str()),
                (400, "If-Match"),
                "{lines:?}"
            );
        }
    }
}
