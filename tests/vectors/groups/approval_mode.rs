//! `approval_mode`: the words of `approvals.mode`.

use hermes_server::config::{Config, Mode, Sources};

use crate::case::Case;

/// A value that is none stops the start here, and nothing runs unasked: what the
/// original does with it, which is to ask a person, counts as the same.
pub fn judge(case: &Case) -> Result<(), String> {
    let value = case.input["value"].to_string();
    let config = Config::load(&Sources {
        environment: vec![("HERMES__APPROVALS__MODE".to_owned(), value)],
        ..Sources::default()
    });
    case.check(match config.map(|config| config.approvals.mode) {
        Ok(Mode::Off) => "off",
        Ok(Mode::Smart) => "smart",
        Ok(Mode::Manual) | Err(_) => "manual",
    })
}
