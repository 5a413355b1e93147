//! What configuration says beside rules: roots, limits, durability, names of secrets.

mod merge;
mod named_tables;
mod roots;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolgate_contract::{AllowedTools, Durability, QuarantineMode, Tier, TokenUsage};

use crate::config::{
    AfterChanges, ConfiguredToolConfig, GrantDays, LspServerConfig, McpServerConfig, OverlayMode, PackageCacheMode,
    RootConfig, StoreConfig, UnknownCommandAction,
};
use crate::table::{
    LIMITS_BYTES, LIMITS_LINE_CHARS, LIMITS_LINES, LIMITS_TIMEOUT_SECONDS, PROCESSES_MOST, PROCESSES_OUTPUT_BYTES,
    PROCESSES_SETTLE_SECONDS, PROCESSES_TIMEOUT_SECONDS,
};

pub use merge::merge;

/// What configuration says beside rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Directories beside the workspace that tools may use. The first is root 1, since the workspace is root 0.
    pub roots: Vec<RootConfig>,
    /// Limits of every tool that has none of its own.
    pub limits: CallLimits,
    /// Limits of single tools, complete.
    pub tool_limits: BTreeMap<String, CallLimits>,
    /// Whether some layer says how long a call may take: any call, or one of these tools.
    stated_timeouts: (bool, BTreeSet<String>),
    /// How many processes a session may have, for how long and with how much output.
    pub processes: ProcessLimits,
    /// Bytes of a response that `fetch` reads.
    pub fetch_bytes: u64,
    /// Seconds that `search` may index files before it answers.
    pub search_index_seconds: u64,
    /// Bytes that the search index may take.
    pub search_max_bytes: u64,
    /// The directory of a model's weights, for `search`.
    pub search_weights: Option<String>,
    /// When an event counts as recorded.
    pub durability: Durability,
    /// Bytes of file contents that are kept for undo.
    pub undo_quota_bytes: u64,
    /// Which caches package managers use inside the sandbox.
    pub package_caches: PackageCacheMode,
    /// Bytes that the private caches of one workspace may have.
    pub cache_quota_bytes: u64,
    /// Names of environment variables whose values are secrets, beside the built-in ones.
    pub secret_names: BTreeSet<String>,
    /// What happens to a command that can't be parsed.
    pub unknown_commands: UnknownCommandAction,
    /// Whether the changes of commands are staged.
    pub overlay: OverlayMode,
    /// What happens to files that commands leave for git, editors or other agents to run or load automatically.
    pub quarantine: QuarantineMode,
    /// The weakest sandbox that commands may run in.
    pub weakest_sandbox: Tier,
    /// What one command may use.
    pub command_limits: CommandLimits,
    /// Skills that nobody may load.
    pub denied_skills: BTreeSet<String>,
    /// What a skill's own list of tools means.
    pub allowed_tools: AllowedTools,
    /// Seconds that a call waits in the approval queue where its front end has nobody to ask.
    pub approval_wait_seconds: u64,
    /// Hours after which a grant for a run or a session ends at the latest.
    pub grant_session_hours: u64,
    /// Days after which a grant for "always" ends.
    pub grant_always_days: GrantDays,
    /// Where rows and tasks are kept.
    pub store: StoreConfig,
    /// The dialects of MCP clients, by the name that each announces.
    pub client_dialects: BTreeMap<String, String>,
    /// The model that agents work with.
    pub model: ModelSettings,
    /// Tools that run a command of the user's own, by name.
    pub configured_tools: BTreeMap<String, ConfiguredToolConfig>,
    /// Other MCP servers, by name.
    pub mcp_servers: BTreeMap<String, McpServerConfig>,
    /// How many of their tools models are told of one by one.
    pub mcp_listed_tools: u64,
    /// Language servers.
    pub lsp: LspSettings,
}

/// How language servers are used.
#[derive(Debug, Clone, PartialEq)]
pub struct LspSettings {
    /// Whether the errors that a change caused are told with it.
    pub after_changes: AfterChanges,
    /// Bytes of memory that each may use.
    pub memory_bytes: u64,
    /// Seconds that a question waits for one that is still indexing.
    pub wait_seconds: u64,
    /// Further ones, by name.
    pub servers: BTreeMap<String, LspServerConfig>,
}

/// The model that agents work with, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    /// The model, as `provider:name`.
    pub default: Option<String>,
    /// The base URL of its API, if it isn't the provider's own.
    pub base_url: Option<String>,
    /// How much it should reason.
    pub effort: Option<String>,
    /// How long its server may send nothing.
    pub idle_timeout: Duration,
    /// The names under which it is given the tools; none for the native ones.
    pub dialect: Option<String>,
    /// The price of a million tokens, input and output; none if either is unknown.
    pub prices: Option<(f64, f64)>,
    /// What the prices are in.
    pub currency: String,
}

impl ModelSettings {
    /// What these tokens of each model cost; none where a model isn't the default one, whose prices these are.
    pub fn cost_of<'a>(&self, usage: impl IntoIterator<Item = (&'a String, &'a TokenUsage)>) -> Option<String> {
        let mut sum = TokenUsage::default();
        for (model, tokens) in usage.into_iter().filter(|(_, tokens)| tokens.total() > 0) {
            if !self.is_default(model) {
                return None;
            }
            sum += *tokens;
        }
        self.cost(sum).filter(|_| sum.total() > 0)
    }

    /// Whether the default model calls itself by this name in the record, which has no provider.
    fn is_default(&self, model: &str) -> bool {
        let default = self.default.as_deref().unwrap_or_default();
        let (provider, name) = default.strip_prefix("json+").unwrap_or(default).split_once(':').unwrap_or_default();
        let model = model.strip_prefix("json+").unwrap_or(model);
        !provider.is_empty() && (model == name || (provider == "scripted" && model == provider))
    }

    /// What these tokens cost, with the currency; none where the prices aren't known.
    pub fn cost(&self, tokens: TokenUsage) -> Option<String> {
        let (input, output) = self.prices?;
        let cost = (tokens.input as f64 * input + tokens.output as f64 * output) / 1e6;
        // Fractions of a cent matter for a single answer.
        let digits = if cost < 0.1 { 4 } else { 2 };
        Some(format!("{}{cost:.digits$}", self.currency))
    }
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

/// What one command may use of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// Bytes of each private directory, such as `/tmp`.
    pub temporary_bytes: u64,
    /// Processes and threads at a time.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Seconds of processor time of each process.
    pub processor_seconds: u64,
}

/// What a session's processes may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// How many may run at a time.
    pub most: u64,
    /// Seconds that one may go on after its call has returned.
    pub timeout_seconds: u64,
    /// Bytes of output that are kept of one; a process that writes more is stopped.
    pub output_bytes: u64,
    /// Seconds that comparing what one changed may take, once it has ended.
    pub settle_seconds: u64,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            most: PROCESSES_MOST.default,
            timeout_seconds: PROCESSES_TIMEOUT_SECONDS.default,
            output_bytes: PROCESSES_OUTPUT_BYTES.default,
            settle_seconds: PROCESSES_SETTLE_SECONDS.default,
        }
    }
}

/// How much output a call may return, and how long it may take.
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
        Self {
            lines: LIMITS_LINES.default,
            bytes: LIMITS_BYTES.default,
            line_chars: LIMITS_LINE_CHARS.default,
            timeout_seconds: LIMITS_TIMEOUT_SECONDS.default,
        }
    }
}
