//! What stands beside the built-in rules wherever a command is judged: the
//! operator's deny list, policies, and what an isolated backend is exempted from.

use super::globs::Globs;
use super::ledger::finding;
use super::policy::Compiled;
use super::{Judgement, Setting, Severity, Span, Verdict, check};

/// `approvals.deny`: commands that nothing allows, whatever the mode. Literal
/// texts or globs over the whole text and over every command in it.
#[derive(Clone, Debug)]
pub struct DenyList {
    texts: Vec<String>,
    globs: Globs,
}

impl DenyList {
    /// Empty entries mean nothing. `None` when the patterns together are too
    /// large.
    pub fn new(texts: &[String]) -> Option<Self> {
        let texts: Vec<String> = texts.iter().filter(|text| !text.trim().is_empty()).cloned().collect();
        let globs = Globs::new(&texts)?;
        Some(Self { texts, globs })
    }

    /// The entry that refuses the text, if one does.
    pub fn hit(&self, text: &str, judgement: &Judgement) -> Option<&str> {
        if self.texts.is_empty() {
            return None;
        }
        let inner = judgement.commands.iter().map(|found| {
            let words = std::iter::once(found.program.as_str()).chain(found.arguments.iter().map(String::as_str));
            words.collect::<Vec<_>>().join(" ")
        });
        let mut texts = std::iter::once(text.to_owned()).chain(inner);
        let place = texts.find_map(|text| self.globs.first_match(&text))?;
        self.texts.get(place).map(String::as_str)
    }
}

/// How much of the guard holds where a backend is its own boundary
/// (`approvals.container_guard`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerGuard {
    /// Nothing is asked there, and nothing denied.
    #[default]
    Skip,
    /// What is denied everywhere is denied there; nothing is asked.
    Floor,
    /// As everywhere.
    Full,
}

/// What a command is judged by besides the built-in rules.
#[derive(Clone, Debug, Default)]
pub struct Standing<'a> {
    pub deny: Option<&'a DenyList>,
    pub policies: Vec<&'a Compiled>,
    pub container: ContainerGuard,
    /// Directories of the host are mounted where the command runs.
    pub mounts_host: bool,
}

/// Judges a command by the rules and by what stands beside them.
pub fn check_under(command: &str, setting: &Setting<'_>, standing: &Standing<'_>) -> Judgement {
    under(command, check(command, setting), setting, standing)
}

/// Lays what stands beside the rules over what they said of the command.
pub fn under(command: &str, read: Judgement, setting: &Setting<'_>, standing: &Standing<'_>) -> Judgement {
    let mut judgement = read;
    for policy in &standing.policies {
        judgement = policy.apply(command, judgement, setting);
    }
    if let Some(entry) = standing.deny.and_then(|deny| deny.hit(command, &judgement)) {
        let span = Span {
            start: 0,
            end: command.len(),
        };
        let description = format!("the operator forbids commands such as `{entry}` (`approvals.deny`)");
        // What is denied anyway says so first: no list could let it run.
        let place = match judgement.verdict {
            Verdict::Deny => judgement.findings.len(),
            _ => 0,
        };
        judgement.verdict = Verdict::Deny;
        let denied = finding(USER_DENY, "operator deny list", description, Severity::Critical, span);
        judgement.findings.insert(place, denied);
    }
    if setting.backend.is_isolated() && !standing.mounts_host {
        judgement.verdict = match (standing.container, judgement.verdict) {
            (ContainerGuard::Full, verdict) => verdict,
            (ContainerGuard::Floor, Verdict::Deny) => Verdict::Deny,
            (ContainerGuard::Floor | ContainerGuard::Skip, _) => Verdict::Allow,
        };
    }
    judgement
}

/// The rule of a finding that the deny list made.
pub const USER_DENY: &str = "user-deny";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Backend;
    use crate::guard::tests::ALICE;

    fn verdict(command: &str, backend: Backend, standing: &Standing<'_>) -> Verdict {
        check_under(command, &Setting { backend, ..ALICE }, standing).verdict
    }

    #[test]
    fn the_deny_list_sees_every_command_and_skips_empty_entries() {
        let deny = DenyList::new(&["".to_owned(), "  ".to_owned(), "git push*".to_owned()]).unwrap();
        let standing = Standing {
            deny: Some(&deny),
            ..Standing::default()
        };
        for command in [
            "git push origin",
            "GIT PUSH",
            "git pu\"\"sh x",
            "ls && git push",
            "sh -c 'git push'",
        ] {
            let judgement = check_under(command, &ALICE, &standing);
            assert_eq!(judgement.verdict, Verdict::Deny, "{command}");
            assert_eq!(judgement.findings[0].rule, USER_DENY);
        }
        assert_eq!(verdict("git pull", Backend::Local, &standing), Verdict::Allow);
    }

    #[test]
    fn the_floor_speaks_before_the_deny_list() {
        let deny = DenyList::new(&["*".to_owned()]).unwrap();
        let standing = Standing {
            deny: Some(&deny),
            ..Standing::default()
        };
        let rules = |command| -> Vec<String> {
            let findings = check_under(command, &ALICE, &standing).findings;
            findings.into_iter().map(|finding| finding.rule).collect()
        };
        let denied = rules("rm -rf /");
        assert_ne!(denied[0], USER_DENY);
        assert!(denied.contains(&USER_DENY.to_owned()));
        assert_eq!(rules("rm -rf x")[0], USER_DENY);
    }

    #[test]
    fn a_container_is_exempt_as_far_as_the_operator_says() {
        for (container, floor, ask) in [
            (ContainerGuard::Skip, Verdict::Allow, Verdict::Allow),
            (ContainerGuard::Floor, Verdict::Deny, Verdict::Allow),
            (ContainerGuard::Full, Verdict::Deny, Verdict::Ask),
        ] {
            let standing = Standing {
                container,
                ..Standing::default()
            };
            assert_eq!(verdict("rm -rf /", Backend::Docker, &standing), floor, "{container:?}");
            assert_eq!(verdict("rm -rf x", Backend::Modal, &standing), ask, "{container:?}");
            assert_eq!(verdict("rm -rf /", Backend::Local, &standing), Verdict::Deny);
            assert_eq!(verdict("rm -rf x", Backend::Ssh, &standing), Verdict::Ask);
            let mounted = Standing {
                mounts_host: true,
                ..standing
            };
            assert_eq!(verdict("rm -rf /", Backend::Docker, &mounted), Verdict::Deny);
        }
    }
}
