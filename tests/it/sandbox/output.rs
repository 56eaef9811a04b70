//! What commands print, and what happens where they cannot run.

use super::*;

#[tokio::test]
async fn output_arrives_while_the_command_runs() {
    let sandbox = Sandbox::new().await;
    let go = sandbox.workspace.root().join("go");
    // The command ends only when the test has seen its first words.
    let script = "echo first; until test -e go; do sleep 0.02; done; echo second";
    let mut seen = Vec::new();
    let output = |chunk: Chunk| {
        seen.extend_from_slice(chunk.bytes());
        if seen == b"first\n" {
            fs::write(&go, "").unwrap();
        }
    };
    let call = sandbox.local.execute(
        &sandbox.workspace,
        sandbox.command(script),
        output,
        CancellationToken::new(),
    );
    assert_eq!(call.await.unwrap().exit_code, 0);
    assert_eq!(seen, b"first\nsecond\n");
}

#[tokio::test]
async fn fifty_megabytes_pass_in_small_pieces() {
    let sandbox = Sandbox::new().await;
    let (mut total, mut largest) = (0_usize, 0_usize);
    let output = |chunk: Chunk| {
        total += chunk.bytes().len();
        largest = largest.max(chunk.bytes().len());
    };
    let before = resident_bytes();
    let command = sandbox.command("head -c 52428800 /dev/zero");
    let finished = sandbox
        .local
        .execute(&sandbox.workspace, command, output, CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(finished.exit_code, 0);
    assert_eq!(total, 50 << 20);
    assert!(largest <= 256 << 10, "one piece held {largest} bytes");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 20 << 20, "memory grew by {grown} bytes");
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn a_script_that_a_shell_would_cut_is_refused() {
    let sandbox = Sandbox::new().await;
    let call = sandbox.local.execute(
        &sandbox.workspace,
        sandbox.command("echo shown\0 rm -rf ."),
        |_| {},
        CancellationToken::new(),
    );
    assert!(matches!(call.await, Err(EnvironmentError::Spawn(_))));
}

#[tokio::test]
async fn a_binary_that_cannot_supervise_makes_the_backend_unavailable() {
    let data = Scratch::new();
    let mut settings = settings(&data.0);
    settings.exec_program = "/bin/true".into();
    let local = Local::open(settings).await;
    let Isolation::Unavailable { reason } = local.isolation() else {
        panic!("it works with /bin/true")
    };
    assert!(!reason.is_empty());
    let workspace = local.workspace("ten_a", "ses_a").await.unwrap();
    let command = Command {
        script: "true".into(),
        cwd: workspace.root().to_path_buf(),
        timeout: Duration::from_secs(5),
        stdin: None,
        environment: Vec::new(),
    };
    let refused = local
        .execute(&workspace, command, |_| {}, CancellationToken::new())
        .await;
    assert!(matches!(refused, Err(EnvironmentError::Unavailable { .. })));
}

#[tokio::test]
async fn without_isolation_commands_run_but_are_still_supervised() {
    let sandbox = Sandbox::with(|settings| settings.isolation = IsolationChoice::None).await;
    assert!(matches!(
        sandbox.local.isolation(),
        Isolation::Working {
            mechanism: Mechanism::None,
            ..
        }
    ));
    let mark = format!("306.{}", std::process::id());
    assert_eq!(
        sandbox
            .run(&format!("ls / >/dev/null && setsid sleep {mark} & echo done"))
            .await
            .stdout,
        "done\n"
    );
    assert_eq!(marked(&mark), [0; 0]);
}

#[tokio::test]
async fn bubblewrap_where_installed_gives_a_command_its_own_spaces() {
    let data = Scratch::new();
    let mut settings = settings(&data.0);
    settings.isolation = IsolationChoice::Bubblewrap;
    let local = Local::open(settings).await;
    if !["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"]
        .iter()
        .any(|path| Path::new(path).exists())
    {
        let Isolation::Unavailable { reason } = local.isolation() else {
            panic!("it works without bubblewrap")
        };
        assert_eq!(reason, "bubblewrap is not installed");
        return;
    }
    let Isolation::Working {
        mechanism: Mechanism::Bubblewrap,
        detail,
    } = local.isolation()
    else {
        // A container may forbid what bubblewrap needs; then it says what.
        let Isolation::Unavailable { reason } = local.isolation() else {
            panic!("another mechanism was taken")
        };
        assert!(reason.contains("bwrap"), "{reason}");
        return;
    };
    assert!(detail.contains("bubblewrap"), "{detail}");
    let workspace = local.workspace("ten_a", "ses_a").await.unwrap();
    let sandbox = Sandbox { data, local, workspace };
    fs::write(sandbox.data.0.join("api-key"), "secret").unwrap();
    let mark = format!("307.{}", std::process::id());
    // Few processes are seen, the server is not among them, and none remains.
    let outcome = sandbox
        .run(&format!("setsid sleep {mark} & disown; ls -d /proc/[0-9]* | wc -l"))
        .await;
    assert!(
        outcome.stdout.trim().parse::<usize>().unwrap() < 12,
        "{}",
        outcome.stdout
    );
    assert_eq!(marked(&mark), [0; 0]);
    for script in [
        format!("cat {}/api-key", sandbox.data.0.display()),
        "cat /etc/shadow".into(),
        "ls /root".into(),
        "ls /run/*.sock".into(),
        "echo x > /usr/hermes-sandbox-escape".into(),
        "mount -t tmpfs none .".into(),
    ] {
        sandbox.refuses(&script).await;
    }
    let usual =
        "echo x > /tmp/mine && cat /tmp/mine && echo y > /dev/shm/mine && cd sub 2>/dev/null || mkdir sub && cd sub";
    let outcome = sandbox.run(usual).await;
    assert_eq!(outcome.stdout, "x\n");
    assert_eq!(outcome.finished.cwd, Some(sandbox.workspace.root().join("sub")));
    assert!(!Path::new("/tmp/mine").exists());
    let mut command = sandbox.command(&format!("trap '' TERM; sleep {mark} & sleep {mark}"));
    command.timeout = Duration::from_millis(200);
    let outcome = sandbox.execute(command, CancellationToken::new()).await;
    assert!(outcome.finished.timed_out && !outcome.finished.survived);
    assert_eq!(marked(&mark), [0; 0]);
}
