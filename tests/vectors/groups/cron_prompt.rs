//! `cron_prompt`: prompts that no job may have.

use hermes_server::guard::cron_prompt::scan;
use serde_json::json;

use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    let found = scan(&case.long_text("prompt"));
    case.check(json!({"blocked": found.is_some(), "id": found}))
}
