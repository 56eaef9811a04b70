//! What operators add to the built-in rules, as a value: lists of patterns that
//! are matched on every command that was found in a text, and on the files that
//! its redirects name. Deny beats ask beats allow. A policy never lowers the
//! floor, and what could not be read stays with a person at least.

mod apply;
mod glob;
mod known;
mod paths;
mod pattern;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub(super) use apply::is_plain;

use super::{Verdict, rules};
use paths::PathPattern;
use pattern::{Allowing, Restricting};

/// Patterns of one list: more is a program, not a policy.
pub const MOST_PATTERNS: usize = 500;
/// Characters of one pattern.
pub const LONGEST_PATTERN: usize = 1_000;

/// What becomes of a command that no list names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyMode {
    /// The built-in rules alone decide.
    #[default]
    Patterns,
    /// It asks.
    Allowlist,
    /// What `default` says, unless the built-in rules say more.
    Rules,
}

/// Rules of an operator. The built-in rules count in every mode but for the
/// families that are turned off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(default)]
    #[schema(required = false)]
    pub mode: PolicyMode,
    /// In mode `rules`, the verdict on a command that no list names; `ask` when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Verdict>,
    /// Commands that need no asking. A pattern without `*` at its end that is the
    /// whole command line also settles what the built-in rules ask about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, max_items = 500, example = json!(["cargo *", "git -C * status", "> build/**"]))]
    pub allow: Vec<String>,
    /// Commands and paths that a person has to decide about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, max_items = 500, example = json!(["kubectl delete *"]))]
    pub ask: Vec<String>,
    /// Commands and paths that nobody can allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, max_items = 500, example = json!(["curl", "~/.ssh/**"]))]
    pub deny: Vec<String>,
    /// Families of built-in rules that do not count. The floor always does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, example = json!(["sql"]))]
    pub families_off: Vec<String>,
}

/// A policy that cannot be used: where, as a JSON pointer, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pointer}`: {detail}")]
pub struct Fault {
    pub pointer: String,
    pub detail: String,
}

/// A policy made ready to be asked for every command.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    mode: PolicyMode,
    default: Verdict,
    allow: Vec<Allowing>,
    allow_paths: Vec<PathPattern>,
    ask: Vec<Restricting>,
    ask_paths: Vec<PathPattern>,
    deny: Vec<Restricting>,
    deny_paths: Vec<PathPattern>,
    families_off: Vec<String>,
    /// Words and wildcards of all patterns: what one byte of a command costs.
    weight: usize,
}

/// Whether a text can stand in a list of a policy.
pub fn is_pattern(text: &str) -> bool {
    let one = Policy {
        deny: vec![text.to_owned()],
        allow: vec![text.to_owned()],
        ..Policy::default()
    };
    one.compile().is_ok()
}

/// The families that a policy can turn off.
pub fn families() -> impl Iterator<Item = &'static str> {
    rules::families()
}

impl Policy {
    pub fn compile(&self) -> Result<Compiled, Fault> {
        self.check_families()?;
        for (name, list) in [("allow", &self.allow), ("ask", &self.ask), ("deny", &self.deny)] {
            check_list(name, list)?;
        }
        let (ask, ask_paths) = restricting("ask", &self.ask)?;
        let (deny, deny_paths) = restricting("deny", &self.deny)?;
        Ok(Compiled {
            mode: self.mode,
            default: self.default.unwrap_or(Verdict::Ask),
            allow: patterns("allow", &self.allow, Allowing::new)?,
            allow_paths: patterns("allow", &self.allow, |text| PathPattern::allowing(text).transpose())?,
            ask,
            ask_paths,
            deny,
            deny_paths,
            families_off: self.families_off.clone(),
            weight: [&self.allow, &self.ask, &self.deny]
                .into_iter()
                .flatten()
                .map(|text| 1 + text.matches(['*', '?']).count())
                .sum(),
        })
    }

    fn check_families(&self) -> Result<(), Fault> {
        let unknown = |name: &String| !families().any(|known| known == name);
        match self.families_off.iter().position(unknown) {
            None => Ok(()),
            Some(place) => Err(Fault {
                pointer: format!("/families_off/{place}"),
                detail: format!("expected one of {}", families().collect::<Vec<_>>().join(", ")),
            }),
        }
    }
}

fn check_list(name: &str, list: &[String]) -> Result<(), Fault> {
    if MOST_PATTERNS < list.len() {
        return Err(Fault {
            pointer: format!("/{name}"),
            detail: format!("expected at most {MOST_PATTERNS} patterns"),
        });
    }
    match list.iter().position(|text| LONGEST_PATTERN < text.chars().count()) {
        None => Ok(()),
        Some(place) => Err(Fault {
            pointer: format!("/{name}/{place}"),
            detail: format!("expected at most {LONGEST_PATTERN} characters"),
        }),
    }
}

fn restricting(name: &str, list: &[String]) -> Result<(Vec<Restricting>, Vec<PathPattern>), Fault> {
    let commands = patterns(name, list, Restricting::new)?;
    let paths = patterns(name, list, |text| PathPattern::restricting(text).transpose())?;
    Ok((commands, paths))
}

/// Patterns of a list; entries that `make` has no use for, and empty ones, are
/// left out.
fn patterns<T>(
    name: &str,
    list: &[String],
    make: impl Fn(&str) -> Option<Result<T, glob::TooLarge>>,
) -> Result<Vec<T>, Fault> {
    let made = list.iter().enumerate().filter_map(|(place, text)| {
        let text = text.trim();
        let made = if text.is_empty() { None } else { make(text) };
        Some(made?.map_err(|glob::TooLarge| Fault {
            pointer: format!("/{name}/{place}"),
            detail: "the pattern is too large".to_owned(),
        }))
    });
    made.collect()
}
