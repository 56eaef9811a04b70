//! What a write says beside its success: that it may have overwritten what the
//! model does not know, or landed where it was not meant. It never stops one.

use std::path::Path;

use super::target::Target;
use crate::tool::file_views::{FileKey, FileViews, Knowledge, Stamp};

/// The first warning that holds. `replaced` is the file as it was before.
pub(super) fn warning(
    seen: &FileViews,
    replaced: Option<&(FileKey, Stamp)>,
    target: &Target,
    resolved: &Path,
) -> Option<String> {
    let shown = &target.shown;
    let knowledge = replaced.map_or(Knowledge::Whole, |(file, stamp)| seen.knowledge(file, *stamp));
    match knowledge {
        Knowledge::NeverRead => Some(format!(
            "`{shown}` was there already and this session had not read it: another agent, a command or a person may \
             have written it. Read a file before you replace it."
        )),
        Knowledge::Changed => Some(format!(
            "`{shown}` had changed on disk since this session last read it; another agent, a command or a person may \
             have written it, and what they wrote is replaced now. Read it again before the next write."
        )),
        Knowledge::Partial => Some(format!(
            "`{shown}` had only been read in part; what was not shown is replaced too. Read the whole file before you \
             replace it."
        )),
        Knowledge::Whole => strayed(target, resolved),
    }
}

/// A relative path is meant to stay in the workspace.
fn strayed(target: &Target, resolved: &Path) -> Option<String> {
    let root = target.workspace.root();
    let is_relative = !Path::new(&target.shown).is_absolute() && !target.shown.starts_with('~');
    (is_relative && !resolved.starts_with(root)).then(|| {
        format!(
            "the relative path `{}` led to `{}`, outside the workspace `{}`",
            target.shown,
            resolved.display(),
            root.display()
        )
    })
}
