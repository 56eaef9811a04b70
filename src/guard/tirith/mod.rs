//! What an external scanner says of a command: its exit status is the verdict,
//! what it prints only explains it. Running it is the environment's.

mod breaker;
#[cfg(test)]
mod tests;

pub use breaker::Breaker;

use serde_json::Value;

use super::{Finding, Severity, Span};

/// Findings that are kept of one scan.
pub const MOST_FINDINGS: usize = 50;
/// Characters of a summary.
pub const LONGEST_SUMMARY: usize = 500;
/// Characters of one text of a finding.
const LONGEST_TEXT: usize = 300;

/// The key of a scanner's finding begins with it.
pub const KEY: &str = "tirith:";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    #[default]
    Allow,
    Warn,
    Block,
}

/// How the scanner ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Signalled,
    /// It could not be started.
    Spawn,
    Timeout,
    /// There is none.
    Missing,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scan {
    pub action: Action,
    pub findings: Vec<Found>,
    pub summary: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub rule_id: String,
    pub severity: String,
    pub title: String,
    pub description: String,
    pub value: String,
}

impl Scan {
    /// `None` when the scanner did not judge: then `fail_open` says what counts.
    pub fn read(ended: Ended, stdout: &str) -> Option<Self> {
        let action = match ended {
            Ended::Exited(0) => Action::Allow,
            Ended::Exited(1) => Action::Block,
            Ended::Exited(2) => Action::Warn,
            _ => return None,
        };
        let printed: Value = serde_json::from_str(stdout).unwrap_or_default();
        let findings = printed.get("findings").and_then(Value::as_array);
        let is_understood = findings.is_none_or(|all| all.iter().all(Value::is_object));
        let findings = findings.into_iter().flatten().take(MOST_FINDINGS);
        let scan = Self {
            action,
            findings: findings.filter(|found| found.is_object()).map(found).collect(),
            summary: cut(&printed, "summary", LONGEST_SUMMARY),
        };
        Some(if is_understood && scan.is_about_apps_alone() {
            Self::default()
        } else {
            scan
        })
    }

    /// The scanner did not judge.
    pub fn failed(fail_open: bool, why: &str) -> Self {
        Self {
            action: if fail_open { Action::Allow } else { Action::Block },
            findings: Vec::new(),
            summary: why.to_owned(),
        }
    }

    /// `.app` is an ordinary ending of names by now.
    fn is_about_apps_alone(&self) -> bool {
        let is_app = |found: &Found| {
            let texts = [&found.value, &found.description];
            found.rule_id == "lookalike_tld" && texts.iter().any(|text| ends_in_app(text))
        };
        self.action == Action::Warn && !self.findings.is_empty() && self.findings.iter().all(is_app)
    }

    /// What a person is asked, if anything.
    pub fn finding(&self, command: &str) -> Option<Finding> {
        if self.action == Action::Allow {
            return None;
        }
        let first = self.findings.first().map(|found| found.rule_id.as_str());
        let rule = first.filter(|rule| !rule.is_empty()).unwrap_or("unknown");
        let told: Vec<String> = self
            .findings
            .iter()
            .map(|found| format!("[{}] {}: {}", found.severity, found.title, found.description))
            .collect();
        let description = match (told.is_empty(), self.summary.is_empty()) {
            (false, _) => told.join("; "),
            (true, false) => self.summary.clone(),
            (true, true) => "the scanner found something".to_owned(),
        };
        Some(Finding {
            rule: "tirith".to_owned(),
            key: format!("{KEY}{rule}"),
            description,
            severity: self.findings.iter().map(severity).max().unwrap_or(Severity::High),
            span: Span {
                start: 0,
                end: command.len(),
            },
            argv: Vec::new(),
        })
    }
}

/// Whether a finding is the scanner's.
pub fn is_scanners(finding: &Finding) -> bool {
    finding.key.starts_with(KEY)
}

fn found(value: &Value) -> Found {
    let text = |name: &str| cut(value, name, LONGEST_TEXT);
    Found {
        rule_id: text("rule_id"),
        severity: text("severity"),
        title: text("title"),
        description: text("description"),
        value: ["value", "tld", "detail", "message"]
            .iter()
            .map(|name| text(name))
            .find(|told| !told.is_empty())
            .unwrap_or_default(),
    }
}

fn cut(value: &Value, name: &str, most: usize) -> String {
    let text = value.get(name).and_then(Value::as_str).unwrap_or_default();
    crate::base::text::first_chars(text, most).to_owned()
}

fn ends_in_app(text: &str) -> bool {
    text.split(|character: char| character.is_whitespace() || "'\"`(),;".contains(character))
        .any(|word| {
            let host = word.split("://").last().unwrap_or(word);
            let host = host.split(['/', ':', '?', '#']).next().unwrap_or(host);
            host.to_lowercase().trim_end_matches('.').ends_with(".app")
        })
}

fn severity(found: &Found) -> Severity {
    match found.severity.to_uppercase().as_str() {
        "CRITICAL" => Severity::Critical,
        "MEDIUM" => Severity::Medium,
        "LOW" | "INFO" => Severity::Low,
        _ => Severity::High,
    }
}
