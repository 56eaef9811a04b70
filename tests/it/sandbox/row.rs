//! Commands of one answer, the next one's shell started while the present one runs:
//! nobody may notice, but by the clock.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_server::environment::{Chunk, Command, Finished, Row};
use rustix::process::{Pid, Signal, getpgid, kill_process};
use tokio_util::sync::CancellationToken;

use super::Sandbox;

/// Prints all that a shell knows of itself and that has no number of its own.
const PROBE: &str = r#"
echo "$0|$-|$SHLVL|$SECONDS|$_|$*|$?|$PWD|$BASH_EXECUTION_STRING|$BASH_SUBSHELL|${!}"
set -o; shopt; trap -p; jobs; umask; alias; declare -F; dirs; hash
ulimit -a | grep -v 'max user processes'
set | grep -vE '^(_|BASHPID|PPID|RANDOM|SRANDOM|EPOCH[A-Z]*)='
read -t 0 line; echo "input $?"; touch /refused /etc/refused; cat /etc/shadow; type -a echo
echo $$ >pid; until [ -e seen ]; do :; done
"#;

impl Sandbox {
    /// Which processes stand in a directory.
    fn standing_in(directory: &Path) -> Vec<i32> {
        let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
        let there = entries.filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory));
        there
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }

    async fn in_row(&self, command: Command, row: &Row, cancel: &CancellationToken) -> (Finished, String) {
        let mut printed = Vec::new();
        let output = |chunk: Chunk| printed.extend_from_slice(chunk.bytes());
        let running = self
            .local
            .execute_in_row(&self.workspace, command, row, output, cancel.clone());
        let finished = tokio::time::timeout(Duration::from_secs(60), running)
            .await
            .unwrap()
            .unwrap();
        (finished, String::from_utf8_lossy(&printed).into_owned())
    }

    /// Runs the first command of a row until the next one's shell waits, and then
    /// `last` in it. Who waits comes back.
    async fn first(&self, row: &Row, last: &str) -> i32 {
        let root = self.workspace.root();
        for left in ["go", "me", "seen", "pid"] {
            let _ = fs::remove_file(root.join(left));
        }
        // For the first there must be a spare to spare.
        self.run("true").await;
        let script = format!("echo $$ >own; mv own me; until [ -e go ]; do sleep 0.01; done; {last}");
        let row = row.then(true);
        let cancel = CancellationToken::new();
        let watched = async {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let own = fs::read_to_string(root.join("me")).unwrap_or_default();
                let Ok(own) = own.trim().parse::<i32>() else { continue };
                let waits = |pid: &i32| {
                    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                    let leads = || getpgid(Pid::from_raw(*pid)).is_ok_and(|group| group.as_raw_pid() == *pid);
                    // What the first one forks is of its group.
                    *pid != own && leads() && String::from_utf8_lossy(&line).contains("__script")
                };
                let mut others = Self::standing_in(root).into_iter().filter(waits);
                if let Some(other) = others.next() {
                    fs::write(root.join("go"), "").unwrap();
                    return other;
                }
            }
        };
        let ((finished, printed), waits) = tokio::join!(self.in_row(self.command(&script), &row, &cancel), watched);
        assert_eq!(finished.exit_code, 0, "{printed}");
        waits
    }

    async fn second(&self, row: &Row, script: &str) -> String {
        let (finished, printed) = self.in_row(self.command(script), row, &CancellationToken::new()).await;
        assert_eq!(finished.exit_code, 0, "{printed}");
        printed
    }
}

