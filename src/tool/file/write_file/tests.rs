//! Writing for real, in a workspace of its own. Checkers need the binary: they are
//! tested with it.

use super::*;
use crate::tool::testing::Bench;

async fn write_one(bench: &Bench, arguments: Value) -> Value {
    let done = bench.run(&WriteFile, arguments).await;
    let written: Value = serde_json::from_str(&done.result).unwrap();
    assert_eq!(done.failed, written.get("error").is_some(), "{written}");
    written
}

fn on_disk(bench: &Bench, path: &str) -> String {
    std::fs::read_to_string(bench.root().join(path)).unwrap()
}

#[tokio::test]
async fn a_new_file_is_written_with_its_directories() {
    let bench = Bench::new().await;
    let written = write_one(&bench, json!({"path": "a/b/c.txt", "content": "한\n"})).await;
    let path = bench.root().join("a/b/c.txt");
    let whole = json!({
        "bytes_written": 4, "dirs_created": true, "resolved_path": path, "files_modified": [path],
    });
    assert_eq!(written, whole);
    assert_eq!(on_disk(&bench, "a/b/c.txt"), "한\n");
    let written = write_one(&bench, json!({"path": "a/b/c.txt", "content": ""})).await;
    assert_eq!(written["dirs_created"], false);
    assert_eq!(on_disk(&bench, "a/b/c.txt"), "");
}

