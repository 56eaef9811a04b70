//! What is looked at, each for itself: one failure hides no other.

use std::path::Path;

use crate::app;
use crate::cli::error::CliError;
use crate::cli::first_key;
use crate::cli::load::Loaded;
use crate::config::{Config, Isolation};
use crate::environment;
use crate::provider::{FailureKind, Provider};
use crate::store::{self, Reached, Target};

use super::Check;

pub(super) async fn all(loaded: &Loaded) -> Vec<Check> {
    let Loaded { config, .. } = loaded;
    vec![
        configured(config),
        data_dir(&config.server.data_dir),
        access(config),
        address(config).await,
        database(config).await,
        model(loaded).await,
        sandbox(loaded).await,
        Check::ok(
            "scanner",
            "commands are judged by the built-in guard; no external scanner is used",
        ),
    ]
}

fn configured(config: &Config) -> Check {
    const NAME: &str = "configuration";
    match config.ignored.as_slice() {
        [] => Check::ok(NAME, "every key is understood"),
        ignored => Check::note(
            NAME,
            format!("keys that mean nothing here: {}", ignored.join(", ")),
            "leave them, or take them out",
        ),
    }
}

/// The directory, or the nearest one above it in which it can be made.
fn data_dir(path: &Path) -> Check {
    const NAME: &str = "data directory";
    let shown = path.display();
    let there = path.is_dir();
    let nearest = path.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("."));
    let writable = rustix::fs::access(nearest, rustix::fs::Access::WRITE_OK).is_ok();
    match (there, writable) {
        (true, true) => Check::ok(NAME, format!("{shown} can be written")),
        (false, true) => Check::ok(NAME, format!("{shown} will be made by the first start")),
        (_, false) => Check::failed(
            NAME,
            format!("{} cannot be written by this user", nearest.display()),
            "run as its owner, or choose another with --data-dir",
        ),
    }
}

fn access(config: &Config) -> Check {
    const NAME: &str = "access";
    let beyond = !config.server.listen.ip().is_loopback();
    if config.auth.is_configured() {
        return Check::ok(NAME, "a key or tokens are configured");
    }
    if beyond {
        return Check::failed(
            NAME,
            format!(
                "{} is open to others and no key is configured: the server would not start",
                config.server.listen
            ),
            "set HERMES_API_KEY, or `auth.jwt`",
        );
    }
    let path = first_key::path(&config.server.data_dir);
    match path.is_file() {
        true => Check::ok(NAME, format!("the first key is in {}", path.display())),
        false => Check::ok(NAME, "the first start makes a key and prints it"),
    }
}

async fn address(config: &Config) -> Check {
    const NAME: &str = "address";
    let address = config.server.listen;
    match tokio::net::TcpListener::bind(address).await {
        Ok(_free) => Check::ok(NAME, format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Check::note(
            NAME,
            format!("{address} is taken, perhaps by a server that runs"),
            "stop that one, or choose another with --listen",
        ),
        Err(error) => Check::failed(NAME, format!("{address}: {error}"), "choose another with --listen"),
    }
}

async fn database(config: &Config) -> Check {
    const NAME: &str = "store";
    let target = app::target(config);
    let place = match &target {
        Target::Sqlite { path } => format!("SQLite at {}", path.display()),
        Target::Postgres { .. } => "PostgreSQL".to_owned(),
    };
    match store::reach(&target).await {
        Ok(Reached::New) => Check::ok(NAME, format!("{place}: the first start sets it up")),
        Ok(Reached::InUse(holder)) => {
            let by = holder.map_or_else(String::new, |pid| format!(" (process {pid})"));
            Check::ok(NAME, format!("{place}: a server has it open{by}"))
        }
        Ok(Reached::Ready { version, pending: 0 }) => Check::ok(NAME, format!("{version}, up to date")),
        Ok(Reached::Ready { version, pending }) => Check::note(
            NAME,
            format!("{version}, {pending} migrations behind"),
            "the next start carries them out, as `hermes-server migrate` does; back it up before",
        ),
        Ok(Reached::Damaged(finding)) => Check::failed(
            NAME,
            format!("{place} is damaged: {finding}"),
            "restore the newest backup",
        ),
        Err(error) => Check::failed(
            NAME,
            format!("{place}: {}", CliError::from(error).sentence()),
            "check DATABASE_URL and that the database runs; the user needs to own its tables",
        ),
    }
}

async fn model(loaded: &Loaded) -> Check {
    const NAME: &str = "model";
    let provider = match app::provider(&loaded.config, &loaded.around.clock) {
        Ok(provider) => provider,
        Err(error) => {
            return Check::failed(
                NAME,
                CliError::from(error).sentence(),
                "correct OPENAI_BASE_URL or OPENAI_API_KEY",
            );
        }
    };
    let Provider::OpenAi(server) = provider else {
        return Check::note(
            NAME,
            "the built-in demo model answers",
            "set OPENAI_BASE_URL, OPENAI_API_KEY and HERMES_MODEL for a real one",
        );
    };
    let wanted = loaded.config.model.as_deref();
    match server.models().await {
        Ok(names) => listed(wanted, &names),
        Err(failed) => {
            let remedy = match failed.kind {
                FailureKind::Unauthenticated => "correct OPENAI_API_KEY",
                FailureKind::Untrusted => "install the certificate authority of the model server",
                _ => "check OPENAI_BASE_URL and that the model server runs",
            };
            Check::failed(NAME, failed.message, remedy)
        }
    }
}

/// `None` of names: the server has no list, which not every one has.
fn listed(wanted: Option<&str>, names: &Option<Vec<String>>) -> Check {
    const NAME: &str = "model";
    let Some(wanted) = wanted else {
        return Check::note(
            NAME,
            "the model server answers; no model is chosen",
            "set HERMES_MODEL, or name a model in every session",
        );
    };
    match names {
        Some(names) if !names.iter().any(|name| name == wanted) => Check::note(
            NAME,
            format!("the model server answers but does not list `{wanted}`"),
            "check HERMES_MODEL; some servers list only a part",
        ),
        Some(_) => Check::ok(NAME, format!("`{wanted}` is there")),
        None => Check::ok(
            NAME,
            format!("the model server answers; it has no list to look `{wanted}` up in"),
        ),
    }
}

/// Tries a command in a directory of its own, so that none is made for it where
/// the data will be.
async fn sandbox(loaded: &Loaded) -> Check {
    const NAME: &str = "sandbox";
    let trial = match tempfile::tempdir() {
        Ok(trial) => trial,
        Err(error) => return Check::failed(NAME, format!("no place for a trial: {error}"), "free space under /tmp"),
    };
    let mut config = loaded.config.clone();
    config.server.data_dir = trial.path().to_owned();
    let host = match app::open_host(&config, &loaded.around).await {
        Ok(host) => host,
        Err(error) => return Check::failed(NAME, CliError::from(error).sentence(), "correct the named key"),
    };
    match host.environment().isolation() {
        environment::Isolation::Working { detail, .. } if config.terminal.isolation == Isolation::None => Check::note(
            NAME,
            format!("commands run without isolation ({detail})"),
            "choose `terminal.isolation: auto` before anybody else uses the server",
        ),
        environment::Isolation::Working { detail, .. } => Check::ok(NAME, detail.clone()),
        environment::Isolation::Unavailable { reason } => Check::failed(
            NAME,
            format!("commands cannot be isolated here, so sessions have no `terminal`: {reason}"),
            "install bubblewrap, or use a kernel with Landlock",
        ),
    }
}
