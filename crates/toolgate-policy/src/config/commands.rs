//! `[commands]`: which commands are allowed and denied, what confines them, and what becomes of what they leave.

use serde::{Deserialize, Serialize};

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
    /// What becomes of a command that can't be understood.
    pub unknown: Option<UnknownCommandAction>,
    /// Whether commands work on a layer of their own, and their changes are put in place when they end.
    pub overlay: Option<OverlayMode>,
    /// What becomes of files that they leave for git, editors or other agents to obey.
    pub quarantine: Option<QuarantineMode>,
    /// The weakest sandbox that they may run in.
    pub weakest_sandbox: Option<WeakestSandbox>,
}

/// The weakest sandbox that commands may run in, mildest first. A machine that can't give it runs none of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeakestSandbox {
    /// Landlock and a filter on system calls. Nothing inside the workspace can be kept from a command then, so none runs where
    /// policy hides a file of it; what it changes in places that nobody may change is put back when it has ended.
    Landlock,
    /// Namespaces that the system's `bwrap` makes: every wall holds.
    #[default]
    Bubblewrap,
    /// Namespaces of our own making: decoys, lists of hosts and rehearsals beside the walls.
    Namespaces,
}

/// What becomes of files that commands leave for git, editors or other agents to obey, mildest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineMode {
    /// They are files like any other.
    Off,
    /// They are put in place, and the reply names them.
    Report,
    /// They are kept aside for a person to look at.
    #[default]
    On,
}

/// Whether commands work on a layer of their own, milder first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlayMode {
    /// They change the workspace as they go.
    Off,
    /// Their changes are put in place when they end, as one change that can be taken back.
    #[default]
    On,
}

/// What becomes of a command that can't be understood, mildest first.
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
