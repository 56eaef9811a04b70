//! What was found: verdict, findings without repeats, every invocation.

use std::collections::HashSet;

use super::call::Call;
use super::rules::{Rule, Weight};
use super::{Finding, Judgement, ResolvedCommand, Severity, Span, Verdict};

/// Findings that are kept: a person reads a handful, the verdict counts all.
const MOST_FINDINGS: usize = 100;

/// Rules of text that was not understood.
pub(super) const PARSER_LIMIT: &str = "parser-limit";
pub(super) const MALFORMED_COMMAND: &str = "malformed-command";

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) verdict: Verdict,
    findings: Vec<Finding>,
    commands: Vec<ResolvedCommand>,
    listed: HashSet<ResolvedKey>,
}

type ResolvedKey = (Span, u64);

impl Ledger {
    /// Inside a container of its own the floor is worth a question.
    pub(crate) fn find(&mut self, rule: &Rule, span: Span, contained: bool) {
        let (verdict, severity) = match rule.weight {
            Weight::Floor if contained => (Verdict::Ask, Severity::Critical),
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

    pub(crate) fn fork_bomb(&mut self, span: Span, contained: bool) {
        self.find(&super::rules::FORK_BOMB, span, contained);
    }

    pub(crate) fn command(&mut self, call: &Call) {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        call.program.text.hash(&mut hasher);
        for arg in &call.args {
            arg.text.hash(&mut hasher);
        }
        if self.listed.insert((call.span, hasher.finish())) {
            self.commands.push(ResolvedCommand {
                program: call.program.text.clone(),
                arguments: call.args.iter().map(|arg| arg.text.clone()).collect(),
                span: call.span,
            });
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
        }
    }
}

fn finding(rule: &str, key: &str, description: String, severity: Severity, span: Span) -> Finding {
    Finding {
        rule: rule.to_owned(),
        key: key.to_owned(),
        description,
        severity,
        span,
    }
}
