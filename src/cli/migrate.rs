//! `migrate`: the schema brought up to date, without a server.

use crate::app;
use crate::store::{Kind, tenants};

use super::StoreArgs;
use super::error::CliError;
use super::load::load;
use super::print;

pub(super) async fn run(args: StoreArgs) -> Result<(), CliError> {
    let loaded = load(args)?;
    let store = app::open_store(&loaded.config, &loaded.around).await?;
    let done = tenants::ensure_default(&store).await;
    store.close().await;
    done?;
    let kind = match store.kind() {
        Kind::Sqlite => "SQLite",
        Kind::Postgres => "PostgreSQL",
    };
    print::out(&format!("the {kind} database is up to date\n")).map_err(CliError::Output)
}
