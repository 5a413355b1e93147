//! Skills: directories with instructions for a kind of work (`SKILL.md`), as a cleared tool sees them.

use serde::{Deserialize, Serialize};

use crate::{LaunchSpec, ToolError, quoted};

/// Whose a skill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillOwner {
    /// The workspace's, from whoever wrote the repository.
    Project,
    /// The user's.
    User,
}

/// A directory that may be a skill. Nothing in it was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillCandidate {
    /// The directory's own name.
    pub name: String,
    /// Whose it is.
    pub shelf: SkillOwner,
    /// Where it is, for whoever looks for it.
    pub path: String,
    /// What its `SKILL.md` holds, or why that can't be had.
    pub text: Result<String, ToolError>,
    /// The other files in it, relative to it.
    pub files: Vec<String>,
}

/// A script of a skill, and what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillScript {
    /// The skill's name.
    pub skill: String,
    /// Where it is in the skill's directory, such as `scripts/fill.py`.
    pub path: String,
    /// Its arguments, for itself alone.
    pub arguments: Vec<String>,
}

impl SkillScript {
    /// The command that it amounts to: policy reads it and people are shown it; no shell ever does.
    pub fn line(&self) -> String {
        let program = quoted(&format!("{}/{}", self.skill, self.path));
        let arguments = self.arguments.iter().map(|argument| quoted(argument));
        std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
    }
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
    /// All directories that may be skills; of two with one name the first counts.
    fn directories(&self) -> Result<Vec<SkillCandidate>, ToolError>;
    /// How a script is started, if it lies where it says: by what, in which directory of its own, and what it may look into.
    fn launch_spec(&self, script: &SkillScript) -> Result<LaunchSpec, ToolError>;
    /// Holds the session to a skill's tools, or approves them, as configuration says.
    fn activate(&self, directory: &SkillCandidate, tools: Vec<String>) -> AllowedTools;
}
