//! A turn that goes round in circles: the same call failing again and again, one
//! tool that never works, a read that always answers the same. The model is told
//! at first; where the operator wants it, it is stopped later. Pure counting.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Calls that are counted in one turn; those that were made first are forgotten
/// first.
const MAX_CALLS: usize = 256;

/// Tools that only read: the same answer again is no progress.
const IDEMPOTENT: &[&str] = &[
    "browser_console",
    "browser_get_images",
    "browser_snapshot",
    "read_file",
    "search_files",
    "session_search",
    "web_extract",
    "web_search",
];
/// Of the file server that many sessions have, under both spellings of its name.
const FILE_SERVER: &[&str] = &["mcp__filesystem__", "mcp_filesystem_"];
const FILE_READERS: &[&str] = &[
    "directory_tree",
    "get_file_info",
    "list_directory",
    "list_directory_with_sizes",
    "read_file",
    "read_multiple_files",
    "read_text_file",
    "search_files",
];

/// How many of a kind are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    pub exact_failure: u32,
    pub same_tool_failure: u32,
    pub idempotent_no_progress: u32,
}

/// What the configuration says (the original's figures).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub warns: bool,
    pub stops: bool,
    pub warn_after: Thresholds,
    pub stop_after: Thresholds,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            warns: true,
            stops: false,
            warn_after: Thresholds {
                exact_failure: 2,
                same_tool_failure: 3,
                idempotent_no_progress: 2,
            },
            stop_after: Thresholds {
                exact_failure: 5,
                same_tool_failure: 8,
                idempotent_no_progress: 5,
            },
        }
    }
}

/// Which call it is: the tool and its arguments, whatever their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub tool: String,
    /// SHA-256 of the arguments as canonical JSON.
    pub args_hash: String,
}

impl Signature {
    pub fn of(tool: &str, arguments: &Value) -> Self {
        let mut text = String::new();
        match arguments.is_object() {
            true => canonical(arguments, &mut text),
            // A call without arguments, however that is written.
            false => text.push_str("{}"),
        }
        Self {
            tool: tool.to_owned(),
            args_hash: hash(&text),
        }
    }

    fn key(&self) -> String {
        format!("{}:{}", self.tool, self.args_hash.get(..16).unwrap_or_default())
    }
}

