//! Runs every case of every file and tells what became of them.
//!
//! A failure that is not listed is wrong. In the project's own directory the
//! list is exact: a listed case that passes, or that is not there, is wrong too.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::case::Case;
use crate::exceptions::Exceptions;

/// Answers one case; the error says what was expected and what came.
pub type Judge = fn(&Case) -> Result<(), String>;

#[derive(Default)]
pub struct Report {
    /// One line for each group, and one for each failure.
    pub text: String,
    pub wrong: Vec<String>,
}

pub fn judge(directory: &Path, table: &[(&str, Judge)], mut exceptions: Exceptions, is_own: bool) -> Report {
    let mut report = Report::default();
    let files = files(directory);
    assert!(!files.is_empty(), "`{}` holds no `*.json`", directory.display());
    for file in files {
        let (group, rows) = read(&file);
        match table.iter().find(|(name, _)| *name == group) {
            Some((_, judge)) => report.group(&group, &rows, *judge, &mut exceptions, is_own),
            None => report.line(&format!("{group}: skipped, no function answers this group")),
        }
    }
    if is_own {
        let missing = exceptions.rest();
        report
            .wrong
            .extend(missing.map(|id| format!("{id} is listed as an exception but no group has it")));
    }
    report
}

impl Report {
    fn group(&mut self, group: &str, rows: &[Value], judge: Judge, exceptions: &mut Exceptions, is_own: bool) {
        let mut failures = Vec::new();
        for row in rows {
            let id = row["id"].as_str().unwrap_or("?").to_owned();
            let result = answer(row, judge);
            match (result, exceptions.take(&id)) {
                (Ok(()), Some(_)) if is_own => {
                    self.wrong.push(format!(
                        "{id} is listed as an exception and passes: take it off the list"
                    ));
                }
                (Ok(()), _) => {}
                (Err(fault), Some(reason)) => failures.push((id, format!("listed: {reason}; {fault}"))),
                (Err(fault), None) => {
                    self.wrong.push(format!("{id}: {fault}\n    {}", given(row)));
                    failures.push((id, fault));
                }
            }
        }
        if rows.is_empty() {
            self.wrong.push(format!("{group} has no cases"));
        }
        let ids: Vec<&str> = failures.iter().map(|(id, _)| id.as_str()).collect();
        let ids = if ids.is_empty() {
            String::new()
        } else {
            format!(" failing: {}", ids.join(" "))
        };
        self.line(&format!("{group}: {}/{}{ids}", rows.len() - failures.len(), rows.len()));
        for (id, fault) in &failures {
            self.line(&format!("    {id}: {}", fault.replace('\n', "\\n")));
        }
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").unwrap();
    }
}

/// A panic of the library, or of a judge that cannot read the case, is a failure.
fn answer(row: &Value, judge: Judge) -> Result<(), String> {
    let case = Case::read(row)?;
    catch_unwind(AssertUnwindSafe(|| judge(&case))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("it panicked: {}", text.unwrap_or("no message")))
    })
}

fn given(row: &Value) -> String {
    let text = row.get("input").unwrap_or(row).to_string();
    text.chars().take(300).collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("`{}`: {error}", directory.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    files
}

/// The group and its rows; a bare list is the group that its file is named for.
fn read(path: &Path) -> (String, Vec<Value>) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("`{}`: {error}", path.display()));
    let file: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("`{}`: {error}", path.display()));
    let named = path.file_stem().unwrap().to_string_lossy().into_owned();
    match file {
        Value::Array(rows) => (named, rows),
        file => {
            let rows = file["cases"].as_array().cloned();
            let group = file["group"].as_str().map_or(named, str::to_owned);
            (
                group,
                rows.unwrap_or_else(|| panic!("`{}` has no `cases`", path.display())),
            )
        }
    }
}

#[test]
fn failures_lists_and_unknown_groups_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write(
        "a.json",
        r#"{"group": "first", "cases": [{"id": "f-1", "input": 1, "expect": 1}, {"id": "f-2", "input": 1, "expect": 2},
            {"id": "f-3", "input": 1, "expect": 3}, {"id": "f-4", "input": "boom", "expect": 3}]}"#,
    );
    write("bare-list.json", r#"[{"id": "b-1", "expect": {}}]"#);
    write("strange.json", r#"{"group": "strange", "cases": []}"#);
    write("notes.txt", "no cases");
    let table: &[(&str, Judge)] = &[
        ("first", |case| {
            assert!(case.input.is_u64(), "boom");
            case.check(case.input.clone())
        }),
        ("bare-list", |case| case.check(serde_json::json!({}))),
    ];
    let list = "# why\nf-2 it is so\nf-1 no longer\nz-9 gone";
    let own = judge(directory.path(), table, Exceptions::read(list), true);
    assert!(own.text.contains("first: 1/4 failing: f-2 f-3 f-4\n"), "{}", own.text);
    assert!(own.text.contains("\nbare-list: 1/1\n") && own.text.contains("\nstrange: skipped"));
    let about = |id: &str| own.wrong.iter().filter(|wrong| wrong.starts_with(id)).count();
    assert_eq!(
        ["f-1", "f-2", "f-3", "f-4", "b-1", "z-9"].map(about),
        [1, 0, 1, 1, 0, 1]
    );
    assert!(own.wrong.iter().any(|wrong| wrong.contains("it panicked: boom")));
    let foreign = judge(directory.path(), table, Exceptions::read(list), false);
    assert_eq!(foreign.wrong.len(), 2, "{:?}", foreign.wrong);
}
