//! One layer's configuration as plain data. Reading only records what was written; [`merge`](crate::merge()) and
//! `toolgate_policy::compile` make settings and a policy out of the records of all layers.

mod commands;
mod lsp;
mod mcp;
mod rule;
mod tools;

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toolgate_contract::{AllowedTools, Durability, RootAccess};

use crate::error::{ConfigError, from_toml, line_at};
use crate::preset::Preset;

pub use self::commands::{CommandsConfig, OverlayMode, UnknownCommandAction};
pub use self::lsp::{AfterChanges, LspConfig, LspServerConfig};
pub use self::mcp::{McpConfig, McpServerConfig, SecretSource, ServerDirectory, ServerProtocol};
pub use self::rule::RuleConfig;
pub use self::tools::{ConfiguredToolConfig, EffectsConfig, ToolsConfig};

/// One layer's file, as written. The default is an empty file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The baseline to use.
    pub preset: Option<Preset>,
    /// The rules, in order.
    pub rules: Vec<RuleConfig>,
    /// Which tools there are.
    pub tools: ToolsConfig,
    /// Hosts to allow.
    pub network: NetworkConfig,
    /// Commands to allow and to deny.
    pub commands: CommandsConfig,
    /// Exceptions from the built-in sensitive paths.
    pub sensitive: SensitiveConfig,
    /// Directories beside the workspace.
    pub roots: Vec<RootConfig>,
    /// How much output a call may return, and how long it may take.
    pub limits: LimitsConfig,
    /// What a session's processes may use.
    pub processes: ProcessesConfig,
    /// How much `fetch` takes.
    pub fetch: FetchConfig,
    /// How long `search` may index, and how large its index may be.
    pub search: SearchConfig,
    /// How events are recorded.
    pub audit: AuditConfig,
    /// How much is kept for undo.
    pub undo: UndoConfig,
    /// The caches that commands have.
    pub caches: CachesConfig,
    /// What else is a secret.
    pub redact: RedactConfig,
    /// How skills are used.
    pub skills: SkillsConfig,
    /// How long approvals are waited for, and how long they last.
    pub approvals: ApprovalsConfig,
    /// Where rows and tasks are kept.
    pub store: StoreConfig,
    /// Which clients know the tools by other names.
    pub dialects: DialectsConfig,
    /// The model that agents work with.
    pub model: ModelConfig,
    /// Other MCP servers.
    pub mcp: McpConfig,
    /// Language servers.
    pub lsp: LspConfig,
}

/// `[network]`: hosts that need no asking.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Domains, `*.domain`, addresses and ranges.
    pub allow: Vec<String>,
}

/// `[sensitive]`: exceptions from the built-in sensitive paths.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SensitiveConfig {
    /// Patterns over paths that are not sensitive after all.
    pub except: Vec<String>,
}

/// `[[roots]]`: a directory beside the workspace that tools may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootConfig {
    /// Absolute.
    pub path: String,
    /// What tools may do there.
    #[serde(default)]
    pub access: RootAccess,
}

/// `[limits]`: what is not given is left as it is.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Lines of output.
    pub lines: Option<u64>,
    /// Bytes of output.
    pub bytes: Option<u64>,
    /// Characters of one line.
    pub line_chars: Option<u64>,
    /// Seconds a call may take.
    pub timeout_seconds: Option<u64>,
    /// Limits of single tools.
    pub tools: BTreeMap<String, ToolLimitsConfig>,
}

/// `[limits.tools.NAME]`: one tool's own limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolLimitsConfig {
    /// Lines of output.
    pub lines: Option<u64>,
    /// Bytes of output.
    pub bytes: Option<u64>,
    /// Characters of one line.
    pub line_chars: Option<u64>,
    /// Seconds a call may take.
    pub timeout_seconds: Option<u64>,
}

impl LimitsConfig {
    /// What this layer says for one tool, or for all where it says nothing of its own; no name is all.
    pub(crate) fn of(&self, tool: Option<&str>) -> ToolLimitsConfig {
        let own = tool.and_then(|name| self.tools.get(name)).copied().unwrap_or_default();
        ToolLimitsConfig {
            lines: own.lines.or(self.lines),
            bytes: own.bytes.or(self.bytes),
            line_chars: own.line_chars.or(self.line_chars),
            timeout_seconds: own.timeout_seconds.or(self.timeout_seconds),
        }
    }
}

