//! Searching for real, in a workspace of its own.

use std::fs;
use std::os::unix::ffi::OsStringExt;

use super::*;
use crate::tool::testing::{Bench, place};

async fn with(files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new().await;
    let root = bench.workspace().await.root().to_path_buf();
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    bench
}

async fn said(bench: &Bench, arguments: Value) -> (Value, Option<String>) {
    let done = bench.run(&SearchFiles, arguments.clone()).await;
    let (json, hint) = match done.result.split_once("\n\n[") {
        Some((json, hint)) => (json, Some(format!("[{hint}"))),
        None => (done.result.as_str(), None),
    };
    let said: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("{arguments}: {}", done.result));
    assert_eq!(done.failed, said.get("error").is_some(), "{said}");
    (said, hint)
}

async fn one(bench: &Bench, arguments: Value) -> Value {
    said(bench, arguments).await.0
}

#[tokio::test]
async fn lines_are_found_in_the_order_of_their_paths() {
    let bench = with(&[
        ("b.txt", "needle\nhay\n"),
        ("a/x.rs", "hay\nThe needle here\n"),
        ("c.md", "hay"),
    ])
    .await;
    let found = one(&bench, json!({"pattern": "needle"})).await;
    assert_eq!(
        found,
        json!({"total_count": 2, "matches": [
            {"path": "a/x.rs", "line": 2, "content": "The needle here"},
            {"path": "b.txt", "line": 1, "content": "needle"},
        ]})
    );
    let found = one(&bench, json!({"pattern": "^need.e$", "path": "b.txt"})).await;
    assert_eq!(
        found["matches"],
        json!([{"path": "b.txt", "line": 1, "content": "needle"}])
    );
    let found = one(
        &bench,
        json!({"pattern": "needle", "file_glob": "*.rs", "output_mode": "files_only"}),
    )
    .await;
    assert_eq!(
        (&found["files"], &found["total_count"]),
        (&json!(["a/x.rs"]), &json!(1))
    );
    let found = one(
        &bench,
        json!({"pattern": "hay", "output_mode": "count", "target": "grep"}),
    )
    .await;
    assert_eq!(found["counts"], json!({"a/x.rs": 1, "b.txt": 1, "c.md": 1}));
    let found = one(&bench, json!({"pattern": "needle", "path": "a", "context": 1})).await;
    assert_eq!(
        found["matches"],
        json!([{"path": "a/x.rs", "line": 1, "content": "hay", "context": true},
            {"path": "a/x.rs", "line": 2, "content": "The needle here"}])
    );
}

#[tokio::test]
async fn many_lines_come_grouped_and_in_pages() {
    let text: String = (1..=7).map(|number| format!("hit {number}\n")).collect();
    let bench = with(&[("a.txt", &text), ("b.txt", "hit 8\nhit 9\n")]).await;
    let (found, hint) = said(&bench, json!({"pattern": "hit", "limit": 5, "offset": 3})).await;
    assert_eq!(
        found["matches_text"],
        "a.txt\n4:hit 4\n5:hit 5\n6:hit 6\n7:hit 7\n\nb.txt\n1:hit 8\n"
    );
    assert_eq!((&found["total_count"], &found["truncated"]), (&json!(9), &json!(true)));
    assert_eq!(
        hint.unwrap(),
        "[Results are cut: 9 in all; use offset=8 for more, or a narrower pattern]"
    );
    let (found, hint) = said(&bench, json!({"pattern": "hit", "offset": 8})).await;
    assert_eq!(
        (found["matches"].clone(), hint),
        (json!([{"path": "b.txt", "line": 2, "content": "hit 9"}]), None)
    );
    let (found, hint) = said(&bench, json!({"pattern": "hit", "limit": 2, "offset": "1"})).await;
    assert_eq!(
        found["matches"][1],
        json!({"path": "a.txt", "line": 3, "content": "hit 3"})
    );
    assert!(hint.is_some());
    let (refused, _) = said(&bench, json!({"pattern": "hit", "offset": 10_001})).await;
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("`offset` is at most 10000"), "{error}");
}

