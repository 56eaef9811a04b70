//! What the recorded cases do not say: faults, line ends, hints.

use std::collections::BTreeMap;

use super::*;

fn update(patch: &str, before: &str) -> Result<String, String> {
    let files = BTreeMap::from([("f".to_owned(), before.to_owned())]);
    let operations = parse(&format!("*** Update File: f\n{patch}")).map_err(|error| error.to_string())?;
    let changes = plan(&operations, &files).map_err(|error| error.to_string())?;
    Ok(changes.after.get("f").cloned().unwrap())
}

#[test]
fn what_cannot_be_read_is_told() {
    assert_eq!(parse("*** Add File: \n+x"), Err(ParseError::EmptyPath(1)));
    assert_eq!(
        parse("*** Begin Patch\n*** Move File: a -> "),
        Err(ParseError::NoDestination(2))
    );
    assert_eq!(parse("*** Move File: a"), Err(ParseError::NoDestination(1)));
    assert_eq!(parse("no patch at all"), Ok(Vec::new()));
}

#[test]
fn a_line_without_a_successor_takes_its_end_along() {
    assert_eq!(update("-b\n", "a\nb\nc\n").unwrap(), "a\nc\n");
    assert_eq!(update("-  b\n", "a\n    b\nc\n").unwrap(), "a\nc\n");
    assert_eq!(update("-b\n", "a\nb").unwrap(), "a\n");
    assert_eq!(update("-b\n", "a b c\n").unwrap(), "a  c\n");
}

#[test]
fn an_empty_line_between_is_context_where_the_file_has_one() {
    assert_eq!(update(" a\n\n-b\n+c", "a\n\nb\n").unwrap(), "a\n\nc\n");
    assert_eq!(update(" a\n\n-b\n+c", "a\nb\n").unwrap(), "a\nc\n");
}

#[test]
fn a_header_that_was_not_closed_says_where() {
    assert_eq!(
        update("@@ two\n+x", "one\ntwo\nthree\n").unwrap(),
        "one\ntwo\nx\nthree\n"
    );
    let far = format!("x = 1\n{}def two\nx = 1\n", "filler line\n".repeat(300));
    let changed = update("@@ def two @@\n-x = 1\n+x = 2", &far).unwrap();
    assert!(changed.starts_with("x = 1\n") && changed.ends_with("def two\nx = 2\n"));
}

#[test]
fn a_patch_that_changes_nothing_is_refused_and_faults_are_all_told() {
    assert_eq!(update(" a\n", "a\n").unwrap_err(), "the patch changes nothing");
    assert_eq!(update("-a\n+a\n", "a\n").unwrap_err(), "the patch changes nothing");
    let operations = parse("*** Delete File: x\n*** Move File: f -> g\n*** Update File: f\n-nope\n+y").unwrap();
    let files = BTreeMap::from([("f".to_owned(), "node\n".to_owned()), ("g".to_owned(), String::new())]);
    let faults = plan(&operations, &files).unwrap_err().to_string();
    for part in [
        "`x`: there is no such file",
        "`g`: there is a file already",
        "the passage was not found",
        "1|node",
    ] {
        assert!(faults.contains(part), "{part}: {faults}");
    }
}

#[test]
fn what_follows_an_unknown_verb_does_not_land_in_the_file_before() {
    let strange = "-a\n+b\n*** Create File: g\n+whole new file";
    assert!(update(strange, "a\n").is_err());
    assert_eq!(update("-a\n+b\n*** End of File", "a\n").unwrap(), "b\n");
    assert_eq!(update("-a\n+b\n  *** End Patch\n+after", "a\n").unwrap(), "b\n");
}