async fn vanishes(pid: i32) {
    for _ in 0..1_000 {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {pid} is still there");
}

/// Until it is dead, whether or not somebody has asked.
async fn ends(pid: i32) {
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat"));
    while stat().is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// What the kernel says of the shell that [`PROBE`] runs in; and its number.
async fn looked_at(root: &Path) -> (i32, String) {
    let _ = fs::remove_file(root.join("seen"));
    let pid: i32 = loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let own = fs::read_to_string(root.join("pid")).unwrap_or_default();
        if let Some(Ok(pid)) = own.strip_suffix('\n').map(str::parse) {
            break pid;
        }
    };
    let place = PathBuf::from(format!("/proc/{pid}"));
    let read = |name: &str| String::from_utf8_lossy(&fs::read(place.join(name)).unwrap()).into_owned();
    let told = [
        "Umask", "Uid", "Gid", "Groups", "Cap", "NoNew", "Seccomp", "SigB", "SigI", "SigC", "Threads",
    ];
    // The shell itself blocks a signal for a moment now and then.
    let mut status = read("status");
    for _ in 0..1_000 {
        if status.contains("SigBlk:\t0000000000000000\n") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        status = read("status");
    }
    let status = status
        .lines()
        .filter(|line| told.iter().any(|name| line.starts_with(name)));
    let limits = read("limits");
    let limits = limits.lines().filter(|line| !line.starts_with("Max processes"));
    let mut lines: Vec<String> = status.chain(limits).map(str::to_owned).collect();
    lines.extend(["environ", "cmdline", "oom_score_adj", "comm"].map(read));
    let mut files: Vec<String> = fs::read_dir(place.join("fd"))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let target = fs::read_link(entry.path()).unwrap().display().to_string();
            let target = target
                .split_once(":[")
                .map_or(target.clone(), |(kind, _)| kind.to_owned());
            format!("{:?} {target}", entry.file_name())
        })
        .collect();
    files.sort();
    lines.extend(files);
    fs::remove_file(root.join("pid")).unwrap();
    fs::write(root.join("seen"), "").unwrap();
    (pid, lines.join("\n"))
}

#[tokio::test]
async fn a_command_whose_shell_waited_finds_all_as_any_other() {
    let sandbox = Sandbox::new().await;
    let (root, row, cancel) = (sandbox.workspace.root(), Row::default(), CancellationToken::new());
    let last = "export LEAK=1; leak=2; exec 9<me; umask 0; ulimit -n 64; cd /";
    let (alone, (_, alone_seen)) = tokio::join!(sandbox.run(PROBE), looked_at(root));
    let waits = sandbox.first(&row, last).await;
    let running = sandbox.in_row(sandbox.command(PROBE), &row, &cancel);
    let ((finished, printed), (pid, seen)) = tokio::join!(running, looked_at(root));
    assert_eq!(pid, waits, "it ran in the shell that waited");
    assert!(seen.contains("Seccomp:\t2") && seen.contains("memfd:place"), "{seen}");
    assert!(
        printed.contains("BASH_VERSION") && printed.contains("pipefail"),
        "{printed}"
    );
    assert_eq!(seen, alone_seen);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines.join("\n")
    };
    // Both outputs in the order they came in here.
    assert_eq!(sorted(&printed), sorted(&format!("{}{}", alone.stdout, alone.stderr)));
    assert_eq!(finished.exit_code, alone.finished.exit_code);
    vanishes(waits).await;
}

#[tokio::test]
async fn a_shell_that_waited_tells_its_end_its_directory_and_its_time_out() {
    let sandbox = Sandbox::new().await;
    let row = Row::default();
    sandbox.first(&row, "true").await;
    let (finished, _) = sandbox
        .in_row(
            sandbox.command("mkdir d; cd d; (exit 7)"),
            &row,
            &CancellationToken::new(),
        )
        .await;
    assert_eq!(finished.exit_code, 7);
    assert_eq!(
        finished.cwd.as_deref(),
        Some(sandbox.workspace.root().join("d").as_path())
    );
    let waits = sandbox.first(&row, "true").await;
    let brief = Command {
        timeout: Duration::from_millis(300),
        ..sandbox.command("echo $$; sleep 300 & setsid sleep 300")
    };
    let (finished, printed) = sandbox.in_row(brief, &row, &CancellationToken::new()).await;
    assert!(finished.timed_out && !finished.survived && finished.duration < Duration::from_secs(10));
    assert_eq!(printed.trim(), waits.to_string());
    vanishes(waits).await;
}

#[tokio::test]
async fn a_shell_whose_command_never_comes_goes_with_the_answer() {
    let sandbox = Sandbox::new().await;
    let row = Row::default();
    let waits = sandbox.first(&row, "true").await;
    assert!(Path::new(&format!("/proc/{waits}")).exists());
    drop(row);
    vanishes(waits).await;
}

