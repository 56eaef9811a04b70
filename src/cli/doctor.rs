//! `doctor`: what a server with this configuration would find, before it is
//! started or beside one that runs. It looks and changes nothing: no database is
//! made or migrated, no key is written, no model is paid for an answer.

mod checks;

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::StoreArgs;
use super::error::CliError;
use super::load::load;
use super::print;

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server doctor
  hermes-server doctor --config /etc/hermes/hermes.yaml
  DATABASE_URL=postgres://hermes@localhost/hermes hermes-server doctor --json

Exit status: 0 nothing stands in the way, 1 something does.";

#[derive(Args, Debug, PartialEq)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub store: StoreArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// Works, and there is something to know.
    Note,
    Failed,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    found: String,
    /// What to do, where something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    fn note(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: State::Note,
            remedy: Some(remedy.into()),
            ..Self::ok(name, found)
        }
    }

    fn failed(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: State::Failed,
            ..Self::note(name, found, remedy)
        }
    }
}

pub(super) async fn run(args: DoctorArgs) -> Result<ExitCode, CliError> {
    let found = match load(args.store) {
        Ok(loaded) => checks::all(&loaded).await,
        Err(error) => vec![Check::failed(
            "configuration",
            error.sentence(),
            "correct it; docs/configuration.md lists every key",
        )],
    };
    let text = if args.json {
        serde_json::to_string_pretty(&serde_json::json!({ "checks": found }))? + "\n"
    } else {
        found.iter().map(line).collect()
    };
    print::out(&text).map_err(CliError::Output)?;
    let ill = found.iter().any(|check| check.state == State::Failed);
    Ok(if ill { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn line(check: &Check) -> String {
    let state = match check.state {
        State::Ok => "ok",
        State::Note => "note",
        State::Failed => "FAILED",
    };
    let remedy = check.remedy.as_ref().map(|remedy| format!("{:22}{remedy}\n", ""));
    let (name, found) = (check.name, &check.found);
    format!("{state:<7}{name:<15}{found}\n{}", remedy.unwrap_or_default())
}
