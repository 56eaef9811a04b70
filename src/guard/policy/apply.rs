//! A policy laid over a judgement: what no longer counts is taken out, what the
//! lists say is put in, and the verdict follows from what is there then.

use super::known::{is_known, is_transparent, runs_tools};
use super::paths::{Named, PathPattern, Scene, Use, candidates};
use super::pattern::{Restricted, Restricting, line_to_allow};
use super::{Compiled, PolicyMode};
use crate::guard::ledger::{self, finding};
use crate::guard::{Finding, Judgement, ResolvedCommand, ResolvedRedirect, Setting, Severity, Span, Verdict, rules};

/// The rule about shells that are handed their code.
const SHELL_CODE: &str = "shell-code";

/// Bytes of commands, for each word and wildcard of the patterns: some 20 ms.
const MOST_WORK: usize = 2_000_000;

/// Words of one command at which a restricted one is looked for.
const MOST_INNER: usize = 16;

/// Characters with which a line is more than one plain command.
const OPERATORS: [&str; 9] = ["\n", "&", "|", ";", "<", ">", "`", "$(", "\r"];

/// Whether a text is one command line in which nothing else is run or opened.
pub(crate) fn is_plain(text: &str) -> bool {
    !OPERATORS.iter().any(|operator| text.contains(operator))
}

impl Compiled {
    /// The judgement of `text` under this policy.
    pub fn apply(&self, text: &str, mut judgement: Judgement, setting: &Setting<'_>) -> Judgement {
        if self.is_empty() {
            return judgement;
        }
        if MOST_WORK < self.weight.saturating_mul(size(&judgement)) {
            self.give_up(text, &mut judgement);
            return judgement;
        }
        self.take_out(text, &mut judgement);
        let scene = Scene::new(&judgement, setting);
        let mut found = Vec::new();
        for command in &judgement.commands {
            found.extend(self.on_command(command, &judgement.commands, &scene));
        }
        for redirect in &judgement.redirects {
            found.extend(self.on_redirect(redirect, &scene));
        }
        if self.denies()
            && judgement
                .findings
                .iter()
                .any(|finding| finding.rule == ledger::PARSER_LIMIT)
        {
            self.give_up(text, &mut judgement);
        }
        for (verdict, finding) in found {
            judgement.verdict = judgement.verdict.max(verdict);
            let told = |known: &Finding| known.key == finding.key && known.span == finding.span;
            if judgement.findings.len() < ledger::MOST_FINDINGS && !judgement.findings.iter().any(told) {
                judgement.findings.push(finding);
            }
        }
        judgement
    }

    /// What is not compared may be what a list names.
    fn give_up(&self, text: &str, judgement: &mut Judgement) {
        let (verdict, why) = match self.denies() {
            true => (Verdict::Deny, "what cannot be read may hold what the policy denies"),
            false => (Verdict::Ask, "too much to be compared with the policy"),
        };
        judgement.verdict = judgement.verdict.max(verdict);
        let told = finding(
            "policy-unread",
            "policy: not read",
            why.to_owned(),
            Severity::High,
            whole(text),
        );
        judgement.findings.push(told);
    }

    /// Nothing stands in it.
    fn is_empty(&self) -> bool {
        let lists = self.allow.is_empty() && self.ask.is_empty() && self.ask_paths.is_empty() && !self.denies();
        self.mode == PolicyMode::Patterns && lists && self.families_off.is_empty()
    }

    fn denies(&self) -> bool {
        !self.deny.is_empty() || !self.deny_paths.is_empty()
    }

    /// Findings of families that are off, and of a line that is allowed as it
    /// stands.
    fn take_out(&self, text: &str, judgement: &mut Judgement) {
        if judgement.verdict != Verdict::Ask || ledger::MOST_FINDINGS <= judgement.findings.len() {
            return;
        }
        let settled = self.names_whole(text, judgement);
        let listed = self.settles_code(judgement);
        judgement
            .findings
            .retain(|finding| match rules::family_of(&finding.rule) {
                Some(_) if settled || (listed && finding.rule == SHELL_CODE) => false,
                Some(family) => !self.families_off.iter().any(|off| off == family),
                None => true,
            });
        if judgement.findings.is_empty() {
            judgement.verdict = Verdict::Allow;
        }
    }

