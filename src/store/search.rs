//! Finding words in titles and messages. Entries are written in the transaction
//! of what they are made from and go with its session; they hold folded text, so
//! that both databases find the same, in the same order.
//!
//! On SQLite an index of trigrams names the candidates of words that are long
//! enough; every candidate is compared. On Postgres the wall comes before every
//! index that could serve (none of their operators is leakproof), so the
//! tenant's or user's entries are compared themselves.

use super::scope::Rows;
use super::{Arg, Kind, Row, StoreError};
use crate::base::fold::fold;
use crate::base::text::first_chars;
use crate::model::id::SessionId;
use crate::model::message::{Part, Role, text_of};
use crate::model::record::{MessageRecord, SessionRecord};
use crate::model::search::{Rank, SearchHit, SearchHitKind, Terms};

/// So much of a message is looked through; what is longer is a document.
const MAX_CHARS: usize = 65_536;
/// The place of a title, before all messages.
const TITLE: i64 = -1;
/// Of one word: a few dozen name the candidates as well as all.
const MAX_TRIGRAMS: usize = 32;

impl Rows<'_> {
    /// Makes what people and the model said findable.
    pub(super) async fn index_messages(
        &mut self,
        session: &SessionRecord,
        messages: &[MessageRecord],
    ) -> Result<(), StoreError> {
        // Delegated work is found by what its root says of it.
        if session.lineage.is_some() {
            return Ok(());
        }
        let said = messages
            .iter()
            .filter(|message| matches!(message.role, Role::User | Role::Assistant));
        let entries: Vec<serde_json::Value> = said
            .map(|message| (message.position, folded(&text_of(&message.content))))
            .filter(|(_, body)| !body.trim().is_empty())
            .map(|(position, body)| serde_json::json!({"p": position, "b": body}))
            .collect();
        self.add_entries(session, &entries).await
    }

    /// Makes a title findable in place of the one before.
    pub(super) async fn index_title(&mut self, session: &SessionRecord, title: Option<&str>) -> Result<(), StoreError> {
        const FORGET: &str = "
            delete from search_entry where tenant_id = $1 and session_id = $2 and position = $3";
        if 0 < session.head_seq {
            let args = [self.tenant.into(), session.session_id.into(), TITLE.into()];
            self.conn.execute(FORGET, &args).await?;
        }
        let body = folded(title.unwrap_or_default());
        let entry = serde_json::json!({"p": TITLE, "b": body});
        let entries = (!body.trim().is_empty()).then_some(entry);
        self.add_entries(session, entries.as_slice()).await
    }

    async fn add_entries(&mut self, session: &SessionRecord, entries: &[serde_json::Value]) -> Result<(), StoreError> {
        const SQLITE: &str = "
            insert into search_entry (tenant_id, session_id, user_id, position, body)
            select $1, $2, $3, value ->> '$.p', value ->> '$.b' from json_each($4)";
        const POSTGRES: &str = "
            insert into search_entry (tenant_id, session_id, user_id, position, body)
            select $1, $2, $3, r.p, r.b from json_to_recordset($4::json) as r(p bigint, b text)";
        if entries.is_empty() {
            return Ok(());
        }
        let sql = match self.conn.dialect() {
            Kind::Sqlite => SQLITE,
            Kind::Postgres => POSTGRES,
        };
        let args = [
            self.tenant.into(),
            session.session_id.into(),
            Arg::from(&session.user_id),
            Arg::json(entries)?,
        ];
        self.conn.later(sql, &args).await
    }

    /// What holds all the words, best first, behind `after`; in one session
    /// where given.
    pub async fn search(
        &mut self,
        terms: &Terms,
        session: Option<SessionId>,
        after: Option<Rank>,
        limit: u32,
    ) -> Result<Vec<(Rank, SearchHit)>, StoreError> {
        let trigrams = trigrams(terms);
        let sql = match (self.conn.dialect(), &trigrams) {
            (Kind::Sqlite, Some(_)) => CANDIDATES,
            (Kind::Sqlite, None) => COMPARED,
            (Kind::Postgres, _) => COMPARED_ON_POSTGRES,
        };
        let after = after.unwrap_or(Rank {
            score: i64::MAX,
            entry: i64::MAX,
        });
        let mut args = vec![
            self.tenant.into(),
            Arg::from(&self.user),
            session.into(),
            Arg::json(terms.texts())?,
            after.score.into(),
            after.entry.into(),
            limit.into(),
            Arg::json(terms.absent())?,
        ];
        args.extend(trigrams.filter(|_| sql == CANDIDATES).map(Arg::Owned));
        let rows = self.conn.rows(sql, &args).await?;
        let mut hits = Vec::with_capacity(rows.len());
        for row in &rows {
            let rank = Rank {
                score: row.int("score")?,
                entry: row.int("entry_id")?,
            };
            hits.extend(self.hit(row, terms).await?.map(|hit| (rank, hit)));
        }
        Ok(hits)
    }

    /// One at a time: a message may be megabytes, its excerpt is not.
    async fn hit(&mut self, row: &Row, terms: &Terms) -> Result<Option<SearchHit>, StoreError> {
        const MESSAGE: &str = "
            select message_id, turn_id, role, content, created_at from message
            where tenant_id = $1 and session_id = $2 and position = $3";
        let (session_id, position): (SessionId, i64) = (row.id("session_id")?, row.int("position")?);
        let session_title = row.opt_text("title")?;
        let args = [self.tenant.into(), session_id.into(), position.into()];
        let hit = |text: &str| SearchHit {
            kind: SearchHitKind::Title,
            session_id,
            session_title: session_title.clone(),
            message_id: None,
            turn_id: None,
            role: None,
            excerpt: terms.excerpt(first_chars(text, MAX_CHARS)),
            created_at: crate::base::Timestamp(0),
        };
        if position == TITLE {
            let created_at = row.timestamp("created_at")?;
            let hit = hit(session_title.as_deref().unwrap_or_default());
            return Ok(Some(SearchHit { created_at, ..hit }));
        }
        let Some(message) = self.conn.row(MESSAGE, &args).await? else {
            return Ok(None);
        };
        let content: Vec<Part> = message.json("content")?;
        Ok(Some(SearchHit {
            kind: SearchHitKind::Message,
            message_id: Some(message.id("message_id")?),
            turn_id: Some(message.id("turn_id")?),
            role: Some(super::sessions::named(&message.text("role")?)?),
            created_at: message.timestamp("created_at")?,
            ..hit(&text_of(&content))
        }))
    }
}

