//! `toolgate mcp import`: takes over the servers that other clients have in their configuration.
#![allow(clippy::disallowed_methods, reason = "reads the configuration of the user's other clients")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use jsonc_parser::ast;
use serde_json::{Value, json};
use toolgate_config::read_optional;
use toolgate_contract::counted;

use super::edit_config::{NewServer, add_servers};
use super::import_facts::{ImportFacts, ImportedVariable};
use crate::commands::Invocation;
use crate::commands::init::jsonc;
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, YELLOW, confirm, paint, plain};

/// Take over the servers of other clients: Claude Code, Codex, Cursor, VS Code.
///
/// Reads `.mcp.json`, `.cursor/mcp.json`, `.vscode/mcp.json` and `.codex/config.toml` in the workspace, and `~/.claude.json`,
/// `~/.cursor/mcp.json`, `~/.codex/config.toml` and `~/.config/Code/User/mcp.json`. What is found is shown, and added to your own
/// configuration once you agree; those files aren't changed.
/// A value that looks like a secret isn't copied: the server gets it from a variable of that name.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ImportArgs {
    /// Read these files instead.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Add them without asking.
    #[arg(long, short)]
    yes: bool,
}

/// A server of another client.
struct FoundServer {
    /// The file that it is in.
    file: PathBuf,
    /// The server, or why it can't be taken over.
    server: Result<NewServer, String>,
}

impl ImportArgs {
    pub(super) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let files = if self.files.is_empty() { usual_files(invocation) } else { self.files.clone() };
        let known = invocation.location.load()?.settings.mcp_servers;
        let mut found = Vec::new();
        let facts = ImportFacts::of(&invocation.location);
        for file in &files {
            found.extend(servers_in(file, &facts, !self.files.is_empty())?);
        }
        let mut new: Vec<NewServer> = Vec::new();
        for FoundServer { file, server } in found {
            match server {
                Ok(server) if known.contains_key(&server.name) || new.iter().any(|other| other.name == server.name) => {
                }
                Ok(server) => {
                    show(&file, &server, invocation.json);
                    new.push(server);
                }
                Err(why) if !invocation.json => {
                    errln!("{}", paint(YELLOW, plain(&format!("{}: {why}", file.display()))))
                }
                Err(_) => {}
            }
        }
        if new.is_empty() {
            report(&new, false, invocation.json, "There is no server that you don't have already.");
            return Ok(Exit::Ok);
        }
        let question = format!("Add {} to your configuration?", counted(new.len(), "server"));
        let is_agreed = self.yes || (!invocation.json && confirm(&question, "toolgate mcp import --yes")?);
        if is_agreed {
            add_servers(invocation, &new)?;
        }
        let said =
            if is_agreed { "Added. Look at their tools with: toolgate mcp approve NAME" } else { "Nothing was added." };
        report(&new, is_agreed, invocation.json, said);
        Ok(if is_agreed {
            Exit::Ok
        } else if invocation.json {
            Exit::ApprovalNeeded
        } else {
            Exit::Denied
        })
    }
}

fn report(servers: &[NewServer], added: bool, as_json: bool, words: &str) {
    match as_json {
        true => {
            let names: Vec<&String> = servers.iter().map(|server| &server.name).collect();
            outln!("{}", json!({ "servers": names, "added": added }));
        }
        false => outln!("{words}"),
    }
}

fn show(file: &Path, server: &NewServer, as_json: bool) {
    if !as_json {
        outln!(
            "{} {}",
            paint(BOLD, plain(&server.name)),
            paint(DIM, format!("from {}", plain(&file.display().to_string())))
        );
        server.section().lines().skip(1).for_each(|line| outln!("  {}", plain(line)));
    }
}

/// Where clients keep their servers.
fn usual_files(invocation: &Invocation) -> Vec<PathBuf> {
    let (workspace, home) = (&invocation.location.directory, invocation.location.home.as_ref());
    let own =
        [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".codex/config.toml"].map(|name| workspace.join(name));
    let of_home = [".claude.json", ".cursor/mcp.json", ".codex/config.toml", ".config/Code/User/mcp.json"];
    own.into_iter().chain(home.into_iter().flat_map(|home| of_home.map(|name| home.join(name)))).collect()
}

