//! Skills: directories with instructions for a kind of task (`SKILL.md`), as a cleared tool sees them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{LaunchSpec, ToolError, quoted};

/// The owner of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillOwner {
    /// The workspace, so the author of the repository.
    Project,
    /// The user.
    User,
}

/// Where a skill comes from, for the person who is asked about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkillOrigin {
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: SkillOwner,
    /// The path of its directory, for display.
    pub path: String,
}

impl fmt::Display for SkillOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = match self.owner {
            SkillOwner::Project => "comes with the project",
            SkillOwner::User => "is your own",
        };
        write!(f, "The skill `{}` {owner} ({}).", self.name, self.path)
    }
}

/// A directory that may be a skill. Its content is unchecked.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillCandidate {
    /// The directory's own name.
    pub name: String,
    /// Its owner.
    pub owner: SkillOwner,
    /// The path of the directory, for display.
    pub path: String,
    /// The content of its `SKILL.md`, or why it can't be read.
    pub text: Result<String, ToolError>,
    /// The other files in it, relative to the directory.
    pub files: Vec<String>,
}

/// A script of a skill, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillScript {
    /// The skill's name.
    pub skill: String,
    /// Its path in the skill's directory, such as `scripts/fill.py`.
    pub path: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl SkillScript {
    /// The equivalent command line: policy judges it and people see it; no shell ever runs it.
    pub fn line(&self) -> String {
        let program = quoted(&format!("{}/{}", self.skill, self.path));
        let arguments = self.arguments.iter().map(|argument| quoted(argument));
        std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
    }
}

/// The meaning of a skill's list of tools, least strict first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AllowedTools {
    /// The user's own skills pre-approve those tools. A deny stays a deny.
    Approval,
    /// Only those tools may be used after the skill is loaded.
    #[default]
    Ceiling,
}

/// Finds skills.
pub trait Skills: Send + Sync {
    /// All directories that may be skills; of two with the same name the first one counts.
    fn directories(&self) -> Result<Vec<SkillCandidate>, ToolError>;
    /// The content of a file in a skill's directory, by its relative path.
    fn file(&self, skill: &str, path: &str) -> Result<Vec<u8>, ToolError>;
    /// How to start a script, if it exists at its path.
    fn launch_spec(&self, script: &SkillScript) -> Result<LaunchSpec, ToolError>;
    /// Limits the session to a skill's tools, or pre-approves them, as configured.
    fn activate(&self, directory: &SkillCandidate, tools: Vec<String>) -> Result<AllowedTools, ToolError>;
}
