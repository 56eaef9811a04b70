//! Files that are too long, too many or not what they seem: every file tool
//! answers in bounded time and memory, with a result that says what it found.

use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use super::*;

/// The most that the tests' process may grow; one file alone has 2 GB.
const MAX_GROWTH_KB: u64 = 400 << 10;

/// The most memory that this process ever had.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Writes everything that is hostile into the workspace; names that text can say.
fn plant(root: &std::path::Path) -> [&'static str; 6] {
    std::fs::File::create(root.join("sparse"))
        .unwrap()
        .set_len(2 << 30)
        .unwrap();
    let line = format!("{}needle\nneedle\n", "x".repeat(10 << 20));
    std::fs::write(root.join("line.txt"), line).unwrap();
    std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", root.join("zeros")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("socket"),
        rustix::fs::FileType::Socket,
        0o600.into(),
        0,
    )
    .unwrap();
    let odd = std::ffi::OsString::from_vec(b"odd-\xff.txt".to_vec());
    std::fs::write(root.join(odd), "needle\n").unwrap();
    ["sparse", "line.txt", "loop", "zeros", "socket", "odd-\u{fffd}.txt"]
}

#[tokio::test]
async fn every_file_tool_answers_soon_and_shortly_whatever_it_is_pointed_at() {
    let bench = Bench::new().await;
    let names = plant(&bench.root());
    let before = peak_kb();
    for name in names {
        for (tool, arguments) in [
            ("read_file", json!({"path": name})),
            ("read_file", json!({"path": name, "offset": 2, "limit": 5})),
            (
                "patch",
                json!({"path": name, "old_string": "needle", "new_string": "pin", "replace_all": true}),
            ),
            ("search_files", json!({"pattern": "needle", "path": name})),
            ("search_files", json!({"pattern": "*", "target": "files", "path": name})),
        ] {
            let began = Instant::now();
            let running = tokio::time::timeout(Duration::from_secs(60), bench.run(tool, arguments.clone()));
            let done = running.await.unwrap_or_else(|_| panic!("`{tool}` hangs on `{name}`"));
            let took = began.elapsed();
            assert!(took < Duration::from_secs(30), "`{tool}` of `{name}` took {took:?}");
            assert!(
                done.result.len() < 500_000,
                "`{tool}` of `{name}`: {} bytes",
                done.result.len()
            );
            let told: Value = serde_json::from_str(&done.result).unwrap();
            assert!(told.is_object(), "`{tool}` of `{name}`: {told}");
            let is_refusal = done.failed || told["error"].is_string() || told["success"] == false;
            if ["loop", "zeros", "socket"].contains(&name) && tool != "search_files" {
                assert!(is_refusal, "`{tool}` of `{name}`: {told}");
            }
        }
    }
    let grown = peak_kb() - before;
    assert!(grown < MAX_GROWTH_KB, "{grown} kB more");
}

#[tokio::test]
async fn what_the_model_asked_for_is_found_behind_a_line_of_ten_megabytes() {
    let bench = Bench::new().await;
    plant(&bench.root());
    let shown = read(&bench.run("read_file", json!({"path": "line.txt", "offset": 2})).await);
    assert!(shown["content"].as_str().unwrap().contains("needle"), "{shown}");
    let found = read(
        &bench
            .run("search_files", json!({"pattern": "^needle", "path": "line.txt"}))
            .await,
    );
    assert_eq!(found["matches"][0]["line"], 2, "{found}");
}
