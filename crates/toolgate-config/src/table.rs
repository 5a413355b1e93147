//! Every setting there is, one row each: its name, its type, its default, who may change it, and what it does.
//!
//! Merging takes defaults and layer rules from here, and `docs/configuration.md` is generated from it. A test holds the
//! rows against what the parser accepts, so neither can have what the other lacks.

use std::collections::BTreeMap;

use toolgate_contract::{AllowedTools, Durability, QuarantineMode, Tier};

use crate::config::{
    AfterChanges, ConfiguredToolConfig, GrantDays, LspServerConfig, McpServerConfig, OverlayMode, PackageCacheMode,
    RootConfig, RuleConfig, StoreUrl, ToolLimitsConfig, UnknownCommandAction,
};
use crate::effective::EffectiveSetting;
use crate::layer::ConfigLayer;
use crate::preset::Preset;
use crate::setting::{LayerRule, Setting, SettingRow};

/// Makes a constant out of each row, and the list of them all.
macro_rules! settings {
    ($($id:ident: $type:ty = $default:expr, $name:literal, $rule:ident, $stated:expr, $description:literal;)*) => {
        $(
            #[doc = $description]
            pub static $id: Setting<$type> = Setting {
                name: $name,
                default: $default,
                rule: LayerRule::$rule,
                description: $description,
                stated: $stated,
            };
        )*

        /// What the layers come to, strongest first, in the order of the documentation.
        pub fn effective(layers: &[ConfigLayer]) -> Vec<EffectiveSetting> {
            vec![$($id.effective(layers)),*]
        }

        /// Every row, in the order of the documentation.
        pub fn rows() -> Vec<SettingRow> {
            vec![$($id.row()),*]
        }
    };
}

const KIBIBYTE: u64 = 1 << 10;
const MEBIBYTE: u64 = 1 << 20;
const GIBIBYTE: u64 = 1 << 30;
const HOUR: u64 = 60 * 60;

