//! The flags that shape policy for one run.

use anyhow::{Context, Result};
use clap::Args;
use toolgate_config::{FlagLayer, StoreUrl};

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

impl PolicyFlags {
    /// The flags as a layer of configuration.
    pub(crate) fn layer(&self) -> Result<FlagLayer> {
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
        Ok(FlagLayer::new(table, self.words()))
    }

    /// The flags as words of a command line, for the command that repeats a call.
    fn words(&self) -> Vec<String> {
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
