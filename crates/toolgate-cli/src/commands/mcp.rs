//! `toolgate mcp`: other MCP servers, whose tools are offered beside the built-in ones.

mod approve;
mod edit_config;
mod fetched_package;
mod import;
mod import_facts;
mod login;
mod logs;

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_config::{McpServerConfig, SecretSource, ServerDirectory};
use toolgate_contract::{counted, quoted};
use toolgate_gateway::{ServerDefinitions, TokenStore, cleaned, tool_name};
use toolgate_workspace::pin_name;

use self::approve::ApproveArgs;
use self::edit_config::{AddArgs, RemoveArgs};
use self::import::ImportArgs;
use self::login::LoginArgs;
use self::logs::LogsArgs;
use super::Invocation;
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, GREEN, TextTable, YELLOW, paint, plain, wrapped};

/// Use the tools of other MCP servers through the gate.
///
/// A server is a program that your configuration names, or an address elsewhere. A program runs in a sandbox of its own:
/// it sees the workspace, read-only unless you say otherwise, and reaches the hosts that you list. None of its tools is
/// offered before you have seen and approved its definition; when the server defines a tool differently later, that tool
/// waits until you approve it again.
///
/// Examples:
///   toolgate mcp add time -- mcp-server-time
///   toolgate mcp add files --access write --in-workspace -- node server-filesystem.js .
///   toolgate mcp add issues --url https://mcp.example.com/mcp
///   toolgate mcp login issues
///   toolgate mcp import
///   toolgate mcp approve time
///   toolgate mcp list
///   toolgate mcp show time
///   toolgate mcp remove time
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[allow(rustdoc::bare_urls, reason = "an address in the help is typed as it stands")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    verb: McpVerb,
}

#[derive(Debug, Subcommand)]
enum McpVerb {
    Add(AddArgs),
    Import(ImportArgs),
    /// List the servers, and how many tools of each are approved.
    List,
    /// Show a server: how it is started, what it may reach, its approved tools.
    Show {
        /// Its name.
        name: String,
    },
    Approve(ApproveArgs),
    Login(LoginArgs),
    Logs(LogsArgs),
    Remove(RemoveArgs),
}

impl McpArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        match self.verb {
            McpVerb::Add(verb) => verb.run(invocation),
            McpVerb::Import(verb) => verb.run(invocation),
            McpVerb::List => list(invocation),
            McpVerb::Show { name } => KnownServer::find(invocation, &name)?.show(invocation.json),
            McpVerb::Approve(verb) => verb.run(invocation),
            McpVerb::Login(verb) => verb.run(invocation),
            McpVerb::Logs(verb) => verb.run(invocation),
            McpVerb::Remove(verb) => verb.run(invocation),
        }
    }
}

/// A server of the configuration, with what was approved of it.
struct KnownServer {
    name: String,
    config: McpServerConfig,
    approved: Option<ServerDefinitions>,
}

impl KnownServer {
    fn all(invocation: &Invocation) -> Result<Vec<Self>> {
        let location = &invocation.location;
        let servers = location.load()?.settings.mcp_servers;
        if servers.is_empty() {
            return Ok(Vec::new());
        }
        let pins = location.mcp_pins()?;
        let known = servers.into_iter().map(|(name, config)| {
            let approved = pins.load(&pin_name(&name, &config))?;
            Ok(Self { name, config, approved })
        });
        known.collect()
    }

    fn find(invocation: &Invocation, name: &str) -> Result<Self> {
        let found = Self::all(invocation)?.into_iter().find(|server| server.name == name);
        found.with_context(|| {
            format!("no MCP server named `{name}` is configured; `toolgate mcp list` shows those there are")
        })
    }

