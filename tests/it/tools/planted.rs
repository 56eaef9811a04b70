//! What a command may leave in the workspace for the file tools to fall into.

use std::time::Duration;

use super::*;

/// A pipe would be waited for until somebody comes; the server's own memory must
/// be out of reach; a device has no end.
#[tokio::test]
async fn pipes_devices_and_the_servers_memory_are_neither_read_nor_written() {
    let mut bench = Bench::new().await;
    let plant = "mkfifo pipe && ln -s /proc/self/mem memory && ln -s /dev/zero zeros && ln -s /proc/self/environ secrets \
        && ln -s pipe way";
    let (done, _) = bench.terminal(json!({"command": plant})).await;
    assert!(!done.failed, "{}", done.result);
    for name in ["pipe", "way", "memory", "zeros", "secrets"] {
        for (tool, arguments) in [
            ("read_file", json!({"path": name})),
            ("write_file", json!({"path": name, "content": "x"})),
        ] {
            // Far more than a refusal takes, far less than a pipe is waited for.
            let done = tokio::time::timeout(Duration::from_secs(20), bench.run(tool, arguments.clone())).await;
            let done = done.unwrap_or_else(|_| panic!("`{tool}` hangs on `{name}`"));
            let place = Place {
                workspace: &bench.root(),
                cwd: &bench.cwd,
                backend: "local",
                policies: &[],
                unread: None,
            };
            let refused = done.failed || read(&done)["error"].is_string();
            let judged = bench.tool(tool).judge(&arguments, &place, &bench.host);
            assert!(
                refused || judged != Judged::Allow,
                "`{tool}` of `{name}`: {}",
                done.result
            );
            assert!(!done.result.contains("HOME="), "{}", done.result);
        }
    }
}
