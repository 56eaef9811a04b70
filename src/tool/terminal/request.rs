//! The arguments of a `terminal` call, checked before anything starts.
//!
//! One pure function for judging and for running, so that nobody is asked to
//! allow a command that would then be refused.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::guard::file_access::normalised;
use crate::tool::Host;
use crate::tool::command_line::{Unsuited, check_foreground, is_plain_directory};

/// A command that may be judged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) command: &'a str,
    pub(super) timeout: Duration,
    /// Where it starts, when the call says so.
    pub(super) workdir: Option<PathBuf>,
    /// It goes on when the call is over.
    pub(super) background: Option<Background>,
}

/// How a command runs in the background.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Background {
    pub(super) terminal: bool,
    pub(super) notify: bool,
    pub(super) patterns: Vec<String>,
    /// Patterns were named and do not count, since the end is told.
    pub(super) ignored: bool,
}

/// Patterns of one process, and the length of one.
const MAX_PATTERNS: usize = 20;
const MAX_PATTERN_CHARS: usize = 200;

/// Why a call is not run; the text is for the model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("`command` must be text")]
    NotText,
    #[error("`command` is empty")]
    Empty,
    #[error("`command` holds a NUL character")]
    Nul,
    #[error("`timeout` must be a number of seconds, 1 at least")]
    Timeout,
    #[error("`timeout` of {asked} seconds is too long: a command may take {longest} seconds at most")]
    TooLong { asked: u64, longest: u64 },
    #[error("`{0}` works in the background only: set `background: true` as well")]
    InBackground(&'static str),
    #[error("`watch_patterns` must be a list of at most {MAX_PATTERNS} texts of 1 to {MAX_PATTERN_CHARS} characters")]
    Patterns,
    #[error(transparent)]
    Unsuited(#[from] Unsuited),
    #[error("`workdir` must be text that holds letters, digits and / \\ : _ - . ~ space + @ = , only")]
    WorkdirText,
    #[error("`workdir` `{0}` is outside the workspace")]
    WorkdirOutside(String),
}

impl<'a> Request<'a> {
    pub(super) fn read(arguments: &'a Value, workspace: &Path, cwd: &Path, host: &Host) -> Result<Self, Refused> {
        let command = command(arguments)?;
        let background = background(arguments)?;
        // In the background nothing is waited for.
        let timeout = match background {
            None => timeout(arguments, host)?,
            Some(_) => host.timeout,
        };
        if background.is_none() {
            check_foreground(command)?;
        }
        Ok(Self {
            command,
            timeout,
            workdir: workdir(arguments, workspace, cwd, host)?,
            background,
        })
    }
}

fn background(arguments: &Value) -> Result<Option<Background>, Refused> {
    let is_set = |name: &str| arguments[name] == Value::Bool(true);
    let patterns = patterns(&arguments["watch_patterns"])?;
    if !is_set("background") {
        // The others only say what becomes of a process in the background.
        return if is_set("pty") {
            Err(Refused::InBackground("pty"))
        } else {
            Ok(None)
        };
    }
    let notify = is_set("notify_on_complete");
    Ok(Some(Background {
        terminal: is_set("pty"),
        notify,
        ignored: notify && !patterns.is_empty(),
        patterns: if notify { Vec::new() } else { patterns },
    }))
}

fn patterns(value: &Value) -> Result<Vec<String>, Refused> {
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) if list.len() <= MAX_PATTERNS => list,
        _ => return Err(Refused::Patterns),
    };
    let pattern = |value: &Value| {
        let text = value.as_str().ok_or(Refused::Patterns)?;
        let fits = (1..=MAX_PATTERN_CHARS).contains(&text.chars().count()) && !text.contains(['\n', '\0']);
        fits.then(|| text.to_owned()).ok_or(Refused::Patterns)
    };
    list.iter().map(pattern).collect()
}

fn command(arguments: &Value) -> Result<&str, Refused> {
    let command = arguments["command"].as_str().ok_or(Refused::NotText)?;
    if command.trim().is_empty() {
        return Err(Refused::Empty);
    }
    // A shell would cut the text there.
    if command.contains('\0') {
        return Err(Refused::Nul);
    }
    Ok(command)
}

