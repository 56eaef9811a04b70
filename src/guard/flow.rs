//! In which order what may settle a guarded call is asked: what nothing lifts
//! first, then settings, then permissions that were given, then the reviewer,
//! then a person. Pure, and the same for every tool.

use super::globs::Globs;
use super::policy::is_plain;
use super::smart::Answer;
use super::tirith;
use super::{Backend, Finding, Severity, Span};
use crate::guard::standing::ContainerGuard;

/// `approvals.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A person decides.
    Manual,
    /// A model decides what it is sure of.
    Smart,
    /// Nobody is asked.
    Off,
}

impl Mode {
    /// A word of the configuration, in any case; nothing for one that is none.
    pub fn named(word: &str) -> Option<Self> {
        match word.trim().to_lowercase().as_str() {
            "manual" => Some(Self::Manual),
            "smart" => Some(Self::Smart),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// A call that the guard asks about.
pub struct Case<'a> {
    /// The command, or what stands for it.
    pub text: &'a str,
    pub findings: &'a [Finding],
    pub mode: Mode,
    /// Nobody is there to answer.
    pub unattended: bool,
    /// `command_allowlist`.
    pub allowlist: &'a [String],
    /// A permission that was given covers it.
    pub granted: bool,
    /// What the reviewer said, if it was asked.
    pub review: Option<Answer>,
    /// `approvals.allow_permanent`.
    pub allow_permanent: bool,
}

/// What becomes of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It runs by the setting of this name.
    Exempt(&'static str),
    /// It runs by a permission that was given.
    Granted,
    /// It runs this once by the reviewer's word.
    Reviewed,
    /// It does not run: nobody is there to ask.
    Unattended,
    /// The reviewer is asked.
    Review,
    /// A person is asked.
    Ask(Offer),
}

/// Which answers a person may give, beside once and no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub session: bool,
    pub always: bool,
}

pub fn decide(case: &Case<'_>) -> Step {
    if case.mode == Mode::Off {
        return Step::Exempt("approvals.mode");
    }
    if is_listed(case.allowlist, case.text, case.findings) {
        return Step::Exempt("command_allowlist");
    }
    if case.granted {
        return Step::Granted;
    }
    if case.unattended {
        return Step::Unattended;
    }
    match (case.mode, case.review) {
        (Mode::Smart, None) => Step::Review,
        (Mode::Smart, Some(Answer::Approve)) => Step::Reviewed,
        // Whoever overrides the reviewer does so for this call alone.
        (Mode::Smart, Some(Answer::Deny)) => Step::Ask(Offer {
            session: false,
            always: false,
        }),
        _ => Step::Ask(offer(case.findings, case.allow_permanent)),
    }
}

/// A scanner's word is about the world as it is now and becomes no standing
/// permission.
pub fn offer(findings: &[Finding], allow_permanent: bool) -> Offer {
    Offer {
        session: true,
        always: allow_permanent && !findings.iter().any(tirith::is_scanners),
    }
}

/// Whether `command_allowlist` settles what would be asked: by the keys of all
/// findings, by the text itself, or by a pattern of a text that is one plain
/// command. What is quoted in an entry is literal.
pub fn is_listed(allowlist: &[String], text: &str, findings: &[Finding]) -> bool {
    if allowlist.is_empty() {
        return false;
    }
    let covered = |finding: &Finding| allowlist.contains(&finding.key);
    let text = text.trim();
    (!findings.is_empty() && findings.iter().all(covered))
        || allowlist.iter().any(|entry| entry.trim() == text && !text.is_empty())
        || (is_plain(text) && allowlist.iter().any(|entry| is_glob_of(entry, text)))
}

fn is_glob_of(entry: &str, text: &str) -> bool {
    // A wildcard in quotes was saved with the command and stands for itself.
    let quoted = entry.contains(['\'', '"', '\\']);
    let wild = entry.contains(['*', '?', '[']);
    wild && !quoted && Globs::new(&[entry.to_owned()]).is_some_and(|globs| globs.first_match(text).is_some())
}

/// The key of approvals of scripts.
pub const EXECUTE_CODE: &str = "execute_code";

/// What is asked about a script of another language: its text is not judged by
/// rules, one answer covers the run. Nothing where the backend is its own boundary.
pub fn of_code(code: &str, backend: Backend, mounts_host: bool, container: ContainerGuard) -> Option<Finding> {
    let isolated = backend.is_isolated() && !mounts_host && container != ContainerGuard::Full;
    (!isolated).then(|| Finding {
        rule: "execute-code".to_owned(),
        key: EXECUTE_CODE.to_owned(),
        description: "runs a script, in which anything may stand".to_owned(),
        severity: Severity::Medium,
        span: Span {
            start: 0,
            end: code.len(),
        },
        argv: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(key: &str) -> Finding {
        Finding {
            key: key.to_owned(),
            ..of_code("", Backend::Local, false, ContainerGuard::Skip).unwrap()
        }
    }

    fn listed(entries: &[&str], text: &str, keys: &[&str]) -> bool {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let findings: Vec<Finding> = keys.iter().map(|key| finding(key)).collect();
        is_listed(&entries, text, &findings)
    }

    #[test]
    fn an_entry_is_a_key_a_text_or_a_pattern_of_one_command() {
        assert!(listed(
            &["recursive delete"],
            "rm -rf a; rm -rf b",
            &["recursive delete"]
        ));
        assert!(!listed(&["recursive delete"], "x", &["recursive delete", "another"]));
        assert!(listed(&["rm -rf a && ls"], " rm -rf a && ls ", &["k"]));
        assert!(listed(&["podman *"], "podman run -it alpine bash -c ls", &["k"]));
        for text in [
            "podman run $(rm -rf x)",
            "podman run; rm x",
            "podman run > f",
            "podman a\nb",
        ] {
            assert!(!listed(&["podman *"], text, &["k"]), "{text}");
        }
        let saved = "grep -n \"a.*b\" x";
        assert!(listed(&[saved], saved, &["k"]));
        assert!(!listed(&[saved], "grep -n \"a.XX\" y \"b\" x", &["k"]));
        assert!(!listed(&["", " "], "", &["k"]));
    }

    #[test]
    fn settings_come_before_permissions_and_a_person_last() {
        let findings = [finding("k")];
        let case = Case {
            text: "x",
            findings: &findings,
            mode: Mode::Smart,
            unattended: false,
            allowlist: &[],
            granted: false,
            review: None,
            allow_permanent: true,
        };
        assert_eq!(decide(&case), Step::Review);
        let denied = Step::Ask(Offer {
            session: false,
            always: false,
        });
        for (review, expected) in [
            (Answer::Approve, Step::Reviewed),
            (Answer::Deny, denied),
            (Answer::Escalate, Step::Ask(offer(&findings, true))),
        ] {
            let review = Some(review);
            assert_eq!(decide(&Case { review, ..case }), expected);
        }
        let unattended = Case {
            unattended: true,
            ..case
        };
        assert_eq!(decide(&unattended), Step::Unattended);
        assert_eq!(
            decide(&Case {
                granted: true,
                ..unattended
            }),
            Step::Granted
        );
        let off = Case {
            mode: Mode::Off,
            ..unattended
        };
        assert_eq!(decide(&off), Step::Exempt("approvals.mode"));
    }
}
