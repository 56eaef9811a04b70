//! The claims of the command sandbox, each tried by a real command that runs
//! through the built binary.

mod lifetimes;
mod output;
mod row;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hermes_server::environment::{
    Chunk, Command, EnvironmentError, Finished, Isolation, IsolationChoice, Limits, Local, LocalSettings, Mechanism,
    Workspace,
};
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

/// A directory of this test alone, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hermes-sandbox-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

struct Sandbox {
    data: Scratch,
    local: Local,
    workspace: Workspace,
}

struct Outcome {
    finished: Finished,
    stdout: String,
    stderr: String,
}

fn settings(data: &Path) -> LocalSettings {
    LocalSettings {
        exec_program: env!("CARGO_BIN_EXE_hermes-server").into(),
        data_dir: data.to_path_buf(),
        isolation: IsolationChoice::Landlock,
        network: false,
        writable: Vec::new(),
        readable: Vec::new(),
        passthrough: Vec::new(),
        limits: Limits::default(),
    }
}

impl Sandbox {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut LocalSettings)) -> Self {
        let data = Scratch::new();
        let mut settings = settings(&data.0);
        change(&mut settings);
        let local = Local::open(settings).await;
        assert!(
            matches!(local.isolation(), Isolation::Working { .. }),
            "{:?}",
            local.isolation()
        );
        let workspace = local.workspace("ten_a", "ses_a").await.unwrap();
        Self { data, local, workspace }
    }

    fn command(&self, script: &str) -> Command {
        Command {
            script: script.into(),
            cwd: self.workspace.root().to_path_buf(),
            timeout: Duration::from_secs(20),
            stdin: None,
            environment: Vec::new(),
        }
    }

    async fn run(&self, script: &str) -> Outcome {
        self.execute(self.command(script), CancellationToken::new()).await
    }

    async fn execute(&self, command: Command, cancel: CancellationToken) -> Outcome {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let output = |chunk: Chunk| match chunk {
            Chunk::Stdout(bytes) => stdout.extend_from_slice(&bytes),
            Chunk::Stderr(bytes) => stderr.extend_from_slice(&bytes),
        };
        let finished = self
            .local
            .execute(&self.workspace, command, output, cancel)
            .await
            .unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Outcome {
            finished,
            stdout: text(&stdout),
            stderr: text(&stderr),
        }
    }

    /// The script must fail and print nothing to its output.
    async fn refuses(&self, script: &str) {
        let outcome = self.run(script).await;
        assert_ne!(
            outcome.finished.exit_code, 0,
            "`{script}` succeeded: {}",
            outcome.stdout
        );
        assert_eq!(outcome.stdout, "", "`{script}` printed something");
    }
}

/// The processes of this machine with `mark` in their command line.
fn marked(mark: &str) -> Vec<i32> {
    let holds =
        |path: &Path| fs::read(path.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark));
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let pids = entries.filter(|path| holds(path));
    pids.filter_map(|path| path.file_name()?.to_str()?.parse().ok())
        .collect()
}

#[tokio::test]
async fn output_errors_code_and_input_pass_through() {
    let sandbox = Sandbox::new().await;
    let mut command = sandbox.command("cat; echo oops >&2; exit 7");
    command.stdin = Some(b"from the caller\n".to_vec());
    let outcome = sandbox.execute(command, CancellationToken::new()).await;
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("from the caller\n", "oops\n")
    );
    assert_eq!(outcome.finished.exit_code, 7);
    assert!(!outcome.finished.timed_out && !outcome.finished.interrupted && !outcome.finished.survived);
    assert_eq!(sandbox.run("kill -TERM $$").await.finished.exit_code, 143);
    assert_eq!(
        sandbox
            .run("cat <(echo one) <(echo two); read -r line; echo $?")
            .await
            .stdout,
        "one\ntwo\n1\n"
    );
}

#[tokio::test]
async fn a_long_script_arrives_whole() {
    let sandbox = Sandbox::new().await;
    // Longer than the kernel allows for one argument.
    let script = format!("cat <<'END' | wc -c\n{}END\n", "0123456789abcde\n".repeat(20_000));
    assert_eq!(sandbox.run(&script).await.stdout.trim(), "320000");
}

#[tokio::test]
async fn the_directory_the_shell_ended_in_is_known() {
    let sandbox = Sandbox::new().await;
    let root = sandbox.workspace.root().to_path_buf();
    let place = |script: &'static str| async { sandbox.run(script).await.finished.cwd };
    assert_eq!(place("true").await, Some(root.clone()));
    assert_eq!(place("mkdir -p 'a b/c' && cd 'a b/c'").await, Some(root.join("a b/c")));
    assert_eq!(place("cd 'a b'; exit 3").await, Some(root.join("a b")));
    assert_eq!(place("cd 'a b'; false || (cd c)").await, Some(root.join("a b")));
    assert_eq!(place("exec 3>taken; cd 'a b'").await, Some(root.join("a b")));
    assert_eq!(fs::read_to_string(root.join("taken")).unwrap(), "");
    assert_eq!(place("kill -KILL $$").await, None);
    // No text, and so no directory to come back to.
    assert_eq!(place("mkdir $'\\xff'; cd $'\\xff'").await, None);
    let mut command = sandbox.command("pwd");
    command.cwd = root.join("a b/gone/too");
    let outcome = sandbox.execute(command, CancellationToken::new()).await;
    assert_eq!(outcome.stdout.trim(), root.join("a b").to_str().unwrap());
}

