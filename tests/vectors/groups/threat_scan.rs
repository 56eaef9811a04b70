//! `threat_scan`: text that tries to steer the model.

use hermes_server::guard::threat::{Scope, scan};

use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    let scope = match case.text("scope") {
        "all" => Scope::All,
        "context" => Scope::Context,
        "strict" => Scope::Strict,
        other => return case.unknown(other),
    };
    case.check(scan(&case.long_text("text"), scope))
}
