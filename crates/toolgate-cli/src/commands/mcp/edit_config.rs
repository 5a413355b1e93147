//! `toolgate mcp add` and `remove`: edit the user's own configuration, and nothing else in it.
#![allow(clippy::disallowed_methods, reason = "edits the user's own configuration, outside of every workspace")]

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::json;
use toolgate_config::{Config, read_optional};

use super::fetched_package::FetchedPackage;
use crate::commands::Invocation;
use crate::exit::Exit;
use crate::output::outln;
use crate::terminal::{BOLD, paint, plain};

/// Add a server to your configuration.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// Its name; the names of its tools begin with it.
    name: String,
    /// What it may do in the workspace.
    #[arg(long, value_name = "ACCESS", default_value = "read")]
    access: AccessFlag,
    /// Start it in the workspace instead of in its own home. Many programs then load what a repository has.
    #[arg(long)]
    in_workspace: bool,
    /// A directory beside the workspace that it may read.
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<String>,
    /// A host that it may connect to, as HOST or HOST:PORT.
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// A variable that it has.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A secret variable that it has, by where its value is: env:NAME or file:/PATH.
    #[arg(long = "secret", value_name = "NAME=SOURCE")]
    secrets: Vec<String>,
    /// The address of a server elsewhere, in place of a program.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["command", "access", "in_workspace", "roots", "env", "secrets"])]
    url: Option<String>,
    /// Where a token for a server elsewhere is: env:NAME or file:/PATH. Without it, `toolgate mcp login` gets one.
    #[arg(long, value_name = "SOURCE", requires = "url")]
    bearer: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AccessFlag {
    Read,
    Write,
}

impl AddArgs {
    pub(super) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let pairs = |pairs: &[String]| -> Result<Vec<(String, String)>> {
            let pair = |pair: &String| {
                let (name, value) = pair.split_once('=').with_context(|| format!("`{pair}` isn't NAME=VALUE"))?;
                Ok((name.to_owned(), value.to_owned()))
            };
            pairs.iter().map(pair).collect()
        };
        let mut server = NewServer {
            may_write: matches!(self.access, AccessFlag::Write),
            in_workspace: self.in_workspace,
            env: pairs(&self.env)?,
            secrets: pairs(&self.secrets)?,
            name: self.name,
            url: self.url,
            bearer: self.bearer,
            command: self.command,
            roots: self.roots,
            hosts: self.hosts,
        };
        let fetched_from = server.reach_its_package();
        let name = server.name.clone();
        let file = add_servers(invocation, &[server])?;
        match invocation.json {
            true => outln!("{}", json!({ "name": name, "file": file, "hosts": fetched_from })),
            false => {
                outln!("Added {} to {}.", paint(BOLD, &name), file.display());
                if !fetched_from.is_empty() {
                    outln!("It may reach {}, where its package is fetched from.", fetched_from.join(" and "));
                }
                outln!("Look at its tools and approve them: toolgate mcp approve {name}");
            }
        }
        Ok(Exit::Ok)
    }
}

/// A server that isn't in the configuration yet.
#[derive(Debug, Default, PartialEq)]
pub(super) struct NewServer {
    pub(super) name: String,
    pub(super) command: Vec<String>,
    /// The address of a server elsewhere.
    pub(super) url: Option<String>,
    /// Where a token for it is.
    pub(super) bearer: Option<String>,
    pub(super) may_write: bool,
    pub(super) in_workspace: bool,
    pub(super) roots: Vec<String>,
    pub(super) hosts: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    /// Names of variables, each with where its value is.
    pub(super) secrets: Vec<(String, String)>,
}

impl NewServer {
    /// Lets a server whose package is fetched when it starts reach where that is. Gives the hosts.
    pub(super) fn reach_its_package(&mut self) -> Vec<String> {
        let package = FetchedPackage::of(&self.command);
        let hosts = package.map(|package| package.unlisted_hosts(&self.hosts)).unwrap_or_default();
        self.hosts.extend(hosts.iter().cloned());
        hosts
    }