/// `[processes]`: what a session's processes may use. What is not given is left as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessesConfig {
    /// How many may run at a time.
    pub most: Option<u64>,
    /// Seconds that one may go on after its call has returned.
    pub timeout_seconds: Option<u64>,
    /// Bytes of output that are kept of one; a process that writes more is stopped.
    pub output_bytes: Option<u64>,
    /// Seconds that comparing what one changed may take.
    pub settle_seconds: Option<u64>,
}

/// `[fetch]`: how much is taken from the web.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FetchConfig {
    /// Bytes of a response, decompressed; the rest of a longer one is not read.
    pub body_bytes: Option<u64>,
}

/// `[search]`: the index of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchConfig {
    /// Seconds that a search may index files before it answers.
    pub index_seconds: Option<u64>,
    /// Bytes that the index may take.
    pub max_bytes: Option<u64>,
    /// The directory of a model's weights.
    pub weights: Option<String>,
}

/// `[audit]`: how events are recorded.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// When an event counts as recorded.
    pub durability: Option<Durability>,
}

/// `[undo]`: how much is kept for undo.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UndoConfig {
    /// Bytes of file contents; beyond that the oldest are removed and can't be restored.
    pub quota_bytes: Option<u64>,
}

/// `[caches]`: the caches that commands have.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CachesConfig {
    /// Which caches package managers use inside the sandbox.
    pub packages: Option<PackageCacheMode>,
    /// Bytes that the private caches of one workspace may have.
    pub quota_bytes: Option<u64>,
}

/// Which caches package managers use inside the sandbox, milder first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackageCacheMode {
    /// Caches of the workspace's own, which last, over the user's, which they only read.
    #[default]
    Private,
    /// None that lasts.
    Off,
}

/// `[approvals]`: how long approvals are waited for, and how long they last.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalsConfig {
    /// Seconds that a call waits in the approval queue where its front end has nobody to ask; with 0 it is refused at
    /// once.
    pub wait_seconds: Option<u64>,
    /// Hours after which a grant for a run or a session ends at the latest; with 0 there are none.
    pub session_hours: Option<u64>,
    /// Days after which a grant for "always" ends; with 0 there are none.
    pub always_days: Option<GrantDays>,
}

/// How long a grant for "always" lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantDays {
    /// This many days.
    Days(u64),
    /// Without an end: `"unlimited"`.
    Unlimited,
}

impl<'de> Deserialize<'de> for GrantDays {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Word(String),
        }
        match Written::deserialize(from) {
            Ok(Written::Number(days)) => Ok(Self::Days(days)),
            Ok(Written::Word(word)) if word == "unlimited" => Ok(Self::Unlimited),
            _ => Err(serde::de::Error::custom("expected a whole number of days, or \"unlimited\"")),
        }
    }
}

/// `[store]`: where rows and tasks are kept, beside the record itself.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// A database that many hosts share; left out, files beside the record.
    pub url: Option<StoreUrl>,
    /// Which tasks of that database are this workspace's: those of its directory's path if left out.
    pub queue: Option<String>,
}

/// `[dialects]`: which clients know the tools by other names.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DialectsConfig {
    /// The dialects of MCP clients, by the name that each announces.
    pub clients: BTreeMap<String, String>,
}

/// `[model]`: the model that agents work with, if the command line names none.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// The model, as `provider:name`.
    pub default: Option<String>,
    /// The API's base URL, if it isn't the provider's own.
    pub base_url: Option<String>,
    /// How much the model should reason, in the provider's own word.
    pub effort: Option<String>,
    /// Seconds that the model's server may send nothing.
    pub timeout_seconds: Option<u64>,
    /// The names under which the model is given the tools.
    pub dialect: Option<String>,
    /// The price of a million input tokens.
    pub input_price: Option<f64>,
    /// The price of a million output tokens.
    pub output_price: Option<f64>,
    /// The currency of the prices.
    pub currency: Option<String>,
}

/// The address of a database. It may hold a password, so it is never shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// An address, such as `postgres://user:password@host/database`.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The address itself, for whoever connects.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Serialize for StoreUrl {
    /// Says that there is an address, not which.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

impl std::fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreUrl(***)")
    }
}

/// `[redact]`: what else is a secret.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedactConfig {
    /// Names of environment variables whose values are secrets.
    pub names: Vec<String>,
}

/// `[skills]`: how skills are used.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SkillsConfig {
    /// Names of skills that nobody may load.
    pub deny: Vec<String>,
    /// What a skill's own list of tools means.
    pub allowed_tools: Option<AllowedTools>,
}

/// Where the rules begin in a file, in bytes.
#[derive(Deserialize)]
struct RulePositions {
    #[serde(default)]
    rules: Vec<Spanned<IgnoredAny>>,
}

