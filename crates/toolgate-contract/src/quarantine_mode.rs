//! What happens to files that other programs run or load automatically.

use serde::{Deserialize, Serialize};

/// What happens to files that commands leave for git, editors or other agents to run or load automatically, mildest
/// first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineMode {
    /// They are files like any other.
    Off,
    /// They are written to the workspace, and the reply names them.
    Report,
    /// They are quarantined: not written to the workspace until a person has looked at them.
    #[default]
    On,
}
