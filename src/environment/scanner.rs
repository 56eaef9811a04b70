//! The external scanner of commands, run as a process of its own: what it is given,
//! how long it may take, and what was said of which text. Its verdicts are read in
//! the guard; a scan is kept, so that judging a call again costs no process.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Notify;

use crate::guard::tirith::{Breaker, Ended, Scan};

/// Output beyond this is not read: it only explains.
const MOST_OUTPUT: u64 = 1 << 20;
/// Scans that are kept; a full map starts over.
const MOST_KEPT: usize = 4096;
/// Variables of the server that the scanner is given, beside those of its name.
const VARIABLES: [&str; 4] = ["PATH", "HOME", "LANG", "XDG_CONFIG_HOME"];
const OWN_VARIABLES: &str = "TIRITH_";
/// Its name.
pub const PROGRAM: &str = "tirith";

/// What the operator set.
#[derive(Clone, Debug, Default)]
pub struct ScannerSettings {
    pub enabled: bool,
    /// A name that is looked for in `PATH`, or a path.
    pub program: String,
    pub timeout: Duration,
    /// A scanner that does not judge allows; otherwise a person is asked.
    pub fail_open: bool,
    /// The server's own variables.
    pub variables: Vec<(String, String)>,
    /// Where one lies that was fetched, for a name that `PATH` does not have.
    pub fallback: Option<PathBuf>,
}

type Hash = [u8; 32];

#[derive(Debug)]
pub struct Scanner {
    settings: ScannerSettings,
    breaker: Mutex<Breaker>,
    kept: Mutex<HashMap<Hash, Scan>>,
    missed: Notify,
}

impl Scanner {
    pub fn new(settings: ScannerSettings) -> Self {
        Self {
            settings,
            breaker: Mutex::default(),
            kept: Mutex::default(),
            missed: Notify::new(),
        }
    }

