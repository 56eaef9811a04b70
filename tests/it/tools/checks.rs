//! Checkers of what was written, and documents that are read.

use super::*;

/// Whether the machine has the program where commands look for it.
fn is_there(program: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|directory| PathBuf::from(directory).join(program).exists())
}

#[tokio::test]
async fn a_program_that_was_written_is_checked_where_there_is_a_checker() {
    let bench = Bench::new().await;
    for (program, name, good, bad) in [
        ("python3", "a.py", "x = [1]\n", "def f(:\n"),
        ("node", "a.js", "let x = [1];\n", "let x = ;\n"),
        ("tsc", "a.ts", "let x: number = 1;\n", "let x: = 1;\n"),
        ("go", "a.go", "package a\n", "package\n"),
        ("rustfmt", "a.rs", "fn a() {}\n", "fn a( {}\n"),
    ] {
        let lint = async |content: &str| {
            let done = bench.run("write_file", json!({"path": name, "content": content})).await;
            assert!(!done.failed, "{}", done.result);
            assert_eq!(std::fs::read_to_string(bench.root().join(name)).unwrap(), content);
            read(&done)["lint"].clone()
        };
        let (good, bad) = (lint(good).await, lint(bad).await);
        if is_there(program) {
            assert_eq!(good, json!({"status": "ok"}), "{name}");
            assert_eq!(bad["status"], "error", "{name}: {bad}");
            assert!(!bad["output"].as_str().unwrap().is_empty());
        } else {
            assert_eq!(bad["status"], "skipped", "{name}: {bad}");
            assert!(
                bad["message"].as_str().unwrap().contains("is not available here"),
                "{bad}"
            );
        }
    }
    let done = bench
        .run("write_file", json!({"path": "a.txt", "content": "def f(:\n"}))
        .await;
    assert_eq!(read(&done).get("lint"), None);
}

#[tokio::test]
async fn only_faults_that_were_not_there_before_are_told() {
    if !is_there("python3") {
        return;
    }
    let bench = Bench::new().await;
    // No shell takes a name for a command.
    let name = "a b'; touch sneaked; '$(touch sneaked).py";
    let lint = async |content: &str| {
        let done = bench.run("write_file", json!({"path": name, "content": content})).await;
        read(&done)["lint"].clone()
    };
    let first = lint("def f(:\n").await;
    assert!(first["output"].as_str().unwrap().starts_with("line 1: "), "{first}");
    let again = lint("def f(:\n\n").await;
    assert_eq!((&again["status"], again.get("output")), (&json!("ok"), None), "{again}");
    let other = lint("x = 1\ndef f(:\n").await;
    assert!(other["output"].as_str().unwrap().starts_with("line 2: "), "{other}");
    assert!(!bench.root().join("sneaked").exists());
}

/// The checker reads the file and nothing else of the workspace.
#[tokio::test]
async fn a_check_runs_nothing_that_the_workspace_holds() {
    let bench = Bench::new().await;
    let spy = "import os\nopen(os.path.join(os.path.expanduser('~'), 'ran'), 'w')\n";
    for name in ["ast.py", "sitecustomize.py", "usercustomize.py", "codecs.py"] {
        std::fs::write(bench.root().join(name), spy).unwrap();
    }
    bench.run("write_file", json!({"path": "a.py", "content": spy})).await;
    assert!(!bench.root().join("ran").exists());
}

/// So many brackets would take a parser in this process down with its stack.
#[tokio::test]
async fn text_that_kills_a_checker_harms_nobody() {
    let bench = Bench::new().await;
    for name in ["deep.py", "deep.js"] {
        let content = "(".repeat(900_000);
        let done = bench.run("write_file", json!({"path": name, "content": content})).await;
        let lint = &read(&done)["lint"];
        assert!(
            ["error", "skipped"].contains(&lint["status"].as_str().unwrap()),
            "{name}: {lint}"
        );
    }
    let content = "(".repeat(1 << 20);
    let done = bench
        .run("write_file", json!({"path": "long.py", "content": content}))
        .await;
    assert_eq!(read(&done)["lint"]["message"], "the file is too long to be checked");
}

/// A real archive, made by another program than ours where there is one.
#[tokio::test]
async fn the_text_of_documents_is_read_page_by_page() {
    let bench = Bench::new().await;
    let cells: Vec<Value> = (1..=3)
        .map(|number| json!({"cell_type": "code", "metadata": {}, "outputs": [], "source": [format!("x = {number}")]}))
        .collect();
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).to_string();
    std::fs::write(bench.root().join("a.ipynb"), &notebook).unwrap();
    let page = read(
        &bench
            .run("read_file", json!({"path": "a.ipynb", "offset": 4, "limit": 2}))
            .await,
    );
    assert_eq!(page["extracted_document"], true);
    assert_eq!(page["content"], "4|# %% cell 2 [code]\n5|x = 2");
    assert_eq!(
        (&page["total_lines"], &page["file_size"]),
        (&json!(9), &json!(notebook.len()))
    );
    std::fs::write(bench.root().join("broken.ipynb"), "{\"cells\": 7}\n").unwrap();
    let page = read(&bench.run("read_file", json!({"path": "broken.ipynb"})).await);
    assert_eq!(
        (&page["content"], page.get("extracted_document")),
        (&json!("1|{\"cells\": 7}"), None)
    );
    std::fs::write(bench.root().join("broken.docx"), "no archive").unwrap();
    let refused = read(&bench.run("read_file", json!({"path": "broken.docx"})).await);
    assert!(
        refused["error"].as_str().unwrap().contains("is a binary file"),
        "{refused}"
    );
    if !is_there("python3") {
        return;
    }
    let make = "import zipfile\nwith zipfile.ZipFile('b.docx', 'w', zipfile.ZIP_DEFLATED) as z:\n  \
        z.writestr('word/document.xml', '<w:document><w:body><w:p><w:r><w:t>from afar</w:t></w:r></w:p></w:body>\
        </w:document>')";
    let made = bench
        .run(
            "terminal",
            json!({"command": format!("python3 - <<'END'\n{make}\nEND")}),
        )
        .await;
    assert!(!made.failed, "{}", made.result);
    let page = read(&bench.run("read_file", json!({"path": "b.docx"})).await);
    assert_eq!(
        (&page["content"], &page["extracted_document"]),
        (&json!("1|from afar"), &json!(true))
    );
}