impl Config {
    /// Reads a configuration file; `source` is how errors call it.
    pub fn parse(text: &str, source: &str) -> Result<Self, ConfigError> {
        let wrong = |fault| from_toml(&fault, text, source);
        let mut config: Self = toml::from_str(text).map_err(wrong)?;
        // Read a second time, so that `Config` needs no twin with positions in it; the files are small.
        let positions: RulePositions = toml::from_str(text).map_err(wrong)?;
        for (rule, position) in config.rules.iter_mut().zip(positions.rules) {
            rule.line = Some(line_at(text, position.span().start));
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_contract::Access;

    #[test]
    fn the_whole_file_is_read() {
        let config = Config::parse(
            r#"
            preset = "read-only"
            [[rules]]
            decision = "deny"
            path = "docs/secret/**"
            access = ["read"]
            match = ["docs/secret/a.txt"]
            [tools]
            allow = ["read"]
            [network]
            allow = ["example.com"]
            [commands]
            allow = ["git status"]
            unknown = "ask"
            [sensitive]
            except = ["certs/ca.pem"]
            [[roots]]
            path = "/data"
            [limits]
            lines = 10
            [limits.tools.grep]
            lines = 5
            [audit]
            durability = "sync"
            [undo]
            quota_bytes = 5_000_000
            [redact]
            names = ["MY_PIN"]
            [skills]
            deny = ["deploy"]
            allowed_tools = "approval"
            [approvals]
            wait_seconds = 60
            "#,
            "test",
        )
        .unwrap();
        assert_eq!(config.preset, Some(Preset::ReadOnly));
        assert_eq!(config.rules[0].line, Some(3));
        assert_eq!(config.rules[0].access, Some(vec![Access::Read]));
        assert_eq!(config.commands.unknown, Some(UnknownCommandAction::Ask));
        assert_eq!(config.roots, [RootConfig { path: "/data".into(), access: RootAccess::Read }]);
        assert_eq!(config.limits.of(Some("grep")).lines, Some(5));
        assert_eq!(config.limits.of(Some("read")).lines, Some(10));
        assert_eq!(config.audit.durability, Some(Durability::Sync));
        assert_eq!(config.undo.quota_bytes, Some(5_000_000));
        assert_eq!((config.skills.deny.len(), config.skills.allowed_tools), (1, Some(AllowedTools::Approval)));
        assert_eq!(config.approvals.wait_seconds, Some(60));
        assert_eq!(Config::parse("", "test"), Ok(Config::default()));
    }

    #[test]
    fn errors_name_the_line_and_the_nearest_name() {
        let said = |text: &str| Config::parse(text, "toolgate.toml").unwrap_err().to_string();
        insta::assert_snapshot!(said("\npreste = 'full'"), @"toolgate.toml:2:1: Unknown field `preste`. Did you mean `preset`?");
        insta::assert_snapshot!(said("preset = 'yolo'"), @"toolgate.toml:1:10: Unknown value `yolo`. Known here: `full`, `workspace`, `autonomous`, `read-only`.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'deny'\npth = 'a'"), @"toolgate.toml:3:1: Unknown field `pth`. Did you mean `path`?");
        insta::assert_snapshot!(said("[[rules]]\npath = 'a'"), @"toolgate.toml:1:1: Missing field `decision`.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'refuse'\npath = 'a'"), @"toolgate.toml:2:12: Unknown value `refuse`. Known here: `allow`, `ask`, `deny`.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'deny'\npermission = 'fs.writ'"), @"toolgate.toml:3:14: Unknown value `fs.writ`. Did you mean `fs.write`?");
        for tier in ["open", "nothing"] {
            let said = said(&format!("[commands]\nweakest_sandbox = '{tier}'"));
            let expected = "Known here: `landlock`, `bubblewrap`, `namespaces`.";
            assert_eq!(
                said,
                format!("toolgate.toml:2:19: Unknown value `{tier}`. {expected}"),
                "nobody turns all sandboxes off"
            );
        }
        insta::assert_snapshot!(said("[limits]\nlines = -1"), @"toolgate.toml:2:9: Invalid value: integer `-1`, expected a whole number of 1 or more.");
        insta::assert_snapshot!(said("[limits.tools.grep]\nline = 1"), @"toolgate.toml:2:1: Unknown field `line`. Did you mean `lines`?");
        insta::assert_snapshot!(said("preset = "), @"toolgate.toml:1:10: String values must be quoted, expected literal string.");
    }
}
