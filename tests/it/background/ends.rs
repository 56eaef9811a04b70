//! When a command is over that started something: in the foreground with its shell,
//! in the background with its last process. Nothing hangs, and nothing is lost
//! without a word.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{background, call, eventually, id_of, tool};
use crate::harness::on_both;

fn foreground(command: &str) -> String {
    tool("terminal", &json!({"command": command, "timeout": 60}))
}

fn note(told: &Value) -> &str {
    told["note"].as_str().unwrap_or_default()
}

#[test]
fn what_would_hold_the_foreground_or_slip_out_of_it_never_begins() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (path, server) = (web.session().await, &web.server);
        let session = id_of(&path);
        for command in [
            "sleep 30 && echo x &",
            "cd /tmp && python3 -m http.server &",
            "sudo sleep 30 &",
            "sudo nohup sleep 30",
            "sleep 30 &\necho x",
            "cat > a <<'END' &\nx\nEND",
            "sleep 30 & echo x",
        ] {
            let told = call(server, session, &foreground(command)).await;
            assert_eq!(
                (&told["status"], &told["exit_code"]),
                (&json!("error"), &json!(-1)),
                "{command}"
            );
            let error = told["error"].as_str().unwrap();
            assert!(error.contains("background: true"), "{command}: {error}");
        }
        // What is only written down is no command.
        let written = "cat > run.sh <<'END'\nsleep 30 && echo x &\nEND\ncat run.sh";
        let told = call(server, session, &foreground(written)).await;
        assert_eq!(told["output"], "sleep 30 && echo x &", "{told}");
        web.stop().await;
    });
}

#[test]
fn in_the_foreground_what_is_left_running_ends_with_the_shell_and_the_model_is_told() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (path, server) = (web.session().await, &web.server);
        let session = id_of(&path);
        for command in ["(sleep 300 && echo x)& echo begun", "echo begun; (sleep 300 &)"] {
            let began = Instant::now();
            let told = call(server, session, &foreground(command)).await;
            assert_eq!(
                (&told["output"], &told["exit_code"]),
                (&json!("begun"), &json!(0)),
                "{told}"
            );
            assert!(note(&told).contains("was ended with it"), "{command}: {told}");
            assert!(began.elapsed() < Duration::from_secs(30), "{command} held the call");
        }
        // What ends by itself may do so: here the reader of the output.
        for command in [
            "echo one > >(sleep 0.1; cat)",
            "(echo one)& wait",
            "echo one | { sleep 0.1; cat; }",
        ] {
            let told = call(server, session, &foreground(command)).await;
            assert_eq!((&told["output"], note(&told)), (&json!("one"), ""), "{command}");
        }
        web.stop().await;
    });
}

#[test]
fn in_the_background_a_process_lasts_as_long_as_anything_that_it_started() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (path, server) = (web.session().await, &web.server);
        let session = id_of(&path);
        let root = server.workspace(session);
        for (number, command) in [
            "true && until [ -e go ]; do sleep 0.02; done; echo done",
            "true && { until [ -e go ]; do sleep 0.02; done; echo done; } &",
            "(until [ -e go ]; do sleep 0.02; done; echo done) & disown",
            "setsid bash wait.sh & exit 0",
        ]
        .into_iter()
        .enumerate()
        {
            let started = call(server, session, &background(command, json!({}))).await;
            let id = started["session_id"].as_str().unwrap().to_owned();
            let process = |action: &str| tool("process", &json!({"action": action, "session_id": id, "timeout": 60}));
            let seen = call(server, session, &process("poll")).await;
            assert_eq!(seen["status"], "running", "{number}: {seen}");
            // There is a workspace since the first of them: this is for the last.
            std::fs::write(root.join("wait.sh"), "until [ -e go ]; do sleep 0.02; done; echo done").unwrap();
            std::fs::write(root.join("go"), "").unwrap();
            let ended = call(server, session, &process("wait")).await;
            assert_eq!(
                (&ended["status"], &ended["exit_code"]),
                (&json!("exited"), &json!(0)),
                "{number}: {ended}"
            );
            assert!(ended["output"].as_str().unwrap().contains("done"), "{number}: {ended}");
            std::fs::remove_file(root.join("go")).unwrap();
        }
        // And it is ended as a whole, also when its shell is long gone.
        let command = "sleep 300 & echo $! > child; exit 0";
        let started = call(server, session, &background(command, json!({}))).await;
        let id = started["session_id"].as_str().unwrap();
        eventually("the child runs", async || {
            root.join("child").metadata().is_ok_and(|file| 0 < file.len())
        })
        .await;
        let killed = call(
            server,
            session,
            &tool("process", &json!({"action": "kill", "session_id": id})),
        )
        .await;
        assert_eq!(
            (&killed["status"], &killed["exit_code"]),
            (&json!("killed"), &json!(-15)),
            "{killed}"
        );
        let child = std::fs::read_to_string(root.join("child")).unwrap();
        let command = std::fs::read_to_string(format!("/proc/{}/cmdline", child.trim())).unwrap_or_default();
        assert!(!command.starts_with("sleep"), "{child} lives");
        web.stop().await;
    });
}