fn folded(text: &str) -> String {
    fold(first_chars(text, MAX_CHARS))
}

/// The candidates' condition in the index's own language: all trigrams of every
/// word that has one.
fn trigrams(terms: &Terms) -> Option<String> {
    let mut all: Vec<String> = Vec::new();
    for term in terms.texts() {
        let chars: Vec<char> = term.chars().collect();
        let own = chars.windows(3).take(MAX_TRIGRAMS);
        all.extend(own.map(|three| format!("\"{}\"", three.iter().collect::<String>().replace('"', "\"\""))));
    }
    (!all.is_empty()).then(|| all.join(" AND "))
}

/// How well an entry answers: how often each word stands in it, with ever less
/// weight, and against its length (BM25 with k1 = 1.2 and b = 0.75 over texts of
/// 400 characters, in thousandths); a title before every message.
const CANDIDATES: &str = "
    with hit as (
        select e.entry_id, e.session_id, e.position, (e.position < 0) * 100000 + (
            select sum(400000 * tf / (400 * tf + 120 + 9 * length(e.body) / 10)) from (
                select (length(e.body) - length(replace(e.body, value, ''))) / length(value) as tf
                from json_each($4))) as score
        from search_trigram t join search_entry e on e.entry_id = t.rowid
        where search_trigram match $9 and e.tenant_id = $1 and e.user_id = coalesce($2, e.user_id)
            and e.session_id = coalesce($3, e.session_id)
            and not exists (select 1 from json_each($4) where instr(e.body, value) = 0)
            and not exists (select 1 from json_each($8) where instr(e.body, value) > 0))
    select h.entry_id, h.session_id, h.position, h.score, s.title, s.created_at
    from hit h join session s on s.tenant_id = $1 and s.session_id = h.session_id
    where s.deleted_at is null and (h.score < $5 or (h.score = $5 and h.entry_id < $6))
    order by h.score desc, h.entry_id desc limit $7";

const COMPARED: &str = "
    with hit as (
        select e.entry_id, e.session_id, e.position, (e.position < 0) * 100000 + (
            select sum(400000 * tf / (400 * tf + 120 + 9 * length(e.body) / 10)) from (
                select (length(e.body) - length(replace(e.body, value, ''))) / length(value) as tf
                from json_each($4))) as score
        from search_entry e
        where e.tenant_id = $1 and e.user_id = coalesce($2, e.user_id)
            and e.session_id = coalesce($3, e.session_id)
            and not exists (select 1 from json_each($4) where instr(e.body, value) = 0)
            and not exists (select 1 from json_each($8) where instr(e.body, value) > 0))
    select h.entry_id, h.session_id, h.position, h.score, s.title, s.created_at
    from hit h join session s on s.tenant_id = $1 and s.session_id = h.session_id
    where s.deleted_at is null and (h.score < $5 or (h.score = $5 and h.entry_id < $6))
    order by h.score desc, h.entry_id desc limit $7";

const COMPARED_ON_POSTGRES: &str = "
    with hit as (
        select e.entry_id, e.session_id, e.position, (case when e.position < 0 then 100000 else 0 end) + (
            select sum(400000::bigint * tf / (400 * tf + 120 + 9 * length(e.body) / 10)) from (
                select (length(e.body) - length(replace(e.body, term, ''))) / length(term) as tf
                from json_array_elements_text($4::json) as word(term)) as counted)::bigint as score
        from search_entry e
        where e.tenant_id = $1 and e.user_id = coalesce($2, e.user_id)
            and e.session_id = coalesce($3, e.session_id)
            and not exists (
                select 1 from json_array_elements_text($4::json) as word(term) where strpos(e.body, term) = 0)
            and not exists (
                select 1 from json_array_elements_text($8::json) as word(term) where strpos(e.body, term) > 0))
    select h.entry_id, h.session_id, h.position, h.score, s.title, s.created_at
    from hit h join session s on s.tenant_id = $1 and s.session_id = h.session_id
    where s.deleted_at is null and (h.score < $5 or (h.score = $5 and h.entry_id < $6))
    order by h.score desc, h.entry_id desc limit $7";
