//! An export of the audit trail as lines of JSON, and its proof without a server:
//! the head names the tenant, each entry carries its link, the entries that are
//! not chained yet come last, and the end says how many there were.

use serde::{Deserialize, Serialize};

use super::{AuditEntry, Link, beginning, digest, link};
use crate::base::Timestamp;
use crate::model::id::TenantId;

/// The form of the lines.
pub const VERSION: u32 = 1;

/// One line. Which it is follows from its first field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Line {
    Head(Head),
    Entry(Box<Entry>),
    End(End),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub hermes_audit: u32,
    pub tenant_id: TenantId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Absent in the tail that is not chained yet.
    pub link: Option<Link>,
    pub digest: String,
    /// Withheld from whoever may not see it; its digest keeps the chain whole.
    pub entry: Option<AuditEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub chained: u64,
    pub unchained: u64,
    /// The hash of the last chained entry.
    pub head_hash: String,
    pub exported_at: Timestamp,
}

impl Line {
    /// The text, without the end of the line.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Entry {
    pub fn new(link: Option<Link>, entry: AuditEntry, shown: bool) -> Self {
        Self {
            link,
            digest: digest(&entry),
            entry: shown.then_some(entry),
        }
    }
}

/// What an export that holds proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub tenant: TenantId,
    pub chained: u64,
    /// The tail, whose order and completeness nothing proves yet.
    pub unchained: Vec<String>,
    pub head_hash: String,
}

/// The first thing that is wrong with an export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Broken {
    /// Counts from 1.
    pub line: u64,
    pub what: String,
}

/// Follows an export line by line.
pub struct Verifier {
    line: u64,
    tenant: Option<TenantId>,
    seq: i64,
    hash: String,
    unchained: Vec<String>,
    end: Option<End>,
    /// A hash that has to occur, and whether it did.
    expected: Option<(String, bool)>,
}

impl Verifier {
    /// `expected` is the hash of an entry that an earlier export ended with: the
    /// chain has to pass it.
    pub fn new(expected: Option<String>) -> Self {
        Self {
            line: 0,
            tenant: None,
            seq: 0,
            hash: String::new(),
            unchained: Vec::new(),
            end: None,
            expected: expected.map(|hash| (hash, false)),
        }
    }

    pub fn line(&mut self, text: &str) -> Result<(), Broken> {
        self.line += 1;
        if self.end.is_some() {
            return Err(self.broken("there is something after the end of the export"));
        }
        let line: Line = serde_json::from_str(text)
            .map_err(|_| self.broken("it is not a line of an audit export, or it was changed"))?;
        // A change that reads the same is still a change.
        if line.text() != text {
            return Err(self.broken("it is not written as the server writes it: it was changed"));
        }
        match line {
            Line::Head(head) => self.head(&head),
            Line::Entry(entry) => self.entry(*entry),
            Line::End(end) => self.end(end),
        }
    }

    fn head(&mut self, head: &Head) -> Result<(), Broken> {
        if self.line != 1 {
            return Err(self.broken("a second beginning"));
        }
        if head.hermes_audit != VERSION {
            return Err(self.broken(&format!(
                "an export of form {}; this program reads {VERSION}",
                head.hermes_audit
            )));
        }
        self.tenant = Some(head.tenant_id);
        self.hash = beginning(head.tenant_id);
        Ok(())
    }

    fn entry(&mut self, entry: Entry) -> Result<(), Broken> {
        let name = match &entry.entry {
            Some(entry) => format!("entry `{}`", entry.id),
            None => "a withheld entry".to_owned(),
        };
        if self.tenant.is_none() {
            return Err(self.broken("the export has no beginning"));
        }
        if entry.entry.as_ref().is_some_and(|shown| digest(shown) != entry.digest) {
            return Err(self.broken(&format!("{name} was changed: it is not what its digest says")));
        }
        let Some(found) = entry.link else {
            self.unchained.push(name);
            return Ok(());
        };
        if !self.unchained.is_empty() {
            return Err(self.broken(&format!(
                "{name} is chained and stands behind entries that are not: it was moved"
            )));
        }
        if found.seq != self.seq + 1 {
            let what = format!(
                "{name} has number {} where {} is due: entries are missing or were moved",
                found.seq,
                self.seq + 1
            );
            return Err(self.broken(&what));
        }
        if found.prev != self.hash {
            return Err(self.broken(&format!("{name} does not follow the entry before it")));
        }
        let due = link(&self.hash, found.seq, &entry.digest);
        if due != found {
            return Err(self.broken(&format!("{name} was changed: its hash does not fit")));
        }
        (self.seq, self.hash) = (due.seq, due.hash);
        if let Some((expected, seen)) = &mut self.expected {
            *seen |= *expected == self.hash;
        }
        Ok(())
    }

    fn end(&mut self, end: End) -> Result<(), Broken> {
        let (chained, unchained) = (self.seq.unsigned_abs(), self.unchained.len() as u64);
        if self.tenant.is_none() {
            return Err(self.broken("the export has no beginning"));
        }
        if (end.chained, end.unchained) != (chained, unchained) || end.head_hash != self.hash {
            let what = format!(
                "the end speaks of {} chained and {} other entries; there are {chained} and {unchained}",
                end.chained, end.unchained
            );
            return Err(self.broken(&what));
        }
        self.end = Some(end);
        Ok(())
    }

    /// After the last line.
    pub fn finish(self) -> Result<Proof, Broken> {
        let (Some(tenant), Some(_)) = (self.tenant, &self.end) else {
            let line = self.line + 1;
            let what = "the export has no end: it was cut off".to_owned();
            return Err(Broken { line, what });
        };
        if let Some((expected, false)) = &self.expected {
            let what = format!("the chain does not pass `{expected}`: it is another one, or was cut off");
            return Err(Broken { line: self.line, what });
        }
        Ok(Proof {
            tenant,
            chained: self.seq.unsigned_abs(),
            unchained: self.unchained,
            head_hash: self.hash,
        })
    }

    fn broken(&self, what: &str) -> Broken {
        Broken {
            line: self.line,
            what: what.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
