//! A grant: a person's standing permission, made by answering an approval with
//! `session` or `always`, or ahead of any question. What it covers is decided
//! here; how often it was used is counted where the call is marked as running.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::id::{ApprovalId, CallId, GrantId, SessionId, TurnId};
use super::pattern::{climbs, matches_argument, matches_path};
use crate::base::Timestamp;
use crate::guard::Finding;

/// More than any tool has arguments.
const MAX_PATTERNS: usize = 32;
/// A pattern is something that a person reads at a glance.
const MAX_PATTERN_CHARS: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// Lives and dies with the session.
    Session,
    /// Belongs to the tenant and user.
    Always,
}

/// What a grant is held to beside what it is for. All of it has to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantLimits {
    /// Patterns by the argument whose whole text they match (of what is no text,
    /// its JSON). `*` stands for one plain word or one part of a path, `**` for
    /// anything, `?` for one character.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// Every path that the call names has to match one of them; a call whose
    /// paths cannot be told is not covered. They begin in the workspace unless
    /// they are absolute; `*` stays within one part, `**` does not. Empty is no
    /// limit.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Calls that may run under the grant; the one that was asked about does not
    /// count.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub max_uses: Option<u32>,
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    pub id: GrantId,
    pub scope: GrantScope,
    pub session_id: Option<SessionId>,
    pub tool: String,
    pub backend: String,
    /// Rule keys that are covered. Empty when the grant is for `exact` text.
    pub keys: Vec<String>,
    /// The exact command, where no rule had a key.
    pub exact: Option<String>,
    pub limits: GrantLimits,
    pub approval_id: Option<ApprovalId>,
    pub created_by: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    pub uses: u64,
    pub last_used_at: Option<Timestamp>,
}

/// A call that ran under a grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantUse {
    pub grant_id: GrantId,
    pub tool_call_id: CallId,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub tool: String,
    pub used_at: Timestamp,
}

/// A call that somebody would have to be asked about.
pub struct Asked<'a> {
    pub tool: &'a str,
    pub backend: &'a str,
    /// The text that an exact grant names.
    pub subject: &'a str,
    pub arguments: &'a Value,
    pub findings: &'a [Finding],
    pub workspace: &'a Path,
    /// The paths that the call names, if they can be told.
    pub paths: &'a dyn Fn() -> Option<Vec<PathBuf>>,
    pub now: Timestamp,
}

impl Grant {
    /// Whether this grant answers for the call: every finding's key has to be
    /// covered, or the text is the same, and every limit holds.
    pub fn covers(&self, asked: &Asked<'_>) -> bool {
        let for_this = self.revoked_at.is_none() && self.tool == asked.tool && self.backend == asked.backend;
        for_this && self.is_for(asked) && self.limits.hold(asked)
    }

    fn is_for(&self, asked: &Asked<'_>) -> bool {
        let covered = |finding: &Finding| !finding.is_of_unread_text() && self.keys.contains(&finding.key);
        match &self.exact {
            Some(exact) => exact == asked.subject,
            None => !asked.findings.is_empty() && asked.findings.iter().all(covered),
        }
    }

    /// Whether another call may run under it, after `more` that are not counted
    /// yet.
    pub fn has_uses_left(&self, more: usize) -> bool {
        let used = self.uses.saturating_add(more as u64);
        self.limits.max_uses.is_none_or(|max| used < u64::from(max))
    }
}

impl GrantLimits {
    fn hold(&self, asked: &Asked<'_>) -> bool {
        let argument = |(name, pattern): (&String, &String)| match asked.arguments.get(name) {
            Some(Value::String(text)) => matches_argument(pattern, text),
            Some(other) => matches_argument(pattern, &other.to_string()),
            None => false,
        };
        let in_time = self.expires_at.is_none_or(|end| asked.now < end);
        in_time && self.arguments.iter().all(argument) && (self.paths.is_empty() || self.paths_hold(asked))
    }

    fn paths_hold(&self, asked: &Asked<'_>) -> bool {
        let within = |path: &PathBuf| {
            let mut patterns = self.paths.iter();
            patterns.any(|pattern| matches_path(pattern, path, asked.workspace))
        };
        (asked.paths)().is_some_and(|paths| !paths.is_empty() && paths.iter().all(within))
    }

    /// Which limits there are, without what they say.
    pub fn names(&self) -> Vec<String> {
        let arguments = self.arguments.keys().map(|name| format!("arguments.{name}"));
        let others = [
            ("paths", !self.paths.is_empty()),
            ("max_uses", self.max_uses.is_some()),
            ("expires_at", self.expires_at.is_some()),
        ];
        let others = others.into_iter().filter(|(_, set)| *set);
        arguments.chain(others.map(|(name, _)| name.to_owned())).collect()
    }

    /// What makes them unusable for a tool with these parameters: where it
    /// stands, and why.
    pub fn fault(&self, parameters: &Value, now: Timestamp) -> Option<(String, String)> {
        let known = parameters.get("properties").and_then(Value::as_object);
        if MAX_PATTERNS < self.arguments.len() {
            return Some(("/arguments".to_owned(), format!("more than {MAX_PATTERNS} patterns")));
        }
        for (name, pattern) in &self.arguments {
            if known.is_none_or(|known| !known.contains_key(name)) {
                return Some((format!("/arguments/{name}"), "the tool has no such argument".to_owned()));
            }
            if let Some(fault) = too_long(pattern) {
                return Some((format!("/arguments/{name}"), fault));
            }
        }
        if MAX_PATTERNS < self.paths.len() {
            return Some(("/paths".to_owned(), format!("more than {MAX_PATTERNS} patterns")));
        }
        for (place, pattern) in self.paths.iter().enumerate() {
            let climbs = climbs(pattern).then(|| "a path pattern cannot hold `..`".to_owned());
            if let Some(fault) = too_long(pattern).or(climbs) {
                return Some((format!("/paths/{place}"), fault));
            }
        }
        if self.max_uses == Some(0) {
            return Some(("/max_uses".to_owned(), "expected 1 or more".to_owned()));
        }
        let past = self.expires_at.is_some_and(|end| end <= now);
        past.then(|| ("/expires_at".to_owned(), "it lies in the past".to_owned()))
    }
}

