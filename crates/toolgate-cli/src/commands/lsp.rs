//! `toolgate lsp`: language servers of this workspace.

mod running;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_workspace::language_servers;

use self::running::{ServerProcesses, servers_with_homes_in};
use super::Invocation;
use super::caches::in_words;
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, TextTable, plain};

/// Show which language servers there are, start them anew, and read their logs.
///
/// Language servers answer the tools `lsp_*` and `lints`. They are started when they are first asked, confined to reading
/// the workspace, and stopped when nobody asks for ten minutes.
///
/// Examples:
///   toolgate lsp status
///   toolgate lsp restart rust-analyzer
///   toolgate lsp logs ty
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct LspArgs {
    #[command(subcommand)]
    verb: LspVerb,
}

#[derive(Debug, Subcommand)]
enum LspVerb {
    /// List the servers that are known: whether each is installed and runs for this workspace, and how to install it.
    Status,
    /// Make running servers of this workspace start anew with their next question.
    Restart {
        /// The server; all of them if left out.
        server: Option<String>,
    },
    /// Print what a server last said about itself.
    Logs {
        /// The server.
        server: String,
    },
}

impl LspArgs {
    #[allow(clippy::disallowed_methods, reason = "reads and writes the user's own state, not a workspace")]
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let location = &invocation.location;
        let settings = location.load()?.settings;
        let environment = std::env::vars_os().collect();
        let known = language_servers(location, &settings, &environment)?.installed();
        match self.verb {
            LspVerb::Status => {
                // Each server has its home where its log is.
                let homes = location.language_server_log("any")?;
                let running = servers_with_homes_in(homes.parent().context("the log has a directory")?);
                status(&known, &running, invocation.json);
                Ok(Exit::Ok)
            }
            LspVerb::Restart { server } => {
                let names: Vec<&str> = known.iter().map(|one| one.name.as_str()).collect();
                let wanted: Vec<&str> = match &server {
                    Some(server) if !names.contains(&server.as_str()) => {
                        errln!("There is no language server `{}`. Known are: {}.", plain(server), names.join(", "));
                        return Ok(Exit::Usage);
                    }
                    Some(server) => vec![server.as_str()],
                    None => names,
                };
                for name in &wanted {
                    let file = location.language_server_restart(name)?;
                    std::fs::create_dir_all(file.parent().context("the file has a directory")?)?;
                    std::fs::write(&file, b"")?;
                }
                match invocation.json {
                    true => outln!("{}", json!({ "restarting": wanted })),
                    false => outln!("They start anew with their next question: {}.", wanted.join(", ")),
                }
                Ok(Exit::Ok)
            }
            LspVerb::Logs { server } => {
                let file = location.language_server_log(&server)?;
                let text = std::fs::read(&file).unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                match invocation.json {
                    true => outln!("{}", json!({ "server": server, "log": text })),
                    false if text.is_empty() => errln!("`{}` has said nothing here.", plain(&server)),
                    false => text.lines().for_each(|line| outln!("{}", plain(line))),
                }
                Ok(Exit::Ok)
            }
        }
    }
}

fn status(known: &[toolgate_lsp::InstalledServer], running: &BTreeMap<String, ServerProcesses>, as_json: bool) {
    if as_json {
        for one in known {
            let program = one.program.as_ref().map(|program| program.display().to_string());
            let running = running.get(&one.name);
            let running = running.map(|found| json!({ "pids": found.pids, "memory_bytes": found.memory_bytes }));
            outln!(
                "{}",
                json!({
                    "server": one.name, "languages": one.languages, "program": program, "install": one.install, "running": running,
                })
            );
        }
        return;
    }
    let mut table = TextTable::new(&["SERVER", "LANGUAGES", "RUNS WITH", "PROGRAM"]);
    for one in known {
        let program = match &one.program {
            Some(program) => plain(&program.display().to_string()),
            None => format!("missing: {}", one.install),
        };
        let style = if one.program.is_some() { BOLD } else { DIM };
        let memory = running.get(&one.name).map(|found| in_words(found.memory_bytes)).unwrap_or_default();
        table.row([(one.name.clone(), style), (one.languages.join(", "), DIM), (memory, style), (program, style)]);
    }
    table.print();
}
