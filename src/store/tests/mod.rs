//! One suite for the foundation of the store, run on every database at hand.

mod audit;
mod backgrounds;
mod bell;
mod children;
mod commits;
mod failures;
mod grouped_rows;
mod groups;
mod heads;
mod jobs;
mod made;
mod once;
mod opening;
mod owners;
mod pending;
mod questions;
mod schema;
mod turn_log;
mod usage;
mod values;
mod walls;

use super::testing::{Bench, on_both, on_both_probed, on_postgres};
use super::{Arg, Conn, Fate, Kind, News, Probe, Store, StoreError, Target, Wall};
use crate::base::Id;
use crate::model::id::{SessionId, TenantId};

/// The name of every tenant, in order: what the tests write and look for.
async fn names(store: &Store) -> Vec<String> {
    let read = store.read(Wall::Across, |conn| {
        Box::pin(async move {
            let rows = conn.rows("select name from tenant order by name", &[]).await?;
            rows.iter().map(|row| row.text("name")).collect()
        })
    });
    read.await.unwrap()
}

/// Inserts a tenant: the smallest write there is.
async fn insert(conn: &mut Conn, name: &str) -> Result<(), StoreError> {
    let id = tenant_id(name);
    let sql = "insert into tenant (tenant_id, name, created_at) values ($1, $2, 0)";
    conn.execute(sql, &[id.into(), name.into()]).await.map(|_| ())
}

async fn write(store: &Store, name: &str) -> Result<(), StoreError> {
    let name = name.to_owned();
    store
        .write(Wall::Across, "test", move |conn| {
            Box::pin(async move { insert(conn, &name).await })
        })
        .await
}

/// An id made from a name (FNV-1a, 128 bits).
fn tenant_id(name: &str) -> TenantId {
    let hash = |bits: u128, byte| (bits ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
    Id::from_bits(name.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, hash))
}

fn session(number: u128) -> SessionId {
    Id::from_bits(number)
}