    /// The command line, or the address.
    fn command(&self) -> String {
        if let Some(url) = &self.config.url {
            return url.clone();
        }
        self.config.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    fn tools(&self) -> usize {
        self.approved.as_ref().map_or(0, |approved| approved.tools.len())
    }

    fn json(&self) -> serde_json::Value {
        let approved = self.approved.iter().flat_map(ServerDefinitions::definitions);
        let tools: Vec<_> = approved
            .map(|tool| {
                json!({ "name": tool_name(&self.name, tool.name()), "tool": tool.name(), "definition": tool.hash() })
            })
            .collect();
        json!({ "name": self.name, "config": self.config, "approved": self.approved.is_some(), "tools": tools })
    }

    fn show(&self, as_json: bool) -> Result<Exit> {
        if as_json {
            outln!("{}", self.json());
            return Ok(Exit::Ok);
        }
        outln!("{} {}", paint(BOLD, &self.name), paint(DIM, plain(&self.command())));
        for (what, words) in self.reach()? {
            outln!("{:<10} {}", format!("{what}:"), plain(&words));
        }
        match &self.approved {
            None => outln!("{}", paint(YELLOW, format!("Nothing is approved yet: toolgate mcp approve {}", self.name))),
            Some(approved) => {
                let mut table = TextTable::new(&["TOOL", "WHAT IT SAYS IT DOES"]);
                for tool in approved.definitions() {
                    let first = tool.description().lines().next().unwrap_or_default().to_owned();
                    table.row([(tool_name(&self.name, tool.name()), BOLD), (first, anstyle::Style::new())]);
                }
                table.print();
                if let Some(words) = &approved.instructions {
                    outln!("instructions: {}", wrapped(&cleaned(words), 0));
                }
            }
        }
        Ok(Exit::Ok)
    }
}

impl KnownServer {
    /// What the server may see and reach, as far as configuration says more than usual.
    fn reach(&self) -> Result<Vec<(&'static str, String)>> {
        let McpServerConfig { workspace, directory, roots, hosts, env, secrets, bearer, .. } = &self.config;
        let mut reach = Vec::new();
        if self.config.url.is_none() {
            let place = match directory {
                ServerDirectory::Home => "starts in its own home",
                ServerDirectory::Workspace => "starts there",
            };
            let access = serde_json::to_value(workspace)?;
            reach.push(("workspace", format!("{}, {place}", access.as_str().unwrap_or_default())));
        }
        reach.push(("hosts", if hosts.is_empty() { "none".to_owned() } else { hosts.join(", ") }));
        if !roots.is_empty() {
            reach.push(("reads", roots.join(", ")));
        }
        let known = env.keys().cloned();
        let secret = secrets.iter().map(|(name, source)| format!("{name} from {source}"));
        let variables: Vec<String> = known.chain(secret).collect();
        if !variables.is_empty() {
            reach.push(("variables", variables.join(", ")));
        }
        reach.extend(bearer.iter().map(|source| ("token", format!("from {source}"))));
        Ok(reach)
    }
}

/// What `doctor` says of the servers: how many are approved, those of which nothing is, and what is wrong with others.
pub(super) fn server_states(invocation: &Invocation) -> Result<(usize, Vec<String>, Vec<String>)> {
    let (approved, waiting): (Vec<_>, Vec<_>) =
        KnownServer::all(invocation)?.into_iter().partition(|server| server.approved.is_some());
    let faults = approved.iter().chain(&waiting).filter_map(|server| server.fault(invocation)).collect();
    Ok((approved.len(), waiting.into_iter().map(|server| server.name).collect(), faults))
}

impl KnownServer {
    /// Why the server can't be used here, if that is known without starting it.
    fn fault(&self, invocation: &Invocation) -> Option<String> {
        self.obstacle(invocation).or_else(|| {
            let (name, url) = (&self.name, self.config.url.as_ref()?);
            let needs_login = self.config.bearer.is_none() && self.approved.is_none();
            let token = invocation.location.server_tokens(url).ok()?.load().ok()?;
            (needs_login && token.is_none()).then(|| format!("{name} may want a login (toolgate mcp login {name})"))
        })
    }

    /// What is missing on this machine, so that the server can't be started or reached.
    fn obstacle(&self, invocation: &Invocation) -> Option<String> {
        let verb = if self.config.url.is_some() { "reached" } else { "started" };
        let missing = self.missing_program(invocation).or_else(|| self.missing_secret())?;
        Some(format!("{} can't be {verb}, as {missing}", self.name))
    }

    fn missing_program(&self, invocation: &Invocation) -> Option<String> {
        let program = self.config.command.first()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = match (program.contains('/'), self.config.directory) {
            (true, ServerDirectory::Workspace) => invocation.location.directory.join(program).is_file(),
            // Its home is known when it is started.
            (true, ServerDirectory::Home) => !program.starts_with('/') || Path::new(program).is_file(),
            (false, _) => std::env::split_paths(&path).any(|directory| directory.join(program).is_file()),
        };
        (!is_there).then(|| format!("there is no program `{}`", plain(program)))
    }

    fn missing_secret(&self) -> Option<String> {
        let mut sources = self.config.secrets.values().chain(&self.config.bearer);
        sources.find_map(|source| match source {
            SecretSource::Variable(name) if std::env::var_os(name).is_none() => {
                Some(format!("the variable `{}` isn't set", plain(name)))
            }
            SecretSource::File(path) if !Path::new(path).is_file() => {
                Some(format!("there is no file `{}`", plain(path)))
            }
            _ => None,
        })
    }
}

fn list(invocation: &Invocation) -> Result<Exit> {
    let servers = KnownServer::all(invocation)?;
    if invocation.json {
        servers.iter().for_each(|server| outln!("{}", server.json()));
        return Ok(Exit::Ok);
    }
    if servers.is_empty() {
        errln!("No MCP server is configured. Add one: toolgate mcp add NAME -- COMMAND, or --url ADDRESS");
        return Ok(Exit::Ok);
    }
    let mut table = TextTable::new(&["SERVER", "TOOLS", "COMMAND OR ADDRESS"]);
    for server in &servers {
        let tools = match server.approved {
            Some(_) => (format!("{} approved", counted(server.tools(), "tool")), GREEN),
            None => (format!("none yet: toolgate mcp approve {}", server.name), YELLOW),
        };
        table.row([(server.name.clone(), BOLD), tools, (plain(&server.command()), DIM)]);
    }
    table.print();
    Ok(Exit::Ok)
}
