//! Patching for real, in a workspace of its own.

use super::*;
use crate::tool::testing::{Bench, place};

async fn run(bench: &Bench, arguments: Value) -> Value {
    let done = bench.run(&Patch, arguments).await;
    let said: Value = serde_json::from_str(&done.result).unwrap();
    assert_eq!(done.failed, said["success"] == false, "{said}");
    assert_eq!(done.failed, said.get("error").is_some(), "{said}");
    said
}

async fn with(files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new().await;
    let root = bench.workspace().await.root().to_path_buf();
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    bench
}

fn on_disk(bench: &Bench, path: &str) -> String {
    std::fs::read_to_string(bench.root().join(path)).unwrap()
}

#[tokio::test]
async fn a_passage_is_replaced_and_the_change_is_shown() {
    let bench = with(&[("a.txt", "one\ntwo\nthree\n")]).await;
    let said = run(&bench, json!({"path": "a.txt", "old_string": "two", "new_string": "2"})).await;
    let path = bench.root().join("a.txt");
    assert_eq!(
        said["diff"],
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    );
    assert_eq!(
        (&said["files_modified"], &said["resolved_path"]),
        (&json!([path]), &json!(path))
    );
    assert!(said["_warning"].as_str().unwrap().contains("had not read"));
    assert_eq!(on_disk(&bench, "a.txt"), "one\n2\nthree\n");
    // The session wrote it: nothing to warn of any more.
    let said = run(
        &bench,
        json!({"path": "a.txt", "old_string": "2\n", "new_string": "", "mode": "replace"}),
    )
    .await;
    assert_eq!(on_disk(&bench, "a.txt"), "one\nthree\n");
    assert_eq!(said.get("_warning"), None);
    std::fs::write(bench.root().join("a.txt"), "somebody else's\nthree\n").unwrap();
    let said = run(
        &bench,
        json!({"path": "a.txt", "old_string": "three", "new_string": "3"}),
    )
    .await;
    assert!(
        said["_warning"].as_str().unwrap().contains("had changed on disk"),
        "{said}"
    );
    assert_eq!(on_disk(&bench, "a.txt"), "somebody else's\n3\n");
}

#[tokio::test]
async fn line_ends_and_mark_of_the_file_are_kept_and_mixed_ones_left_alone() {
    let bench = with(&[
        ("dos.txt", "\u{feff}one\r\ntwo\r\nthree\r\n"),
        ("mixed.txt", "one\r\ntwo\nthree\r\n"),
    ])
    .await;
    let change = |path: &str| json!({"path": path, "old_string": "one\ntwo", "new_string": "1\n2"});
    run(&bench, change("dos.txt")).await;
    assert_eq!(on_disk(&bench, "dos.txt"), "\u{feff}1\r\n2\r\nthree\r\n");
    let patch = "*** Update File: dos.txt\n-2\n+zwei\n three";
    run(&bench, json!({"mode": "patch", "patch": patch})).await;
    assert_eq!(on_disk(&bench, "dos.txt"), "\u{feff}1\r\nzwei\r\nthree\r\n");
    run(
        &bench,
        json!({"path": "mixed.txt", "old_string": "two", "new_string": "2"}),
    )
    .await;
    assert_eq!(on_disk(&bench, "mixed.txt"), "one\r\n2\nthree\r\n");
}

#[tokio::test]
async fn what_does_not_fit_is_told_and_the_third_time_firmly() {
    let bench = with(&[("a.rs", "fn one() {\n    work();\n}\nfn two() {}\n")]).await;
    let change = |old: &str| json!({"path": "a.rs", "old_string": old, "new_string": "x"});
    let said = run(&bench, change("async fn three() { rest() }\nlet it = be;")).await;
    let error = said["error"].as_str().unwrap();
    assert!(
        error.contains("was not found") && error.contains("4|fn two() {}"),
        "{error}"
    );
    assert!(said["_hint"].as_str().unwrap().contains("read it again"));
    run(&bench, change("nothing like it at all, nowhere\nno")).await;
    let said = run(&bench, change("fn")).await;
    assert!(said["error"].as_str().unwrap().contains("2 times"), "{said}");
    assert!(said["_hint"].as_str().unwrap().starts_with("3 changes"), "{said}");
    run(&bench, change("work();")).await;
    let said = run(&bench, change("gone")).await;
    assert!(
        !said["_hint"].as_str().unwrap().contains("in a row"),
        "a change that fits begins anew"
    );
    assert_eq!(on_disk(&bench, "a.rs"), "fn one() {\n    x\n}\nfn two() {}\n");
}

