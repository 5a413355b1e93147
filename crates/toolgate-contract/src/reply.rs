//! The reply in which every call ends.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::staged_changes::is_zero;
use crate::{FoldedDirectory, SERVER_LINK, ToolError};

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// The call that this answers.
    pub tool_call_id: String,
    /// Whether the call succeeded: the tool did what it was called for. A command that ran until it ended counts as that,
    /// whatever its exit code.
    pub ok: bool,
    /// The result, by the tool's return schema.
    pub payload: Option<Value>,
    /// The failure.
    pub error: Option<ToolError>,
    /// What the call left behind.
    pub artifacts: ReplyArtifacts,
    /// Which guarantees held while it ran.
    pub enforced: Enforced,
    /// What was truncated, if anything.
    pub truncated: Option<Truncated>,
    /// Whether a secret was redacted.
    pub redacted: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl Reply {
    /// The reply to a call that was refused before anything was known of it.
    pub fn refused(tool_call_id: String, error: ToolError) -> Self {
        Self {
            tool_call_id,
            ok: false,
            payload: None,
            error: Some(error),
            artifacts: ReplyArtifacts::default(),
            enforced: Enforced::default(),
            truncated: None,
            redacted: false,
            duration_ms: 0,
        }
    }
}

/// What a call left behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplyArtifacts")]
pub struct ReplyArtifacts {
    /// Paths that were created, changed or deleted.
    pub files_changed: Vec<String>,
    /// How many more were changed than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files_changed: usize,
    /// Directories of build output whose changed paths aren't listed, with their counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folded: Vec<FoldedDirectory>,
    /// Commands that ran.
    pub commands_run: Vec<String>,
    /// Stored output.
    pub refs: Vec<ArtifactRef>,
}

/// A handle to stored output, which the tool `artifact` reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    /// The handle.
    pub id: String,
    /// Hash of the stored bytes.
    pub sha256: String,
    /// Size of the stored bytes.
    pub bytes: u64,
    /// Number of lines, for text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// The media type.
    pub mime: String,
    /// The JSON pointer of the payload field whose complete content it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl ArtifactRef {
    /// Whether it stands for what another server links to, which only `mcp_read` resolves.
    pub fn is_server_link(&self) -> bool {
        self.mime == SERVER_LINK
    }
}

/// How much was truncated, and where the rest is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncated {
    /// Lines that are missing.
    pub lines: u64,
    /// Bytes that are missing.
    pub bytes: u64,
    /// Requests the next page, if the tool supports pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The artifact with the complete output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
}

/// A guarantee of the sandbox or the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Guarantee {
    /// Toolgate's own file access stayed beneath the roots, atomically and without following links.
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
    /// The environment contained no secrets.
    Environment,
    /// Files that policy hides in the workspace couldn't be read, and it is known whether a process opened them.
    Secrets,
    /// A person is asked before risky actions. Listed only where that isn't so, which is with the preset `full`.
    Approvals,
    /// A process's changes in the workspace can be undone: held if its changes are staged until it has ended, partly if
    /// a snapshot of bounded size was taken before.
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

/// Which guarantees really held. A guarantee that didn't apply to the call isn't listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Enforced(pub BTreeMap<Guarantee, GuaranteeLevel>);

impl Enforced {
    /// Whether none applied.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
