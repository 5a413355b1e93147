//! Where configuration comes from, and in which order: managed, user, workspace, flags and environment (C-15).
#![allow(clippy::disallowed_methods, reason = "reads the configuration files, before there is any gate")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use toolgate_contract::{Layer, ToolError};
use toolgate_policy::{CompiledConfig, Config, ConfigLayer, StoreUrl, compile};
use toolgate_runtime::UserRules;

use crate::trust;

/// The workspace's own policy file, at its root.
pub(crate) const WORKSPACE_FILE: &str = "toolgate.toml";

/// Options that shape policy for this run. They can tighten what the files say; they loosen only what no file decides.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PolicyFlags {
    /// Preset to start from: read-only, workspace, autonomous or full.
    #[arg(long, global = true, env = "TOOLGATE_PRESET", value_name = "NAME", help_heading = "Policy")]
    pub(crate) preset: Option<String>,
    /// Deny for this run, as KIND=PATTERN; kinds: tool, risk, permission, path, host, command.
    #[arg(long, global = true, value_name = "KIND=PATTERN", help_heading = "Policy")]
    pub(crate) deny: Vec<String>,
    /// Ask first for this run, as KIND=PATTERN.
    #[arg(long, global = true, value_name = "KIND=PATTERN", help_heading = "Policy")]
    pub(crate) ask: Vec<String>,
    /// Approve beforehand for this run, as KIND=PATTERN. Never lifts a deny.
    #[arg(long, global = true, value_name = "KIND=PATTERN", help_heading = "Policy")]
    pub(crate) allow: Vec<String>,
    /// Commands to approve beforehand, by the words they begin with, separated by commas.
    #[arg(
        long,
        global = true,
        env = "TOOLGATE_COMMANDS_ALLOW",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Policy"
    )]
    pub(crate) commands_allow: Vec<String>,
    /// Commands to deny, by the words they begin with, separated by commas.
    #[arg(
        long,
        global = true,
        env = "TOOLGATE_COMMANDS_DENY",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Policy"
    )]
    pub(crate) commands_deny: Vec<String>,
    /// The store of `TOOLGATE_STORE`. Only from the environment: everybody can see a command line.
    #[arg(skip = std::env::var("TOOLGATE_STORE").ok().map(StoreUrl::new))]
    pub(crate) store: Option<StoreUrl>,
    /// The queue of `TOOLGATE_QUEUE`.
    #[arg(skip = std::env::var("TOOLGATE_QUEUE").ok())]
    pub(crate) queue: Option<String>,
}

/// Where the files are.
#[derive(Debug, Clone)]
pub(crate) struct ConfigPaths {
    /// The administrator's file.
    pub(crate) managed: PathBuf,
    /// The user's file.
    pub(crate) user: PathBuf,
    /// The user's private state: trust and the seal's key.
    pub(crate) state: PathBuf,
    /// What of the user's lasts until they log out.
    pub(crate) runtime: Option<PathBuf>,
}

impl ConfigPaths {
    /// The usual places, by the XDG base directories.
    pub(crate) fn usual() -> Result<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let base = |variable: &str, below_home: &str| {
            let given = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            given.or_else(|| home.as_ref().map(|home| home.join(below_home)))
        };
        let missing = || format!("{} is not set, so the user's configuration can't be found. Set HOME.", "HOME");
        Ok(Self {
            managed: PathBuf::from("/etc/toolgate/config.toml"),
            user: base("XDG_CONFIG_HOME", ".config").with_context(missing)?.join("toolgate/config.toml"),
            state: base("XDG_STATE_HOME", ".local/state").with_context(missing)?.join("toolgate"),
            runtime: std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute()),
        })
    }

    /// The file that remembers trusted workspaces.
    pub(crate) fn trusted(&self) -> PathBuf {
        self.state.join("trusted.json")
    }

    /// The directory of sockets by which a person attaches to processes.
    pub(crate) fn attach_sockets(&self) -> PathBuf {
        match &self.runtime {
            Some(directory) => directory.join("toolgate"),
            None => self.state.join("doors"),
        }
    }

    /// The key that seals journals.
    pub(crate) fn seal_key(&self) -> PathBuf {
        self.state.join("seal.key")
    }

    /// The token that lets the owner in over HTTP.
    pub(crate) fn http_token(&self) -> PathBuf {
        self.state.join("http.token")
    }

    /// Whether the user trusts a workspace as its own file is now; one without such a file is trusted as it is.
    pub(crate) fn trusts(&self, workspace: &Path, trusted_as: &Path) -> Result<bool> {
        let text = read_optional(&workspace.join(WORKSPACE_FILE))?.unwrap_or_default();
        Ok(trust::is_trusted(&self.trusted(), trusted_as, &text))
    }

    /// Reads every layer and compiles them into one policy. A copy of a workspace is trusted as the workspace itself.
    pub(crate) fn load(&self, workspace: &Path, trusted_as: &Path, flags: &PolicyFlags) -> Result<CompiledConfig> {
        let mut layers = Vec::new();
        for (layer, file) in [(Layer::Managed, &self.managed), (Layer::User, &self.user)] {
            if let Some(text) = read_optional(file)? {
                layers.push(input(layer, &file.display().to_string(), true, &text)?);
            }
        }
        if let Some(text) = read_optional(&workspace.join(WORKSPACE_FILE))? {
            let trusted = trust::is_trusted(&self.trusted(), trusted_as, &text);
            layers.push(input(Layer::Workspace, WORKSPACE_FILE, trusted, &text)?);
        }
        layers.push(input(Layer::Flags, "the command line or the environment", true, &flags.to_toml()?)?);
        Ok(compile(layers)?)
    }
}