#[tokio::test]
async fn files_are_found_by_name_the_newest_first() {
    let bench = with(&[
        ("old.rs", ""),
        ("src/new.rs", ""),
        ("src/note.md", ""),
        (".hidden.rs", ""),
    ])
    .await;
    for (path, seconds) in [("old.rs", 1_000), ("src/new.rs", 2_000)] {
        let file = fs::File::options().write(true).open(bench.root().join(path)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(seconds))
            .unwrap();
    }
    let found = one(&bench, json!({"pattern": "*.rs", "target": "files"})).await;
    assert_eq!(found, json!({"total_count": 2, "files": ["src/new.rs", "old.rs"]}));
    let found = one(&bench, json!({"pattern": "new.rs", "target": "find", "path": "src/"})).await;
    assert_eq!(found["files"], json!(["src/new.rs"]));
    let found = one(&bench, json!({"pattern": "src/*.md", "target": "files"})).await;
    assert_eq!(found["files"], json!(["src/note.md"]));
    let found = one(&bench, json!({"pattern": ".hidden*", "target": "files"})).await;
    assert_eq!(found["files"], json!([".hidden.rs"]));
    let (found, hint) = said(&bench, json!({"pattern": "*", "target": "files", "limit": 1})).await;
    assert_eq!(
        (found["files"].as_array().unwrap().len(), &found["total_count"]),
        (1, &json!(3))
    );
    assert!(hint.is_some());
}

#[tokio::test]
async fn hidden_ignored_and_secret_files_are_left_out() {
    let files = [
        (".git/config", "needle"),
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        ("target/out.txt", "needle"),
        ("a.log", "needle"),
        ("keep.log", "needle"),
        (".hidden/x", "needle"),
        ("sub/.ignore", "skip.txt"),
        ("sub/skip.txt", "needle"),
        ("sub/stay.txt", "needle"),
        ("sub/a.log", "needle"),
        (".env", "needle"),
        ("sub/.env", "needle"),
    ];
    let bench = with(&files).await;
    let files = |found: &Value| found["files"].clone();
    let ask = |path: &str| json!({"pattern": "needle", "output_mode": "files_only", "path": path});
    let found = one(&bench, ask(".")).await;
    assert_eq!(
        (files(&found), found.get("_omitted")),
        (json!(["keep.log", "sub/stay.txt"]), None)
    );
    // Rules above the directory that is searched hold too.
    assert_eq!(files(&one(&bench, ask("sub")).await), json!(["sub/stay.txt"]));
    assert_eq!(files(&one(&bench, ask(".hidden")).await), json!([".hidden/x"]));
    let found = one(&bench, json!({"pattern": "needle", "file_glob": ".env"})).await;
    assert_eq!((&found["matches"], &found["_omitted"]), (&json!([]), &json!(2)));
    // What is in there is not told by how many were left out.
    let found = one(&bench, json!({"pattern": "nothing of that", "file_glob": ".env"})).await;
    assert_eq!(found["_omitted"], 2);
    let found = one(&bench, json!({"pattern": "needle", "path": ".env"})).await;
    assert!(found["error"].as_str().unwrap().contains("may hold secrets"));
}

#[tokio::test]
async fn secrets_in_lines_are_masked_and_long_lines_cut() {
    let token = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let bench = with(&[
        ("a", &format!("token {token}\n")),
        ("b", &format!("token {}", "x".repeat(3_000))),
    ])
    .await;
    let found = one(&bench, json!({"pattern": "token"})).await;
    assert!(!found.to_string().contains("0123456789abcdef"), "{found}");
    assert_eq!(found["matches"][1]["content"].as_str().unwrap().len(), 500);
}

#[tokio::test]
async fn what_cannot_be_searched_is_told() {
    let bench = with(&[("notes.txt", "a\nb\n")]).await;
    for (arguments, reason) in [
        (json!({}), "`pattern` is missing"),
        (json!({"pattern": "a", "target": "web"}), "`target` is"),
        (json!({"pattern": "a", "output_mode": "all"}), "`output_mode` is"),
        (json!({"pattern": "("}), "no regular expression"),
        (json!({"pattern": "a", "file_glob": "a{"}), "glob cannot be used"),
        (json!({"pattern": "a", "path": "note.txt"}), "Path not found: note.txt"),
        (json!({"pattern": "a", "path": "/etc"}), "outside the workspace"),
        (
            json!({"pattern": "a", "path": "notes.txt", "target": "files"}),
            "no directory",
        ),
        (json!({"pattern": "a", "path": "/proc/self/environ"}), "device"),
    ] {
        let found = one(&bench, arguments.clone()).await;
        assert!(
            found["error"].as_str().unwrap().contains(reason),
            "{arguments}: {found}"
        );
    }
    let found = one(&bench, json!({"pattern": "a", "path": "note.txt"})).await;
    assert_eq!(found["similar_paths"], json!([bench.root().join("notes.txt")]));
    for pattern in ["a\nb", "a\\nb"] {
        let found = one(&bench, json!({"pattern": pattern})).await;
        assert_eq!(found["total_count"], 0);
        assert!(found["warning"].as_str().unwrap().contains("line by line"));
    }
}