#[tokio::test]
async fn a_cancel_reaches_a_command_whose_shell_waited_as_it_reaches_any() {
    let sandbox = Sandbox::new().await;
    let row = Row::default();
    let waits = sandbox.first(&row, "true").await;
    let cancel = CancellationToken::new();
    let command = sandbox.command("echo $$; sleep 300 & setsid sleep 300");
    let (mut printed, stop) = (String::new(), cancel.clone());
    let output = |chunk: Chunk| {
        printed.push_str(&String::from_utf8_lossy(chunk.bytes()));
        stop.cancel();
    };
    let running = sandbox
        .local
        .execute_in_row(&sandbox.workspace, command, &row, output, cancel);
    let finished = running.await.unwrap();
    assert!(finished.interrupted && !finished.survived);
    assert_eq!(printed.trim(), waits.to_string());
    vanishes(waits).await;
    // One that was cancelled before runs nothing, and its shell goes.
    let waits = sandbox.first(&row, "true").await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (finished, _) = sandbox.in_row(sandbox.command("touch ran"), &row, &cancel).await;
    assert!(finished.interrupted);
    vanishes(waits).await;
    assert!(!sandbox.workspace.root().join("ran").exists());
}

#[tokio::test]
async fn a_shell_that_was_ended_or_stopped_meanwhile_harms_no_command() {
    let sandbox = Sandbox::new().await;
    let row = Row::default();
    let waits = sandbox.first(&row, "true").await;
    signal(waits, Signal::STOP);
    assert_eq!(sandbox.second(&row, "echo $$").await.trim(), waits.to_string());
    let waits = sandbox.first(&row, "true").await;
    signal(waits, Signal::KILL);
    ends(waits).await;
    assert_ne!(sandbox.second(&row, "echo $$").await.trim(), waits.to_string());
}

#[tokio::test]
async fn a_shell_that_does_not_fit_its_command_is_given_up() {
    let sandbox = Sandbox::new().await;
    let row = Row::default();
    let other = sandbox.local.workspace("ten_a", "ses_b").await.unwrap();
    let long = format!("echo $$; pwd # {}", "x".repeat(4_096));
    type Change = fn(&mut Command);
    let changes: [(&str, Change); 4] = [
        ("echo $$; pwd", |command| command.cwd.push("d")),
        ("echo $$; pwd; cat", |command| command.stdin = Some(b"said".to_vec())),
        ("echo $$; pwd; echo $X", |command| {
            command.environment.push(("X".into(), "said".into()));
        }),
        (&long, |_| {}),
    ];
    for (script, change) in changes {
        let waits = sandbox.first(&row, "mkdir -p d").await;
        let mut command = sandbox.command(script);
        change(&mut command);
        let cwd = command.cwd.clone();
        let (_, printed) = sandbox.in_row(command, &row, &CancellationToken::new()).await;
        let lines: Vec<&str> = printed.lines().collect();
        assert_ne!(lines[0], waits.to_string(), "{script:.30}");
        assert_eq!(Path::new(lines[1]), cwd);
        vanishes(waits).await;
    }
    // Another session's command never gets it, whoever would hand it over.
    let waits = sandbox.first(&row, "true").await;
    let command = Command {
        cwd: other.root().to_path_buf(),
        ..sandbox.command("pwd >pid")
    };
    let cancel = CancellationToken::new();
    let running = sandbox.local.execute_in_row(&other, command, &row, |_| {}, cancel);
    assert_eq!(running.await.unwrap().exit_code, 0);
    assert!(other.root().join("pid").exists());
    vanishes(waits).await;
}

#[tokio::test]
async fn a_directory_that_was_replaced_meanwhile_is_the_new_one() {
    let sandbox = Sandbox::new().await;
    let root = sandbox.workspace.root().to_path_buf();
    let row = Row::default().then(true);
    let inner = |script: &str| Command {
        cwd: root.join("inner"),
        ..sandbox.command(script)
    };
    sandbox.run("mkdir inner").await;
    let cancel = CancellationToken::new();
    let swaps = "sleep 0.3; cd ..; rmdir inner; mkdir inner; echo new >inner/which";
    sandbox.in_row(inner(swaps), &row, &cancel).await;
    let (finished, printed) = sandbox
        .in_row(inner("cat which; echo more >more; pwd"), &row.then(false), &cancel)
        .await;
    assert_eq!(
        (finished.exit_code, printed),
        (0, format!("new\n{}\n", root.join("inner").display()))
    );
    assert!(root.join("inner/more").exists());
}