/// The text of a file that may be missing.
pub(crate) fn read_optional(file: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        // A policy that can't be read must not count as no policy.
        Err(error) => Err(error).with_context(|| format!("{} can't be read", file.display())),
    }
}

fn input(layer: Layer, source: &str, trusted: bool, text: &str) -> Result<ConfigLayer> {
    Ok(ConfigLayer { layer, source: source.to_owned(), trusted, config: Config::parse(text, source)? })
}

impl PolicyFlags {
    /// The flags as a layer's file, so that they take the same way as every other layer.
    fn to_toml(&self) -> Result<String> {
        let mut table = toml::Table::new();
        if let Some(preset) = &self.preset {
            table.insert("preset".into(), preset.clone().into());
        }
        let mut rules = Vec::new();
        for (decision, flags) in [("deny", &self.deny), ("ask", &self.ask), ("allow", &self.allow)] {
            for flag in flags {
                rules.push(toml::Value::Table(rule(decision, flag)?));
            }
        }
        table.insert("rules".into(), rules.into());
        let commands = [("allow", &self.commands_allow), ("deny", &self.commands_deny)];
        let commands: toml::Table = commands
            .into_iter()
            .map(|(name, lines)| {
                (name.to_owned(), lines.iter().map(|line| line.trim().to_owned()).collect::<Vec<_>>().into())
            })
            .collect();
        table.insert("commands".into(), commands.into());
        let store = [("url", self.store.as_ref().map(|url| url.reveal().to_owned())), ("queue", self.queue.clone())];
        let store: toml::Table =
            store.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
        table.insert("store".into(), store.into());
        Ok(toml::to_string(&table)?)
    }

    /// The flags as words of a command line, for the command that repeats a call.
    pub(crate) fn words(&self) -> Vec<String> {
        let preset = self.preset.iter().map(|preset| ("--preset", preset));
        let rules = [("--deny", &self.deny), ("--ask", &self.ask), ("--allow", &self.allow)];
        let rules = rules.into_iter().flat_map(|(flag, values)| values.iter().map(move |value| (flag, value)));
        let lists = [("--commands-allow", &self.commands_allow), ("--commands-deny", &self.commands_deny)];
        let lists = lists.into_iter().flat_map(|(flag, values)| values.iter().map(move |value| (flag, value)));
        preset.chain(rules).chain(lists).flat_map(|(flag, value)| [flag.to_owned(), value.clone()]).collect()
    }
}

fn rule(decision: &str, flag: &str) -> Result<toml::Table> {
    let (kind, pattern) = flag.split_once('=').with_context(|| {
        format!("`--{decision} {flag}` is not KIND=PATTERN. Write it like `--{decision} path=docs/**`.")
    })?;
    let pattern: toml::Value = match kind {
        "command" => pattern.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into(),
        _ => pattern.to_owned().into(),
    };
    Ok([("decision".to_owned(), decision.into()), (kind.to_owned(), pattern)].into_iter().collect())
}

/// The user's configuration as the place where an "always" is written down.
pub(crate) struct UserRulesFile {
    pub(crate) file: PathBuf,
}

impl UserRules for UserRulesFile {
    fn append_rules(&self, rules: &str) -> Result<(), ToolError> {
        let fault = |error: anyhow::Error| {
            ToolError::internal(format!("The rule could not be written to {}: {error:#}.", self.file.display()))
        };
        let mut text = read_optional(&self.file).map_err(fault)?.unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text = format!("{text}\n# approved with \"always\"\n{}\n", rules.trim());
        Config::parse(&text, &self.file.display().to_string()).map_err(|error| fault(error.into()))?;
        trust::replace(&self.file, text.as_bytes()).map_err(fault)
    }
}
