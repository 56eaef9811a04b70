//! Every reader of the guard behind one function, for the fuzz target under
//! `fuzz/` and the replay of its corpus: an answer for every text, the same one
//! each time, with spans that lie in the text.

use super::redact::{Mode, redact};
use super::{Backend, Setting, Verdict, check, threat};

/// The first byte chooses where the command runs, the rest is the command.
pub fn read(input: &[u8]) {
    let Some((place, text)) = input.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let setting = Setting {
        backend: Backend::Local,
        home: "/home/alice",
        agent_home: "/home/alice/.hermes",
        cwd: [None, Some("/"), Some("/home/alice"), Some("/work/app")]
            .get(usize::from(place % 4))
            .copied()
            .flatten(),
        sudo_password: place & 4 != 0,
    };
    let judgement = check(&text, &setting);
    assert_eq!(judgement, check(&text, &setting), "the same text has one answer");
    assert_eq!(judgement.verdict == Verdict::Allow, judgement.findings.is_empty());
    let findings = judgement.findings.iter().map(|finding| finding.span);
    for span in findings.chain(judgement.commands.iter().map(|command| command.span)) {
        assert!(text.get(span.start..span.end).is_some(), "{span:?} of {}", text.len());
    }
    let _ = redact(&text, Mode::Code);
    let _ = threat::scan(&text, threat::Scope::Strict);
}