#[tokio::test]
async fn the_environment_is_an_allow_list() {
    let sandbox = Sandbox::with(|settings| settings.passthrough = vec![("EXTRA".into(), "given".into())]).await;
    let outcome = sandbox.run("env | sort").await;
    let names: Vec<&str> = outcome
        .stdout
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    let expected = [
        "EXTRA", "HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "USER", "_",
    ];
    assert_eq!(names, expected);
    assert!(
        outcome
            .stdout
            .contains(&format!("HOME={}\n", sandbox.workspace.root().display()))
    );
    let inside = sandbox.run("f=$(mktemp) && echo $f && echo text > $f").await.stdout;
    assert!(
        Path::new(inside.trim()).starts_with(sandbox.workspace.tmp()),
        "{inside}"
    );
}

#[tokio::test]
async fn no_descriptor_of_the_server_is_inherited() {
    let sandbox = Sandbox::new().await;
    let mark = format!("308.{}", std::process::id());
    let cancel = CancellationToken::new();
    let mut seen = Vec::new();
    let output = |_| {
        for pid in marked(&mark) {
            let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
            seen.extend(files.map(|file| file.unwrap().file_name().into_string().unwrap()));
        }
        cancel.cancel();
    };
    let command = sandbox.command(&format!("exec perl -e '$| = 1; print 1; sleep 300; # {mark}'"));
    sandbox
        .local
        .execute(&sandbox.workspace, command, output, cancel.clone())
        .await
        .unwrap();
    seen.sort();
    // The last one is where the shell tells its directory at the end.
    assert_eq!(seen, ["0", "1", "2", "201"]);
}

#[tokio::test]
async fn the_servers_secrets_cannot_be_read() {
    let sandbox = Sandbox::new().await;
    let data = sandbox.data.0.display();
    let server = std::process::id();
    fs::write(sandbox.data.0.join("api-key"), "secret").unwrap();
    fs::write(sandbox.data.0.join("hermes.db"), "secret").unwrap();
    let neighbour = sandbox.local.workspace("ten_a", "ses_b").await.unwrap();
    fs::write(neighbour.root().join("note"), "secret").unwrap();
    let neighbour = neighbour.root().display();
    // The same commands succeed on what belongs to the workspace.
    assert_eq!(
        sandbox.run("echo mine > note && cat note && ls").await.stdout,
        "mine\nnote\n"
    );
    for script in [
        format!("cat {data}/api-key"),
        format!("cat {data}/hermes.db"),
        format!("ls {data}"),
        format!("ls {data}/workspaces"),
        format!("cat {neighbour}/note"),
        format!("ls {neighbour}"),
        format!("ln -s {neighbour}/note stolen && cat stolen"),
        format!("ln {neighbour}/note stolen-too"),
        "ls /root".into(),
        "ls /home".into(),
        "cat /etc/shadow".into(),
        "ls /etc".into(),
        "ls /tmp".into(),
        "ls /proc".into(),
        format!("cat /proc/{server}/environ"),
        format!("cat /proc/{server}/cmdline"),
        format!("head -c 1 /proc/{server}/maps"),
        format!("head -c 1 /proc/{server}/mem"),
        format!("ls /proc/{server}/fd"),
        format!("ls /proc/{server}/root/"),
        "ls /proc/$PPID/fd".into(),
        "head -c 1 /dev/mem".into(),
        "ls /sys/fs".into(),
    ] {
        sandbox.refuses(&script).await;
    }
}

#[tokio::test]
async fn nothing_outside_the_workspace_can_be_changed() {
    let sandbox = Sandbox::new().await;
    let data = sandbox.data.0.display();
    let file = sandbox.data.0.join("hermes.db");
    fs::write(&file, "rows").unwrap();
    for script in [
        format!("echo x > {data}/new"),
        format!("echo x >> {data}/hermes.db"),
        format!("truncate -s 0 {data}/hermes.db"),
        format!("rm -f {data}/hermes.db && test ! -e {data}/hermes.db"),
        format!("mv {data}/hermes.db ."),
        "echo x > /tmp/hermes-sandbox-escape".into(),
        "echo x > /dev/shm/hermes-sandbox-escape".into(),
        "echo x > /usr/hermes-sandbox-escape".into(),
        "mkdir /hermes-sandbox-escape".into(),
        "mknod disk b 8 0".into(),
    ] {
        sandbox.refuses(&script).await;
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "rows");
    let usual =
        "mkdir -p a/b && echo x > a/one && mv a/one a/b/two && chmod +x a/b/two && ln -s b/two a/link && cat a/link";
    assert_eq!(sandbox.run(usual).await.stdout, "x\n");
}

