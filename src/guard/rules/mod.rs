//! The rules: one row each, one file per family, looked up by program name.
//!
//! A rule sees one resolved invocation. In a family the first row that hits
//! counts, so rows stand from special to general. Adding a rule is one row
//! with its examples; nothing else lists it.

mod admin;
mod archives;
mod cloud;
mod containers;
mod credentials;
mod databases;
mod delete;
mod disk;
mod docker;
mod environment;
mod escapes;
mod feeds;
mod files;
mod floor;
mod found;
mod git;
mod git_remove;
mod hermes;
mod interpreters;
mod network;
mod packages;
mod paths;
mod permissions;
mod process;
mod programs;
mod publish;
mod removal;
mod schedules;
mod sql;
mod sudo;
mod system;
#[cfg(test)]
mod tests;
mod tunnels;
mod windows;
mod writes;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::call::Call;
use super::ledger::Ledger;
use super::{Setting, Severity, Span, unwrap};

pub(crate) use credentials::is_private;
pub(crate) use feeds::feed;
pub(crate) use floor::FORK_BOMB;
pub(crate) use network::FETCHERS;
pub(crate) use writes::writes;

#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) key: &'static str,
    pub(crate) description: &'static str,
    pub(crate) weight: Weight,
    /// Names the rule looks at; none means every invocation.
    pub(crate) programs: &'static [&'static str],
    /// The evidence, when the rule hits.
    pub(crate) when: fn(&Call, &Scene<'_>) -> Option<Span>,
    /// Examples, run by one test over all rows.
    #[cfg_attr(not(test), allow(dead_code, reason = "examples are read by tests"))]
    pub(crate) hits: &'static [&'static str],
    #[cfg_attr(not(test), allow(dead_code, reason = "examples are read by tests"))]
    pub(crate) misses: &'static [&'static str],
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Weight {
    Ask(Severity),
    /// Denied in every mode; no grant passes it.
    Floor,
}

pub(crate) const MEDIUM: Weight = Weight::Ask(Severity::Medium);
pub(crate) const HIGH: Weight = Weight::Ask(Severity::High);

/// What a rule may know besides the invocation.
pub(crate) struct Scene<'s> {
    pub(crate) setting: &'s Setting<'s>,
    /// Names of files made executable earlier in the text.
    pub(crate) executable: &'s [String],
    /// Names of files downloaded earlier in the text.
    pub(crate) fetched: &'s [String],
    /// Names of files that got the content of a secret earlier in the text.
    pub(crate) secrets: &'s [String],
}

/// A policy turns families off by these names; the floor's stays on.
const FAMILIES: [(&str, &[Rule]); 31] = [
    ("floor", floor::RULES),
    ("sudo", sudo::RULES),
    ("delete", delete::RULES),
    ("permissions", permissions::RULES),
    ("disk", disk::RULES),
    ("files", files::RULES),
    ("system", system::RULES),
    ("admin", admin::RULES),
    ("cloud", cloud::RULES),
    ("process", process::RULES),
    ("network", network::RULES),
    ("credentials", credentials::RULES),
    ("environment", environment::RULES),
    ("interpreters", interpreters::RULES),
    ("programs", programs::RULES),
    ("git", git::RULES),
    ("git_remove", git_remove::RULES),
    ("docker", docker::RULES),
    ("sql", sql::RULES),
    ("hermes", hermes::RULES),
    ("windows", windows::RULES),
    ("removal", removal::RULES),
    ("found", found::RULES),
    ("escapes", escapes::RULES),
    ("packages", packages::RULES),
    ("publish", publish::RULES),
    ("archives", archives::RULES),
    ("tunnels", tunnels::RULES),
    ("databases", databases::RULES),
    ("containers", containers::RULES),
    ("schedules", schedules::RULES),
];

/// The families that can be turned off.
pub(crate) fn families() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(name, _)| *name).filter(|name| *name != "floor")
}

/// The family of a rule; none for the floor and for text that was not read.
pub(crate) fn family_of(rule: &str) -> Option<&'static str> {
    let of = |rules: &[Rule]| {
        rules
            .iter()
            .any(|row| row.id == rule && !matches!(row.weight, Weight::Floor))
    };
    FAMILIES.iter().find(|(_, rules)| of(rules)).map(|(name, _)| *name)
}

/// Rules by program, each with the number of its family.
struct Index {
    by_name: HashMap<&'static str, Vec<(usize, &'static Rule)>>,
    always: Vec<(usize, &'static Rule)>,
}

/// A table made of the constants above, the same at every start.
static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index {
        by_name: HashMap::new(),
        always: Vec::new(),
    };
    for (family, (_, rules)) in FAMILIES.iter().enumerate() {
        for rule in *rules {
            if rule.programs.is_empty() {
                index.always.push((family, rule));
            }
            for name in rule.programs {
                index.by_name.entry(name).or_default().push((family, rule));
            }
        }
    }
    index
});

pub(crate) fn judge(call: &Call, scene: &Scene<'_>, ledger: &mut Ledger) {
    let index = &*INDEX;
    let mut hit = 0_u32;
    let mut apply = |rules: &[(usize, &'static Rule)]| {
        for (family, rule) in rules {
            if hit & (1 << family) != 0 {
                continue;
            }
            if let Some(span) = (rule.when)(call, scene) {
                hit |= 1 << family;
                ledger.find(rule, span, call.contained || call.guessed);
            }
        }
    };
    if let Some(rules) = index.by_name.get(call.name.as_str()) {
        apply(rules);
    }
    if let Some(family) = family_name(&call.name).filter(|family| *family != call.name)
        && let Some(rules) = index.by_name.get(family)
    {
        apply(rules);
    }
    apply(&index.always);
}

/// `python3.11` is judged as `python`, `mkfs.ext4` as `mkfs`.
fn family_name(name: &str) -> Option<&'static str> {
    if name.starts_with("mkfs.") {
        return Some("mkfs");
    }
    unwrap::is_interpreter(name)
}

/// Every rule there is, also the one that needs no invocation.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    FAMILIES.iter().flat_map(|(_, rules)| rules.iter()).chain([&FORK_BOMB])
}
