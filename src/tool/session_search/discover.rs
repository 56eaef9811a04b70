//! Sessions in which words occur, the best place of each with what stands around
//! it.

#![allow(
    clippy::indexing_slicing,
    reason = "keys of JSON objects: a read of a missing one is null, and what is written is an object made here"
)]

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::request::Sort;
use super::shown;
use crate::base::fold::fold;
use crate::model::id::SessionId;
use crate::model::job::JOB_ID;
use crate::model::message::Role;
use crate::model::search::{Query, Rank, SearchHit, SearchHitKind};
use crate::model::session::Session;
use crate::store::recall::{Said, Span};
use crate::store::{Rows, StoreError};

/// Places that are looked at (Hermes).
const SCANNED: u32 = 300;
/// Messages on each side of the one that was found.
const AROUND: u32 = 5;
/// Of the session's beginning and end.
const BOOKENDS: u32 = 3;

pub(super) struct Wanted<'a> {
    pub(super) text: &'a str,
    pub(super) query: &'a Query,
    pub(super) limit: usize,
    pub(super) sort: Sort,
    pub(super) roles: &'a [Role],
}

pub(super) async fn discover(rows: &mut Rows<'_>, here: SessionId, wanted: Wanted<'_>) -> Result<Value, StoreError> {
    let own = rows.first_of_line(here).await?;
    let mut lines: HashMap<SessionId, SessionId> = HashMap::new();
    let mut taken = HashSet::from([own]);
    let (mut results, mut of_jobs) = (Vec::new(), Vec::new());
    for hit in hits(rows, &wanted).await? {
        if results.len() == wanted.limit {
            break;
        }
        let line = match lines.get(&hit.session_id) {
            Some(line) => *line,
            None => rows.first_of_line(hit.session_id).await?,
        };
        lines.insert(hit.session_id, line);
        if !taken.insert(line) {
            continue;
        }
        match shown_session(rows, &hit).await? {
            Some(session) if session.metadata.contains_key(JOB_ID) => of_jobs.push((session, hit)),
            Some(session) => results.push(result(rows, session, &hit).await?),
            None => {}
        }
    }
    // What jobs said again and again comes behind what people talked about.
    for (session, hit) in of_jobs {
        if results.len() < wanted.limit {
            results.push(result(rows, session, &hit).await?);
        }
    }
    Ok(json!({
        "success": true,
        "mode": "discover",
        "query": wanted.text,
        "count": results.len(),
        "sessions_searched": lines.len(),
        "results": results,
    }))
}

/// The places in the order in which their sessions are wanted.
async fn hits(rows: &mut Rows<'_>, wanted: &Wanted<'_>) -> Result<Vec<SearchHit>, StoreError> {
    let mut found: Vec<(Rank, SearchHit)> = Vec::new();
    for terms in wanted.query.alternatives() {
        for (rank, hit) in rows.search(terms, None, None, SCANNED).await? {
            let is_known = found.iter().any(|(known, _)| known.entry == rank.entry);
            if !is_known && hit.role.is_none_or(|role| wanted.roles.contains(&role)) {
                found.push((rank, hit));
            }
        }
    }
    let title = fold(wanted.text);
    let is_title = |hit: &SearchHit| {
        hit.kind == SearchHitKind::Title && hit.session_title.as_deref().is_some_and(|own| fold(own) == title)
    };
    found.sort_by_key(|(rank, hit)| {
        let order = match wanted.sort {
            Sort::Best => (-rank.score, -rank.entry),
            Sort::Newest => (-hit.created_at.0, -rank.entry),
            Sort::Oldest => (hit.created_at.0, rank.entry),
        };
        (!is_title(hit), order)
    });
    Ok(found.into_iter().map(|(_, hit)| hit).collect())
}

/// Delegated work is told where it was delegated.
async fn shown_session(rows: &mut Rows<'_>, hit: &SearchHit) -> Result<Option<Session>, StoreError> {
    let session = rows.session(hit.session_id).await?;
    Ok(session.filter(|session| session.lineage.is_none()))
}

async fn result(rows: &mut Rows<'_>, session: Session, hit: &SearchHit) -> Result<Value, StoreError> {
    let id = hit.session_id;
    let place = match hit.message_id {
        Some(message) => rows.place_of(message).await?.map_or(0, |(_, place)| place),
        None => 0,
    };
    let mut said = rows.said(id, Span::Before(place), AROUND).await?;
    said.extend(rows.said(id, Span::From(place), AROUND + 1).await?);
    let (first, last) = match (said.first(), said.last()) {
        (Some(first), Some(last)) => (first.position, last.position),
        _ => (0, 0),
    };
    let (before, _) = rows.said_around(id, first).await?;
    let (_, after) = rows.said_around(id, last + 1).await?;
    let beyond = |said: Vec<Said>, is_beyond: &dyn Fn(i64) -> bool| {
        let kept: Vec<Said> = said.into_iter().filter(|said| is_beyond(said.position)).collect();
        shown::messages(&kept)
    };
    let start = beyond(rows.said(id, Span::From(0), BOOKENDS).await?, &|place| place < first);
    let end = beyond(rows.said(id, Span::Before(i64::MAX), BOOKENDS).await?, &|place| {
        last < place
    });
    let around = said.iter().map(|one| {
        let mut shown = shown::message(one);
        if Some(one.message_id) == hit.message_id {
            shown["anchor"] = json!(true);
        }
        shown
    });
    let snippet: String = hit.excerpt.iter().map(|part| part.text.as_str()).collect();
    let mut result = json!({
        "session_id": id,
        "when": hit.created_at,
        "source": shown::source(&session),
        "model": session.model,
        "title": session.title,
        "matched_role": hit.role,
        "match_message_id": hit.message_id,
        "snippet": snippet,
        "bookend_start": start,
        "messages": around.collect::<Vec<_>>(),
        "bookend_end": end,
        "messages_before": before,
        "messages_after": after,
    });
    if let Some(parent) = session.parent {
        result["parent_session_id"] = json!(parent.session_id);
    }
    Ok(result)
}
