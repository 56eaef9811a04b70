//! The entity tag of a file of a workspace, and what `If-Match` and
//! `If-None-Match` of a change mean for it. Conditional changes over HTTP follow
//! one another; what a command does meanwhile nobody can hold up.

use std::path::Path;

use serde_json::json;

use crate::api::failure::Failure;
use crate::environment::{FileError, Workspace};
use crate::model::precondition::{Precondition, Tags};
use crate::model::problem::{Problem, ProblemCode};

/// A state of a file: another time or another length is another.
pub(super) fn tag(metadata: &std::fs::Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    format!(
        "\"{:x}-{:x}-{:x}\"",
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.len()
    )
}

/// The tag of the file that is there; nothing where there is none.
pub(super) async fn present(workspace: &Workspace, path: &Path) -> Result<Option<String>, FileError> {
    match workspace.open_read(path).await {
        Ok(file) => {
            let metadata = file.metadata().map_err(|source| FileError::Io {
                path: path.to_owned(),
                source,
            })?;
            Ok(Some(tag(&metadata)))
        }
        Err(FileError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the condition of a change holds for a file with this tag.
pub(super) fn permitted(condition: &Precondition, present: Option<&str>) -> Result<(), Failure> {
    let is_named = |tags: &Tags, weak: bool| match (tags, present) {
        (_, None) => false,
        (Tags::Any, Some(_)) => true,
        (Tags::OneOf(tags), Some(present)) => tags
            .iter()
            .any(|tag| (weak || !tag.weak) && present.trim_matches('"') == tag.opaque),
    };
    let matches = condition.if_match.as_ref().is_none_or(|tags| is_named(tags, false));
    let differs = condition
        .if_none_match
        .as_ref()
        .is_none_or(|tags| !is_named(tags, true));
    if matches && differs {
        return Ok(());
    }
    let detail = "the file is not, or no longer, the one that `If-Match` or `If-None-Match` speaks of";
    let problem = Problem::new(ProblemCode::PreconditionFailed, detail);
    Err(match present {
        Some(present) => problem.with_context(json!({"etag": present})),
        None => problem,
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::precondition::EntityTag;

    #[test]
    fn a_condition_names_the_state_of_the_file_or_that_there_is_none() {
        let tags = |weak: bool| {
            let opaque = "1-2-3".to_owned();
            Some(Tags::OneOf(vec![EntityTag { weak, opaque }]))
        };
        for (if_match, if_none_match, present, holds) in [
            (None, None, None, true),
            (tags(false), None, Some("\"1-2-3\""), true),
            (tags(true), None, Some("\"1-2-3\""), false),
            (tags(false), None, Some("\"1-2-4\""), false),
            (tags(false), None, None, false),
            (Some(Tags::Any), None, Some("\"x\""), true),
            (Some(Tags::Any), None, None, false),
            (None, Some(Tags::Any), None, true),
            (None, Some(Tags::Any), Some("\"x\""), false),
            (None, tags(true), Some("\"1-2-3\""), false),
            (None, tags(false), Some("\"x\""), true),
        ] {
            let condition = Precondition {
                if_match,
                if_none_match,
            };
            assert_eq!(
                permitted(&condition, present).is_ok(),
                holds,
                "{condition:?} {present:?}"
            );
        }
    }
}