    /// A shell that is handed its code in an argument, where a list names all that
    /// the code runs.
    fn settles_code(&self, judgement: &Judgement) -> bool {
        let listed = |command: &ResolvedCommand| is_nothing_else(command) || self.covers(command);
        self.mode != PolicyMode::Patterns && judgement.commands.iter().all(listed)
    }

    /// The text is one command, as a pattern without further words names it.
    fn names_whole(&self, text: &str, judgement: &Judgement) -> bool {
        let [command] = judgement.commands.as_slice() else {
            return false;
        };
        let text = text.trim();
        let begins = text.starts_with(command.program.as_str());
        let line = line_to_allow(command);
        is_plain(text)
            && begins
            && judgement.redirects.is_empty()
            && self.allow.iter().any(|pattern| pattern.exact && pattern.covers(&line))
    }

    fn on_command(
        &self,
        command: &ResolvedCommand,
        all: &[ResolvedCommand],
        scene: &Scene<'_>,
    ) -> Option<(Verdict, Finding)> {
        if let Some((verdict, text, may)) = self.restriction(command, scene) {
            return Some((verdict, restricted(verdict, text, may, command.span, argv(command))));
        }
        // Of words that may be data only the lists that restrict have to say.
        if command.guessed || self.covers(command) || is_nothing_else(command) || self.covers_runner(command, all) {
            return None;
        }
        let verdict = match self.mode {
            PolicyMode::Patterns => Verdict::Allow,
            PolicyMode::Allowlist => Verdict::Ask,
            PolicyMode::Rules => self.default,
        };
        (verdict != Verdict::Allow).then(|| (verdict, unlisted(&command.program, command.span, argv(command))))
    }

    fn covers(&self, command: &ResolvedCommand) -> bool {
        let line = line_to_allow(command);
        self.allow.iter().any(|pattern| pattern.covers(&line))
    }

    /// Who may start any tool of a project by its runner may start this one. What
    /// the tool starts in turn is not covered by that.
    fn covers_runner(&self, command: &ResolvedCommand, all: &[ResolvedCommand]) -> bool {
        let Some(span) = command.runner else { return false };
        let mut runners = all.iter().filter(|runner| runner.span == span).peekable();
        runners.peek().is_some() && runners.all(|runner| runs_tools(&runner.program) && self.covers(runner))
    }

    /// The strongest list that names the command, and whether it only may.
    fn restriction(&self, command: &ResolvedCommand, scene: &Scene<'_>) -> Option<(Verdict, &str, bool)> {
        let own = Restricted::new(command);
        let paths: Vec<Named> = if self.ask_paths.is_empty() && self.deny_paths.is_empty() {
            Vec::new()
        } else {
            let words = std::iter::once(&command.program).chain(&command.arguments);
            let paths = words.flat_map(|word| candidates(word));
            paths.map(|path| Named::new(path, Use::Argument, scene)).collect()
        };
        let lists = [
            (Verdict::Deny, &self.deny, &self.deny_paths),
            (Verdict::Ask, &self.ask, &self.ask_paths),
        ];
        for (verdict, patterns, path_patterns) in lists {
            let hit = patterns
                .iter()
                .find(|pattern| pattern.hits(&own))
                .map(|pattern| pattern.text.as_str());
            if let Some(text) = hit.or_else(|| named(path_patterns, &paths)) {
                // Nobody knows whether it runs at all.
                let verdict = if command.guessed { Verdict::Ask } else { verdict };
                return Some((verdict, text, command.guessed));
            }
        }
        // What is not certain is a person's to say.
        let every = || lists.into_iter().flat_map(|(_, patterns, _)| patterns);
        let every_path = || lists.into_iter().flat_map(|(_, _, paths)| paths);
        let may = every().find(|pattern| pattern.may_hit(&own) || runs_inside(pattern, &own, command));
        let may = may.map(|pattern| pattern.text.as_str());
        let may_path = || every_path().find(|pattern| paths.iter().any(|path| pattern.may_hit(path)));
        may.or_else(|| may_path().map(|pattern| pattern.text.as_str()))
            .map(|text| (Verdict::Ask, text, true))
    }

