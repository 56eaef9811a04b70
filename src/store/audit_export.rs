//! An export of a tenant's audit trail in parts, each a few hundred lines: the
//! head, the chain, the entries that are not chained yet, the end. Who stops in
//! the middle has an export without an end, which proves nothing.

use super::StoreError;
use super::scope::Scope;
use crate::model::audit::beginning;
use crate::model::audit::export::{End, Head, Line, VERSION};
use crate::model::id::AuditId;

/// Lines of one part.
const PART: u32 = 500;

pub struct AuditExport {
    scope: Scope,
    stage: Stage,
    /// Number and hash of the last chained entry so far.
    seq: i64,
    hash: String,
    unchained: u64,
}

enum Stage {
    Head,
    Chain,
    /// Entries after this one.
    Tail(AuditId),
    End,
    Over,
}

impl AuditExport {
    /// Entries of users whom the scope does not see are withheld; the chain stays
    /// whole.
    pub fn new(scope: Scope) -> Self {
        Self {
            hash: beginning(scope.tenant()),
            scope,
            stage: Stage::Head,
            seq: 0,
            unchained: 0,
        }
    }

    /// The next lines; `None` after the end.
    pub async fn next(&mut self) -> Result<Option<String>, StoreError> {
        match self.stage {
            Stage::Head => {
                self.stage = Stage::Chain;
                let head = Head {
                    hermes_audit: VERSION,
                    tenant_id: self.scope.tenant(),
                };
                Ok(Some(Line::Head(head).text() + "\n"))
            }
            Stage::Chain => self.part(None).await.map(Some),
            Stage::Tail(after) => self.part(Some(after)).await.map(Some),
            Stage::End => {
                self.stage = Stage::Over;
                let end = End {
                    chained: self.seq.unsigned_abs(),
                    unchained: self.unchained,
                    head_hash: self.hash.clone(),
                    exported_at: self.scope.store().clock().now(),
                };
                Ok(Some(Line::End(end).text() + "\n"))
            }
            Stage::Over => Ok(None),
        }
    }

    async fn part(&mut self, after: Option<AuditId>) -> Result<String, StoreError> {
        let seq = self.seq;
        let read = self
            .scope
            .read(move |mut rows| Box::pin(async move { rows.audit_export(seq, after, PART).await }));
        let found = read.await?;
        let is_last = found.len() < PART as usize;
        let mut text = String::new();
        for (id, entry) in found {
            match &entry.link {
                Some(link) => (self.seq, self.hash) = (link.seq, link.hash.clone()),
                None => {
                    self.unchained += 1;
                    self.stage = Stage::Tail(id);
                }
            }
            text.push_str(&Line::Entry(Box::new(entry)).text());
            text.push('\n');
        }
        match (is_last, after) {
            (true, None) => self.stage = Stage::Tail(AuditId::from_bits(0)),
            (true, Some(_)) => self.stage = Stage::End,
            (false, _) => {}
        }
        Ok(text)
    }
}
