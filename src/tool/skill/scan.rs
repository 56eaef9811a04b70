//! Looking through the text of a skill for what would turn an agent against its
//! owner. A filter, not a wall: what a skill makes an agent do is still judged
//! call by call.

mod rules;
mod structure;

use std::sync::LazyLock;

use regex::{RegexSet, RegexSetBuilder};
use serde::Serialize;

use crate::guard::threat;
use rules::RULES;
pub use structure::folder;

/// The rule by which a dangerous skill wants a person.
pub const DANGEROUS: &str = "dangerous-skill";

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Medium,
    High,
    Critical,
}

/// What is to be thought of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Safe,
    /// Something that a person should look at.
    Caution,
    Dangerous,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub verdict: Verdict,
    /// What was found, `group: rule`, the gravest first.
    pub findings: Vec<String>,
    /// How many of them are critical.
    critical: usize,
}

impl Report {
    fn of(mut found: Vec<(Severity, String)>) -> Self {
        found.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        let verdict = match found.first().map(|(severity, _)| *severity) {
            Some(Severity::Critical) => Verdict::Dangerous,
            Some(Severity::High) => Verdict::Caution,
            Some(Severity::Medium) | None => Verdict::Safe,
        };
        let critical = found.iter().filter(|(severity, _)| *severity == Severity::Critical);
        Self {
            verdict,
            critical: critical.count(),
            findings: found.into_iter().map(|(_, finding)| finding).collect(),
        }
    }

    /// What makes it dangerous.
    pub fn critical(&self) -> &[String] {
        self.findings.get(..self.critical).unwrap_or_default()
    }
}

/// Judges a file of a skill by its name and what it holds.
pub fn file(path: &str, content: &[u8]) -> Report {
    let mut found = text(&String::from_utf8_lossy(content));
    found.extend(structure::file(path, content));
    Report::of(found)
}

/// Judges a text: one critical finding makes it dangerous, a high one calls for
/// caution.
pub fn scan(text: &str) -> Report {
    Report::of(self::text(text))
}

fn text(text: &str) -> Vec<(Severity, String)> {
    let hits = PATTERNS.matches(text);
    let mut found: Vec<(Severity, String)> = RULES
        .iter()
        .enumerate()
        .filter(|(place, _)| hits.matched(*place))
        .map(|(_, (group, id, severity, ..))| (*severity, format!("{group}: {id}")))
        .collect();
    let hidden = threat::scan(text, threat::Scope::All).into_iter();
    let hidden = hidden.filter(|id| id.starts_with("invisible_unicode"));
    found.extend(hidden.map(|id| (Severity::High, format!("structural: {id}"))));
    found
}

#[allow(clippy::expect_used, reason = "constant patterns; a test matches every one")]
static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSetBuilder::new(RULES.iter().map(|(.., pattern, _)| *pattern))
        .case_insensitive(true)
        .size_limit(32 * 1024 * 1024)
        .build()
        .expect("constant patterns")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_finds_its_example() {
        for (group, id, severity, _, example) in RULES {
            let report = scan(example);
            assert!(
                report.findings.contains(&format!("{group}: {id}")),
                "{id}: {example}: {report:?}"
            );
            assert!(*severity < Severity::High || Verdict::Safe < report.verdict, "{id}");
        }
    }

    #[test]
    fn what_skills_usually_say_is_safe() {
        for text in [
            "Run `cargo test`, then `git push`. Never commit secrets; keep them in the environment.",
            "1. `pip install -r requirements.txt`\n2. `curl -s https://example.com/status | jq .`\n3. `rm -rf build/`",
            "Ask the user for the API key if `OPENAI_API_KEY` is not set. Describe the system's architecture first.",
            "Decode with `base64 -d cert.b64 > cert.pem`. Forget about the cache and measure again.",
            "Use `chmod +x run.sh`. Read ~/.config/app/settings.toml. Connect with `ssh deploy@host`.",
            "Ignore whitespace when you compare. You are now ready to deploy. Pretend tests are slow.",
        ] {
            assert_eq!(scan(text).verdict, Verdict::Safe, "{text}: {:?}", scan(text));
        }
    }

    #[test]
    fn hidden_characters_call_for_caution() {
        let report = scan("plain\u{200b}text");
        assert_eq!(report.verdict, Verdict::Caution);
        assert_eq!(report.findings, ["structural: invisible_unicode_U+200B"]);
    }
}
