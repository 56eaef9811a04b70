//! Commands of one answer: the shell of the next is started while one runs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, getpgid};

use super::*;

/// The shell that stands in `directory` and waits for its script, beside the command
/// that runs as `own`.
fn waits(directory: &Path, own: i32) -> Option<i32> {
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
    let there = entries.filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory));
    let mut numbers = there.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // What the command forks is of its group.
        let leads = getpgid(Pid::from_raw(*pid)).is_ok_and(|group| group.as_raw_pid() == *pid);
        *pid != own && leads && String::from_utf8_lossy(&line).contains("__script")
    })
}

#[test]
fn a_command_that_follows_another_runs_in_the_shell_that_waited_and_where_the_other_went() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let text = [
            terminal("echo $$ >own; mv own first; until [ -e go ]; do sleep 0.01; done"),
            terminal("echo $$ >second; mkdir sub; cd sub"),
            terminal("pwd >where; echo $$ >third"),
        ];
        let turn = server.turn(session, &text.join("\n")).await.turn;
        let waiting = async {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let root = server.workspace(session);
                let own = fs::read_to_string(root.join("first")).unwrap_or_default();
                if let Ok(own) = own.trim().parse()
                    && let Some(waits) = waits(&root.canonicalize().unwrap(), own)
                {
                    fs::write(root.join("go"), "").unwrap();
                    return waits;
                }
            }
        };
        let waiting = tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
        server.frames(session, turn.id).await;
        let root = server.workspace(session).canonicalize().unwrap();
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap().trim().to_owned();
        assert_eq!(read("second"), waiting.to_string());
        // What waited for the third stood where the second had begun.
        assert_eq!(read("sub/where"), root.join("sub").display().to_string());
        assert_ne!(read("sub/third"), waiting.to_string());
        check_transcript(&server.messages(session).await);
        server.stop().await;
    });
}
