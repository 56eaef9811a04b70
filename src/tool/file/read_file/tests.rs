//! Reading for real, in a workspace of its own.

use super::*;
use crate::environment::Parents;
use crate::tool::testing::Bench;

async fn bench(files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new().await;
    let workspace = bench.workspace().await;
    for (path, content) in files {
        let bytes = content.as_bytes().to_vec();
        workspace
            .write_atomic(Path::new(path), bytes, Parents::Create)
            .await
            .unwrap();
    }
    bench
}

async fn read_one(bench: &Bench, arguments: Value) -> Value {
    let done = bench.run(&ReadFile, arguments).await;
    let read: Value = serde_json::from_str(&done.result).unwrap();
    assert_eq!(done.failed, read.get("error").is_some(), "{read}");
    read
}

#[tokio::test]
async fn a_file_comes_with_numbered_lines() {
    let bench = bench(&[("a.txt", "one\ntwo\nthree\n")]).await;
    let read = read_one(&bench, json!({"path": "a.txt"})).await;
    let whole = json!({
        "content": "1|one\n2|two\n3|three", "total_lines": 3, "file_size": 14, "truncated": false,
        "is_binary": false, "is_image": false,
    });
    assert_eq!(read, whole);
    let read = read_one(&bench, json!({"path": "~/a.txt", "offset": 2, "limit": "1"})).await;
    assert_eq!(read["content"], "2|two");
    assert_eq!(read["hint"], "lines 2 to 2 of 3; use offset=3 to read on");
    let read = read_one(&bench, json!({"path": "a.txt", "offset": "many", "limit": -4})).await;
    assert_eq!(read["content"], "1|one");
    let read = read_one(&bench, json!({"path": "a.txt", "offset": 9})).await;
    assert_eq!((&read["content"], &read["truncated"]), (&json!(""), &json!(false)));
    assert_eq!(read["hint"], "the file has 3 lines; offset is behind its end");
}

#[tokio::test]
async fn a_page_that_is_full_says_where_to_go_on() {
    let bench = bench(&[("long.txt", &format!("{}\n", "x".repeat(1_500)).repeat(600))]).await;
    let read = read_one(&bench, json!({"path": "long.txt"})).await;
    let next = read["next_offset"].as_u64().unwrap();
    assert_eq!(
        (&read["truncated_by"], &read["truncated"]),
        (&json!("bytes"), &json!(true))
    );
    assert!(read["content"].as_str().unwrap().ends_with('x') && read["_hint"].is_string());
    let read = read_one(&bench, json!({"path": "long.txt", "offset": next, "limit": 1})).await;
    assert!(read["content"].as_str().unwrap().starts_with(&format!("{next}|x")));
}

#[tokio::test]
async fn secrets_are_masked_and_later_lines_keep_their_numbers() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    let marker = ["PRIVATE", "KEY"].join(" ");
    let file = format!("first\n-----BEGIN {marker}-----\n{body}\n{body}\n-----END {marker}-----\nlast\n");
    let bench = bench(&[("key.txt", &file)]).await;
    let read = read_one(&bench, json!({"path": "key.txt"})).await;
    let content = read["content"].as_str().unwrap();
    assert!(
        content.contains("[REDACTED PRIVATE KEY]") && !content.contains("MIIE"),
        "{content}"
    );
    assert!(
        content.starts_with("1|first\n2|") && content.ends_with("\n6|last"),
        "{content}"
    );
}