#[tokio::test]
async fn a_server_that_runs_as_root_lends_no_powers() {
    let sandbox = Sandbox::new().await;
    if !rustix::process::geteuid().is_root() {
        // The claim is about root; an ordinary user has no powers to lend.
        assert_ne!(sandbox.run("id -u").await.stdout.trim(), "0");
        return;
    }
    sandbox.refuses("touch mine && chown 1 mine").await;
    sandbox.refuses("mknod disk b 8 0").await;
    if sandbox.run("id -u").await.stdout.trim() == "0" {
        // Root of a container that cannot become another user keeps its number.
        return;
    }
    let file = sandbox.data.0.join("hermes.db");
    fs::write(&file, "rows").unwrap();
    let path = file.display();
    for script in [
        format!("chmod 777 {path}"),
        format!("chown 1 {path}"),
        format!("touch {path}"),
        "chown 0 .".into(),
    ] {
        sandbox.refuses(&script).await;
    }
    let neighbour = sandbox.local.workspace("ten_b", "ses_b").await.unwrap();
    sandbox
        .refuses(&format!("chmod 777 {}", neighbour.root().display()))
        .await;
    assert_eq!(sandbox.run("grep CapEff: /proc/self/status || true").await.stdout, "");
}

#[tokio::test]
async fn neither_the_server_nor_the_supervisor_can_be_signalled() {
    let sandbox = Sandbox::new().await;
    sandbox.refuses(&format!("kill -0 {}", std::process::id())).await;
    let outcome = sandbox
        .run("kill -KILL $PPID; sleep 300 & kill -TERM $! && echo own")
        .await;
    assert_eq!(outcome.stdout, "own\n", "{}", outcome.stderr);
}

#[tokio::test]
async fn the_network_is_closed_unless_it_is_granted() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 5<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let closed = Sandbox::new().await;
    closed.refuses(&connect).await;
    closed
        .refuses(&format!("exec 5<>/dev/udp/127.0.0.1/{port} && echo connected"))
        .await;
    let open = Sandbox::with(|settings| settings.network = true).await;
    assert_eq!(open.run(&connect).await.stdout, "connected\n");
}

#[tokio::test]
async fn sockets_of_other_services_are_out_of_reach() {
    let sandbox = Sandbox::with(|settings| settings.network = true).await;
    let path = sandbox.data.0.join("daemon.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let connect = "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 1; \
                   connect(S, pack_sockaddr_un($ARGV[0])) or exit 1; print 'connected'";
    let command = format!("perl -e \"{}\" {}", connect.replace('$', "\\$"), path.display());
    sandbox.refuses(&command).await;
    assert!(listener.accept().is_err(), "a connection arrived");
    let pair = "use Socket; socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or exit 1; print 'pair'";
    assert_eq!(sandbox.run(&format!("perl -e \"{pair}\"")).await.stdout, "pair");
    let packet = "use Socket; socket(S, 17, SOCK_RAW, 0) or exit 1; print 'raw'";
    sandbox.refuses(&format!("perl -e \"{packet}\"")).await;
}

/// Landlock hides what files hold, not that they change.
#[tokio::test]
async fn changes_in_another_sessions_workspace_cannot_be_watched() {
    let data = Scratch::new();
    // Closed above, so that commands of a server that is root pass by a power
    // that would also let them watch.
    fs::set_permissions(&data.0, fs::Permissions::from_mode(0o700)).unwrap();
    let local = Local::open(settings(&data.0)).await;
    let workspace = local.workspace("ten_a", "ses_a").await.unwrap();
    let other = local.workspace("ten_b", "ses_b").await.unwrap();
    let sandbox = Sandbox { data, local, workspace };
    let (init, add) = if cfg!(target_arch = "x86_64") {
        (294, 254)
    } else {
        (26, 27)
    };
    let watch = |path: &Path| {
        let path = path.display();
        format!("perl -e '$p = \"{path}\"; $f = syscall({init}, 0); exit(syscall({add}, $f, $p, 256) < 0 ? 1 : 0)'")
    };
    for path in [other.root(), &sandbox.data.0, &sandbox.data.0.join("workspaces")] {
        sandbox.refuses(&watch(path)).await;
    }
}

#[tokio::test]
async fn kernel_interfaces_that_weaken_the_walls_are_refused() {
    let sandbox = Sandbox::new().await;
    for script in [
        "unshare --user true",
        "unshare --net true",
        "mount -t tmpfs none .",
        "chroot . true",
        "dmesg",
    ] {
        sandbox.refuses(script).await;
    }
    // By number, so that no tool needs to be installed: ptrace, bpf, keyctl, io_uring.
    let numbers = if cfg!(target_arch = "x86_64") {
        [101, 321, 250, 425]
    } else {
        [117, 280, 219, 425]
    };
    for number in numbers {
        sandbox
            .refuses(&format!("perl -e 'exit(syscall({number}, 0, 0, 0, 0) == -1 ? 1 : 0)'"))
            .await;
    }
    if cfg!(target_arch = "x86_64") {
        // The same call under its second number.
        let other = "perl -e 'syscall(0x40000000 + 521, 0, 0, 0, 0); exit($!{EPERM} || $!{ENOSYS} ? 1 : 0)'";
        sandbox.refuses(other).await;
    }
}