    /// The server as a section of a configuration file.
    pub(super) fn section(&self) -> String {
        let access = if self.may_write { "workspace = \"write\"\n" } else { "" };
        let directory = if self.in_workspace { "directory = \"workspace\"\n" } else { "" };
        let bearer = self.bearer.as_ref().map(|source| format!("bearer = {}\n", json!(source))).unwrap_or_default();
        let place = match &self.url {
            Some(url) => format!("url = {}\n{bearer}", json!(url)),
            None => format!("command = {}\n", json!(self.command)),
        };
        let mut section = format!("[mcp.servers.{}]\n{place}{directory}{access}", self.name);
        for (field, entries) in [("roots", &self.roots), ("hosts", &self.hosts)] {
            if !entries.is_empty() {
                section += &format!("{field} = {}\n", json!(entries));
            }
        }
        for (table, pairs) in [("env", &self.env), ("secrets", &self.secrets)] {
            section.extend(pairs.iter().map(|(name, value)| format!("{table}.{} = {}\n", json!(name), json!(value))));
        }
        section
    }
}

/// Adds servers to the user's configuration, all or none, and gives the file.
pub(super) fn add_servers<'a>(invocation: &'a Invocation, servers: &[NewServer]) -> Result<&'a Path> {
    let file = &invocation.location.config.user;
    let text = read_optional(file)?.unwrap_or_default();
    let before = Config::parse(&text, &file.display().to_string())?;
    let mut after = text.clone();
    for server in servers {
        let name = &server.name;
        let is_usable = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if name.is_empty() || !name.chars().all(is_usable) {
            anyhow::bail!("`{}` can't be a server's name: it has letters, digits, `-` and single `_`", plain(name));
        }
        if before.mcp.servers.contains_key(name) {
            anyhow::bail!("`{name}` is in {} already; `toolgate mcp remove {name}` removes it", file.display());
        }
        if !after.is_empty() {
            after.truncate(after.trim_end().len());
            after.push_str("\n\n");
        }
        after.push_str(&server.section());
    }
    let parsed = Config::parse(&after, &file.display().to_string()).context("it can't be added")?;
    let is_there = |server: &NewServer| parsed.mcp.servers.contains_key(&server.name);
    let is_whole = parsed.mcp.servers.len() == before.mcp.servers.len() + servers.len();
    anyhow::ensure!(is_whole && servers.iter().all(is_there), "that can't be a server's name");
    write(file, &after)?;
    if let Err(fault) = invocation.location.load() {
        write(file, &text)?;
        return Err(fault.into());
    }
    Ok(file)
}

/// Remove a server from your configuration. What was approved of it is kept, in case it comes back as it was.
#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    /// Its name.
    name: String,
}

impl RemoveArgs {
    pub(super) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let (file, name) = (&invocation.location.config.user, &self.name);
        let text = read_optional(file)?.unwrap_or_default();
        let mut expected = Config::parse(&text, &file.display().to_string())?;
        if expected.mcp.servers.remove(name).is_none() {
            anyhow::bail!("{} has no MCP server `{name}`", file.display());
        }
        let after = without_section(&text, name);
        let is_the_rest = |config: &Config| config.mcp == expected.mcp && config.tools == expected.tools;
        if !Config::parse(&after, "").is_ok_and(|config| is_the_rest(&config)) {
            anyhow::bail!("`{name}` isn't a section of its own in {}; remove it there by hand", file.display());
        }
        write(file, &after)?;
        match invocation.json {
            true => outln!("{}", json!({ "name": name, "file": file })),
            false => outln!("Removed {} from {}.", paint(BOLD, name), file.display()),
        }
        Ok(Exit::Ok)
    }
}

/// The text without the sections of a server.
fn without_section(text: &str, name: &str) -> String {
    let (own, inner) = (format!("[mcp.servers.{name}]"), format!("[mcp.servers.{name}."));
    let mut is_own = false;
    let mut rest = String::new();
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            is_own = trimmed == own || trimmed.starts_with(&inner);
        }
        if !is_own {
            rest.push_str(line);
        }
    }
    rest
}

/// Writes a file in one step.
fn write(file: &Path, text: &str) -> Result<()> {
    let failed = || format!("{} can't be written", file.display());
    let directory = file.parent().with_context(failed)?;
    std::fs::create_dir_all(directory).with_context(failed)?;
    let draft = directory.join(format!(".config-{}", std::process::id()));
    std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, file)).with_context(failed)
}