/// Arguments with what their refusal says.
fn refused() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"mode": "sed"}), "`mode` is"),
        (json!({"old_string": "a", "new_string": "b"}), "`path` is missing"),
        (json!({"path": "a.json", "new_string": "b"}), "`old_string` is missing"),
        (json!({"path": "a.json", "old_string": "a"}), "`new_string` is missing"),
        (
            json!({"path": "a.json", "old_string": "", "new_string": "b"}),
            "is empty",
        ),
        (
            json!({"path": "a.json", "old_string": "a", "new_string": "a"}),
            "are the same",
        ),
        (
            json!({"path": "a.json", "old_string": "1}", "new_string": "1"}),
            "no well-formed JSON",
        ),
        (
            json!({"path": "nope", "old_string": "a", "new_string": "b"}),
            "File not found",
        ),
        (
            json!({"path": "bin", "old_string": "a", "new_string": "b"}),
            "no UTF-8 text",
        ),
        (
            json!({"path": "/etc/passwd", "old_string": "a", "new_string": "b"}),
            "belongs to the system",
        ),
        (
            json!({"path": "~/.ssh/config", "old_string": "a", "new_string": "b"}),
            "credentials",
        ),
        (
            json!({"path": "~/.hermes/config.yaml", "old_string": "a", "new_string": "b"}),
            "own configuration",
        ),
        (
            json!({"path": "/srv/x", "old_string": "a", "new_string": "b"}),
            "outside the workspace",
        ),
        (
            json!({"path": ".", "old_string": "a", "new_string": "b"}),
            "is a directory",
        ),
        (json!({"mode": "patch"}), "`patch` is missing"),
        (json!({"mode": "patch", "patch": "hello"}), "names no file"),
        (
            json!({"mode": "patch", "patch": "*** Add File: a/../b\n+x"}),
            "holds no `..`",
        ),
        (
            json!({"mode": "patch", "patch": "*** Update File: a.json"}),
            "holds no lines",
        ),
        (
            json!({"mode": "patch", "patch": "*** Add File: x\n+a\n*** Delete File: ./x"}),
            "are one file",
        ),
        (
            json!({"mode": "patch", "patch": "*** Add File: y.json\n+{"}),
            "no well-formed JSON",
        ),
        (
            json!({"mode": "patch", "patch": "*** Add File: /etc/x\n+a"}),
            "belongs to the system",
        ),
    ]
}

#[tokio::test]
async fn refusals_touch_nothing() {
    let bench = with(&[
        ("a.json", "{\"a\": 1}"),
        ("bin", ""),
        (".env", "TOKEN=secret-of-mine\n"),
    ])
    .await;
    std::fs::write(bench.root().join("bin"), b"\xff\xfe\x00").unwrap();
    for (arguments, reason) in refused() {
        let said = run(&bench, arguments.clone()).await;
        assert!(said["error"].as_str().unwrap().contains(reason), "{arguments}: {said}");
    }
    let said = run(
        &bench,
        json!({"path": ".env", "old_string": "TOKEN=x", "new_string": "y"}),
    )
    .await;
    assert!(!said.to_string().contains("secret-of-mine"), "{said}");
    let said = run(
        &bench,
        json!({"path": ".env", "old_string": "TOKEN", "new_string": "KEY"}),
    )
    .await;
    assert!(!said.to_string().contains("secret-of-mine"), "{said}");
    let mut names: Vec<_> = std::fs::read_dir(bench.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, [".env", "a.json", "bin"]);
    assert_eq!(on_disk(&bench, "a.json"), "{\"a\": 1}");
}

