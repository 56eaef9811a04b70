//! A copy of an example in the build directory, where its dependencies stay from
//! run to run, and the commands that its reader would type there.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::super::program::{Program, err};
use crate::harness::PATIENCE;

/// A registry may be far, there may be much to do, and the machine busy; below what the runner allows.
const LONG: Duration = Duration::from_secs(120);

/// What installers say when they reach nobody.
const UNREACHABLE: [&str; 11] = [
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ETIMEDOUT",
    "ENETUNREACH",
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ECONNRESET",
    "ERR_SOCKET_TIMEOUT",
];

/// After `has_python`.
pub(super) const PYTHON: &str = ".venv/bin/python";

pub(super) struct Workshop {
    directory: PathBuf,
}

impl Workshop {
    /// Files of `home`, a directory of the repository, at the same place beside
    /// the document.
    pub(super) fn of(home: &str, files: &[&str]) -> Self {
        let name = home.replace('/', "-");
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name);
        let directory = root.join(home);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::create_dir_all(root.join("openapi")).unwrap();
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(repository.join("openapi/native.json"), root.join("openapi/native.json")).unwrap();
        for file in files {
            let original = repository.join(home).join(file);
            std::fs::copy(original, directory.join(file)).unwrap();
        }
        Self { directory }
    }

    pub(super) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.directory).args(args).kill_on_drop(true);
        command
    }

    /// Installs what `lock` names, unless that was done; whether it is there now.
    pub(super) async fn installed(&self, lock: &str, commands: Vec<Command>) -> bool {
        let wanted = std::fs::read(self.directory.join(lock)).unwrap();
        let mark = self.directory.join("installed");
        if std::fs::read(&mark).is_ok_and(|found| found == wanted) {
            return true;
        }
        for mut command in commands {
            let output = within(LONG, &mut command, "").await;
            let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), err(&output));
            if !output.status.success() && UNREACHABLE.iter().any(|word| said.contains(word)) {
                eprintln!("skipped: the registry cannot be reached\n{said}");
                return false;
            }
            assert!(output.status.success(), "{said}");
        }
        std::fs::write(mark, wanted).unwrap();
        true
    }

    /// A Python of its own with the packages of `requirements.txt`; whether it is
    /// there now.
    pub(super) async fn has_python(&self) -> bool {
        // Older ones do not have what the generator uses.
        let recent = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
        if !is_here("python 3.11 with venv", "python3", &["-c", recent]).await {
            return false;
        }
        self.has_packages("python3").await
    }

    /// The same with a Python that is known to be recent enough.
    pub(super) async fn has_packages(&self, python: &str) -> bool {
        let environment = self.command(python, &["-m", "venv", "--clear", ".venv"]);
        let mut packages = self.command(PYTHON, &["-m", "pip", "install", "-q", "-r", "requirements.txt"]);
        packages.args(["--retries", "1", "--timeout", "15"]);
        self.installed("requirements.txt", vec![environment, packages]).await
    }

    /// Runs a command that has to succeed; what it said.
    pub(super) async fn run(&self, program: &str, args: &[&str]) -> String {
        let output = within(LONG, &mut self.command(program, args), "").await;
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), err(&output));
        assert!(output.status.success(), "{program} {args:?}: {said}");
        said
    }
}

/// Whether the program is here and says yes to `args`; a test without it is
/// skipped.
pub(super) async fn is_here(what: &str, program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    let is_here = command.status().await.is_ok_and(|status| status.success());
    if !is_here {
        eprintln!("skipped: {what} is not installed");
    }
    is_here
}

/// Runs an example with the server and `typed` as its input.
pub(super) async fn talk(server: &Program, command: Command, typed: &str) -> Output {
    talk_as(server, &server.key, command, typed).await
}

/// The same with another key.
pub(super) async fn talk_as(server: &Program, key: &str, mut command: Command, typed: &str) -> Output {
    command.env("HERMES_URL", &server.base).env("HERMES_API_KEY", key);
    within(PATIENCE, &mut command, typed).await
}

/// Runs a program that takes its time.
pub(super) async fn talk_at_length(mut command: Command) -> Output {
    within(LONG, &mut command, "").await
}

async fn within(patience: Duration, command: &mut Command, typed: &str) -> Output {
    command
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // Who reads nothing may be gone already.
    let _unread = input.write_all(typed.as_bytes()).await;
    drop(input);
    let ended = tokio::time::timeout(patience, child.wait_with_output()).await;
    ended.expect("an end in time").unwrap()
}