    fn on_redirect(&self, redirect: &ResolvedRedirect, scene: &Scene<'_>) -> Option<(Verdict, Finding)> {
        let how = if redirect.writes { Use::Write } else { Use::Read };
        let path = [Named::new(&redirect.path, how, scene)];
        for (verdict, patterns) in [(Verdict::Deny, &self.deny_paths), (Verdict::Ask, &self.ask_paths)] {
            if let Some(text) = named(patterns, &path) {
                return Some((verdict, restricted(verdict, text, false, redirect.span, Vec::new())));
            }
        }
        let nowhere = path.iter().any(Named::is_nowhere);
        let covered = redirect.known && named(&self.allow_paths, &path).is_some();
        if !redirect.writes || nowhere || covered {
            return None;
        }
        let verdict = match self.mode {
            PolicyMode::Patterns => Verdict::Allow,
            PolicyMode::Allowlist => Verdict::Ask,
            PolicyMode::Rules => self.default,
        };
        (verdict != Verdict::Allow).then(|| {
            (
                verdict,
                unlisted(&format!("> {}", redirect.path), redirect.span, Vec::new()),
            )
        })
    }
}

/// The invocation does nothing, or nothing but run commands that are judged
/// themselves.
fn is_nothing_else(command: &ResolvedCommand) -> bool {
    let name = command.program.rsplit('/').next().unwrap_or_default();
    ["true", "false", ":"].contains(&name) || (command.runs_others && is_transparent(name, &command.arguments))
}

/// Behind a program that is not known a restricted command may be what is run.
fn runs_inside(pattern: &Restricting, own: &Restricted, command: &ResolvedCommand) -> bool {
    !command.runs_others
        && !is_known(own.name())
        && (1..own.length().min(MOST_INNER))
            .filter_map(|place| own.behind(place))
            .any(|inner| pattern.hits(&inner))
}

fn named<'p>(patterns: &'p [PathPattern], paths: &[Named]) -> Option<&'p str> {
    let hit = patterns
        .iter()
        .find(|pattern| paths.iter().any(|path| pattern.hits(path)));
    hit.map(|pattern| pattern.text.as_str())
}

fn argv(command: &ResolvedCommand) -> Vec<String> {
    std::iter::once(command.program.clone())
        .chain(command.arguments.iter().cloned())
        .collect()
}

fn restricted(verdict: Verdict, pattern: &str, may: bool, span: Span, argv: Vec<String>) -> Finding {
    let (rule, does) = match (verdict, may) {
        (Verdict::Deny, _) => ("policy-deny", "denied by the policy"),
        (_, false) => ("policy-ask", "the policy asks about it"),
        (_, true) => ("policy-may-match", "may be what the policy restricts"),
    };
    let severity = if verdict == Verdict::Deny {
        Severity::Critical
    } else {
        Severity::Medium
    };
    let made = finding(
        rule,
        &format!("policy: {pattern}"),
        format!("{does}: `{pattern}`"),
        severity,
        span,
    );
    Finding { argv, ..made }
}

fn unlisted(what: &str, span: Span, argv: Vec<String>) -> Finding {
    let key = format!("not on the list: {}", crate::base::text::first_chars(what, 100));
    let description = "no list of the policy names it".to_owned();
    let made = finding("policy-unlisted", &key, description, Severity::Medium, span);
    Finding { argv, ..made }
}

/// Bytes that patterns are compared with.
fn size(judgement: &Judgement) -> usize {
    let words = |command: &ResolvedCommand| {
        let arguments: usize = command.arguments.iter().map(|word| word.len() + 1).sum();
        command.program.len() + arguments
    };
    let paths = judgement.redirects.iter().map(|redirect| redirect.path.len());
    judgement.commands.iter().map(words).chain(paths).sum()
}

fn whole(text: &str) -> Span {
    Span {
        start: 0,
        end: text.len(),
    }
}
