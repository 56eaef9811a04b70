//! No command outlives whoever can account for it.

use super::*;

#[tokio::test]
async fn nothing_a_command_started_outlives_it() {
    let sandbox = Sandbox::new().await;
    let mark = format!("300.{}", std::process::id());
    let script =
        format!("setsid sleep {mark}1 & disown; (setsid sleep {mark}2 &) ; nohup sleep {mark}3 >/dev/null & echo done");
    let ended = tokio::time::timeout(Duration::from_secs(60), sandbox.run(&script)).await;
    let outcome = ended.expect("nobody waits for what it left");
    assert_eq!(outcome.stdout, "done\n");
    assert_eq!(marked(&mark), [0; 0]);
    assert!(!outcome.finished.survived);
}

#[tokio::test]
async fn a_stubborn_tree_dies_at_the_time_out() {
    let sandbox = Sandbox::new().await;
    let mark = format!("301.{}", std::process::id());
    let mut command = sandbox.command(&format!(
        "trap '' TERM; echo begun; setsid bash -c \"trap '' TERM; sleep {mark}\" & sleep {mark}; sleep {mark}"
    ));
    command.timeout = Duration::from_millis(300);
    let outcome = sandbox.execute(command, CancellationToken::new()).await;
    assert_eq!(outcome.stdout, "begun\n");
    assert_eq!(outcome.finished.exit_code, 124);
    assert!(outcome.finished.timed_out && !outcome.finished.interrupted && !outcome.finished.survived);
    assert_eq!(marked(&mark), [0; 0]);
    assert!(
        outcome.finished.duration < Duration::from_secs(6),
        "{:?}",
        outcome.finished.duration
    );
}

#[tokio::test]
async fn a_tree_that_keeps_forking_dies_too() {
    let sandbox = Sandbox::new().await;
    let mark = format!("302.{}", std::process::id());
    let script =
        format!("f() {{ trap '' TERM; while :; do setsid sleep {mark} & sleep 0.01; done; }}; f & f & f & wait");
    let mut command = sandbox.command(&script);
    command.timeout = Duration::from_millis(300);
    let outcome = sandbox.execute(command, CancellationToken::new()).await;
    assert!(outcome.finished.timed_out && !outcome.finished.survived);
    assert_eq!(marked(&mark), [0; 0]);
}

#[tokio::test]
async fn a_cancel_ends_the_tree_and_keeps_what_was_printed() {
    let sandbox = Sandbox::new().await;
    let mark = format!("303.{}", std::process::id());
    let cancel = CancellationToken::new();
    let (mut printed, mut preferred) = (Vec::new(), false);
    // The cancel comes when the command says that it runs.
    let output = |chunk: Chunk| {
        if let Chunk::Stdout(bytes) = chunk {
            printed.extend_from_slice(&bytes);
            preferred = marked(&mark).iter().all(|pid| {
                // One may have ended since it was listed.
                let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
                score.map_or(true, |score| score.trim() == "500")
            });
            cancel.cancel();
        }
    };
    let command = sandbox.command(&format!("echo running; setsid sleep {mark} & sleep {mark}"));
    let finished = sandbox
        .local
        .execute(&sandbox.workspace, command, output, cancel.clone())
        .await
        .unwrap();
    assert_eq!(finished.exit_code, 130);
    assert!(finished.interrupted && !finished.timed_out && !finished.survived);
    assert_eq!(printed, b"running\n");
    assert!(preferred, "the kernel would not end the command before the server");
    assert_eq!(marked(&mark), [0; 0]);
}

#[tokio::test]
async fn a_command_cancelled_before_it_began_does_not_run() {
    let sandbox = Sandbox::new().await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = sandbox.execute(sandbox.command("touch ran"), cancel).await;
    assert!(outcome.finished.interrupted && !outcome.finished.survived);
    assert!(!sandbox.workspace.root().join("ran").exists());
}

#[tokio::test]
async fn dropping_the_call_ends_the_tree() {
    let sandbox = Sandbox::new().await;
    let mark = format!("304.{}", std::process::id());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    let output = move |_| {
        if let Some(sender) = sender.take() {
            sender.send(()).unwrap();
        }
    };
    let command = sandbox.command(&runs_until_killed(&mark));
    let call = sandbox
        .local
        .execute(&sandbox.workspace, command, output, CancellationToken::new());
    tokio::select! {
        _ = call => panic!("the command ended by itself"),
        told = receiver => told.unwrap(),
    }
    gone(&mark).await;
}

#[tokio::test]
async fn a_killed_server_takes_its_commands_with_it() {
    const ROLE: &str = "HERMES_TEST_MARK";
    if let Some(mark) = std::env::var_os(ROLE) {
        // The second process: a server that runs a command until it is killed.
        let sandbox = Sandbox::new().await;
        let mark = mark.into_string().unwrap();
        let command = sandbox.command(&runs_until_killed(&mark));
        let told = |_| println!("data={}", sandbox.data.0.display());
        sandbox
            .local
            .execute(&sandbox.workspace, command, told, CancellationToken::new())
            .await
            .unwrap();
        return;
    }
    let mark = format!("305.{}", std::process::id());
    let mut server = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sandbox::lifetimes::a_killed_server_takes_its_commands_with_it",
            "--nocapture",
        ])
        .env(ROLE, &mark)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(server.stdout.take().unwrap()));
    let mut told = lines.map(Result::unwrap);
    let data = told.find_map(|line| line.split_once("data=").map(|(_, data)| data.to_owned()));
    assert_ne!(marked(&mark), [0; 0], "the command runs");
    server.kill().unwrap();
    server.wait().unwrap();
    gone(&mark).await;
    fs::remove_dir_all(data.unwrap()).unwrap();
}

/// A script whose detached child carries the mark and says when it runs.
fn runs_until_killed(mark: &str) -> String {
    format!("setsid bash -c 'echo running; sleep 300; : {mark}' & disown; sleep 300")
}

/// Waits for the end of every process with this mark.
async fn gone(mark: &str) {
    // A dying shell may show for a moment what it was about to start.
    while let Some(pid) = marked(mark).first() {
        let pid = rustix::process::Pid::from_raw(*pid).unwrap();
        let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::NONBLOCK) else {
            continue;
        };
        #[allow(
            deprecated,
            reason = "its replacement is unsafe; an owned descriptor is all that is asked for"
        )]
        let process = AsyncFd::new(process).unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(5), process.readable()).await;
        ended.expect("the process ends").unwrap().retain_ready();
    }
}

#[tokio::test]
async fn a_command_and_what_it_starts_are_told_to_hang_up() {
    let sandbox = Sandbox::new().await;
    let script = "sleep 10 & kill -HUP $!; wait $!; echo child $?; trap 'echo heard' HUP; kill -HUP $$; echo after";
    let outcome = sandbox.run(script).await;
    assert_eq!(outcome.stdout, "child 129\nheard\nafter\n");
}
