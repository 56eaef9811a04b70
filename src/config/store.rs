//! `store`: which database holds everything.

use std::path::Path;
use std::time::Duration;

use crate::base::Secret;

use super::section::Section;

/// The database and how patiently it is used.
#[derive(Clone, Debug)]
pub struct Store {
    /// `postgres://…` or `sqlite:PATH`; nothing means SQLite in the data dir.
    /// Secret as a whole, because it may hold a password.
    pub url: Option<Secret>,
    /// How long an owner holds finished results while the database is away.
    pub retry: Duration,
    pub max_connections: u32,
}

/// The file that the embedded store uses in the data dir.
const FILE: &str = "hermes.db";

impl Store {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            url: section.secret("url", "postgres://…, postgresql://… or sqlite:PATH", is_store_url),
            retry: section.seconds("retry_seconds", 30, 1..=3600),
            max_connections: section.number("max_connections", 16, 1..=1000),
        }
    }

    /// The address to open: the configured one, or SQLite in `data_dir`.
    pub fn url_in(&self, data_dir: &Path) -> Secret {
        match &self.url {
            Some(url) => url.clone(),
            None => Secret::new(format!("sqlite:{}", data_dir.join(FILE).display())),
        }
    }
}

fn is_store_url(text: &str) -> bool {
    ["postgres://", "postgresql://", "sqlite:"]
        .iter()
        .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
}