fn too_long(pattern: &str) -> Option<String> {
    let fits = (1..=MAX_PATTERN_CHARS).contains(&pattern.chars().count());
    (!fits).then(|| format!("expected 1 to {MAX_PATTERN_CHARS} characters"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::Id;
    use crate::guard::{Severity, Span};

    fn finding(rule: &str, key: &str) -> Finding {
        Finding {
            rule: rule.to_owned(),
            key: key.to_owned(),
            description: String::new(),
            severity: Severity::High,
            span: Span::default(),
            argv: Vec::new(),
        }
    }

    fn grant(limits: GrantLimits) -> Grant {
        Grant {
            id: Id::from_bits(1),
            scope: GrantScope::Always,
            session_id: None,
            tool: "terminal".to_owned(),
            backend: "local".to_owned(),
            keys: vec!["k".to_owned()],
            exact: None,
            limits,
            approval_id: None,
            created_by: "ada".to_owned(),
            created_at: Timestamp(0),
            revoked_at: None,
            uses: 1,
            last_used_at: None,
        }
    }

    fn covers(grant: &Grant, arguments: &Value, paths: Option<&[&str]>, findings: &[Finding]) -> bool {
        let paths = || paths.map(|paths| paths.iter().map(PathBuf::from).collect());
        grant.covers(&Asked {
            tool: "terminal",
            backend: "local",
            subject: "",
            arguments,
            findings,
            workspace: Path::new("/w"),
            paths: &paths,
            now: Timestamp(1_000),
        })
    }

    #[test]
    fn every_limit_has_to_hold() {
        let call = json!({"command": "rm -rf build/x", "n": 5});
        let asked = [finding("r", "k")];
        let with = |limits: Value| grant(serde_json::from_value(limits).unwrap());
        for (limits, expected) in [
            (json!({}), true),
            (json!({"arguments": {"command": "rm -rf build/*", "n": "5"}}), true),
            (json!({"arguments": {"command": "rm -rf build/*", "n": "6"}}), false),
            (json!({"arguments": {"workdir": "**"}}), false),
            (json!({"paths": ["build/*"]}), true),
            (json!({"paths": ["src/*"]}), false),
            (json!({"expires_at": "1970-01-01T00:00:01.001Z"}), true),
            (json!({"expires_at": "1970-01-01T00:00:01.000Z"}), false),
            (
                json!({"paths": ["build/*"], "expires_at": "1970-01-01T00:00:01.000Z"}),
                false,
            ),
        ] {
            let grant = with(limits.clone());
            assert_eq!(
                covers(&grant, &call, Some(&["/w/build/x"]), &asked),
                expected,
                "{limits}"
            );
        }
        let paths = with(json!({"paths": ["**"]}));
        assert!(covers(&paths, &call, Some(&["/w/a", "/w/b"]), &asked));
        for unknown in [None, Some(&[][..]), Some(&["/w/a", "/etc/x"][..])] {
            assert!(!covers(&paths, &call, unknown, &asked), "{unknown:?}");
        }
    }

    #[test]
    fn a_key_covers_nothing_that_nobody_could_read() {
        let whole = grant(GrantLimits::default());
        let call = json!({});
        assert!(covers(&whole, &call, None, &[finding("r", "k")]));
        assert!(!covers(
            &whole,
            &call,
            None,
            &[finding("r", "k"), finding("r", "other")]
        ));
        assert!(!covers(&whole, &call, None, &[finding("parser-limit", "k")]));
    }

    #[test]
    fn uses_run_out() {
        let mut twice = grant(GrantLimits {
            max_uses: Some(2),
            ..GrantLimits::default()
        });
        assert!(twice.has_uses_left(0) && !twice.has_uses_left(1));
        twice.uses = 2;
        assert!(!twice.has_uses_left(0));
        assert!(grant(GrantLimits::default()).has_uses_left(usize::MAX));
    }

    #[test]
    fn unusable_limits_are_pointed_at() {
        let parameters = json!({"properties": {"command": {}}});
        for (limits, pointer) in [
            (json!({"arguments": {"comand": "x"}}), Some("/arguments/comand")),
            (json!({"arguments": {"command": ""}}), Some("/arguments/command")),
            (json!({"paths": ["a", "a/../b"]}), Some("/paths/1")),
            (json!({"max_uses": 0}), Some("/max_uses")),
            (json!({"expires_at": "1970-01-01T00:00:01Z"}), Some("/expires_at")),
            (
                json!({"arguments": {"command": "x"}, "paths": ["a"], "max_uses": 1}),
                None,
            ),
        ] {
            let read: GrantLimits = serde_json::from_value(limits.clone()).unwrap();
            let fault = read.fault(&parameters, Timestamp(1_000));
            assert_eq!(fault.as_ref().map(|(pointer, _)| pointer.as_str()), pointer, "{limits}");
        }
    }
}
