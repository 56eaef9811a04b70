use super::*;

#[test]
fn the_last_way_of_looking_touches_no_stranger() {
    let content = "start\naaaaaaaa\nbbbbbbbb\nend\n";
    let found = replace(content, "start\nzzzzzzzz\nyyyyyyyy\nend", "S", false);
    assert_eq!(found, Err(NotReplaced::NotFound));
    // The line end at the end of the pattern must not swallow the next line.
    let found = replace("a  (x)\nb  (y)\nkeep\n", "a (x1)\nb (y1)\n", "c\n", false);
    assert_eq!(found, Err(NotReplaced::NotFound));
}

#[test]
fn escapes_that_the_file_has_not_are_refused() {
    let content = "def f():\n    return 'a long enough line'\n";
    let old = "def f():\n    return \\'a long enough line\\'";
    let new = "def f():\n    return \\'another\\'";
    assert_eq!(replace(content, old, new, false), Err(NotReplaced::EscapeDrift('\'')));
}

#[test]
fn a_tab_inside_a_string_stays_an_escape() {
    let content = "\tprint(\"a\\tb\")\n";
    let changed = replace(content, "\tprint(\"a\\tb\")", "\tprint(\"a\\tc\")", false).unwrap();
    assert_eq!(changed.content, "\tprint(\"a\\tc\")\n");
    let changed = replace("\tx\n", "\tx", "\ty = \"\\t\"", false).unwrap();
    assert_eq!(changed.content, "\ty = \"\\t\"\n");
}

#[test]
fn a_part_of_a_typographic_character_is_left_plain() {
    let changed = replace("wait\u{2026} \u{201c}x\u{201d}", "wait... \"x\"", "wait.. \"x\"", false).unwrap();
    assert_eq!(changed.content, "wait.. \u{201c}x\u{201d}");
}

#[test]
fn all_of_several_that_overlap_are_changed_once_each() {
    let content = "a \na \na \na \n";
    assert_eq!(replace(content, "a\na", "b", false), Err(NotReplaced::Ambiguous(3)));
    assert_eq!(replace(content, "a\na", "b", true).unwrap().content, "b\nb\n");
}

#[test]
fn long_texts_take_bounded_time() {
    let content = "let value = compute(alpha, beta);\n".repeat(20_000);
    let old = "let valve = compote(alpha, betta);\nlet other = nothing();\n".repeat(50);
    assert_eq!(replace(&content, &old, "x", false), Err(NotReplaced::NotFound));
    let line = "x".repeat(2_000_000);
    assert_eq!(
        replace(&line, &"y".repeat(1_000_000), "x", false),
        Err(NotReplaced::NotFound)
    );
}

#[test]
fn what_was_meant_is_shown_with_its_lines() {
    let content = "one\ntwo\nfn compute(a: u8) {\n    a\n}\nlast\n";
    let shown = did_you_mean(content, "\nfn compote(a: u8) {");
    assert_eq!(shown, "1|one\n2|two\n3|fn compute(a: u8) {\n4|    a\n5|}");
    assert_eq!(did_you_mean("zzz\n", "abc"), "");
}
