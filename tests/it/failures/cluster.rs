//! A PostgreSQL server of the test's own, that it can kill and start again.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) struct Cluster {
    bin: PathBuf,
    directory: PathBuf,
    port: u16,
    /// The server refuses to run as root.
    user: Option<(u32, u32)>,
}

impl Cluster {
    /// `None` where the machine has no server binaries, or no user to run them.
    pub(crate) fn start() -> Option<Self> {
        let bin = binaries()?;
        let root = id(&["-u"])? == 0;
        let user = if root { Some(unprivileged()?) } else { None };
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let directory = std::env::temp_dir().join(format!("hermes-pg-{}-{port}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        if let Some((user, group)) = user {
            std::os::unix::fs::chown(&directory, Some(user), Some(group)).unwrap();
        }
        let cluster = Self {
            bin,
            directory,
            port,
            user,
        };
        let data = cluster.data();
        cluster.run(
            "initdb",
            &[
                "-D",
                &data,
                "-A",
                "trust",
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "--no-sync",
                "--locale=C",
            ],
        );
        cluster.go_on();
        Some(cluster)
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Dies at once, as after a power cut.
    pub(crate) fn stop(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
    }

    pub(crate) fn go_on(&self) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c fsync=off -c unix_socket_directories={}",
            self.port,
            self.directory.display()
        );
        let log = self.directory.join("log").display().to_string();
        self.run(
            "pg_ctl",
            &["-D", &self.data(), "-w", "-l", &log, "-o", &options, "start"],
        );
    }

    fn data(&self) -> String {
        self.directory.join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.bin.join(program));
        command
            .args(arguments)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        let status = command.status().unwrap();
        assert!(status.success(), "{program} {arguments:?}: {status}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut command = Command::new(self.bin.join("pg_ctl"));
        command.args(["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        let _stopped = command.status();
        let _gone = std::fs::remove_dir_all(&self.directory);
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "where a test finds its tools is not configuration of the server"
)]
fn binaries() -> Option<PathBuf> {
    let named = std::env::var_os("HERMES_TEST_PG_BIN").map(PathBuf::from);
    let bin = named.unwrap_or_else(|| PathBuf::from("/usr/lib/postgresql/15/bin"));
    bin.join("initdb").exists().then_some(bin)
}

#[allow(
    clippy::disallowed_methods,
    reason = "where a test finds its tools is not configuration of the server"
)]
fn unprivileged() -> Option<(u32, u32)> {
    let named = std::env::var("HERMES_TEST_PG_USER").ok();
    let candidates = named.into_iter().chain(["postgres".to_owned(), "nobody".to_owned()]);
    candidates
        .into_iter()
        .find_map(|name| Some((id(&["-u", &name])?, id(&["-g", &name])?)))
}

fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