#[tokio::test]
async fn the_same_search_is_not_run_for_ever() {
    let bench = with(&[("a", "x")]).await;
    let ask = || json!({"pattern": "x"});
    assert_eq!(one(&bench, ask()).await.get("_warning"), None);
    one(&bench, ask()).await;
    assert!(one(&bench, ask()).await["_warning"].is_string());
    let found = one(&bench, ask()).await;
    assert_eq!(
        (&found["pattern"], &found["already_searched"]),
        (&json!("x"), &json!(3))
    );
    one(&bench, json!({"pattern": "y"})).await;
    assert_eq!(one(&bench, ask()).await["total_count"], 1);
}

#[tokio::test]
async fn hostile_trees_are_searched_in_bounds() {
    let bench = with(&[
        ("ok.txt", "needle\n"),
        ("nul.bin", "needle\0needle\n"),
        ("deep/er/x.txt", "needle\n"),
    ])
    .await;
    let root = bench.root();
    std::os::unix::fs::symlink(".", root.join("loop")).unwrap();
    std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("socket"),
        rustix::fs::FileType::Socket,
        0o600.into(),
        0,
    )
    .unwrap();
    let odd = std::ffi::OsString::from_vec(b"odd-\xff.txt".to_vec());
    fs::write(root.join(odd), "needle\n").unwrap();
    fs::write(
        root.join("long.txt"),
        format!("{}needle\nneedle\n", "x".repeat(10 << 20)),
    )
    .unwrap();
    fs::write(root.join("longer.txt"), "y".repeat(40 << 20)).unwrap();
    fs::File::create(root.join("sparse")).unwrap().set_len(2 << 30).unwrap();
    for number in 0..20_000 {
        if number % 2_000 == 0 {
            fs::create_dir(root.join(format!("many{}", number / 2_000))).unwrap();
        }
        fs::write(root.join(format!("many{}/{number}", number / 2_000)), "hay").unwrap();
    }
    let began = Instant::now();
    let found = one(&bench, json!({"pattern": "needle", "output_mode": "count"})).await;
    assert_eq!(
        found["counts"],
        json!({"deep/er/x.txt": 1, "long.txt": 2, "odd-\u{fffd}.txt": 1, "ok.txt": 1})
    );
    assert!(
        found["warning"].as_str().unwrap().starts_with("1 files"),
        "the line of 40 MB: {found}"
    );
    let found = one(&bench, json!({"pattern": "*", "target": "files", "limit": 3})).await;
    assert_eq!(found["total_count"], 20_000 + 7);
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_file_is_searched_alike_whatever_its_length_and_coding() {
    let bench = with(&[("empty", ""), ("bom", "\u{feff}needle\n"), ("no-end", "hay\nneedle")]).await;
    let root = bench.root();
    let utf_16 = "\u{feff}a needle\n".encode_utf16().flat_map(u16::to_le_bytes);
    fs::write(root.join("utf-16"), utf_16.collect::<Vec<u8>>()).unwrap();
    // Around what one reading holds.
    for length in [65_535, 65_536, 65_537, 200_000] {
        let hay = "hay\n".repeat(length / 4 + 1);
        let text = format!("{}needle\n", &hay[hay.len() - (length - 7)..]);
        assert_eq!(text.len(), length);
        fs::write(root.join(length.to_string()), text).unwrap();
    }
    // What comes before a NUL counts where it was read before it.
    fs::write(root.join("late-nul"), format!("needle\n{}\0", "hay\n".repeat(50_000))).unwrap();
    let found = one(&bench, json!({"pattern": "^(a )?needle$", "output_mode": "count"})).await;
    assert_eq!(
        found["counts"],
        json!({"bom": 1, "no-end": 1, "utf-16": 1, "65535": 1, "65536": 1, "65537": 1, "200000": 1, "late-nul": 1})
    );
    let found = one(&bench, json!({"pattern": "needle", "path": "65535"})).await;
    assert_eq!(found["matches"][0]["line"], 16_383);
}

#[tokio::test]
async fn a_search_ends_when_it_is_told_to() {
    let bench = with(&[("a", "x\n")]).await;
    let call = bench.call(json!({"pattern": "x"}));
    call.cancel.cancel();
    let found: Value = serde_json::from_str(&SearchFiles.run(call).await.result).unwrap();
    assert_eq!(found["limit_reason"], "search_timeout");
}

#[test]
fn a_search_reads_where_it_looks() {
    let cwd = Path::new("/data/work/sub");
    let of = |arguments: Value| SearchFiles.footprint(&arguments, &place(cwd));
    assert_eq!(
        of(json!({"pattern": "x"})),
        Footprint::Reads(vec!["/data/work/sub".into()])
    );
    assert_eq!(
        of(json!({"pattern": "x", "path": "~/a"})),
        Footprint::Reads(vec!["/data/work/a".into()])
    );
    assert!(has_line_end("a\\nb") && !has_line_end("a\\\\nb") && !has_line_end("\\d"));
}
