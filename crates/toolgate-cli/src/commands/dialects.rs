//! `toolgate dialects`: the names under which clients know the tools.

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolgate_contract::Declaration;
use toolgate_dialects::{DIALECTS, Dialect, DialectSet, best_known};

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
///   toolgate serve --stdio --dialect claude,native
///   toolgate run "make the tests pass" --dialect auto
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
    let unavailable = dialect.unavailable.iter().map(|(name, reason)| json!({ "name": name, "reason": reason }));
    json!({
        "name": dialect.name,
        "about": dialect.about,
        "tools": tools.collect::<Vec<_>>(),
        "unavailable": unavailable.collect::<Vec<_>>(),
    })
}

/// How many of the tools that the dialect has can be had here. `--json` names the others, each with the reason.
fn coverage(dialect: &Dialect) -> String {
    let tools = dialect.tools.len();
    format!("{tools} of {}", tools + dialect.unavailable.len())
}

fn print_table() {
    let mut table = TextTable::new(&["DIALECT", "WHOSE", "COVERS", "TOOLS"]);
    for dialect in DIALECTS {
        let tools: Vec<&str> = dialect.tools.iter().map(|tool| tool.name).collect();
        table.row([
            (dialect.name.into(), BOLD),
            (dialect.about.into(), DIM),
            (coverage(dialect), anstyle::Style::new()),
            (tools.join(", "), anstyle::Style::new()),
        ]);
    }
    table.print();
}

/// Whose names an agent's model is given.
#[derive(Debug, Clone)]
pub(crate) enum DialectChoice {
    /// Those that the model knows best.
    Auto,
    /// These.
    Named(DialectSet),
}

impl std::str::FromStr for DialectChoice {
    type Err = toolgate_dialects::DialectSetError;

    fn from_str(names: &str) -> Result<Self, Self::Err> {
        match names.trim() {
            "auto" => Ok(Self::Auto),
            names => names.parse().map(Self::Named),
        }
    }
}

impl DialectChoice {
    /// The dialects for a model, named as `provider:name`.
    pub(crate) fn for_model(&self, model: &str) -> DialectSet {
        match self {
            Self::Auto => best_known(model),
            Self::Named(set) => set.clone(),
        }
    }
}

/// The dialects, if they can be spoken beside these native tools.
pub(crate) fn checked<'a>(set: DialectSet, native: impl Iterator<Item = &'a Declaration>) -> Result<DialectSet> {
    set.beside(native).map_err(|error| anyhow::anyhow!("{error}"))
}
