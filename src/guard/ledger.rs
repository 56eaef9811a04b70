//! What was found: verdict, findings without repeats, every invocation.

use std::collections::HashMap;

use super::call::Call;
use super::rules::{Rule, Weight};
use super::shell::Operator;
use super::{Finding, Judgement, ResolvedCommand, ResolvedRedirect, Severity, Span, Verdict};

/// Findings that are kept: a person reads a handful, the verdict counts all.
pub(super) const MOST_FINDINGS: usize = 100;

/// Bytes of an invocation that a finding repeats.
const LONGEST_ARGV: usize = 4 * 1024;

/// Rules of text that was not understood.
pub(super) const PARSER_LIMIT: &str = "parser-limit";
pub(super) const MALFORMED_COMMAND: &str = "malformed-command";

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) verdict: Verdict,
    findings: Vec<Finding>,
    commands: Vec<ResolvedCommand>,
    redirects: Vec<ResolvedRedirect>,
    /// Where an invocation stands among the commands.
    listed: HashMap<ResolvedKey, usize>,
    /// Invocations so far, repeats too.
    met: usize,
    /// Rules that hit so far, also those that are not kept.
    hits: usize,
}

type ResolvedKey = (Span, u64);

impl Ledger {
    /// Inside a container of its own, or where nothing may run at all, the floor
    /// is worth a question.
    pub(crate) fn find(&mut self, rule: &Rule, span: Span, elsewhere: bool) {
        self.hits += 1;
        let (verdict, severity) = match rule.weight {
            Weight::Floor if elsewhere => (Verdict::Ask, Severity::Critical),
            Weight::Floor => (Verdict::Deny, Severity::Critical),
            Weight::Ask(severity) => (Verdict::Ask, severity),
        };
        if self.findings.len() >= MOST_FINDINGS {
            self.verdict = self.verdict.max(verdict);
            return;
        }
        self.add(
            verdict,
            finding(rule.id, rule.key, rule.description.to_owned(), severity, span),
        );
    }

    pub(crate) fn limit(&mut self, span: Span) {
        let description = "too long, too deep or too large to be judged: read it yourself".to_owned();
        let key = "command parser limit exceeded";
        self.add(
            Verdict::Ask,
            finding(PARSER_LIMIT, key, description, Severity::High, span),
        );
    }

    pub(crate) fn malformed(&mut self, what: &str, span: Span) {
        let description = format!("cannot be read as a shell command: {what}");
        let key = "command parser limit or malformed executable payload";
        self.add(
            Verdict::Ask,
            finding(MALFORMED_COMMAND, key, description, Severity::High, span),
        );
    }

    pub(crate) fn fork_bomb(&mut self, span: Span, elsewhere: bool) {
        self.find(&super::rules::FORK_BOMB, span, elsewhere);
    }

    /// Lists an invocation; its place among the commands.
    pub(crate) fn command(&mut self, call: &Call) -> usize {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        call.program.text.hash(&mut hasher);
        for arg in &call.args {
            arg.text.hash(&mut hasher);
        }
        self.met += 1;
        let next = self.commands.len();
        let place = *self.listed.entry((call.span, hasher.finish())).or_insert(next);
        if place == next {
            self.commands.push(ResolvedCommand {
                program: call.program.text.clone(),
                arguments: call.args.iter().map(|arg| arg.text.clone()).collect(),
                span: call.span,
                runs_others: false,
                guessed: call.guessed,
                runner: call.runner,
            });
        } else if let Some(known) = self.commands.get_mut(place) {
            known.guessed &= call.guessed;
        }
        place
    }

    pub(crate) fn hits(&self) -> usize {
        self.hits
    }

    pub(crate) fn met(&self) -> usize {
        self.met
    }

    /// The command at this place runs others, which are listed as well.
    pub(crate) fn runs_others(&mut self, place: usize) {
        if let Some(command) = self.commands.get_mut(place) {
            command.runs_others = true;
        }
    }

    pub(crate) fn redirects_of(&mut self, call: &Call) {
        for redirect in &call.redirects {
            let target = &redirect.target;
            // `2>&1` and `>&-` name no file.
            let names_file = match redirect.operator {
                Operator::HereDocument | Operator::HereString | Operator::DuplicateIn => false,
                Operator::DuplicateOut => {
                    target.text != "-" && !target.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
                }
                Operator::Read | Operator::Write | Operator::Append | Operator::ReadWrite => true,
            };
            if names_file {
                self.redirects.push(ResolvedRedirect {
                    path: target.text.clone(),
                    known: target.known,
                    writes: redirect.operator != Operator::Read,
                    span: target.span,
                });
            }
        }
    }

    pub(crate) fn findings(&self) -> usize {
        self.findings.len()
    }

    /// Findings from this place on were made in this invocation.
    pub(crate) fn made_in(&mut self, from: usize, call: &Call) {
        let words = || std::iter::once(&call.program).chain(&call.args);
        let Some(findings) = self.findings.get_mut(from..).filter(|new| !new.is_empty()) else {
            return;
        };
        let mut room = LONGEST_ARGV;
        let fits = |word: &&super::resolve::Value| {
            let before = room;
            room = room.saturating_sub(word.text.len());
            word.text.len() <= before
        };
        let argv: Vec<String> = words().take_while(fits).map(|word| word.text.clone()).collect();
        for finding in findings {
            finding.argv.clone_from(&argv);
        }
    }

    fn add(&mut self, verdict: Verdict, finding: Finding) {
        self.verdict = self.verdict.max(verdict);
        // The same rule on a wider span tells nothing new.
        let told = |known: &Finding| known.rule == finding.rule && finding.span.contains(known.span);
        if self.findings.len() < MOST_FINDINGS && !self.findings.iter().any(told) {
            self.findings.push(finding);
        }
    }

    pub(crate) fn into_judgement(self) -> Judgement {
        Judgement {
            verdict: self.verdict,
            findings: self.findings,
            commands: self.commands,
            redirects: self.redirects,
        }
    }
}

pub(super) fn finding(rule: &str, key: &str, description: String, severity: Severity, span: Span) -> Finding {
    Finding {
        rule: rule.to_owned(),
        key: key.to_owned(),
        description,
        severity,
        span,
        argv: Vec::new(),
    }
}
