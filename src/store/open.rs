//! From options to an open store: which database, its lock, its schema.

use std::sync::Arc;

use super::job::Hooks;
use super::{Backend, Bell, Inner, Store, StoreError, StoreOptions, Target, across_tenants, postgres, sqlite};

pub(super) async fn open(options: StoreOptions) -> Result<Store, StoreError> {
    let StoreOptions { target, clock, probe } = options;
    let hooks = Hooks {
        probe,
        bell: Bell::new(),
        commits: Arc::default(),
        trips: Arc::default(),
    };
    let backend = match target {
        Target::Sqlite { path } => Backend::Sqlite(sqlite::Database::open(&path, hooks.clone()).await?),
        Target::Postgres { url, max_connections } => Backend::Postgres(Arc::new(
            postgres::Database::open(&url, max_connections, hooks.clone()).await?,
        )),
    };
    let cursor_key = across_tenants::cursor_key(&backend).await?;
    Ok(Store(Arc::new(Inner {
        backend,
        clock,
        hooks,
        cursor_key,
        heads: Default::default(),
    })))
}
