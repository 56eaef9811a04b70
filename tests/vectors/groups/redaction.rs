//! `redaction`: secrets in texts, masked.

use hermes_server::guard::redact::{Mode, mask, redact, redact_output};

use crate::case::{Case, strings};

pub fn judge(case: &Case) -> Result<(), String> {
    if let Some(secret) = case.input["mask"].as_str() {
        return case.check(mask(secret));
    }
    let text = strings(&case.input["parts"]).concat();
    if let Some(command) = case.input.get("terminal_command") {
        return case.check(redact_output(&text, command.as_str().unwrap_or_default()));
    }
    let mode = match case.text("mode") {
        "file_read" => Mode::File,
        "code_file" => Mode::Code,
        "redact_url_credentials" => Mode::Egress,
        _ => Mode::Text,
    };
    case.check(redact(&text, mode))
}
