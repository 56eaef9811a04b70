//! A tenant's policy as clients see it: rules for the guard under a name.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::Timestamp;
use crate::guard::policy::Policy;

/// The policy of every session of a tenant.
pub const DEFAULT: &str = "default";
/// Characters of a name.
pub const LONGEST_NAME: usize = 64;

/// A named policy. One that nobody wrote yet is empty and changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NamedPolicy {
    /// `default` holds for every session of the tenant; others for sessions that
    /// name them (`approvals.policy`), beside it. The strictest counts.
    pub name: String,
    pub policy: Policy,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    /// Who wrote it as it is.
    pub updated_by: Option<String>,
}

impl NamedPolicy {
    pub fn empty(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            policy: Policy::default(),
            created_at: None,
            updated_at: None,
            updated_by: None,
        }
    }
}

/// Any text of one to 64 characters without control characters.
pub fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control)
}
