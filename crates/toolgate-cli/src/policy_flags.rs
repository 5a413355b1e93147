//! The flags that shape policy for one run.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use toolgate_config::{FlagLayer, StoreUrl};

use crate::dialect_settings::add_dialect_settings;

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
    /// A limit for this run, as NAME=NUMBER; names: lines, bytes, line_chars, timeout_seconds, for one tool TOOL.NAME.
    /// Also from the environment, as TOOLGATE_LIMITS_LINES and so on.
    #[arg(long, global = true, value_name = "NAME=NUMBER", help_heading = "Policy")]
    pub(crate) limits: Vec<String>,
    /// The limits that variables such as `TOOLGATE_LIMITS_LINES` set: name and value.
    #[arg(skip = limits_of_environment())]
    pub(crate) limit_variables: Vec<(&'static str, String)>,
    /// The store of `TOOLGATE_STORE`. Only from the environment: everybody can see a command line.
    #[arg(skip = std::env::var("TOOLGATE_STORE").ok().map(StoreUrl::new))]
    pub(crate) store: Option<StoreUrl>,
    /// The dialects that `--dialect` of the subcommand names. Some come with settings of their own.
    #[arg(skip)]
    pub(crate) dialects: Vec<String>,
    /// The queue of `TOOLGATE_QUEUE`.
    #[arg(skip = std::env::var("TOOLGATE_QUEUE").ok())]
    pub(crate) queue: Option<String>,
}

impl PolicyFlags {
    /// The flags as a layer of configuration, for the workspace in this directory.
    pub(crate) fn layer(&self, workspace: &Path) -> Result<FlagLayer> {
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
        table.insert("limits".into(), self.limits()?.into());
        let store = [("url", self.store.as_ref().map(|url| url.reveal().to_owned())), ("queue", self.queue.clone())];
        let store: toml::Table =
            store.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
        table.insert("store".into(), store.into());
        add_dialect_settings(&self.dialects, &|name| std::env::var(name).ok(), workspace, &mut table)?;
        Ok(FlagLayer::new(table, self.words()).with_origins(self.origins()))
    }

    /// The limits, as a table of configuration. A flag counts more than a variable.
    fn limits(&self) -> Result<toml::Table> {
        let mut limits = toml::Table::new();
        for (name, value) in &self.limit_variables {
            limits.insert((*name).to_owned(), number(value, &limit_variable(name))?);
        }
        for flag in &self.limits {
            let written = format!("--limits {flag}");
            let (name, value) = flag
                .split_once('=')
                .with_context(|| format!("`{written}` is not NAME=NUMBER. Write it like `--limits lines=500`."))?;
            let value = number(value, &written)?;
            let Some((tool, name)) = name.split_once('.') else {
                limits.insert(name.to_owned(), value);
                continue;
            };
            let tools = limits.entry("tools").or_insert_with(|| toml::Table::new().into());
            let own = tools.as_table_mut().map(|tools| tools.entry(tool).or_insert_with(|| toml::Table::new().into()));
            if let Some(own) = own.and_then(toml::Value::as_table_mut) {
                own.insert(name.to_owned(), value);
            }
        }
        Ok(limits)
    }

    /// The flag or the variable that each setting of the layer comes from.
    fn origins(&self) -> BTreeMap<String, String> {
        // A flag that says what the variable says is as good as the variable.
        let either = |variable: &str, flag: &str, value: &str| match std::env::var(variable) {
            Ok(of_environment) if of_environment == value => variable.to_owned(),
            _ => flag.to_owned(),
        };
        let lists = [
            ("commands.allow", "TOOLGATE_COMMANDS_ALLOW", "--commands-allow", &self.commands_allow),
            ("commands.deny", "TOOLGATE_COMMANDS_DENY", "--commands-deny", &self.commands_deny),
        ];
        let lists =
            lists.map(|(name, variable, flag, value)| (name.to_owned(), either(variable, flag, &value.join(","))));
        let preset = self.preset.iter().map(|preset| ("preset".into(), either("TOOLGATE_PRESET", "--preset", preset)));
        let variables = self.limit_variables.iter().map(|(name, _)| (format!("limits.{name}"), limit_variable(name)));
        let limits = self.limits.iter().filter_map(|flag| flag.split_once('='));
        let limits = limits.map(|(name, _)| match name.contains('.') {
            true => ("limits.tools".to_owned(), "--limits".to_owned()),
            false => (format!("limits.{name}"), "--limits".to_owned()),
        });
        let others = [
            ("rules", "--deny, --ask and --allow"),
            ("store.url", "TOOLGATE_STORE"),
            ("store.queue", "TOOLGATE_QUEUE"),
        ];
        let others = others.map(|(name, origin)| (name.to_owned(), origin.to_owned()));
        others.into_iter().chain(lists).chain(preset).chain(variables).chain(limits).collect()
    }

    /// The flags as words of a command line, for the command that repeats a call.
    fn words(&self) -> Vec<String> {
        let preset = self.preset.iter().map(|preset| ("--preset", preset));
        let rules = [("--deny", &self.deny), ("--ask", &self.ask), ("--allow", &self.allow)];
        let rules = rules.into_iter().flat_map(|(flag, values)| values.iter().map(move |value| (flag, value)));
        let lists = [("--commands-allow", &self.commands_allow), ("--commands-deny", &self.commands_deny)];
        let lists = lists.into_iter().flat_map(|(flag, values)| values.iter().map(move |value| (flag, value)));
        let limits = self.limits.iter().map(|limit| ("--limits", limit));
        preset
            .chain(rules)
            .chain(lists)
            .chain(limits)
            .flat_map(|(flag, value)| [flag.to_owned(), value.clone()])
            .collect()
    }
}

/// The names of the limits that a variable can set.
const LIMITS: [&str; 4] = ["lines", "bytes", "line_chars", "timeout_seconds"];

/// The variable that sets a limit.
fn limit_variable(name: &str) -> String {
    format!("TOOLGATE_LIMITS_{}", name.to_uppercase())
}

fn limits_of_environment() -> Vec<(&'static str, String)> {
    LIMITS.into_iter().filter_map(|name| Some((name, std::env::var(limit_variable(name)).ok()?))).collect()
}

fn number(value: &str, written: &str) -> Result<toml::Value> {
    let number: i64 = value.trim().parse().with_context(|| format!("`{written}`: `{value}` is not a whole number."))?;
    Ok(number.into())
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