#[tokio::test]
async fn what_is_not_to_be_read_is_refused_with_the_reason() {
    let bench = bench(&[(".env", "A=1"), ("a.png", "x"), ("blob", "\0\0\0\u{1}"), ("d/x", "")]).await;
    std::os::unix::fs::symlink(".env", bench.root().join("plain.txt")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", bench.root().join("out.txt")).unwrap();
    for (path, reason) in [
        ("/dev/zero", "device"),
        ("a.png", "binary file"),
        (".env", "may hold secrets"),
        ("plain.txt", "may hold secrets"),
        ("~/.hermes/auth.json", "may hold secrets"),
        ("blob", "binary content"),
        ("/etc/hostname", "outside the workspace"),
        ("out.txt", "outside the workspace"),
        ("../../x", "outside the workspace"),
        ("d", "is a directory"),
        ("", "`path` is missing"),
    ] {
        let read = read_one(&bench, json!({"path": path})).await;
        assert!(read["error"].as_str().unwrap().contains(reason), "{path}: {read}");
    }
}

#[tokio::test]
async fn a_missing_file_comes_with_names_like_it() {
    let bench = bench(&[("d/notes.md", ""), ("d/other.rs", "")]).await;
    let read = read_one(&bench, json!({"path": "d/notes.txt"})).await;
    assert_eq!(read["error"], "File not found: d/notes.txt");
    assert_eq!(read["similar_files"], json!([bench.root().join("d/notes.md")]));
    let read = read_one(&bench, json!({"path": "nowhere/notes.txt"})).await;
    assert_eq!(read["similar_files"], json!([]));
}

#[tokio::test]
async fn a_cancelled_read_ends_as_cancelled() {
    let bench = bench(&[("a.txt", "one")]).await;
    let call = bench.call(json!({"path": "a.txt"}));
    call.cancel.cancel();
    assert!(ReadFile.run(call).await.cancelled);
}

#[tokio::test]
async fn what_the_model_has_seen_is_told_once_and_then_blocked() {
    let bench = bench(&[("a.txt", "one\n")]).await;
    std::os::unix::fs::symlink("a.txt", bench.root().join("link")).unwrap();
    assert_eq!(read_one(&bench, json!({"path": "a.txt"})).await["content"], "1|one");
    let told = read_one(&bench, json!({"path": "link"})).await;
    let whole = json!({
        "status": "unchanged", "message": display::UNCHANGED, "path": "link", "dedup": true, "content_returned": false,
    });
    assert_eq!(told, whole);
    for _ in 0..2 {
        let blocked = read_one(&bench, json!({"path": "a.txt"})).await;
        assert!(blocked["error"].as_str().unwrap().starts_with("BLOCKED"), "{blocked}");
        assert_eq!(
            (&blocked["path"], &blocked["already_read"]),
            (&json!("a.txt"), &json!(2))
        );
    }
    bench.saw("terminal", &[]);
    assert_eq!(read_one(&bench, json!({"path": "a.txt"})).await["status"], "unchanged");
    assert_eq!(
        read_one(&bench, json!({"path": "a.txt", "limit": 9})).await["content"],
        "1|one"
    );
    std::fs::write(bench.root().join("a.txt"), "changed\n").unwrap();
    assert_eq!(read_one(&bench, json!({"path": "a.txt"})).await["content"], "1|changed");
}

#[tokio::test]
async fn a_file_that_changes_each_time_is_shown_three_times_in_a_row() {
    let bench = bench(&[]).await;
    let path = bench.workspace().await.root().join("a.txt");
    for length in 1..=3 {
        std::fs::write(&path, "x".repeat(length)).unwrap();
        let read = read_one(&bench, json!({"path": "a.txt"})).await;
        assert_eq!(read["content"], format!("1|{}", "x".repeat(length)));
        assert_eq!(read.get("_warning").is_some(), length == 3, "{read}");
    }
    std::fs::write(&path, "xxxx").unwrap();
    let blocked = read_one(&bench, json!({"path": "a.txt"})).await;
    assert!(blocked["error"].as_str().unwrap().starts_with("BLOCKED"), "{blocked}");
    assert_eq!(blocked["already_read"], 3);
}

#[tokio::test]
async fn the_numbers_of_a_page_are_brought_into_their_bounds() {
    let bench = bench(&[("a.txt", &"x\n".repeat(3_000))]).await;
    for (arguments, lines) in [
        (json!({}), 500),
        (json!({"limit": 0}), 1),
        (json!({"limit": 1_999}), 1_999),
        (json!({"limit": 2_001}), 2_000),
        (json!({"limit": "x", "offset": -7}), 500),
        (json!({"offset": 2_990}), 11),
    ] {
        let bench_arguments = {
            let mut all = arguments.clone();
            all["path"] = json!("a.txt");
            all
        };
        bench.saw("terminal", &[]);
        let call = bench.call(bench_arguments);
        let read: Value = serde_json::from_str(&ReadFile.run(call).await.result).unwrap();
        let shown = read["content"].as_str().map(|content| content.lines().count());
        assert_eq!(shown, Some(lines), "{arguments}: {read}");
    }
}

#[tokio::test]
async fn advice_on_large_files_needs_all_three_reasons() {
    let large = "x".repeat(1_023) + "\n";
    let bench = bench(&[("large", &large.repeat(501)), ("small", &large.repeat(499))]).await;
    for (path, limit, advised) in [
        ("large", 201, true),
        ("large", 200, false),
        ("large", 1_000, true),
        ("small", 201, false),
    ] {
        let read = read_one(&bench, json!({"path": path, "limit": limit})).await;
        assert_eq!(read.get("_hint").is_some(), advised, "{path} {limit}");
    }
}

#[tokio::test]
async fn an_image_is_refused_as_what_it_is() {
    let bench = bench(&[("a.PNG", "12345"), ("a.zip", "12345")]).await;
    let read = read_one(&bench, json!({"path": "a.PNG"})).await;
    assert!(read["error"].as_str().unwrap().contains("vision_analyze"), "{read}");
    assert_eq!(
        (&read["is_image"], &read["is_binary"], &read["file_size"]),
        (&json!(true), &json!(true), &json!(5))
    );
    assert!(read["hint"].is_string());
    let read = read_one(&bench, json!({"path": "a.zip"})).await;
    assert!(read["error"].as_str().unwrap().contains("terminal") && read.get("is_image").is_none());
}
