//! The two sets of migrations are twins: one file name, two dialects.
//!
//! That both end with the same tables and columns is the store's own suite's
//! business, which runs them; here stands what can be seen without a database.

use std::collections::BTreeSet;
use std::path::Path;

fn names(database: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(database);
    std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("`{}`: {e}", folder.display()))
        .map(|entry| {
            entry
                .expect("a readable folder entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

/// What is wrong with a list of file names; nothing when it is in order.
fn complaints(names: &BTreeSet<String>) -> Vec<String> {
    let shape = regex::Regex::new(r"^(\d{4})_[a-z0-9]+(?:_[a-z0-9]+)*\.sql$").expect("a pattern");
    let mut wrong = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match shape.captures(name) {
            None => wrong.push(format!("`{name}` is not `NNNN_what_it_does.sql`")),
            Some(parts) if parts[1].parse() != Ok(index + 1) => {
                wrong.push(format!("`{name}` should be number {:04}", index + 1));
            }
            Some(_) => {}
        }
    }
    wrong
}

#[test]
fn both_databases_have_the_same_migration_files() {
    let (sqlite, postgres) = (names("sqlite"), names("postgres"));
    assert!(!sqlite.is_empty(), "no migrations");
    let lonely: Vec<_> = sqlite.symmetric_difference(&postgres).collect();
    assert!(lonely.is_empty(), "on one database only: {lonely:?}");
}

#[test]
fn migrations_are_numbered_without_gaps() {
    let wrong = complaints(&names("sqlite"));
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_misnamed_a_doubled_and_a_missing_number_are_noticed() {
    let judge = |files: &[&str]| complaints(&files.iter().map(|f| (*f).to_owned()).collect()).len();
    assert_eq!(judge(&["0001_tenancy.sql", "0002_sessions_and_turns.sql"]), 0);
    assert_eq!(judge(&["0001_tenancy.sql", "0003_turns.sql"]), 1);
    assert_eq!(judge(&["0001_tenancy.sql", "0001_turns.sql"]), 1);
    assert_eq!(judge(&["0001_tenancy.sql", "readme.md"]), 1);
    assert_eq!(judge(&["0001_Tenancy.sql"]), 1);
}