/// Keys sorted, no blanks.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (place, (name, value)) in fields.into_iter().enumerate() {
                if 0 < place {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if 0 < place {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// What a result says, in whatever order and with whatever blanks it says it.
fn said(result: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(result) else {
        return result.to_owned();
    };
    let mut text = String::new();
    canonical(&value, &mut text);
    text
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Allow,
    /// The model is told behind the result.
    Warn,
    /// The call does not run.
    Block,
    /// The turn ends.
    Halt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub action: Action,
    /// What it is about; empty where nothing is.
    pub code: &'static str,
    pub count: u32,
}

impl Verdict {
    fn allow(count: u32) -> Self {
        Self {
            action: Action::Allow,
            code: "",
            count,
        }
    }

    fn text(self, tool: &str) -> String {
        let count = self.count;
        match self.code {
            "repeated_exact_failure_warning" => format!(
                "this exact call of `{tool}` has failed {count} times; repeating it will not help: change the arguments \
                 or the approach"
            ),
            "same_tool_failure_warning" => {
                format!("`{tool}` has failed {count} times in a row; find out why, or use another way")
            }
            "idempotent_no_progress_warning" => {
                format!("this call of `{tool}` has given the same result {count} times; use what it says")
            }
            "repeated_exact_failure_block" => {
                format!("this exact call of `{tool}` has failed {count} times and is not run again in this turn")
            }
            "idempotent_no_progress_block" => {
                format!(
                    "this call of `{tool}` has given the same result {count} times and is not run again in this turn"
                )
            }
            "same_tool_failure_halt" => format!("`{tool}` has failed {count} times in a row: the turn is stopped"),
            _ => String::new(),
        }
    }

    /// What stands behind the result.
    pub fn suffix(self, tool: &str) -> String {
        match self.action {
            Action::Allow => String::new(),
            _ => format!("\n\n[Tool loop: {} ({})]", self.text(tool), self.code),
        }
    }

    /// The result of a call that does not run.
    pub fn blocked(self, call: &Signature) -> String {
        let message = self.text(&call.tool);
        let signature = json!({"tool_name": call.tool, "args_hash": call.args_hash});
        json!({"error": message, "guardrail": {"action": self.action, "code": self.code, "message": message,
            "tool_name": call.tool, "count": self.count, "signature": signature}})
        .to_string()
    }
}

/// What one turn has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guardrail {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Seen>,
    /// Failures in a row by tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tools: BTreeMap<String, u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    key: String,
    failures: u32,
    /// How often the last result came, and the beginning of its hash.
    same: u32,
    result: String,
}

impl Guardrail {
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.tools.is_empty()
    }

    /// Whether the call may run.
    pub fn before(&self, call: &Signature, limits: &Limits) -> Verdict {
        let key = call.key();
        let Some(seen) = self.calls.iter().find(|seen| seen.key == key).filter(|_| limits.stops) else {
            return Verdict::allow(0);
        };
        let block = |code, count| Verdict {
            action: Action::Block,
            code,
            count,
        };
        if limits.stop_after.exact_failure <= seen.failures {
            return block("repeated_exact_failure_block", seen.failures);
        }
        if is_idempotent(&call.tool) && limits.stop_after.idempotent_no_progress <= seen.same {
            return block("idempotent_no_progress_block", seen.same);
        }
        Verdict::allow(0)
    }

    /// Counts a call that ran.
    pub fn after(&mut self, call: &Signature, failed: bool, result: &str, limits: &Limits) -> Verdict {
        if failed {
            return self.failed(call, limits);
        }
        self.tools.remove(&call.tool);
        if !is_idempotent(&call.tool) {
            self.calls.retain(|seen| seen.key != call.key());
            return Verdict::allow(0);
        }
        let result = hash(&said(result)).get(..16).unwrap_or_default().to_owned();
        let count = self.count(call, |seen| {
            seen.failures = 0;
            seen.same = if seen.result == result { seen.same + 1 } else { 1 };
            seen.result = result;
            seen.same
        });
        if limits.warns && limits.warn_after.idempotent_no_progress <= count {
            return Verdict {
                action: Action::Warn,
                code: "idempotent_no_progress_warning",
                count,
            };
        }
        Verdict::allow(count)
    }

    fn failed(&mut self, call: &Signature, limits: &Limits) -> Verdict {
        let of_tool = self.tools.entry(call.tool.clone()).or_default();
        *of_tool += 1;
        let of_tool = *of_tool;
        let exact = self.count(call, |seen| {
            seen.failures += 1;
            (seen.same, seen.result) = (0, String::new());
            seen.failures
        });
        let verdict = |action, code, count| Verdict { action, code, count };
        if limits.stops && limits.stop_after.same_tool_failure <= of_tool {
            return verdict(Action::Halt, "same_tool_failure_halt", of_tool);
        }
        if limits.warns && limits.warn_after.exact_failure <= exact {
            return verdict(Action::Warn, "repeated_exact_failure_warning", exact);
        }
        if limits.warns && limits.warn_after.same_tool_failure <= of_tool {
            return verdict(Action::Warn, "same_tool_failure_warning", of_tool);
        }
        Verdict::allow(exact)
    }

    /// Changes the count of a call, which is the newest from now on.
    fn count(&mut self, call: &Signature, change: impl FnOnce(&mut Seen) -> u32) -> u32 {
        let key = call.key();
        let mut seen = match self.calls.iter().position(|seen| seen.key == key) {
            Some(at) => self.calls.remove(at),
            None => Seen { key, ..Seen::default() },
        };
        if MAX_CALLS <= self.calls.len() {
            self.calls.remove(0);
        }
        let count = change(&mut seen);
        self.calls.push(seen);
        count
    }
}

fn is_idempotent(tool: &str) -> bool {
    let of_server = FILE_SERVER.iter().find_map(|prefix| tool.strip_prefix(prefix));
    IDEMPOTENT.contains(&tool) || of_server.is_some_and(|name| FILE_READERS.contains(&name))
}

