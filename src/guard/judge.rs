//! The face of the guard: limits, both readings of the text, one verdict.

use std::collections::HashSet;

use super::normalize::{self, Normal};
use super::redact::{Mode, redact};
use super::trace::Tracer;
use super::{Backend, Judgement, ResolvedCommand, ResolvedRedirect, Setting, Span, threat};

/// Limits of the original's command guard, kept as they are.
const LONGEST: usize = 128_000;
const LONGEST_SINGLE: usize = 4_096;
const MOST_SEPARATORS: usize = 25_000;

/// Judges a command. Pure: the same text in the same setting gets the same
/// answer, whoever asks and whenever.
pub fn check(command: &str, setting: &Setting<'_>) -> Judgement {
    let whole = Span {
        start: 0,
        end: command.len(),
    };
    if exceeds_limits(command) {
        let mut tracer = Tracer::new(setting, 0);
        tracer.ledger.limit(whole);
        return tracer.ledger.into_judgement();
    }
    let (as_written, left) = read(command, setting, budget(command));
    match normalize::normalize(command) {
        None => as_written,
        // Both readings share one bound.
        Some(normal) => merged(as_written, read(&normal.text, setting, left).0, &normal),
    }
}

/// Builds the tables of the rules, so that the first command does not wait.
pub fn prepare() {
    let setting = Setting {
        backend: Backend::default(),
        home: "/",
        agent_home: "/",
        cwd: None,
        sudo_password: false,
    };
    let _ = check("true", &setting);
    let _ = redact("", Mode::Text);
    let _ = threat::scan("", threat::Scope::Strict);
}

/// Units of work that a text may take, linear in its length: about 40 a byte; an
/// everyday line uses a dozen.
fn budget(text: &str) -> usize {
    500_000 + 40 * text.len()
}

/// What is found in the text, and the work that is left.
fn read(text: &str, setting: &Setting<'_>, work: usize) -> (Judgement, usize) {
    let mut tracer = Tracer::new(setting, work);
    tracer.document(text);
    let left = tracer.work_left();
    (tracer.ledger.into_judgement(), left)
}

/// Work that judging the text takes, for tests of its growth.
#[cfg(test)]
pub(super) fn work(text: &str, setting: &Setting<'_>) -> usize {
    let before = budget(text);
    before - read(text, setting, before).1
}

fn exceeds_limits(command: &str) -> bool {
    let separators = command
        .bytes()
        .filter(|byte| matches!(byte, b';' | b'&' | b'|' | b'\n'))
        .count();
    if separators >= MOST_SEPARATORS {
        return true;
    }
    let most = if separators == 0 { LONGEST_SINGLE } else { LONGEST };
    command.len() > most && command.chars().count() > most
}

/// The shell sees the text as written, a person sees it as it is displayed:
/// whatever either reading finds, counts.
fn merged(written: Judgement, shown: Judgement, normal: &Normal) -> Judgement {
    let mut all = written;
    all.verdict = all.verdict.max(shown.verdict);
    for mut finding in shown.findings {
        finding.span = normal.original(finding.span);
        if !all
            .findings
            .iter()
            .any(|known| known.rule == finding.rule && finding.span.contains(known.span))
        {
            all.findings.push(finding);
        }
    }
    let known: HashSet<ResolvedCommand> = all.commands.iter().cloned().collect();
    let commands = shown.commands.into_iter().map(|command| {
        let span = normal.original(command.span);
        let runner = command.runner.map(|runner| normal.original(runner));
        ResolvedCommand {
            span,
            runner,
            ..command
        }
    });
    all.commands.extend(commands.filter(|command| !known.contains(command)));
    all.redirects.extend(shown.redirects.into_iter().map(|redirect| {
        let span = normal.original(redirect.span);
        ResolvedRedirect { span, ..redirect }
    }));
    all
}
