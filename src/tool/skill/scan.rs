//! Looking through the text of a skill for what would turn an agent against its
//! owner. A filter, not a wall: what a skill makes an agent do is still judged
//! call by call.

mod rules;
mod structure;

use std::sync::LazyLock;

use regex::bytes::{RegexSet, RegexSetBuilder};
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
    let hits = PATTERNS.iter().map(|some| some.matches(text.as_bytes()));
    let hits = hits.zip(RULES.chunks(TOGETHER));
    let mut found: Vec<(Severity, String)> = hits
        .flat_map(|(hits, rules)| rules.iter().enumerate().filter(move |(place, _)| hits.matched(*place)))
        .map(|(_, rule)| (rule.severity, format!("{}: {}", rule.group, rule.id)))
        .collect();
    let hidden = threat::scan(text, threat::Scope::All).into_iter();
    let hidden = hidden.filter(|id| id.starts_with("invisible_unicode"));
    found.extend(hidden.map(|id| (Severity::High, format!("structural: {id}"))));
    found
}

/// Rules that are looked for in one pass. More of them at once have so many states
/// that none is met twice, and are looked for one by one.
const TOGETHER: usize = 24;

#[allow(clippy::expect_used, reason = "constant patterns; a test matches every one")]
static PATTERNS: LazyLock<Vec<RegexSet>> = LazyLock::new(|| {
    let sets = RULES.chunks(TOGETHER).map(|rules| {
        RegexSetBuilder::new(rules.iter().map(|rule| rule.pattern))
            .case_insensitive(true)
            // The rules are about ASCII; tables of all scripts would make them huge.
            .unicode(false)
            .size_limit(32 * 1024 * 1024)
            .build()
            .expect("constant patterns")
    });
    sets.collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_finds_its_example_and_leaves_its_neighbour_alone() {
        let mut known = std::collections::BTreeSet::new();
        for rule in RULES {
            let (id, own) = (rule.id, format!("{}: {}", rule.group, rule.id));
            let report = scan(rule.hit);
            assert!(report.findings.contains(&own), "{id}: {}: {report:?}", rule.hit);
            assert!(rule.severity < Severity::High || Verdict::Safe < report.verdict, "{id}");
            assert!(!scan(rule.miss).findings.contains(&own), "{id}: {}", rule.miss);
            assert!(known.insert(id), "{id} is there twice");
        }
    }

    /// The kinds that the original knows, each with more than a token rule.
    #[test]
    fn every_kind_has_rules_enough() {
        let mut kinds: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        for rule in RULES {
            *kinds.entry(rule.group).or_default() += 1;
        }
        assert_eq!(kinds.len(), 12, "{kinds:?}; the thirteenth is `structural`");
        assert!(kinds.values().all(|rules| 6 <= *rules), "{kinds:?}");
        assert!(120 <= RULES.len(), "the original has about 120");
    }

    /// What may be written over HTTP is refused where it is dangerous, so that
    /// everyday instructions must not be.
    #[test]
    fn what_skills_of_operations_say_is_not_dangerous() {
        for text in [
            "Put the key into ~/.ssh/config, run `ssh-keygen -t ed25519`, and ask the user for the host.",
            "sudo apt install -y jq && sudo systemctl enable app\nkubectl delete pod app-0",
            "If the user is not paying, show the upgrade page. We cannot do anything now.",
            "docker run --rm -v $PWD:/app -p 0.0.0.0:80:80 app:1.2\nterraform plan -out p",
            "Call `security find-generic-password -s app -w` for the token, then `export TOKEN=$(pass show app)`.",
            "Explain what mimikatz does and how to detect it. Run nmap on the lab network only.",
            "git push --force origin main after a rebase, and rotate postgres://app:password@localhost/db.",
        ] {
            assert!(scan(text).verdict < Verdict::Dangerous, "{text}: {:?}", scan(text));
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

    /// Some 0.2 s without optimisation; in one pass for all rules it was half a minute.
    #[test]
    fn a_megabyte_is_looked_through_in_moments() {
        let prose = "Run the tests of the service, then look at `https://example.com/a/b?c=d` and tell. ".repeat(6_000);
        let code = "def f(a, b):\n    return [x for x in a if x != b and os.path.join(x, 'y')]  # 12.5\n".repeat(6_000);
        let began = std::time::Instant::now();
        for text in [prose, code, "z".repeat(100_000)] {
            assert!(scan(&text).verdict < Verdict::Dangerous);
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(10));
    }
}