/// Whether the text of a result says that the call failed, for results whose
/// tool does not say so itself.
pub fn says_failed(tool: &str, result: &str) -> bool {
    const LOOKED_AT: usize = 500;
    let read: Option<Value> = serde_json::from_str(result).ok().filter(Value::is_object);
    let field = |name: &str| read.as_ref().and_then(|read| read.get(name));
    let names_error = field("error").is_some_and(|error| !is_nothing(error));
    match tool {
        "terminal" => return field("exit_code").is_some_and(|code| !is_zero(code)),
        // What reached the disk did, whatever a checker said of it.
        "write_file" if field("bytes_written").is_some() && !names_error => return false,
        "patch" if field("success") == Some(&Value::Bool(true)) && !names_error => return false,
        _ => {}
    }
    let start: String = result.chars().take(LOOKED_AT).flat_map(char::to_lowercase).collect();
    start.contains("\"error\"") || start.contains("\"failed\"") || result.starts_with("Error")
}

/// The code of a command that has not failed, or has none.
fn is_zero(code: &Value) -> bool {
    code.is_null() || code == &Value::Bool(false) || code.as_f64() == Some(0.0)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        plain => is_zero(plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_result_says_of_itself_is_read_as_its_tool_means_it() {
        for (tool, result, failed) in [
            ("terminal", r#"{"exit_code": "1"}"#, true),
            ("terminal", r#"{"exit_code": 0.0}"#, false),
            ("write_file", r#"{"bytes_written": 1, "error": ""}"#, false),
            ("patch", r#"{"success": true, "error": "no"}"#, true),
            ("memory", r#"{"success": false}"#, false),
            ("memory", r#"{"success": false, "error": "over the limit"}"#, true),
        ] {
            assert_eq!(says_failed(tool, result), failed, "{tool} {result}");
        }
    }

    #[test]
    fn the_same_said_in_another_order_is_no_progress() {
        let (mut all, limits) = (Guardrail::default(), Limits::default());
        let call = Signature::of("read_file", &json!({}));
        all.after(&call, false, r#"{"a":1,"b":2}"#, &limits);
        let verdict = all.after(&call, false, r#"{ "b": 2, "a": 1 }"#, &limits);
        assert_eq!(verdict.count, 2);
    }

    #[test]
    fn arguments_that_are_no_object_are_none() {
        let none = Signature::of("read_file", &json!({}));
        for arguments in [json!(null), json!([1]), json!("text")] {
            assert_eq!(Signature::of("read_file", &arguments), none);
        }
    }

    #[test]
    fn the_record_of_a_turn_stays_small() {
        let (mut all, limits) = (Guardrail::default(), Limits::default());
        for number in 0..2_000 {
            all.after(
                &Signature::of("terminal", &json!({"command": number})),
                true,
                "",
                &limits,
            );
        }
        assert_eq!(all.calls.len(), MAX_CALLS);
        assert!(serde_json::to_string(&all).unwrap().len() < 32_000);
    }

    #[test]
    fn it_survives_storing_and_tells_why_it_blocks() {
        let limits = Limits {
            stops: true,
            ..Limits::default()
        };
        let call = Signature::of("terminal", &json!({"b": [1, {"d": 2, "c": 3}], "a": "x"}));
        assert_eq!(
            call,
            Signature::of("terminal", &json!({"a": "x", "b": [1, {"c": 3, "d": 2}]}))
        );
        let mut all = Guardrail::default();
        for _ in 0..5 {
            all.after(&call, true, "no", &limits);
            all = serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
        }
        let blocked: Value = serde_json::from_str(&all.before(&call, &limits).blocked(&call)).unwrap();
        assert_eq!(blocked["guardrail"]["code"], "repeated_exact_failure_block");
        assert_eq!(
            (&blocked["guardrail"]["action"], &blocked["guardrail"]["count"]),
            (&json!("block"), &json!(5))
        );
        assert_eq!(
            blocked["guardrail"]["signature"]["args_hash"].as_str().unwrap().len(),
            64
        );
        assert_eq!(all.before(&call, &Limits::default()).action, Action::Allow);
    }
}
