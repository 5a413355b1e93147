//! What configuration says beside rules: roots, limits, durability, names of secrets.

mod merge;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use toolgate_contract::AllowedTools;

use crate::config::{OverlayMode, QuarantineMode, RootConfig, StoreConfig, UnknownCommandAction, WeakestSandbox};

pub(crate) use merge::merge;

/// What configuration says beside rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Directories beside the workspace that tools may use. The first is root 1 of a place, since the workspace is root 0.
    pub roots: Vec<RootConfig>,
    /// Limits of every tool that has none of its own.
    pub limits: CallLimits,
    /// Limits of single tools, complete.
    pub tool_limits: BTreeMap<String, CallLimits>,
    /// Whether some layer says how long a call may take: any call, or one of these tools.
    stated_timeouts: (bool, BTreeSet<String>),
    /// How many processes a session may have, how long and how talkative.
    pub processes: ProcessLimits,
    /// Bytes of an answer that `fetch` takes.
    pub fetch_bytes: u64,
    /// When an event counts as written.
    pub durability: Durability,
    /// Bytes of file contents that are kept for undo.
    pub undo_quota_bytes: u64,
    /// Names of environment variables whose values are secrets, beside the built-in ones.
    pub secret_names: BTreeSet<String>,
    /// What becomes of a command that can't be understood.
    pub unknown_commands: UnknownCommandAction,
    /// Whether commands work on a layer of their own.
    pub overlay: OverlayMode,
    /// What becomes of files that commands leave for git, editors or other agents to obey.
    pub quarantine: QuarantineMode,
    /// The weakest sandbox that commands may run in.
    pub weakest_sandbox: WeakestSandbox,
    /// Skills that nobody may load.
    pub denied_skills: BTreeSet<String>,
    /// What a skill's own list of tools means.
    pub allowed_tools: AllowedTools,
    /// Seconds that a call waits at the desk where its front end has nobody to ask.
    pub approval_wait_seconds: u64,
    /// Where rows and tasks are kept.
    pub store: StoreConfig,
}

impl Settings {
    /// The limits of one tool. Where no layer says how long a call may take, the tool itself does.
    pub fn limits_of(&self, tool: &str, longest: Option<Duration>) -> CallLimits {
        let limits = self.tool_limits.get(tool).copied().unwrap_or(self.limits);
        let (any, tools) = &self.stated_timeouts;
        match longest {
            Some(longest) if !any && !tools.contains(tool) => {
                CallLimits { timeout_seconds: longest.as_secs(), ..limits }
            }
            _ => limits,
        }
    }
}

/// What a session's processes may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// How many may run at a time.
    pub most: u64,
    /// Seconds that one may go on without its call.
    pub timeout_seconds: u64,
    /// Bytes of output that are kept of one; what writes more is stopped.
    pub output_bytes: u64,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self { most: 8, timeout_seconds: 3600, output_bytes: 1 << 30 }
    }
}

/// How much output a call may return, and how long it may take (C-26).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLimits {
    /// Lines of output.
    pub lines: u64,
    /// Bytes of output.
    pub bytes: u64,
    /// Characters of one line.
    pub line_chars: u64,
    /// Seconds a call may take.
    pub timeout_seconds: u64,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { lines: 2000, bytes: 51_200, line_chars: 2000, timeout_seconds: 120 }
    }
}

/// What is taken of an answer from the web where no layer says otherwise: 10 MiB.
const USUAL_FETCH: u64 = 10 << 20;

/// What is kept for undo where no layer says otherwise: 1 GiB.
const USUAL_UNDO_QUOTA: u64 = 1 << 30;

/// When an event counts as written, weakest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Once the operating system has it.
    #[default]
    Os,
    /// Once the disk has it.
    Sync,
}