/// The servers in a client's file. A file that isn't there has none, unless the person named it.
fn servers_in(file: &Path, facts: &ImportFacts<'_>, is_named: bool) -> Result<Vec<FoundServer>> {
    let Some(text) = read_optional(file)? else {
        anyhow::ensure!(!is_named, "{} doesn't exist", file.display());
        return Ok(Vec::new());
    };
    let failed = || format!("{} can't be read", file.display());
    let value: Value = match file.extension().is_some_and(|kind| kind == "toml") {
        true => toml::from_str(&text).with_context(failed)?,
        false => jsonc::parse(&text).map(|read| Value::from(ast::Value::Object(read))).with_context(failed)?,
    };
    let of_project =
        value["projects"].get(facts.workspace.to_string_lossy().as_ref()).map(|project| &project["mcpServers"]);
    let tables = [Some(&value["mcpServers"]), Some(&value["servers"]), Some(&value["mcp_servers"]), of_project];
    let servers = tables.into_iter().flatten().filter_map(Value::as_object).flatten();
    let found =
        servers.map(|(name, entry)| FoundServer { file: file.to_owned(), server: new_server(name, entry, facts) });
    Ok(found.filter(|found| !found.server.as_ref().is_ok_and(is_toolgate)).collect())
}

/// Whether the entry is Toolgate itself.
fn is_toolgate(server: &NewServer) -> bool {
    server.command.first().is_some_and(|program| Path::new(program).file_name().is_some_and(|name| name == "toolgate"))
}

fn new_server(name: &str, entry: &Value, facts: &ImportFacts<'_>) -> Result<NewServer, String> {
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let usable = |character: char| if character.is_ascii_alphanumeric() || character == '-' { character } else { '-' };
    let usable_name: String = name.chars().map(usable).take(32).collect();
    let Some(program) = entry.get("command").and_then(Value::as_str) else {
        return remote_server(name, usable_name, entry, facts);
    };
    let command: Vec<String> = [program.to_owned()].into_iter().chain(words(&entry["args"])).collect();
    let command = command.iter().map(|word| facts.expanded(name, word)).collect::<Result<Vec<_>, _>>()?;
    // A file of settings isn't the place for a secret, and an argument can't come from elsewhere.
    if let Some(word) = command.iter().find(|word| facts.redactor.finds_secret(word.as_bytes())) {
        let shown = facts.redactor.text(word);
        return Err(format!(
            "`{name}` has a secret among its arguments (`{shown}`), which isn't copied. Add it with `toolgate mcp add` and `--secret`."
        ));
    }
    let directory = entry.get("cwd").and_then(Value::as_str).map(|cwd| facts.expanded(name, cwd)).transpose()?;
    let mut server = NewServer {
        name: usable_name,
        in_workspace: facts.starts_in_workspace(&command, directory.as_deref()),
        command,
        ..NewServer::default()
    };
    server.reach_its_package();
    for (variable, value) in entry["env"].as_object().into_iter().flatten() {
        match facts.variable(name, variable, value.as_str().unwrap_or_default())? {
            ImportedVariable::Secret(source) => server.secrets.push((variable.clone(), format!("env:{source}"))),
            ImportedVariable::Plain(value) => server.env.push((variable.clone(), value)),
        }
    }
    Ok(server)
}

/// A server elsewhere. Its headers aren't copied: a token in a file of settings is no secret.
fn remote_server(name: &str, usable_name: String, entry: &Value, facts: &ImportFacts<'_>) -> Result<NewServer, String> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str);
    let Some(url) = text("url").or_else(|| text("serverUrl")) else {
        return Err(format!("`{name}` has neither a command nor an address."));
    };
    if text("type") == Some("sse") {
        return Err(format!("`{name}` speaks a protocol of 2024 (`sse`), which isn't supported."));
    }
    // Codex names a variable, others write the header.
    let header = entry["headers"].get("Authorization").and_then(Value::as_str);
    let named = header.and_then(|header| header.strip_prefix("Bearer ${")?.strip_suffix('}'));
    let variable = text("bearer_token_env_var").or(named.map(|name| name.strip_prefix("env:").unwrap_or(name)));
    let bearer = match (variable, header) {
        (Some(variable), _) => Some(format!("env:{variable}")),
        (None, Some(_)) => Some(format!("env:{}_TOKEN", usable_name.to_uppercase().replace('-', "_"))),
        (None, None) => None,
    };
    Ok(NewServer { name: usable_name, url: Some(facts.expanded(name, url)?), bearer, ..NewServer::default() })
}
