//! A skill as clients see it. Where it lies and how its text is read is the
//! tools' business (`tool::skill`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whose a skill is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillOrigin {
    /// The tenant's, which may change it.
    Tenant,
    /// The server's, read only.
    System,
    /// A plugin's, read only.
    Plugin,
}

impl SkillOrigin {
    /// Whether nobody but the operator wrote it: a skill of the tenant's is what
    /// its users and agents say, and names what they would like to have.
    pub const fn is_of_the_operator(self) -> bool {
        match self {
            Self::System | Self::Plugin => true,
            Self::Tenant => false,
        }
    }
}

/// Whether agents are shown a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillState {
    Available,
    /// The operator turned it off.
    Disabled,
    /// It is for other platforms than the server's.
    Unsupported,
}

/// A skill in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkillEntry {
    pub name: String,
    pub description: String,
    pub category: Option<String>,
    /// `category/name`, `plugin:name`, or the name alone: what it is asked for by.
    pub path: String,
    pub origin: SkillOrigin,
    pub tags: Vec<String>,
    pub state: SkillState,
    /// Nobody deletes it before it is unpinned.
    pub pinned: bool,
}

/// A skill with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Skill {
    #[serde(flatten)]
    pub entry: SkillEntry,
    /// The whole `SKILL.md`.
    pub content: String,
    /// Files beside it, as paths within the skill.
    pub files: Vec<String>,
    /// Tools that its front matter names under `allowed-tools`, as it writes them.
    /// They are shown and grant nothing: what a person is asked stays as it is.
    pub allowed_tools: Vec<String>,
    /// Programs that its front matter names under `prerequisites.commands`.
    pub required_commands: Vec<String>,
}

/// What a skill is to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"content": "---\nname: greet\ndescription: How we say hello\n---\nSay hello.\n"}))]
pub struct SkillText {
    /// The whole `SKILL.md`: front matter with `name` and `description` between
    /// lines of `---`, and what is to be done.
    #[schema(max_length = 100_000)]
    pub content: String,
}

/// A file beside a skill's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkillFile {
    /// Within the skill.
    pub path: String,
    pub bytes: u64,
}