    /// What was said of the text. Where nothing was, it counts as a scan that
    /// failed.
    pub fn said(&self, command: &str) -> Scan {
        if !self.settings.enabled {
            return Scan::default();
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.get(&hash(command)) {
            Some(scan) => scan.clone(),
            None => Scan::failed(self.settings.fail_open, "the command was not scanned"),
        }
    }

    /// Scans a text, unless that was done.
    pub async fn scan(&self, command: &str) {
        let key = hash(command);
        let is_kept = || {
            self.kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .contains_key(&key)
        };
        if !self.settings.enabled || is_kept() {
            return;
        }
        let open = self.breaker.lock().unwrap_or_else(PoisonError::into_inner).is_open();
        let (ended, output) = if open {
            (Ended::Spawn, String::new())
        } else {
            self.run(command).await
        };
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        let scan = breaker.judge(ended, &output, self.settings.fail_open);
        drop(breaker);
        // A failure may pass; only what was judged is kept.
        if Scan::read(ended, &output).is_none() {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if MOST_KEPT <= kept.len() {
            kept.clear();
        }
        kept.insert(key, scan);
    }

    async fn run(&self, command: &str) -> (Ended, String) {
        let Some(program) = self.program() else {
            self.missed.notify_one();
            return (Ended::Missing, String::new());
        };
        let running = ask(&program, command, &self.settings.variables);
        match tokio::time::timeout(self.settings.timeout, running).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => {
                tracing::warn!(program = %program.display(), %error, "the scanner could not be run");
                (Ended::Spawn, String::new())
            }
            Err(_) => (Ended::Timeout, String::new()),
        }
    }

    /// The file that would be run. A path that was set is never replaced by
    /// another.
    fn program(&self) -> Option<PathBuf> {
        let name = Path::new(&self.settings.program);
        if name.components().count() > 1 {
            return is_program(name).then(|| name.to_path_buf());
        }
        let paths = self.settings.variables.iter().find(|(variable, _)| variable == "PATH");
        let paths = paths.map_or("/usr/local/bin:/usr/bin:/bin", |(_, paths)| paths);
        let fetched = || self.settings.fallback.clone().filter(|path| is_program(path));
        on_path(&self.settings.program, paths).or_else(fetched)
    }

    /// It is wanted and not there.
    pub fn is_missing(&self) -> bool {
        self.settings.enabled && self.program().is_none()
    }

    /// Returns once a command found no scanner.
    pub async fn missed(&self) {
        self.missed.notified().await;
    }
}

/// The program of this name that the system would start.
pub(super) fn on_path(name: &str, paths: &str) -> Option<PathBuf> {
    std::env::split_paths(paths)
        .map(|directory| directory.join(name))
        .find(|path| path.is_absolute() && is_program(path))
}

async fn ask(program: &Path, command: &str, variables: &[(String, String)]) -> io::Result<(Ended, String)> {
    let given = variables
        .iter()
        .filter(|(name, _)| VARIABLES.contains(&name.as_str()) || name.starts_with(OWN_VARIABLES));
    let mut child = Command::new(program)
        .args([
            "check",
            "--json",
            "--non-interactive",
            "--shell",
            "posix",
            "--",
            command,
        ])
        .env_clear()
        .envs(given.map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Whoever stops waiting stops it.
        .kill_on_drop(true)
        .spawn()?;
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MOST_OUTPUT).read_to_end(&mut output).await?;
    }
    let status = child.wait().await?;
    let ended = match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        _ => Ended::Signalled,
    };
    Ok((ended, String::from_utf8_lossy(&output).into_owned()))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn hash(command: &str) -> Hash {
    Sha256::digest(command.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::tirith::Action;

    /// A scanner that is a script, and its directory.
    fn scripted(script: &str, fail_open: bool) -> (Scanner, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tirith");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let paths = format!("{}:/usr/bin:/bin", directory.path().display());
        let variables = [("PATH", paths.as_str()), ("TIRITH_X", "yes"), ("SECRET", "no")];
        let settings = ScannerSettings {
            enabled: true,
            program: "tirith".to_owned(),
            timeout: Duration::from_secs(5),
            fail_open,
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            fallback: None,
        };
        (Scanner::new(settings), directory)
    }

    #[tokio::test]
    async fn the_scanner_is_asked_once_with_the_command_as_one_argument() {
        let script = r#"
            echo run >> "$(dirname "$0")/runs"
            test "$*" = "check --json --non-interactive --shell posix -- echo 'a b'; ls" || exit 9
            test "$#" = 7 -a "$TIRITH_X" = yes -a -z "$SECRET" || exit 8
            echo '{"findings": [{"rule_id": "r", "severity": "LOW", "title": "t", "description": "d"}]}'
            exit 2"#;
        let (scanner, directory) = scripted(script, false);
        let command = "echo 'a b'; ls";
        assert_eq!(scanner.said(command).action, Action::Block, "not scanned yet");
        scanner.scan(command).await;
        scanner.scan(command).await;
        let scan = scanner.said(command);
        assert_eq!((scan.action, scan.findings[0].rule_id.as_str()), (Action::Warn, "r"));
        let runs = std::fs::read_to_string(directory.path().join("runs")).unwrap();
        assert_eq!(runs.lines().count(), 1);
    }

    #[tokio::test]
    async fn a_scanner_that_fails_is_left_alone_and_its_absence_is_no_failure() {
        for (fail_open, action) in [(true, Action::Allow), (false, Action::Block)] {
            let (scanner, directory) = scripted("echo run >> \"$(dirname \"$0\")/runs\"; exit 3", fail_open);
            for number in 0..5 {
                let command = format!("echo {number}");
                scanner.scan(&command).await;
                assert_eq!(scanner.said(&command).action, action);
            }
            let runs = std::fs::read_to_string(directory.path().join("runs")).unwrap();
            assert_eq!(runs.lines().count(), 3);
            std::fs::remove_file(directory.path().join("tirith")).unwrap();
            let (absent, gone) = scripted("exit 0", fail_open);
            std::fs::remove_file(gone.path().join("tirith")).unwrap();
            absent.scan("ls").await;
            assert_eq!(absent.said("ls").action, action);
        }
    }

    #[tokio::test]
    async fn a_slow_scanner_is_killed() {
        let (mut scanner, directory) = scripted("sleep 5; touch \"$(dirname \"$0\")/late\"", true);
        scanner.settings.timeout = Duration::from_millis(50);
        scanner.scan("ls").await;
        assert_eq!(scanner.said("ls").action, Action::Allow);
        assert!(!directory.path().join("late").exists());
    }
}
