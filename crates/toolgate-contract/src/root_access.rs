//! What tools may do in a directory beside the workspace.

use serde::{Deserialize, Serialize};

/// What tools may do beneath a root, strictest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootAccess {
    /// Read only.
    #[default]
    Read,
    /// Read and change.
    Write,
}