#[tokio::test]
async fn a_patch_of_several_files_lands_as_a_whole() {
    let files = [
        ("up.txt", "a\nb\n"),
        ("old/name.txt", "moved\n"),
        ("gone.txt", "bye\n"),
        ("note.py", "x = 1\n"),
    ];
    let bench = with(&files).await;
    let patch = "*** Begin Patch\n*** Update File: up.txt\n a\n-b\n+B\n*** Add File: new/deep.txt\n+fresh\n\
        *** Move File: old/name.txt -> new/name.txt\n*** Delete File: gone.txt\n*** End Patch";
    let said = run(&bench, json!({"mode": "patch", "patch": patch})).await;
    let at = |path: &str| bench.root().join(path);
    let moved = format!("{} -> {}", at("old/name.txt").display(), at("new/name.txt").display());
    assert_eq!(said["files_modified"], json!([at("up.txt"), moved]));
    assert_eq!(said["files_created"], json!([at("new/deep.txt")]));
    assert_eq!(said["files_deleted"], json!([at("gone.txt")]));
    let diff = said["diff"].as_str().unwrap();
    for part in [
        "+B\n",
        "+++ b/new/deep.txt",
        "# Moved: old/name.txt -> new/name.txt",
        "-bye",
        "# Deleted: gone.txt",
    ] {
        assert!(diff.contains(part), "{part}: {diff}");
    }
    assert_eq!(on_disk(&bench, "up.txt"), "a\nB\n");
    assert_eq!(
        (on_disk(&bench, "new/deep.txt"), on_disk(&bench, "new/name.txt")),
        ("fresh".into(), "moved\n".into())
    );
    assert!(!at("gone.txt").exists() && !at("old/name.txt").exists());
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_no_file() {
    let bench = with(&[("a", "1\n"), ("b", "different\n")]).await;
    let patch = "*** Update File: a\n-1\n+2\n*** Delete File: b\n*** Update File: b\n-nope\n+x\n*** Delete File: c";
    let said = run(&bench, json!({"mode": "patch", "patch": patch})).await;
    let error = said["error"].as_str().unwrap();
    assert!(
        error.starts_with("nothing was changed") && error.contains("`c`: there is no such file"),
        "{error}"
    );
    assert_eq!(
        (on_disk(&bench, "a"), on_disk(&bench, "b")),
        ("1\n".into(), "different\n".into())
    );
}

#[tokio::test]
async fn what_landed_before_a_failed_write_is_told() {
    let bench = with(&[("a", "1\n"), ("file", "x\n")]).await;
    let patch = "*** Update File: a\n-1\n+2\n*** Add File: file/under\n+x";
    let said = run(&bench, json!({"mode": "patch", "patch": patch})).await;
    assert_eq!(said["success"], false);
    // The second could be told before: either way the model knows what is there.
    let told = said["files_modified"].as_array().map_or(0, Vec::len);
    assert_eq!(on_disk(&bench, "a") == "2\n", told == 1, "{said}");
}

#[test]
fn the_paths_of_a_call_are_what_it_writes() {
    let patch = "*** Update File: a\n-1\n+2\n*** Move File: b -> c/d";
    let cwd = std::path::Path::new("/data/work");
    let footprint = Patch.footprint(&json!({"mode": "patch", "patch": patch}), &place(cwd));
    let paths = ["/data/work/a", "/data/work/b", "/data/work/c/d"].map(Into::into);
    assert_eq!(footprint, Footprint::Writes(paths.to_vec()));
    assert_eq!(
        Patch.footprint(&json!({"mode": "patch"}), &place(cwd)),
        Footprint::Alone
    );
    assert_eq!(
        Patch.subject(&json!({"path": "x", "old_string": "a", "new_string": "b"})),
        "x"
    );
}

#[tokio::test]
async fn calls_that_change_one_file_at_once_follow_one_another() {
    let text: String = (0..20).map(|number| format!("line {number}.\n")).collect();
    let bench = with(&[("a.txt", &text)]).await;
    std::os::unix::fs::symlink("a.txt", bench.root().join("other name")).unwrap();
    let changes = (0..20).map(|number| {
        let path = if number % 2 == 0 { "a.txt" } else { "other name" };
        let old = format!("line {number}.");
        Patch.run(bench.call(json!({"path": path, "old_string": old, "new_string": format!("changed {number}.")})))
    });
    for done in futures::future::join_all(changes).await {
        assert!(!done.failed, "{}", done.result);
    }
    let expected: String = (0..20).map(|number| format!("changed {number}.\n")).collect();
    assert_eq!(on_disk(&bench, "a.txt"), expected);
}