settings! {
    PRESET: Preset = Preset::Workspace, "preset", Tighten, |config| config.preset,
        "The baseline that holds until a rule says otherwise.";
    RULES: Vec<RuleConfig> = Vec::new(), "rules", Approve, |config| Some(config.rules.clone()),
        "Rules that deny, ask or allow; see [Rules](#rules).";

    TOOLS_ALLOW: Option<Vec<String>> = None, "tools.allow", Intersect, |config| config.tools.allow.clone().map(Some),
        "If given, only these tools exist. Patterns are allowed.";
    TOOLS_DENY: Vec<String> = Vec::new(), "tools.deny", AddUp, |config| Some(config.tools.deny.clone()),
        "These tools don't exist. Patterns are allowed.";
    TOOLS_NAME: BTreeMap<String, ConfiguredToolConfig> = BTreeMap::new(), "tools.NAME", Approve,
        |config| Some(config.tools.configured.clone()),
        "A tool of your own that runs a command; see [Tools of your own](#tools-of-your-own).";

    MCP_SERVERS: BTreeMap<String, McpServerConfig> = BTreeMap::new(), "mcp.servers", Approve,
        |config| Some(config.mcp.servers.clone()),
        "Other MCP servers, whose tools are offered beside the built-in ones; see [MCP servers](#mcp-servers).";
    MCP_LISTED_TOOLS: u64 = 30, "mcp.listed_tools", Strongest, |config| config.mcp.listed_tools,
        "How many tools of those servers models are told of one by one. Where there are more, they are told of `tools_find` and `tools_use` instead.";

    LSP_AFTER_CHANGES: AfterChanges = AfterChanges::On, "lsp.after_changes", Strongest, |config| config.lsp.after_changes,
        "Whether a call that changes files also tells the errors that its change caused, by language servers that run already.";
    LSP_MEMORY_BYTES: u64 = 4 * GIBIBYTE, "lsp.memory_bytes", Tighten, |config| config.lsp.memory_bytes,
        "Bytes of memory that each process of a language server or linter may use (4 GiB).";
    LSP_WAIT_SECONDS: u64 = 30, "lsp.wait_seconds", Strongest, |config| config.lsp.wait_seconds,
        "Seconds that a question about code waits for a language server that is still indexing.";
    LSP_SERVERS: BTreeMap<String, LspServerConfig> = BTreeMap::new(), "lsp.servers", Approve,
        |config| Some(config.lsp.servers.clone()),
        "Language servers beside the built-in ones, or in place of those of the same name; see [Language servers](#language-servers).";

    NETWORK_ALLOW: Vec<String> = Vec::new(), "network.allow", Approve, |config| Some(config.network.allow.clone()),
        "Hosts that need no asking: a domain, `*.domain`, an address or a range, without scheme and port, or `@registries` \
         for the usual package registries.";

    COMMANDS_ALLOW: Vec<String> = Vec::new(), "commands.allow", Approve, |config| Some(config.commands.allow.clone()),
        "Commands that need no asking, by the words they begin with, such as `git status`.";
    COMMANDS_DENY: Vec<String> = Vec::new(), "commands.deny", AddUp, |config| Some(config.commands.deny.clone()),
        "Commands that are refused, by the words they begin with.";
    COMMANDS_EXCEPT: Vec<String> = Vec::new(), "commands.except", ApproveInFiles,
        |config| Some(config.commands.except.clone()),
        "Commands that are allowed although the built-in list calls them dangerous.";
    COMMANDS_UNKNOWN: UnknownCommandAction = UnknownCommandAction::Confine, "commands.unknown", Strictest,
        |config| config.commands.unknown,
        "What happens to a command that can't be parsed: it runs in a sandbox, a person decides, or it is refused.";
    COMMANDS_OVERLAY: OverlayMode = OverlayMode::On, "commands.overlay", Tighten, |config| config.commands.overlay,
        "Whether the changes of a command are staged, and written to the workspace as one change when it ends.";
    COMMANDS_QUARANTINE: QuarantineMode = QuarantineMode::On, "commands.quarantine", Tighten,
        |config| config.commands.quarantine,
        "What happens to files that programs run or load automatically: written like any other, written and reported, or quarantined.";
    COMMANDS_WEAKEST_SANDBOX: Tier = Tier::Bubblewrap, "commands.weakest_sandbox", TightenBeyondWorkspace,
        |config| config.commands.weakest_sandbox,
        "The weakest sandbox that commands may run in. Where the machine can't provide it, no command runs.";
    COMMANDS_TEMPORARY_BYTES: u64 = GIBIBYTE, "commands.temporary_bytes", Tighten,
        |config| config.commands.temporary_bytes,
        "Bytes of each directory that is a command's own and is gone when it ends: `/tmp`, `/run`, `/dev/shm`, the home (1 GiB each). They are memory.";
    COMMANDS_PROCESSES: u64 = 1024, "commands.processes", Tighten, |config| config.commands.processes,
        "Processes and threads that one command may have at a time.";
    COMMANDS_OPEN_FILES: u64 = 4096, "commands.open_files", Tighten, |config| config.commands.open_files,
        "Files that each process of a command may have open.";
    COMMANDS_PROCESSOR_SECONDS: u64 = 4 * HOUR, "commands.processor_seconds", Tighten,
        |config| config.commands.processor_seconds,
        "Seconds of processor time of each process of a command, all its threads together. Then it is killed.";

    SENSITIVE_EXCEPT: Vec<String> = Vec::new(), "sensitive.except", ApproveInFiles,
        |config| Some(config.sensitive.except.clone()),
        "Path patterns that are not sensitive after all, such as `certs/ca.pem`.";

    ROOTS: Vec<RootConfig> = Vec::new(), "roots", Approve, |config| Some(config.roots.clone()),
        "Directories beside the workspace that tools may use; see [Roots](#roots).";

    LIMITS_LINES: u64 = 2000, "limits.lines", Tighten, |config| config.limits.lines,
        "Lines of output that a call returns. The rest becomes an artifact.";
    LIMITS_BYTES: u64 = 50 * KIBIBYTE, "limits.bytes", Tighten, |config| config.limits.bytes,
        "Bytes of output that a call returns (50 KiB). The rest becomes an artifact.";
    LIMITS_LINE_CHARS: u64 = 2000, "limits.line_chars", Tighten, |config| config.limits.line_chars,
        "Characters of one line of output.";
    LIMITS_TIMEOUT_SECONDS: u64 = 120, "limits.timeout_seconds", Tighten, |config| config.limits.timeout_seconds,
        "Seconds that a call may take. Where no layer sets it, a tool may have a timeout of its own.";
    LIMITS_TOOLS: BTreeMap<String, ToolLimitsConfig> = BTreeMap::new(), "limits.tools", Tighten,
        |config| Some(config.limits.tools.clone()),
        "The four limits above for single tools.";

    PROCESSES_MOST: u64 = 8, "processes.most", Tighten, |config| config.processes.most,
        "Processes that a session may have running at a time.";
    PROCESSES_TIMEOUT_SECONDS: u64 = HOUR, "processes.timeout_seconds", Tighten,
        |config| config.processes.timeout_seconds,
        "Seconds that a process may go on after its call has returned.";
    PROCESSES_OUTPUT_BYTES: u64 = GIBIBYTE, "processes.output_bytes", Tighten, |config| config.processes.output_bytes,
        "Bytes of output that are kept of one process (1 GiB). A process that writes more is stopped.";
    PROCESSES_SETTLE_SECONDS: u64 = 10 * 60, "processes.settle_seconds", Tighten,
        |config| config.processes.settle_seconds,
        "Seconds that comparing the staged changes of a command may take, once it has ended: the rest of its `timeout_seconds` (60 if less is left), and at most this. After that they are kept as a rehearsal, for `commit`.";

    FETCH_BODY_BYTES: u64 = 10 * MEBIBYTE, "fetch.body_bytes", Tighten, |config| config.fetch.body_bytes,
        "Bytes of a response, decompressed, that `fetch` reads (10 MiB).";

    SEARCH_INDEX_SECONDS: u64 = 10, "search.index_seconds", Tighten, |config| config.search.index_seconds,
        "Seconds that `search` may take to index new and changed files before it answers. What is left is searched word by word, and indexed by the next search.";
    SEARCH_MAX_BYTES: u64 = 512 * MEBIBYTE, "search.max_bytes", Tighten, |config| config.search.max_bytes,
        "Bytes that the search index of a workspace may take (512 MiB).";
    SEARCH_WEIGHTS: Option<String> = None, "search.weights", StrongestBeyondWorkspace,
        |config| config.search.weights.clone().map(Some),
        "A directory with the weights of a model2vec model, as an absolute path: then `search` finds places by meaning too; see [Ranked search](search.md#by-meaning). Nothing is downloaded.";

    AUDIT_DURABILITY: Durability = Durability::Os, "audit.durability", Strictest, |config| config.audit.durability,
        "When an event counts as recorded: once the operating system has it, or once the disk has it.";

    UNDO_QUOTA_BYTES: u64 = GIBIBYTE, "undo.quota_bytes", Strongest, |config| config.undo.quota_bytes,
        "Bytes of file contents that are kept for undo (1 GiB). Beyond that the oldest are removed and can't be restored.";

    CACHES_PACKAGES: PackageCacheMode = PackageCacheMode::Private, "caches.packages", Tighten,
        |config| config.caches.packages,
        "Which caches package managers use in the sandbox: ones of the workspace's own, which last, or none that lasts; see [Caches](#caches).";
    CACHES_QUOTA_BYTES: u64 = 10 * GIBIBYTE, "caches.quota_bytes", Tighten, |config| config.caches.quota_bytes,
        "Bytes that the private caches of one workspace may have (10 GiB). Beyond that the largest are removed, once a day.";

    REDACT_NAMES: Vec<String> = Vec::new(), "redact.names", AddUp, |config| Some(config.redact.names.clone()),
        "Names of environment variables whose values are secrets, beside the built-in ones.";

    SKILLS_DENY: Vec<String> = Vec::new(), "skills.deny", AddUp, |config| Some(config.skills.deny.clone()),
        "Skills that nobody may load.";
    SKILLS_ALLOWED_TOOLS: AllowedTools = AllowedTools::Ceiling, "skills.allowed_tools", Strictest,
        |config| config.skills.allowed_tools,
        "What a skill's own list of tools means: they need no asking, or no others may be used.";

    APPROVALS_WAIT_SECONDS: u64 = 0, "approvals.wait_seconds", Strongest, |config| config.approvals.wait_seconds,
        "Seconds that a call waits in the approval queue where its front end has nobody to ask. With 0 it is refused at once.";
    APPROVALS_SESSION_HOURS: u64 = 12, "approvals.session_hours", TightenBeyondWorkspace,
        |config| config.approvals.session_hours,
        "Hours after which an approval for a run or a session ends, if the run or the session hasn't ended before. With 0 neither can be chosen.";
    APPROVALS_ALWAYS_DAYS: GrantDays = GrantDays::Days(30), "approvals.always_days", TightenBeyondWorkspace,
        |config| config.approvals.always_days,
        "Days after which an approval for \"always\" ends. With 0 it can't be chosen; only `\"unlimited\"` has no end.";

    STORE_URL: Option<StoreUrl> = None, "store.url", Strongest, |config| config.store.url.clone().map(Some),
        "A PostgreSQL database that many hosts share for rows and tasks; `sslmode` and `sslrootcert` in it say how to encrypt. Without it they are files beside the record.";
    STORE_QUEUE: Option<String> = None, "store.queue", Strongest, |config| config.store.queue.clone().map(Some),
        "Which tasks of that database are this workspace's. Without it, those of the workspace's path.";

    DIALECTS_CLIENTS: BTreeMap<String, String> = BTreeMap::new(), "dialects.clients", Strongest,
        |config| Some(config.dialects.clients.clone()).filter(|clients| !clients.is_empty()),
        "The dialects in which MCP clients are spoken to, by the name that each announces, if `serve --dialect` names none. All others get the native tools.";

    MODEL_DEFAULT: Option<String> = None, "model.default", StrongestBeyondWorkspace,
        |config| config.model.default.clone().map(Some),
        "The model that agents work with, as `provider:name`, if neither `--model` nor `TOOLGATE_MODEL` names one.";
    MODEL_BASE_URL: Option<String> = None, "model.base_url", StrongestBeyondWorkspace,
        |config| config.model.base_url.clone().map(Some),
        "The base URL of the model's API, with or without `/v1`, if it isn't the provider's own.";
    MODEL_EFFORT: Option<String> = None, "model.effort", StrongestBeyondWorkspace,
        |config| config.model.effort.clone().map(Some),
        "How much the model should reason, in the provider's own word, such as `low` or `high`: `reasoning.effort` or `reasoning_effort` of OpenAI and servers that are compatible with it, `output_config.effort` of Anthropic.";
    MODEL_TIMEOUT_SECONDS: u64 = 90, "model.timeout_seconds", StrongestBeyondWorkspace,
        |config| config.model.timeout_seconds,
        "Seconds that the model's server may send nothing before it is asked again. Raise it for models that reason in silence.";
    MODEL_DIALECT: Option<String> = None, "model.dialect", StrongestBeyondWorkspace,
        |config| config.model.dialect.clone().map(Some),
        "The names under which the model is given the tools, as `toolgate dialects` lists them, if `--dialect` names none: one or several, separated by commas, or `auto` for those that it knows best. `native` if left out.";
    MODEL_INPUT_PRICE: Option<f64> = None, "model.input_price", StrongestBeyondWorkspace,
        |config| config.model.input_price.map(Some),
        "The price of a million input tokens, to show what a task costs.";
    MODEL_OUTPUT_PRICE: Option<f64> = None, "model.output_price", StrongestBeyondWorkspace,
        |config| config.model.output_price.map(Some),
        "The price of a million output tokens.";
    MODEL_CURRENCY: Option<String> = None, "model.currency", StrongestBeyondWorkspace,
        |config| config.model.currency.clone().map(Some),
        "What the prices are in. `$` if left out.";
}

/// The numbers for which 0 makes no sense.
pub(crate) static POSITIVE: [&Setting<u64>; 19] = [
    &LSP_MEMORY_BYTES,
    &LSP_WAIT_SECONDS,
    &COMMANDS_TEMPORARY_BYTES,
    &COMMANDS_PROCESSES,
    &COMMANDS_OPEN_FILES,
    &COMMANDS_PROCESSOR_SECONDS,
    &LIMITS_LINES,
    &LIMITS_BYTES,
    &LIMITS_LINE_CHARS,
    &LIMITS_TIMEOUT_SECONDS,
    &PROCESSES_MOST,
    &PROCESSES_TIMEOUT_SECONDS,
    &PROCESSES_OUTPUT_BYTES,
    &FETCH_BODY_BYTES,
    &SEARCH_INDEX_SECONDS,
    &SEARCH_MAX_BYTES,
    &UNDO_QUOTA_BYTES,
    &CACHES_QUOTA_BYTES,
    &MODEL_TIMEOUT_SECONDS,
];
