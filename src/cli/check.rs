//! `check`: the guard's judgement of one command, or of one after the other.

mod lines;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::config::{Config, Flags, Mode};
use crate::guard::policy::Compiled;
use crate::guard::standing::{DenyList, Standing, check_under};
use crate::guard::{Backend, Judgement, Setting, Verdict};
use crate::tool::HostError;
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
  hermes-server check --stdin --json < commands.jsonl

With --stdin each line is a JSON value: a text, or {\"command\": …, \"policy\": …,
\"backend\": …}; each gets a line with its verdict, findings and commands, or with
an `error`.

Exit status: 0 allow, 2 ask, 3 deny; with --stdin 0 when every line was judged.
1 failed, 2 also wrong usage.";

#[derive(Args, Debug, PartialEq)]
pub struct CheckArgs {
    /// The command as one argument (quote it), or - to read it from the input
    #[arg(
        value_name = "COMMAND",
        allow_hyphen_values = true,
        required_unless_present = "stdin"
    )]
    pub command: Option<String>,

    /// Where it would run
    #[arg(long, default_value = "local")]
    pub backend: String,

    /// Print JSON, as `POST /v1/guard/check` answers
    #[arg(long)]
    pub json: bool,

    /// Judge commands from the input, one JSON value a line, as long as they come
    #[arg(long, requires = "json", conflicts_with = "command")]
    pub stdin: bool,

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
    let home = loaded.around.environment.iter().find(|(name, _)| name == "HOME");
    let home = home.map_or("/", |(_, home)| home.as_str());
    let judge = Judge::new(&loaded.config, home)?;
    let backend = backend(&args.backend)?;
    if args.stdin {
        return lines::run(&judge, backend);
    }
    let command = match args.command.as_deref() {
        Some("-") => input()?,
        command => command.unwrap_or_default().to_owned(),
    };
    let judgement = judge.judge(&command, backend, None);
    let text = if args.json {
        serde_json::to_string_pretty(&judgement)? + "\n"
    } else {
        described(&judgement, &command)
    };
    print::out(&text).map_err(CliError::Output)?;
    Ok(ExitCode::from(match judgement.verdict {
        Verdict::Allow => 0,
        Verdict::Ask => 2,
        Verdict::Deny => 3,
    }))
}

/// What a session with this configuration would make of a command.
struct Judge<'c> {
    config: &'c Config,
    home: &'c str,
    deny: DenyList,
    policy: Compiled,
}

impl<'c> Judge<'c> {
    fn new(config: &'c Config, home: &'c str) -> Result<Self, CliError> {
        let policy = config.approvals.policy.compile().map_err(HostError::Policy)?;
        Ok(Self {
            config,
            home,
            deny: DenyList::new(&config.approvals.deny).ok_or(HostError::Deny)?,
            policy,
        })
    }

    /// `policy` takes the place of the configured one. Nobody is asked in mode
    /// `off` or about what `command_allowlist` covers.
    fn judge(&self, command: &str, backend: Backend, policy: Option<&Compiled>) -> Judgement {
        let agent_home = Path::new(self.home).join(".hermes");
        let setting = Setting {
            backend,
            home: self.home,
            agent_home: &agent_home.to_string_lossy(),
            cwd: None,
            sudo_password: false,
        };
        let standing = Standing {
            deny: Some(&self.deny),
            policies: vec![policy.unwrap_or(&self.policy)],
            container: self.config.approvals.container_guard,
            mounts_host: false,
        };
        let mut judgement = check_under(command, &setting, &standing);
        let settled = || {
            self.config.approvals.mode == Mode::Off
                || is_listed(&self.config.command_allowlist, command, &judgement.findings)
        };
        if judgement.verdict == Verdict::Ask && settled() {
            judgement.verdict = Verdict::Allow;
        }
        judgement
    }
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

/// The verdict on a line of its own, then for each finding what it is and the
/// text that it is about, with marks under it where that is one line.
fn described(judgement: &Judgement, command: &str) -> String {
    let word = match judgement.verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    };
    let findings = judgement.findings.iter().map(|finding| {
        let severity = format!("{:?}", finding.severity).to_lowercase();
        let marked = marked(command, finding.span.start, finding.span.end);
        let argv: Vec<String> = finding.argv.iter().map(|word| shown(word)).collect();
        let runs = match argv.is_empty() {
            true => String::new(),
            false => format!("    runs: {}\n", argv.join(" ")),
        };
        format!(
            "  {} ({severity}): {}\n{marked}{runs}",
            finding.rule, finding.description
        )
    });
    format!("{word}\n{}", findings.collect::<String>())
}

/// Columns of a terminal that a line of the command may take.
const WIDEST: usize = 100;

/// The line of the command in which the span begins, underlined.
fn marked(command: &str, start: usize, end: usize) -> String {
    let Some((before, rest)) = command.split_at_checked(start) else {
        return String::new();
    };
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    let lead = before.get(begin..).unwrap_or_default();
    let line_end = rest.find('\n').unwrap_or(rest.len());
    let evidence = rest.get(..line_end.min(end.saturating_sub(start))).unwrap_or_default();
    let tail = rest.get(evidence.len()..line_end).unwrap_or_default();
    let [lead, evidence, tail] = [lead, evidence, tail].map(printable);
    if WIDEST < lead.chars().count() + evidence.chars().count() {
        let cut: String = evidence.chars().take(WIDEST).collect();
        return format!("    … {cut} …\n");
    }
    let space = " ".repeat(lead.chars().count());
    let marks = "^".repeat(evidence.chars().count().max(1));
    let tail: String = tail.chars().take(WIDEST).collect();
    format!("    {lead}{evidence}{tail}\n    {space}{marks}\n")
}

/// Without characters that a terminal would obey.
fn printable(text: &str) -> String {
    let shown = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.chars().map(shown).collect()
}

/// A word as it could be typed.
fn shown(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:@%+,".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", printable(word).replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests;
