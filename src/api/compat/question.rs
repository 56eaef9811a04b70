//! An approval as clients of the original read it, under all names that they look
//! for, and their answers as ours.

use serde_json::{Value, json};

use crate::base::Timestamp;
use crate::base::text::first_chars;
use crate::guard::redact::{Mode, redact};
use crate::model::approval::{Approval, Choice};

/// A frame of a strict client's stream holds less than 64 Ki characters; what is
/// cut here stands whole at the approval's own path.
const MAX_COMMAND_CHARS: usize = 4_000;

/// Seconds with a fraction, as the original writes times.
pub(in crate::api) fn seconds(at: Timestamp) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "milliseconds of this millennium fit")]
    let millis = at.0 as f64;
    millis / 1000.0
}

/// What is asked.
pub(in crate::api) fn request(approval: &Approval) -> Value {
    let keys: Vec<&str> = approval.findings.iter().map(|finding| finding.key.as_str()).collect();
    let descriptions: Vec<&str> = approval
        .findings
        .iter()
        .map(|finding| finding.description.as_str())
        .collect();
    let description = match descriptions.is_empty() {
        true => approval.title.clone(),
        false => descriptions.join("; "),
    };
    let choices: Vec<&str> = approval.choices.iter().map(|choice| choice.name()).collect();
    json!({
        "command": command(approval),
        "description": redact(&description, Mode::Egress),
        "pattern_key": keys.first(),
        "pattern_keys": keys,
        "allow_permanent": approval.choices.contains(&Choice::Always),
        "allow_session": approval.choices.contains(&Choice::Session),
        "choices": choices,
        "approval_id": approval.id,
        "request_id": approval.id,
        "kind": approval.kind,
        "status": approval.status,
        "tool": approval.tool,
        "tool_call_id": approval.tool_call_id,
        "cwd": approval.cwd,
        "digest": approval.digest,
        "expires_at": approval.expires_at.map(seconds),
        "href": format!("/v1/approvals/{}", approval.id),
    })
}

/// The command, or the arguments where there is none, without secrets.
fn command(approval: &Approval) -> String {
    let arguments = &approval.arguments;
    let text = ["command", "code"].iter().find_map(|name| arguments[*name].as_str());
    let text = text.map_or_else(|| arguments.to_string(), str::to_owned);
    let text = redact(&text, Mode::Egress);
    let short = first_chars(&text, MAX_COMMAND_CHARS);
    let cut = if short.len() < text.len() { "…" } else { "" };
    format!("{short}{cut}")
}

/// The choice that a word stands for: the original takes several for `once`.
pub(in crate::api) fn choice(word: &str) -> Option<Choice> {
    let word = word.trim().to_ascii_lowercase();
    let name = match word.as_str() {
        "approve" | "approved" | "allow" => "once",
        "denied" | "reject" | "rejected" => "deny",
        name => name,
    };
    serde_json::from_value(json!(name)).ok()
}

/// What is answered where the choice is not offered: a permanent yes counts for as
/// long as one may be given.
pub(in crate::api) fn offered(choice: Choice, approval: &Approval) -> Choice {
    let is_offered = |choice: Choice| approval.choices.contains(&choice);
    match choice {
        Choice::Always if !is_offered(Choice::Always) && is_offered(Choice::Session) => Choice::Session,
        Choice::Always | Choice::Session if !is_offered(choice) && is_offered(Choice::Once) => Choice::Once,
        // A budget is asked about in other words.
        Choice::Once if !is_offered(Choice::Once) && is_offered(Choice::GrantMore) => Choice::GrantMore,
        Choice::Deny if !is_offered(Choice::Deny) && is_offered(Choice::Stop) => Choice::Stop,
        Choice::Deny if !is_offered(Choice::Deny) && is_offered(Choice::Skip) => Choice::Skip,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_original_are_understood() {
        for (word, read) in [
            ("once", Some(Choice::Once)),
            (" Approve ", Some(Choice::Once)),
            ("allow", Some(Choice::Once)),
            ("DENY", Some(Choice::Deny)),
            ("always", Some(Choice::Always)),
            ("maybe", None),
            ("", None),
        ] {
            assert_eq!(choice(word), read, "{word}");
        }
    }
}
