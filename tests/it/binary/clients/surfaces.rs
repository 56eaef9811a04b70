//! Clients that nobody here wrote, with the drop-in surfaces: the official ones of
//! OpenAI, the typed one of the original, the AI SDK.

use std::path::PathBuf;

use super::super::program::{Program, err, out};
use super::workshop::{PYTHON, Workshop, is_here, talk_at_length};
use crate::harness::Place;

/// Runs a program that checks all it can and then says so.
async fn works(workshop: &Workshop, program: &str, args: &[&str]) {
    let place = Place::sqlite();
    let server = Program::start(&place).await;
    let mut command = workshop.command(program, args);
    command
        .env("HERMES_URL", &server.base)
        .env("HERMES_API_KEY", &server.key);
    let done = talk_at_length(command).await;
    assert_eq!(done.status.code(), Some(0), "{}{}", out(&done), err(&done));
    assert_eq!(out(&done), "all of it works\n");
    server.stop().await;
}

#[tokio::test]
async fn the_official_python_client_of_openai_works() {
    let workshop = Workshop::of("tests/data/clients/openai_python", &["requirements.txt", "main.py"]);
    if workshop.has_python().await {
        works(&workshop, PYTHON, &["main.py"]).await;
    }
}

#[tokio::test]
async fn the_typed_client_of_the_original_works() {
    let Some(python) = python_3_13().await else {
        eprintln!("skipped: `hermes-agent-api-client` needs Python 3.13, which is not installed");
        return;
    };
    let workshop = Workshop::of("tests/data/clients/hermes_client", &["requirements.txt", "main.py"]);
    if workshop.has_packages(&python).await {
        works(&workshop, PYTHON, &["main.py"]).await;
    }
}

#[tokio::test]
async fn the_official_node_client_of_openai_and_the_ai_sdk_work() {
    let recent = ["-e", "process.exit(+(parseInt(process.versions.node) < 20))"];
    if !is_here("node 20", "node", &recent).await || !is_here("npm", "npm", &["--version"]).await {
        return;
    }
    let files = ["package.json", "package-lock.json", "openai.mjs", "ai.mjs"];
    let workshop = Workshop::of("tests/data/clients/node", &files);
    let mut install = workshop.command("npm", &["ci", "--no-audit", "--no-fund"]);
    install.args([
        "--fetch-retries=1",
        "--fetch-retry-mintimeout=1000",
        "--fetch-timeout=30000",
    ]);
    if workshop.installed("package-lock.json", vec![install]).await {
        works(&workshop, "node", &["openai.mjs"]).await;
        works(&workshop, "node", &["ai.mjs"]).await;
    }
}

/// One on the path, or one that pyenv keeps.
async fn python_3_13() -> Option<String> {
    let home = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let kept = home.and_then(|home| std::fs::read_dir(home.join("versions")).ok());
    let kept = kept
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin/python").to_str()?.to_owned()));
    let recent = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 13))";
    for python in ["python3".to_owned(), "python3.13".to_owned()].into_iter().chain(kept) {
        let mut asked = tokio::process::Command::new(&python);
        asked.args(["-c", recent]).stderr(std::process::Stdio::null());
        if asked.status().await.is_ok_and(|status| status.success()) {
            return Some(python);
        }
    }
    None
}
