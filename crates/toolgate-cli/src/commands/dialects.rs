//! `toolgate dialects`: the names under which clients know the tools.

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolgate_dialects::{DIALECTS, Dialect, dialect};

use super::Invocation;
use crate::exit::Exit;
use crate::output::outln;
use crate::terminal::{BOLD, DIM, TextTable};

/// Show the dialects: the same tools under the names, arguments and results that a client's model already knows.
///
/// Examples:
///   toolgate dialects
///   toolgate tools --dialect claude --format anthropic
///   toolgate call --dialect claude Read '{"file_path":"/path/to/README.md"}'
///   toolgate serve --stdio --dialect codex
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DialectsArgs {}

impl DialectsArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        match invocation.json {
            true => DIALECTS.iter().for_each(|dialect| outln!("{}", described(dialect))),
            false => print_table(),
        }
        Ok(Exit::Ok)
    }
}

fn described(dialect: &Dialect) -> Value {
    let tools =
        dialect.tools.iter().map(|tool| json!({ "name": tool.name, "aliases": tool.aliases, "native": tool.native }));
    json!({ "name": dialect.name, "about": dialect.about, "tools": tools.collect::<Vec<_>>() })
}

fn print_table() {
    let mut table = TextTable::new(&["DIALECT", "WHOSE", "TOOLS"]);
    for dialect in DIALECTS {
        let tools: Vec<&str> = dialect.tools.iter().map(|tool| tool.name).collect();
        table.row([
            (dialect.name.into(), BOLD),
            (dialect.about.into(), DIM),
            (tools.join(", "), anstyle::Style::new()),
        ]);
    }
    table.print();
}

/// The dialect of this name, for a flag.
pub(crate) fn find_dialect(name: &str) -> Result<&'static Dialect, String> {
    let known: Vec<&str> = DIALECTS.iter().map(|dialect| dialect.name).collect();
    dialect(name).ok_or_else(|| format!("there is no dialect `{name}`; there are {}", known.join(", ")))
}
