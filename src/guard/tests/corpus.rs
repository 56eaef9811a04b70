//! Lists of whole commands under `tests/data/guard`: what developers type all
//! day and must not be asked about, and what must be stopped, by kind.

use std::path::PathBuf;

use super::judged;
use crate::guard::Verdict;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/guard")
        .join(name)
}

/// The lines of all lists in a folder; `⏎` stands for a newline.
fn lines(name: &str) -> Vec<String> {
    let folder = folder(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // The first line says what the list is.
        let commands = text.lines().skip(1).filter(|line| !line.is_empty());
        all.extend(commands.map(|line| line.replace('⏎', "\n")));
    }
    all
}

pub(super) fn everyday() -> Vec<String> {
    lines("everyday")
}

pub(super) fn dangerous() -> Vec<String> {
    lines("dangerous")
}

#[test]
fn everyday_commands_are_hardly_ever_asked_about_and_never_denied() {
    let commands = everyday();
    assert!(commands.len() >= 2_000, "{}", commands.len());
    let mut distinct = commands.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), commands.len(), "a line stands twice");
    let mut asked = Vec::new();
    for command in &commands {
        let judgement = judged(command);
        if judgement.verdict != Verdict::Allow {
            let rules: Vec<&str> = judgement.findings.iter().map(|finding| finding.rule.as_str()).collect();
            asked.push(format!("{:?} {rules:?} {command}", judgement.verdict));
        }
    }
    println!(
        "everyday commands: {} of {} asked ({:.2} %)\n{}",
        asked.len(),
        commands.len(),
        asked.len() as f64 * 100.0 / commands.len() as f64,
        asked.join("\n")
    );
    assert!(asked.len() * 100 < commands.len(), "{}", asked.join("\n"));
    assert!(
        asked.iter().all(|line| !line.starts_with("Deny")),
        "{}",
        asked.join("\n")
    );
}

#[test]
fn dangerous_commands_of_every_kind_are_stopped() {
    let commands = dangerous();
    assert!(commands.len() >= 900, "{}", commands.len());
    let allowed: Vec<&String> = commands
        .iter()
        .filter(|command| judged(command).verdict == Verdict::Allow)
        .collect();
    println!(
        "dangerous commands: {} of {} stopped",
        commands.len() - allowed.len(),
        commands.len()
    );
    assert!(allowed.is_empty(), "{allowed:#?}");
}
