//! Short lists that are never cut: what this server can do. They have the form
//! of a page and of the list object that other surfaces know.

use serde::Serialize;
use utoipa::ToSchema;

/// A whole list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Listing<T> {
    /// `list`.
    object: &'static str,
    data: Vec<T>,
    /// Always `false`: the list is whole.
    has_more: bool,
    next_cursor: Option<String>,
    /// Of toolsets: `api_server`, as clients of the original read.
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<&'static str>,
}

impl<T> Listing<T> {
    pub(super) fn of(data: Vec<T>) -> Self {
        Self {
            object: "list",
            data,
            has_more: false,
            next_cursor: None,
            platform: None,
        }
    }

    /// The same, told apart by where its things are used.
    pub(super) fn of_platform(self, platform: &'static str) -> Self {
        Self {
            platform: Some(platform),
            ..self
        }
    }
}
