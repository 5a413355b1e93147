//! The one shape in which every call ends (C-3).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolError;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// The call that this answers.
    pub tool_call_id: String,
    /// Whether it worked.
    pub ok: bool,
    /// The result, by the tool's return schema.
    pub payload: Option<Value>,
    /// The failure.
    pub error: Option<ToolError>,
    /// What it left behind.
    pub artifacts: ReplyArtifacts,
    /// Which guarantees held while it ran.
    pub enforced: Enforced,
    /// What was cut from the payload, if anything.
    pub truncated: Option<Truncated>,
    /// Whether a secret was replaced.
    pub redacted: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// What a call left behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplyArtifacts")]
pub struct ReplyArtifacts {
    /// Paths that were created, changed or removed.
    pub files_changed: Vec<String>,
    /// Commands that ran.
    pub commands_run: Vec<String>,
    /// Stored output.
    pub refs: Vec<ArtifactRef>,
}

/// A handle to stored output, which `artifact` reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    /// The handle.
    pub id: String,
    /// Hash of what is stored.
    pub sha256: String,
    /// Size of what is stored.
    pub bytes: u64,
    /// Number of lines, for text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// The media type.
    pub mime: String,
    /// The JSON pointer of the payload's field that it holds in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// How much was cut, and where the rest is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncated {
    /// Lines that are missing.
    pub lines: u64,
    /// Bytes that are missing.
    pub bytes: u64,
    /// Brings the next page, where the tool pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The artifact that holds everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
}

/// Something that confinement promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Guarantee {
    /// The runtime's own file access stayed beneath the roots, in one step, with no link followed.
    Paths,
    /// A process saw and changed only the files that it was granted.
    Filesystem,
    /// A process reached only the hosts that it was granted.
    Network,
    /// No process outlives the call.
    ProcessTree,
    /// Dangerous system calls were refused.
    Syscalls,
    /// Memory, processes, files and time were limited.
    Resources,
    /// No secret was in the environment.
    Environment,
    /// What policy hides in the workspace couldn't be read, and it is known whether a process opened it.
    Secrets,
    /// What a process changes in the workspace can be taken back: held where its changes are kept apart until it has ended,
    /// partly where a snapshot was taken before, whose size is bounded.
    Undo,
}

/// How well a guarantee held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuaranteeLevel {
    /// Not at all.
    NotHeld,
    /// With gaps.
    Partly,
    /// Fully.
    Held,
}

/// Which guarantees really held. A guarantee that didn't apply to the call isn't in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Enforced(pub BTreeMap<Guarantee, GuaranteeLevel>);

impl Enforced {
    /// Whether none applied.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
