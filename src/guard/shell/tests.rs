//! The grammar: what is read, and that nothing is left out.

use super::{Parsed, Piece, Shape, Statement, Trouble, parse};

fn words(text: &str) -> Vec<String> {
    let Parsed { script, trouble } = parse(text);
    assert_eq!(trouble, None, "{text:?}");
    let Shape::Simple(simple) = &script.statements[0].chain[0].commands[0].shape else {
        panic!("{text:?} is not simple")
    };
    let literal = |piece: &Piece| match piece {
        Piece::Text { text, .. } => text.clone(),
        Piece::Param { param, .. } => format!("<{}>", param.name),
        Piece::Command { .. } => "<command>".to_owned(),
        Piece::Process { .. } => "<process>".to_owned(),
        Piece::Arithmetic { .. } => "<arithmetic>".to_owned(),
    };
    simple
        .words
        .iter()
        .map(|word| word.pieces.iter().map(literal).collect())
        .collect()
}

fn statements(text: &str) -> Vec<Statement> {
    let Parsed { script, trouble } = parse(text);
    assert_eq!(trouble, None, "{text:?}");
    script.statements
}

#[test]
fn quoting_is_removed_as_bash_does() {
    assert_eq!(words(r#"a 'b c' "d e" f\ g h''i"#), ["a", "b c", "d e", "f g", "hi"]);
    assert_eq!(
        words("$'\\x72\\155\\n\\u41' \"a\\$b\\c\" '\\'"),
        ["rm\nA", "a$b\\c", "\\"]
    );
    assert_eq!(words("a\\\nb c\\\n d"), ["ab", "c", "d"]);
    assert_eq!(words("echo ''"), ["echo", ""]);
}

#[test]
fn expansions_are_pieces_of_words() {
    assert_eq!(
        words("a$b\"${c:-d}\"`e`$(f)$((1+2))<(g)$[3]"),
        ["a<b><c><command><command><arithmetic><process><arithmetic>"]
    );
    assert_eq!(
        words("$1 $@ ${#x} ${x[1]} ${!y} ${x//a/b}"),
        ["<1>", "<@>", "<x>", "<x>", "<y>", "<x>"]
    );
}

#[test]
fn comments_begin_only_where_a_word_could() {
    assert_eq!(words("a b#c # d; e"), ["a", "b#c"]);
    assert_eq!(words("a \\ #b"), ["a", " #b"]);
    assert_eq!(words("a `b`#c"), ["a", "<command>#c"]);
    assert_eq!(statements("a #b\nc").len(), 2);
    assert_eq!(statements("(a)#b; c\nd").len(), 2);
}

#[test]
fn lists_and_pipelines_keep_their_shape() {
    let read = statements("a | b |& c && d || e & f; g\nh");
    let shape: Vec<(Vec<usize>, bool)> = read
        .iter()
        .map(|statement| {
            (
                statement.chain.iter().map(|pipeline| pipeline.commands.len()).collect(),
                statement.background,
            )
        })
        .collect();
    assert_eq!(
        shape,
        [
            (vec![3, 1, 1], true),
            (vec![1], false),
            (vec![1], false),
            (vec![1], false)
        ]
    );
}

#[test]
fn every_compound_command_is_read() {
    for text in [
        "if a; then b; elif c; then d; else e; fi",
        "while a; do b; done < f",
        "until a; do b; done",
        "for x in a b; do c; done",
        "for x; do c; done",
        "for x do c; done",
        "for ((i=0; i<3; i++)); do a; done",
        "for ((i=0; i<3; i++)) { a; }",
        "select x in a b; do c; done",
        "case $x in a|b) c;; (d) e;& *) f;;& esac",
        "case x in esac",
        "case x in a) b\nesac",
        "{ a; b; } > f 2>&1",
        "( a; b ) | c",
        "((x = 1 + (2 * 3)))",
        "[[ -f a && ( b == c* || $d =~ ^(e|f)[[:space:]]+$ ) ]]",
        "f() { a; }",
        "function f { a; }",
        "function f() ( a )",
        "f ()\n{\n a\n}",
        "coproc a",
        "coproc N { a; }",
        "time -p a | b",
        "! a",
        "a=(b c [3]=d) e[1]=f g+=h",
        "declare -a x=(1 2)",
        "{ a; }; (b) && c",
        "echo {a,b} } {",
        "cat <<A <<-'B'\nx $y\nA\n\tz\n\tB\nd",
        "x=$(cat <<A\nb )\nA\n)",
        "$( (a) ) $((1)) $(( (1) ))",
        "a >b 2>>c <d <>e >&f &>g &>>h >|i 3<&4 {fd}>j <<<k",
        "if a; then (b) fi",
        "echo \"${x:-\"y z\"}\" \"${x:-it's}\" ${x#'}'}",
        "a | while read x; do b; done",
        "shopt -s extglob; ls !(a|b) @(c)",
        "${x}y=1",
        "a\\\n| b",
        "${ ls; }",
    ] {
        let parsed = parse(text);
        assert_eq!(parsed.trouble, None, "{text:?}");
    }
}

#[test]
fn what_bash_refuses_is_trouble() {
    for text in [
        "(",
        ")",
        "a )",
        "{ a",
        "}",
        "if a; fi",
        "if a; then b",
        "for",
        "for x in a; b",
        "while a; done",
        "case x in a",
        "a | ",
        "a && ",
        "| a",
        "; a",
        "a ;; b",
        "'a",
        "\"a",
        "`a",
        "$(a",
        "${a",
        "<(a",
        "a <",
        "a (b)",
        "[[ a",
        "f() ",
        "then a",
        "a & & b",
    ] {
        assert!(
            matches!(parse(text).trouble, Some(Trouble::Malformed { .. })),
            "{text:?}"
        );
    }
}

#[test]
fn here_documents_belong_to_their_command_and_hide_no_code() {
    let read = statements("cat <<A; b\nrm\nA\nc");
    assert_eq!(read.len(), 3);
    let redirect = &read[0].chain[0].commands[0].redirects[0];
    let body = redirect.body.as_ref().unwrap().get().unwrap();
    assert!(matches!(body.pieces.as_slice(), [Piece::Text { text, .. }] if text == "rm\n"));
    // A line that only resembles the delimiter does not end the body.
    assert_eq!(statements("cat <<A\nA \n A\nA)\nA\nb").len(), 2);
}

#[test]
fn spans_cover_what_was_read() {
    let text = "ab  'c d'; (e f) | g";
    let read = statements(text);
    let Shape::Simple(simple) = &read[0].chain[0].commands[0].shape else {
        panic!()
    };
    let slice = |span: crate::guard::Span| &text[span.start..span.end];
    assert_eq!(
        simple.words.iter().map(|word| slice(word.span)).collect::<Vec<_>>(),
        ["ab", "'c d'"]
    );
    let commands: Vec<&str> = read[1].chain[0]
        .commands
        .iter()
        .map(|command| slice(command.span))
        .collect();
    assert_eq!(commands, ["(e f)", "g"]);
}
