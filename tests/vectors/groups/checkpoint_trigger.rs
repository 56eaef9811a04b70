//! `checkpoint_trigger`: commands before which a copy would be kept.

use hermes_server::tool::command_line::overwrites;

use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    case.check(overwrites(case.text("command")))
}