fn timeout(arguments: &Value, host: &Host) -> Result<Duration, Refused> {
    let value = &arguments["timeout"];
    if value.is_null() {
        return Ok(host.timeout.min(host.max_foreground_timeout));
    }
    let asked = value
        .as_f64()
        .filter(|seconds| 1.0 <= *seconds)
        .ok_or(Refused::Timeout)?;
    let asked = Duration::try_from_secs_f64(asked).unwrap_or(Duration::MAX);
    if host.max_foreground_timeout < asked {
        return Err(Refused::TooLong {
            asked: asked.as_secs(),
            longest: host.max_foreground_timeout.as_secs(),
        });
    }
    Ok(asked)
}

fn workdir(arguments: &Value, workspace: &Path, cwd: &Path, host: &Host) -> Result<Option<PathBuf>, Refused> {
    let text = match &arguments["workdir"] {
        Value::Null => return Ok(None),
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) if is_plain_directory(text) => text,
        _ => return Err(Refused::WorkdirText),
    };
    let path = match text.strip_prefix('~') {
        Some("") => workspace.to_path_buf(),
        Some(rest) if rest.starts_with('/') => workspace.join(rest.trim_start_matches('/')),
        _ => cwd.join(text),
    };
    if !host.is_inside(workspace, &path) {
        return Err(Refused::WorkdirOutside(text.clone()));
    }
    Ok(Some(normalised(&path)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::testing::Bench;

    const WORKSPACE: &str = "/data/work";

    fn read<'a>(arguments: &'a Value, host: &Host) -> Result<Request<'a>, Refused> {
        let workspace = Path::new(WORKSPACE);
        Request::read(arguments, workspace, &workspace.join("sub"), host)
    }

    #[tokio::test]
    async fn a_call_gets_its_limits_and_its_place() {
        let bench = Bench::new().await;
        let plain = json!({"command": "ls"});
        let request = read(&plain, &bench.host).unwrap();
        assert_eq!((request.timeout.as_secs(), request.workdir), (180, None));
        for (workdir, place) in [
            ("deeper/..", "/data/work/sub"),
            ("~", "/data/work"),
            ("~/a b", "/data/work/a b"),
            ("/data/work/x", "/data/work/x"),
            ("../../tmp", "/data/tmp"),
        ] {
            let arguments = json!({"command": "ls", "timeout": 600, "workdir": workdir, "background": false});
            let request = read(&arguments, &bench.host).unwrap();
            assert_eq!(
                (request.timeout.as_secs(), request.workdir),
                (600, Some(place.into())),
                "{workdir}"
            );
        }
    }

    #[tokio::test]
    async fn what_cannot_run_is_refused_in_order() {
        let bench = Bench::new().await;
        for (arguments, refused) in [
            (json!({"timeout": 601}), Refused::NotText),
            (json!({"command": 7}), Refused::NotText),
            (json!({"command": " \n"}), Refused::Empty),
            (json!({"command": "a\0b"}), Refused::Nul),
            (json!({"command": "ls", "timeout": 0}), Refused::Timeout),
            (json!({"command": "ls", "timeout": "soon"}), Refused::Timeout),
            (
                json!({"command": "ls", "timeout": 601, "background": false}),
                Refused::TooLong {
                    asked: 601,
                    longest: 600,
                },
            ),
            (json!({"command": "vi", "pty": true}), Refused::InBackground("pty")),
            (
                json!({"command": "ls", "background": true, "watch_patterns": "x"}),
                Refused::Patterns,
            ),
            (
                json!({"command": "ls", "background": true, "watch_patterns": [""]}),
                Refused::Patterns,
            ),
            (json!({"command": "nohup make"}), Refused::Unsuited(Unsuited::Detaches)),
            (json!({"command": "make &"}), Refused::Unsuited(Unsuited::Ampersand)),
            (
                json!({"command": "npm run dev", "workdir": "$(x)"}),
                Refused::Unsuited(Unsuited::Endless),
            ),
            (
                json!({"command": "npm run dev", "background": true, "workdir": "$(x)"}),
                Refused::WorkdirText,
            ),
            (json!({"command": "ls", "workdir": "a;b"}), Refused::WorkdirText),
            (json!({"command": "ls", "workdir": ["a"]}), Refused::WorkdirText),
            (
                json!({"command": "ls", "workdir": "/etc"}),
                Refused::WorkdirOutside("/etc".into()),
            ),
            (
                json!({"command": "ls", "workdir": "../../../other"}),
                Refused::WorkdirOutside("../../../other".into()),
            ),
        ] {
            assert_eq!(read(&arguments, &bench.host), Err(refused), "{arguments}");
        }
    }
}
