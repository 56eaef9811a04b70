//! `approvals`: when a person is asked and what silence means.

use std::time::Duration;

use super::kinds::truth;
use super::node::Value;
use super::original;
use super::section::Section;
use crate::guard::Verdict;
use crate::guard::policy::{self, Policy, PolicyMode};
use crate::guard::standing::ContainerGuard;

#[derive(Clone, Debug)]
pub struct Approvals {
    pub mode: Mode,
    /// Nothing means wait until decided; a parked turn costs rows only.
    pub timeout: Option<Duration>,
    pub on_expiry: OnExpiry,
    pub on_ask: OnAsk,
    pub recovery: Recovery,
    /// `always` may be offered.
    pub allow_permanent: bool,
    /// Commands that are refused in every mode: literal text or globs.
    pub deny: Vec<String>,
    /// What the operator adds to the guard's rules, for every tenant.
    pub policy: Policy,
    /// How much of the guard holds where a backend is its own boundary.
    pub container_guard: ContainerGuard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A person decides.
    Manual,
    /// Nobody is asked; the floor and the deny list still hold.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExpiry {
    /// The model is told and goes on.
    Deny,
    /// The turn ends.
    Halt,
}

/// What an unattended turn does when it would have to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAsk {
    Wait,
    Deny,
}

/// What happens to a call that was running when its server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    Tell,
    Ask,
}

impl Approvals {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::APPROVALS);
        Self {
            mode: read_mode(section),
            timeout: Some(section.seconds("timeout", 0, 0..=31_536_000)).filter(|timeout| !timeout.is_zero()),
            on_expiry: section.choice(
                "on_expiry",
                &[("deny", OnExpiry::Deny), ("halt", OnExpiry::Halt)],
                OnExpiry::Deny,
            ),
            on_ask: section.choice("on_ask", &[("wait", OnAsk::Wait), ("deny", OnAsk::Deny)], OnAsk::Wait),
            recovery: section.choice(
                "recovery",
                &[("tell", Recovery::Tell), ("ask", Recovery::Ask)],
                Recovery::Tell,
            ),
            allow_permanent: section.flag("allow_permanent", true),
            deny: section.texts("deny"),
            policy: section.section("policy", read_policy),
            container_guard: section.choice(
                "container_guard",
                &[
                    ("skip", ContainerGuard::Skip),
                    ("floor", ContainerGuard::Floor),
                    ("full", ContainerGuard::Full),
                ],
                ContainerGuard::Skip,
            ),
        }
    }
}

fn read_policy(section: &mut Section<'_>) -> Policy {
    const MODES: [(&str, PolicyMode); 3] = [
        ("patterns", PolicyMode::Patterns),
        ("allowlist", PolicyMode::Allowlist),
        ("rules", PolicyMode::Rules),
    ];
    const VERDICTS: [(&str, Verdict); 3] = [
        ("allow", Verdict::Allow),
        ("ask", Verdict::Ask),
        ("deny", Verdict::Deny),
    ];
    let allowed = format!(
        "a list of patterns, each of at most {} characters",
        policy::LONGEST_PATTERN
    );
    let families = policy::families().collect::<Vec<_>>().join(", ");
    Policy {
        mode: section.choice("mode", &MODES, PolicyMode::Patterns),
        default: Some(section.choice("default", &VERDICTS, Verdict::Ask)),
        allow: section.texts_where("allow", &allowed, policy::is_pattern),
        ask: section.texts_where("ask", &allowed, policy::is_pattern),
        deny: section.texts_where("deny", &allowed, policy::is_pattern),
        families_off: section.texts_where("families_off", &families, |name| {
            policy::families().any(|family| family == name)
        }),
    }
}

/// The words of the mode. A YAML boolean counts too: `off` is one in older
/// YAML, and the original reads it so.
fn read_mode(section: &mut Section<'_>) -> Mode {
    const WORDS: [(&str, Mode); 2] = [("manual", Mode::Manual), ("off", Mode::Off)];
    let node = section.raw("mode").filter(|node| node.value != Value::Null);
    let mode = node.as_ref().and_then(|node| match node.text() {
        Some("manual") => Some(Mode::Manual),
        Some("smart") => None,
        _ => truth(node).map(|asks| if asks { Mode::Manual } else { Mode::Off }),
    });
    if let (Some(node), None) = (&node, mode) {
        let allowed = match node.text() {
            Some("smart") => "manual, off (reviews by a model are not available in this version)",
            _ => "manual, off",
        };
        section.refuse("mode", node, allowed);
    }
    let mode = mode.unwrap_or(Mode::Manual);
    let word = WORDS.iter().find(|(_, known)| *known == mode).map(|(word, _)| *word);
    section.note("mode", word.into(), node.as_ref());
    mode
}
