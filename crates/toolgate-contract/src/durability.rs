//! When something that was written to disk counts as written.

use serde::{Deserialize, Serialize};

/// What a recorded event must survive before the call that it announces may act, weakest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The end of this program: the operating system has it.
    #[default]
    Os,
    /// A power failure: the disk has it.
    Sync,
}
