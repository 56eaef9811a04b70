//! How many turns execute now, for limits that hold on all processes of the
//! database.

use super::scope::Rows;
use super::{Arg, StoreError, dialect};
use crate::model::record::TurnRecord;

/// Turns that execute: parked and queued ones are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executing {
    pub of_tenant: i64,
    /// Begun with the key of the new one; without a key by its user without one.
    pub of_key: i64,
}

impl Rows<'_> {
    /// Counts for a transaction that begins one more: until it ends, no other
    /// one of the tenant counts. Takes no lock after this one.
    pub async fn executing_turns(&mut self, new: &TurnRecord) -> Result<Executing, StoreError> {
        const SQL: &str = "
            select count(*) as of_tenant, coalesce(sum(
                case when coalesce(key_id, '') = $2 and ($2 <> '' or user_id = $3) then 1 else 0 end), 0) as of_key
            from turn where tenant_id = $1 and status = 'running'";
        let subject = serde_json::json!(["executing turns", self.tenant]).to_string();
        dialect::one_at_a_time(self.conn, &subject).await?;
        let key = new.key_id.map_or(String::new(), |key| key.to_string());
        let args = [self.tenant.into(), Arg::from(&key), Arg::from(&new.user_id)];
        let row = self.conn.row(SQL, &args).await?;
        let row = row.ok_or_else(|| StoreError::bug("a count without a row"))?;
        Ok(Executing {
            of_tenant: row.int("of_tenant")?,
            of_key: row.int("of_key")?,
        })
    }
}
