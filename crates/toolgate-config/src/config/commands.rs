//! `[commands]`: which commands are allowed and denied, what confines them, and what happens to the files they leave.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toolgate_contract::{QuarantineMode, Tier};

/// `[commands]`: commands by the words they begin with.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandsConfig {
    /// These need no asking.
    pub allow: Vec<String>,
    /// These are refused.
    pub deny: Vec<String>,
    /// These aren't dangerous after all, whatever the built-in list says.
    pub except: Vec<String>,
    /// What happens to a command that can't be parsed.
    pub unknown: Option<UnknownCommandAction>,
    /// Whether changes are staged, and written to the workspace when the command ends.
    pub overlay: Option<OverlayMode>,
    /// What happens to files that git, editors or other agents run or load automatically.
    pub quarantine: Option<QuarantineMode>,
    /// The weakest sandbox that they may run in.
    #[serde(deserialize_with = "confining_tier")]
    pub weakest_sandbox: Option<Tier>,
    /// Bytes of each private directory, such as `/tmp`.
    pub temporary_bytes: Option<u64>,
    /// Processes and threads of one command.
    pub processes: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Seconds of processor time of each process.
    pub processor_seconds: Option<u64>,
}

/// Reads the name of a tier that confines: nobody can configure that nothing does.
fn confining_tier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Tier>, D::Error> {
    const NAMES: [&str; 3] = [Tier::CONFINING[0].name(), Tier::CONFINING[1].name(), Tier::CONFINING[2].name()];
    let name = String::deserialize(deserializer)?;
    let tier = Tier::CONFINING.into_iter().find(|tier| tier.name() == name);
    tier.map(Some).ok_or_else(|| D::Error::unknown_variant(&name, &NAMES))
}

/// Whether the changes of commands are staged, milder first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlayMode {
    /// They change the workspace as they go.
    Off,
    /// Their changes are written to the workspace when they end, as one change that can be undone.
    #[default]
    On,
}

/// What happens to a command that can't be parsed, mildest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownCommandAction {
    /// It runs, but only in a sandbox whose guarantees hold, with its changes journaled.
    #[default]
    Confine,
    /// A person decides.
    Ask,
    /// It doesn't run.
    Deny,
}