#[tokio::test]
async fn line_ends_mark_and_mode_of_the_old_file_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new().await;
    let path = bench.workspace().await.root().join("run.bat");
    std::fs::write(&path, "\u{feff}one\r\ntwo\r\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
    write_one(&bench, json!({"path": "run.bat", "content": "a\nb\r\n"})).await;
    assert_eq!(on_disk(&bench, "run.bat"), "\u{feff}a\r\nb\r\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o751);
}

#[tokio::test]
async fn links_inside_are_followed_and_links_outside_are_not() {
    let bench = Bench::new().await;
    let root = bench.workspace().await.root().to_path_buf();
    std::fs::write(root.join("real.txt"), "old").unwrap();
    std::os::unix::fs::symlink("real.txt", root.join("inside")).unwrap();
    std::os::unix::fs::symlink("/tmp", root.join("outside")).unwrap();
    let written = write_one(&bench, json!({"path": "inside", "content": "new"})).await;
    assert_eq!(written["resolved_path"], json!(root.join("real.txt")));
    assert_eq!(on_disk(&bench, "real.txt"), "new");
    let written = write_one(&bench, json!({"path": "outside/hermes-test", "content": "new"})).await;
    assert!(
        written["error"].as_str().unwrap().contains("outside the workspace"),
        "{written}"
    );
}

#[tokio::test]
async fn refusals_come_in_their_order_and_write_nothing() {
    let bench = Bench::new().await;
    std::fs::create_dir(bench.workspace().await.root().join("d")).unwrap();
    let shown = "1|a\n2|b";
    for (arguments, reason) in [
        (json!({"content": "x"}), "`path` is missing"),
        (json!({"path": "/etc/passwd"}), "`content` is missing"),
        (json!({"path": "/etc/passwd", "content": 7}), "must be text"),
        (
            json!({"path": "/etc/passwd", "content": shown}),
            "belongs to the system",
        ),
        (
            json!({"path": "~/.hermes/config.yaml", "content": shown}),
            "own configuration",
        ),
        (
            json!({"path": "~/.ssh/id_rsa", "content": shown}),
            "what read_file displays",
        ),
        (
            json!({"path": "~/.ssh/id_rsa", "content": "x"}),
            "credentials or logins",
        ),
        (
            json!({"path": "/home/alice/.netrc", "content": "x"}),
            "credentials or logins",
        ),
        (json!({"path": "/srv/x.json", "content": "{"}), "no well-formed JSON"),
        (json!({"path": "x.yml", "content": "a: b: c"}), "no well-formed YAML"),
        (json!({"path": "/srv/x.json", "content": "{}"}), "outside the workspace"),
        (json!({"path": "d", "content": "x"}), "is a directory"),
    ] {
        let written = write_one(&bench, arguments.clone()).await;
        assert!(
            written["error"].as_str().unwrap().contains(reason),
            "{arguments}: {written}"
        );
    }
    let left: Vec<_> = std::fs::read_dir(bench.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["d"]);
}

#[tokio::test]
async fn well_formed_data_is_written_and_said_to_be() {
    let bench = Bench::new().await;
    let written = write_one(&bench, json!({"path": "x.json", "content": "{\"a\": 1}"})).await;
    assert_eq!(written["lint"]["status"], "ok");
}

#[tokio::test]
async fn a_write_over_what_the_session_does_not_know_is_warned_of() {
    let bench = Bench::new().await;
    let root = bench.workspace().await.root().to_path_buf();
    let warning = async |content: &str| {
        let written = write_one(&bench, json!({"path": "a.txt", "content": content})).await;
        written["_warning"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(warning("new").await, "");
    assert_eq!(warning("own").await, "", "what it wrote itself it knows");
    std::fs::write(root.join("a.txt"), "changed behind its back").unwrap();
    assert!(warning("2").await.contains("had changed on disk"));
    std::fs::write(root.join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let page = json!({"path": "a.txt", "limit": 2});
    bench.run(&super::super::read_file::ReadFile, page).await;
    assert!(warning("3").await.contains("only been read in part"));
    std::fs::write(root.join("b.txt"), "another's").unwrap();
    let written = write_one(&bench, json!({"path": "b.txt", "content": "x"})).await;
    assert!(
        written["_warning"].as_str().unwrap().contains("had not read it"),
        "{written}"
    );
    std::fs::write(root.join("c.txt"), "one\n").unwrap();
    bench
        .run(&super::super::read_file::ReadFile, json!({"path": "c.txt"}))
        .await;
    let written = write_one(&bench, json!({"path": "c.txt", "content": "x"})).await;
    assert_eq!(written.get("_warning"), None);
    // What was written is read again, not taken for seen.
    let read = bench
        .run(&super::super::read_file::ReadFile, json!({"path": "c.txt"}))
        .await;
    assert!(read.result.contains("1|x"), "{}", read.result);
}

#[tokio::test]
async fn a_relative_path_that_leaves_the_workspace_is_warned_of() {
    let bench = Bench::new().await;
    let tmp = bench.workspace().await.tmp().join("x");
    std::os::unix::fs::symlink(&tmp, bench.root().join("link")).unwrap();
    for (path, cwd) in [("x", tmp.parent().unwrap().to_owned()), ("link", bench.root())] {
        let mut call = bench.call(json!({"path": path, "content": "x"}));
        call.cwd = cwd;
        let done = WriteFile.run(call).await;
        bench.saw("write_file", &done.writes.files);
        let written: Value = serde_json::from_str(&done.result).unwrap();
        assert_eq!(written["resolved_path"], json!(tmp), "{written}");
        assert!(
            written["_warning"].as_str().unwrap().contains("outside the workspace"),
            "{written}"
        );
    }
    let written = write_one(&bench, json!({"path": tmp, "content": "x"})).await;
    assert_eq!(written.get("_warning"), None, "{written}");
}

#[tokio::test]
async fn another_profile_is_written_only_when_asked_for() {
    let bench = Bench::new().await;
    let path = "~/.hermes/profiles/work/skills/a/SKILL.md";
    let written = write_one(&bench, json!({"path": path, "content": "1|a\n2|b"})).await;
    let error = written["error"].as_str().unwrap();
    assert!(
        error.contains("profile `work`") && error.contains("cross_profile"),
        "{error}"
    );
    let written = write_one(&bench, json!({"path": path, "content": "x", "cross_profile": true})).await;
    assert_eq!(
        written["resolved_path"],
        json!(bench.root().join(".hermes/profiles/work/skills/a/SKILL.md"))
    );
}

#[tokio::test]
async fn the_notice_of_an_unchanged_file_is_no_content() {
    let bench = Bench::new().await;
    let written = write_one(&bench, json!({"path": "a.txt", "content": display::UNCHANGED})).await;
    assert!(
        written["error"].as_str().unwrap().contains("did not change"),
        "{written}"
    );
    assert!(!bench.root().join("a.txt").exists());
}

#[tokio::test]
async fn malformed_data_of_every_kind_is_not_written() {
    let bench = Bench::new().await;
    for (name, content) in [
        ("a.json", "{"),
        ("a.yaml", "a: b: c"),
        ("a.YML", "a: ["),
        ("a.toml", "a = "),
    ] {
        let written = write_one(&bench, json!({"path": name, "content": content})).await;
        assert_eq!(written["lint"]["status"], "error", "{name}");
        assert!(!bench.root().join(name).exists(), "{name}");
    }
    let written = write_one(&bench, json!({"path": "a.toml", "content": "a = 1\n"})).await;
    assert_eq!(written["lint"], json!({"status": "ok", "message": "well-formed TOML"}));
}
