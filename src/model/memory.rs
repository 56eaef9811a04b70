//! What is remembered from session to session, per tenant and user: two lists
//! of short texts. What a change makes of them is the tool's; here is what they
//! are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which of the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// What the agent notes of its work.
    Memory,
    /// Who the user is and what the user wants.
    User,
}

impl Target {
    pub const ALL: [Self; 2] = [Self::Memory, Self::User];

    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::User => "user",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }
}

/// Most characters of each list, separators counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub memory: usize,
    pub user: usize,
}

impl Limits {
    pub fn of(self, target: Target) -> usize {
        match target {
            Target::Memory => self.memory,
            Target::User => self.user,
        }
    }
}

/// Both lists of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memories {
    pub memory: Vec<String>,
    pub user: Vec<String>,
}

impl Memories {
    pub fn of(&self, target: Target) -> &[String] {
        match target {
            Target::Memory => &self.memory,
            Target::User => &self.user,
        }
    }

    pub fn set(&mut self, target: Target, entries: Vec<String>) {
        match target {
            Target::Memory => self.memory = entries,
            Target::User => self.user = entries,
        }
    }
}
