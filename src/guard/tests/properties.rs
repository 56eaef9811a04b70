//! What holds for every text: an answer, and honest spans.

use proptest::prelude::*;

use super::judged;
use crate::guard::Verdict;

/// Pieces of shell that fit together in odd ways.
const TOKENS: &[&str] = &[
    "rm",
    "-rf",
    "/",
    "~",
    "$HOME",
    "echo",
    "ls",
    " ",
    "  ",
    "\n",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    "(",
    ")",
    "((",
    "))",
    "{",
    "}",
    "[[",
    "]]",
    "$(",
    "${",
    "}",
    "`",
    "'",
    "\"",
    "\\",
    "$",
    "#",
    "<",
    ">",
    ">>",
    "<<",
    "<<-",
    "<<<",
    "EOF",
    "\nEOF\n",
    "if",
    "then",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "while",
    "case",
    "esac",
    ";;",
    "function",
    "f()",
    "=",
    "x=1",
    "$x",
    "${x:-y}",
    "$((1+2))",
    "<(",
    ">(",
    "eval",
    "bash",
    "-c",
    "sudo",
    "xargs",
    "find",
    "-exec",
    "\\;",
    "*",
    "?",
    "{a,b}",
    "é",
    "\u{200b}",
    "\u{1b}[1m",
    "\r\n",
    "\0",
    "time",
    "!",
    "coproc",
    "select",
    "2>&1",
    "&>",
    "$'\\n'",
    "trap",
    "alias",
    "base64",
    "-d",
    "printf",
    "%s",
    "cd",
    "..",
    "git",
    "push",
    "--force",
    "python3",
    "&1",
    "+=",
    "a[0]",
    "[",
    "]",
    "=~",
];

fn shellish() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(TOKENS), 0..60).prop_map(|tokens| tokens.concat())
}

fn check_answer(text: &str) -> Result<(), TestCaseError> {
    let judgement = judged(text);
    let spans = judgement
        .findings
        .iter()
        .map(|finding| finding.span)
        .chain(judgement.commands.iter().map(|command| command.span));
    for span in spans {
        prop_assert!(
            span.start <= span.end && span.end <= text.len(),
            "{span:?} of {}",
            text.len()
        );
        prop_assert!(
            text.is_char_boundary(span.start) && text.is_char_boundary(span.end),
            "{span:?}"
        );
    }
    prop_assert_eq!(judgement.verdict == Verdict::Allow, judgement.findings.is_empty());
    prop_assert_eq!(&judgement, &judged(text));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_an_answer_with_honest_spans(text in ".{0,200}") {
        check_answer(&text)?;
    }

    #[test]
    fn shell_like_text_gets_an_answer_with_honest_spans(text in shellish()) {
        check_answer(&text)?;
    }
}