/// A command that says whose child it is, under the number that it is given.
fn telling(sandbox: &Sandbox, number: usize, more: &str) -> Command {
    sandbox.command(&format!("echo $PPID {number}; {more}"))
}

/// The supervisor of what was run, by what it printed.
fn supervisor(printed: &str, number: usize) -> i32 {
    let lines = printed.lines().map(|line| line.split_once(' ').unwrap_or_default());
    let told: Vec<i32> = lines
        .filter(|(_, told)| *told == number.to_string())
        .map(|(pid, _)| pid.parse().unwrap())
        .collect();
    assert_eq!(told.len(), 1, "{printed}");
    told[0]
}

#[tokio::test]
async fn a_row_needs_two_processes_and_each_command_has_its_own_outputs_and_end() {
    let sandbox = Sandbox::new().await;
    let (row, cancel) = (Row::default(), CancellationToken::new());
    // So that there are spares.
    sandbox.run("true").await;
    let mut supervisors = BTreeSet::new();
    for number in 0..8 {
        let more = format!("echo error >&2; sleep 300 & setsid sleep 300 & exit {number}");
        let command = telling(&sandbox, number, &more);
        let (finished, printed) = sandbox.in_row(command, &row.then(number < 7), &cancel).await;
        assert_eq!(usize::try_from(finished.exit_code), Ok(number));
        assert!(!finished.survived && !finished.timed_out && !finished.interrupted);
        assert_eq!(printed.lines().count(), 2, "{printed}");
        supervisors.insert(supervisor(&printed, number));
    }
    assert_eq!(supervisors.len(), 2);
    drop(row);
    for supervisor in supervisors {
        vanishes(supervisor).await;
    }
}

#[tokio::test]
async fn commands_that_go_elsewhere_each_time_run_where_they_should_by_one_process() {
    let sandbox = Sandbox::new().await;
    let (row, cancel) = (Row::default().then(true), CancellationToken::new());
    sandbox.run("mkdir 0 1 2 3").await;
    let mut supervisors = BTreeSet::new();
    for number in 0..4 {
        let command = Command {
            cwd: sandbox.workspace.root().join(number.to_string()),
            ..telling(&sandbox, number, "cat; pwd >where")
        };
        let command = Command {
            stdin: Some(b"said\n".to_vec()),
            ..command
        };
        let (finished, printed) = sandbox.in_row(command, &row, &cancel).await;
        assert_eq!(finished.exit_code, 0);
        assert!(printed.contains("said"), "{printed}");
        supervisors.insert(supervisor(&printed, number));
        assert!(sandbox.workspace.root().join(format!("{number}/where")).exists());
    }
    assert_eq!(supervisors.len(), 1);
}

#[tokio::test]
async fn a_process_whose_command_was_cut_short_is_given_no_other() {
    let sandbox = Sandbox::new().await;
    let row = Row::default().then(true);
    sandbox.run("true").await;
    let brief = Command {
        timeout: Duration::from_millis(300),
        ..telling(&sandbox, 0, "sleep 300")
    };
    let (finished, printed) = sandbox.in_row(brief, &row, &CancellationToken::new()).await;
    assert!(finished.timed_out);
    let first = supervisor(&printed, 0);
    vanishes(first).await;
    for number in 1..4 {
        let command = telling(&sandbox, number, "");
        let (finished, printed) = sandbox.in_row(command, &row, &CancellationToken::new()).await;
        assert_eq!(finished.exit_code, 0);
        assert_ne!(supervisor(&printed, number), first);
    }
}

#[tokio::test]
async fn a_process_that_is_gone_meanwhile_is_not_missed() {
    let sandbox = Sandbox::new().await;
    let (row, cancel) = (Row::default(), CancellationToken::new());
    sandbox.run("mkdir other").await;
    let (_, printed) = sandbox.in_row(telling(&sandbox, 0, ""), &row.then(true), &cancel).await;
    let first = supervisor(&printed, 0);
    signal(first, Signal::KILL);
    ends(first).await;
    let command = Command {
        cwd: sandbox.workspace.root().join("other"),
        ..telling(&sandbox, 1, "")
    };
    let (finished, printed) = sandbox.in_row(command, &row.then(false), &cancel).await;
    assert_eq!(finished.exit_code, 0);
    assert_ne!(supervisor(&printed, 1), first);
}
