//! `approvals`: when a person is asked and what silence means.

use std::time::Duration;

use super::kinds::truth;
use super::node::Value;
use super::original;
use super::section::Section;
use crate::guard::policy::{self, Policy, PolicyMode};
use crate::guard::standing::ContainerGuard;
use crate::guard::{Verdict, flow};

#[derive(Clone, Debug)]
pub struct Approvals {
    pub mode: Mode,
    /// Who reviews in mode `smart`; the turn's own model where none is named.
    pub reviewer_model: Option<String>,
    pub reviewer_timeout: Duration,
    /// Nothing means wait until decided; a parked turn costs rows only.
    pub timeout: Option<Duration>,
    pub on_expiry: OnExpiry,
    pub on_ask: OnAsk,
    pub recovery: Recovery,
    pub cron_mode: CronMode,
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
    /// A model decides what it is sure of, a person the rest.
    Smart,
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

/// What runs of jobs do where they would have to ask: nobody is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CronMode {
    /// The call is refused.
    Deny,
    /// It runs; the floor and the deny list still hold.
    Approve,
}

impl Approvals {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::APPROVALS);
        Self {
            mode: read_mode(section),
            reviewer_model: section.optional_text("reviewer_model"),
            reviewer_timeout: section.seconds("reviewer_timeout", 30, 1..=600),
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
            cron_mode: section.choice(
                "cron_mode",
                &[("deny", CronMode::Deny), ("approve", CronMode::Approve)],
                CronMode::Deny,
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

/// The words of the mode, in any case. A YAML boolean counts too: `off` is one in
/// older YAML, and the original reads it so.
fn read_mode(section: &mut Section<'_>) -> Mode {
    let node = section.raw("mode").filter(|node| node.value != Value::Null);
    let mode = node
        .as_ref()
        .and_then(|node| match node.text().and_then(flow::Mode::named) {
            Some(flow::Mode::Manual) => Some(Mode::Manual),
            Some(flow::Mode::Smart) => Some(Mode::Smart),
            Some(flow::Mode::Off) => Some(Mode::Off),
            None => truth(node).map(|asks| if asks { Mode::Manual } else { Mode::Off }),
        });
    if let (Some(node), None) = (&node, mode) {
        section.refuse("mode", node, "manual, smart, off");
    }
    let mode = mode.unwrap_or(Mode::Manual);
    let word = match mode {
        Mode::Manual => "manual",
        Mode::Smart => "smart",
        Mode::Off => "off",
    };
    section.note("mode", word.into(), node.as_ref());
    mode
}
