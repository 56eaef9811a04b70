//! `check`: the guard's judgement of one command.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::config::{Config, Flags, Mode};
use crate::guard::{self, Backend, Judgement, Setting, Verdict};
use crate::turn::step::is_listed;

use super::error::CliError;
use super::load::load;
use super::print;

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server check 'rm -rf build'
  hermes-server check --json 'git push --force origin main'
  hermes-server check --backend docker 'rm -rf /'
  hermes-server check - < script.sh

Exit status: 0 allow, 10 ask, 11 deny, 2 wrong usage.";

#[derive(Args, Debug, PartialEq)]
pub struct CheckArgs {
    /// The command as one argument (quote it), or - to read it from the input
    #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: String,

    /// Where it would run
    #[arg(long, default_value = "local")]
    pub backend: String,

    /// Print JSON, as `POST /v1/guard/check` answers
    #[arg(long)]
    pub json: bool,

    /// The configuration file, whose lists and modes count
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The guard's limits lie far below; more is not worth reading.
const LONGEST_INPUT: u64 = 1 << 20;

pub(super) fn run(args: &CheckArgs) -> Result<ExitCode, CliError> {
    let flags = Flags {
        config: args.config.clone(),
        ..Flags::default()
    };
    let loaded = load(flags)?;
    let command = match args.command.as_str() {
        "-" => input()?,
        command => command.to_owned(),
    };
    let home = loaded.around.environment.iter().find(|(name, _)| name == "HOME");
    let home = home.map_or("/", |(_, home)| home.as_str());
    let judgement = judge(&command, backend(&args.backend)?, home, &loaded.config);
    let text = if args.json {
        serde_json::to_string_pretty(&judgement)? + "\n"
    } else {
        described(&judgement, &command)
    };
    print::out(&text).map_err(CliError::Output)?;
    Ok(ExitCode::from(match judgement.verdict {
        Verdict::Allow => 0,
        Verdict::Ask => 10,
        Verdict::Deny => 11,
    }))
}

/// What a session with this configuration would make of the command: nobody is
/// asked in mode `off` or about what `command_allowlist` covers.
fn judge(command: &str, backend: Backend, home: &str, config: &Config) -> Judgement {
    let agent_home = Path::new(home).join(".hermes");
    let setting = Setting {
        backend,
        home,
        agent_home: &agent_home.to_string_lossy(),
        cwd: None,
        sudo_password: false,
    };
    let mut judgement = guard::check(command, &setting);
    let settled =
        || config.approvals.mode == Mode::Off || is_listed(&config.command_allowlist, command, &judgement.findings);
    if judgement.verdict == Verdict::Ask && settled() {
        judgement.verdict = Verdict::Allow;
    }
    judgement
}

fn backend(name: &str) -> Result<Backend, CliError> {
    let allowed = "local, docker, ssh, singularity, modal, daytona, vercel_sandbox";
    serde_json::from_value(name.into()).map_err(|_| CliError::Backend(name.to_owned(), allowed))
}

fn input() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LONGEST_INPUT).read_to_end(&mut bytes);
    read.map_err(|source| CliError::file("-", source))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The verdict on a line of its own, then a line for each finding with the text
/// it is about.
fn described(judgement: &Judgement, command: &str) -> String {
    let word = match judgement.verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    };
    let findings = judgement.findings.iter().map(|finding| {
        let evidence = command.get(finding.span.start..finding.span.end).unwrap_or_default();
        let evidence = evidence.escape_debug();
        let severity = format!("{:?}", finding.severity).to_lowercase();
        format!("  {} ({severity}): {}: {evidence}\n", finding.rule, finding.description)
    });
    format!("{word}\n{}", findings.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    fn config(variables: &[(&str, &str)]) -> Config {
        let environment = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(&Sources {
            environment: environment.collect(),
            ..Sources::default()
        })
        .unwrap()
    }

    fn verdict(command: &str, variables: &[(&str, &str)]) -> Verdict {
        judge(command, Backend::Local, "/home/ada", &config(variables)).verdict
    }

    #[test]
    fn lists_and_modes_of_the_configuration_count_but_never_lift_the_floor() {
        let (ask, floor) = ("rm -rf build", "rm -rf /");
        assert_eq!((verdict(ask, &[]), verdict(floor, &[])), (Verdict::Ask, Verdict::Deny));
        for setting in [
            ("HERMES__APPROVALS__MODE", "off"),
            ("HERMES__COMMAND_ALLOWLIST", "[rm -rf build, rm -rf /]"),
        ] {
            assert_eq!(verdict(ask, &[setting]), Verdict::Allow, "{setting:?}");
            assert_eq!(verdict(floor, &[setting]), Verdict::Deny, "{setting:?}");
        }
    }

    #[test]
    fn a_finding_names_its_rule_and_shows_what_it_is_about() {
        let command = "ls && rm -rf build";
        let text = described(&judge(command, Backend::Local, "/home/ada", &config(&[])), command);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("ask"));
        let finding = lines.next().unwrap();
        assert!(
            finding.starts_with("  ") && finding.ends_with(": rm -rf build"),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_backend_names_the_known_ones() {
        let said = backend("podman").unwrap_err().to_string();
        assert!(said.contains("`podman`") && said.contains("docker, ssh"), "{said}");
    }
}
