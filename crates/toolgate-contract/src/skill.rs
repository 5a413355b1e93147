//! Skills: folders with instructions for a kind of work (`SKILL.md`), as a cleared tool sees them.

use serde::{Deserialize, Serialize};

use crate::ToolError;

/// Whose a skill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shelf {
    /// The workspace's, from whoever wrote the repository.
    Project,
    /// The user's.
    User,
}

/// A folder that may be a skill. Nothing in it was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillFolder {
    /// The folder's own name.
    pub name: String,
    /// Whose it is.
    pub shelf: Shelf,
    /// Where it is, for whoever looks for it.
    pub path: String,
    /// What its `SKILL.md` holds, or why that can't be had.
    pub text: Result<String, ToolError>,
    /// The other files in it, relative to it.
    pub files: Vec<String>,
}

/// What a skill's list of tools means, mildest first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AllowedTools {
    /// The user's own skills approve those tools beforehand. A deny stays a deny.
    Approval,
    /// They are the only ones that may be used once the skill is loaded.
    #[default]
    Ceiling,
}

/// Finds skills.
pub trait Skills: Send + Sync {
    /// All folders that may be skills; of two with one name the first counts.
    fn folders(&self) -> Result<Vec<SkillFolder>, ToolError>;
    /// Holds the session to a skill's tools, or approves them, as configuration says.
    fn activate(&self, folder: &SkillFolder, tools: Vec<String>) -> AllowedTools;
}
