//! Every reader of what strangers send, behind one function: the fuzz target
//! under `fuzz/` and the property tests call it, the server does not hold it.
//!
//! Each reader ends without a panic, and what it takes keeps the promise that
//! stands beside it.

use std::cell::Cell;

use http::header::{ACCEPT, HOST, IF_MATCH, IF_NONE_MATCH, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::{Secret, Timestamp};
use crate::live::cursor::Cursor;
use crate::model::event_types::Types;
use crate::model::id::{ApprovalId, SessionId, TenantId, TurnId};
use crate::model::search::Rank;
use crate::model::transfer::TransferLine;
use crate::model::turn::TurnStatus;

use super::auth::{api_key, jwks, stream_token};
use super::page::{Limit, List};
use super::{accept, conditions, hosts, json, once, origins, query};

/// A query as lists have them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    #[serde(default)]
    limit: Limit,
    after: Option<String>,
    status: Option<TurnStatus>,
    session_id: Option<SessionId>,
    since: Option<Timestamp>,
}

/// How many readers there are.
pub const READERS: u8 = 11;

/// The first byte chooses the reader, the rest is what it reads.
pub fn read(input: &[u8]) {
    let Some((reader, data)) = input.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(data);
    match reader % READERS {
        0 => body(data),
        1 => line(data),
        2 => ids(&text),
        3 => time(&text),
        4 => stream_cursor(&text),
        5 => page_cursor(&text),
        6 => credentials(&text),
        7 => preconditions(data),
        8 => choices(data),
        9 => parameters(&text),
        _ => names(data, &text),
    }
}

fn body(data: &[u8]) {
    let left = Cell::new(1000);
    let Ok(value) = json::value(data, &left) else { return };
    let (count, depth) = measured(&value);
    assert_eq!(count, 1000 - left.get(), "each value is counted once");
    assert!(depth <= 128, "nested {depth} deep");
    // The standard reader takes all that this one does.
    assert!(serde_json::from_slice::<Value>(data).is_ok());
    let _typed = json::typed::<Filter>(value);
}

/// How many values there are and how deep they stand. No text holds a NUL.
fn measured(value: &Value) -> (u32, usize) {
    let add = |(count, depth): (u32, usize), inner: &Value| {
        let (more, below) = measured(inner);
        (count + more, depth.max(below + 1))
    };
    match value {
        Value::String(text) => {
            assert!(!text.contains('\0'));
            (1, 0)
        }
        Value::Array(list) => list.iter().fold((1, 1), add),
        Value::Object(map) => {
            assert!(map.keys().all(|key| !key.contains('\0')));
            map.values().fold((1, 1), add)
        }
        _ => (1, 0),
    }
}

/// A line of a file that is imported.
fn line(data: &[u8]) {
    let value = json::value(data, &Cell::new(1000));
    let Ok(line) = value.and_then(json::typed::<TransferLine>) else {
        return;
    };
    let written = serde_json::to_vec(&line).unwrap_or_default();
    let again = json::value(&written, &Cell::new(2000)).and_then(json::typed::<TransferLine>);
    assert!(again.is_ok(), "what is exported can be imported");
}

fn ids(text: &str) {
    if let Ok(id) = text.parse::<SessionId>() {
        assert_eq!(id.to_string(), text, "one text for one id");
        assert!(text.parse::<TurnId>().is_err() && text.parse::<ApprovalId>().is_err());
    }
    if let Ok(id) = text.parse::<TurnId>() {
        assert_eq!(id.to_string(), text);
    }
}

fn time(text: &str) {
    if let Ok(at) = text.parse::<Timestamp>() {
        assert_eq!(at.to_string().parse(), Ok(at), "what is shown can be sent back");
        assert_eq!(at.to_string().len(), "2026-01-31T09:30:00.000Z".len());
    }
}

fn stream_cursor(text: &str) {
    if let Ok(cursor) = text.parse::<Cursor>() {
        assert!(0 <= cursor.seq);
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }
}

fn page_cursor(text: &str) {
    let key = Secret::new("a key that no input knows");
    let Ok(list) = List::new(&key, TenantId::from_bits(1), &json!(["border"])) else {
        return;
    };
    assert!(list.after::<String>(Some(text)).is_err(), "nobody signed it");
    assert!(list.after::<SessionId>(Some(text)).is_err());
    let own = list.cursor(text);
    let back = list.after::<String>(Some(&own)).ok().flatten();
    assert_eq!(back.as_deref(), Some(text));
    let _parsed = list.after::<Rank>(Some(&own));
    let _parsed = list.after::<i64>(Some(&own));
}

fn credentials(text: &str) {
    let key = Secret::new("a key that no input knows");
    let pass = stream_token::read(&key, text).ok().flatten();
    assert_eq!(pass, None, "nobody signed it");
    let pass = stream_token::read(&key, &format!("hst_{text}")).ok().flatten();
    assert_eq!(pass, None);
    assert!(!api_key::is_key(text) || text.is_ascii());
    let _keys = jwks::parse("a file", text);
}

/// Headers with this value, where it can be one.
fn headers(names: &[HeaderName], data: &[u8]) -> Option<HeaderMap> {
    let value = HeaderValue::from_bytes(data).ok()?;
    Some(names.iter().map(|name| (name.clone(), value.clone())).collect())
}

fn preconditions(data: &[u8]) {
    let Some(headers) = headers(&[IF_MATCH, IF_NONE_MATCH], data) else {
        return;
    };
    if let Ok(condition) = conditions::of(&headers) {
        assert_eq!(condition.if_match, condition.if_none_match, "both are read alike");
    }
}

fn choices(data: &[u8]) {
    let key = HeaderName::from_static("idempotency-key");
    let Some(headers) = headers(&[ACCEPT, key], data) else {
        return;
    };
    let _wanted = accept::wanted(&headers);
    if let Ok(Some(key)) = once::key(&headers) {
        assert!(key.bytes().all(|byte| byte.is_ascii_graphic()) && key.len() <= once::MAX_CHARS);
    }
}

fn parameters(text: &str) {
    if let Ok(query::WithMetadata(filter, entries)) = query::parse_with_metadata::<Filter>(text) {
        assert!((1..=200).contains(&filter.limit.count()) && entries.len() <= 16);
        assert!(filter.after.is_none_or(|after| !after.contains('\0')));
        assert!(
            entries
                .iter()
                .all(|(key, value)| !key.is_empty() && !key.contains('\0') && !value.contains('\0'))
        );
        let _read = (filter.status, filter.session_id, filter.since);
    }
    let _types = (Types::of_session(text), Types::of_tenant(text));
}

/// By which name this server is called, and from where.
fn names(data: &[u8], text: &str) {
    let Some(headers) = headers(&[HOST, ORIGIN], data) else {
        return;
    };
    let _origins = origins::Origins::new(&[text.to_owned()]);
    let Some(called) = hosts::authority(&headers, &http::Uri::from_static("/")) else {
        return;
    };
    let _same = origins::is_same(text, &called);
}

#[cfg(test)]
mod tests;
