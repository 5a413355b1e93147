//! `toolgate tools`: lists the tools that a model can call.

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::Value;
use toolgate_contract::{Declaration, Risk};
use toolgate_dialects::definition;

use super::Invocation;
use crate::exit::Exit;
use crate::terminal::{DIM, GREEN, RED, TextTable, YELLOW};
use crate::workspace::open_workspace;

/// Show the tools that policy offers.
///
/// Examples:
///   toolgate tools
///   toolgate tools --format anthropic
///   toolgate --json tools --all
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ToolsArgs {
    /// Also show tools that policy doesn't offer.
    #[arg(long)]
    all: bool,
    /// Print definitions in the format of a model or client.
    #[arg(long, value_name = "FORMAT")]
    format: Option<DefinitionFormat>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DefinitionFormat {
    Openai,
    Anthropic,
    Mcp,
}

impl ToolsArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let workspace = open_workspace(&invocation.location)?;
        let tools: Vec<&Declaration> =
            if self.all { workspace.gate.declarations().collect() } else { workspace.gate.offered(&[]).collect() };
        match self.format {
            Some(format) => print_json(&tools.iter().map(|tool| definition(tool, format.into())).collect::<Vec<_>>())?,
            None if invocation.json => print_json(&serde_json::to_value(&tools)?)?,
            None => print_table(&tools),
        }
        Ok(Exit::Ok)
    }
}

impl From<DefinitionFormat> for toolgate_dialects::Dialect {
    fn from(format: DefinitionFormat) -> Self {
        match format {
            DefinitionFormat::Openai => Self::OpenAi,
            DefinitionFormat::Anthropic => Self::Anthropic,
            DefinitionFormat::Mcp => Self::Mcp,
        }
    }
}

fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let value: Value = serde_json::to_value(value)?;
    anstream::println!("{}", serde_json::to_string_pretty(&value)?);
    Ok(())
}

fn print_table(tools: &[&Declaration]) {
    let mut table = TextTable::new(&["TOOL", "VERSION", "RISK", "PERMISSIONS", "WHAT IT DOES"]);
    for tool in tools {
        let (risk, style) = match tool.risk {
            Risk::Low => ("low", GREEN),
            Risk::Medium => ("medium", YELLOW),
            Risk::High => ("high", RED),
        };
        let permissions: Vec<&str> = tool.required_permissions.iter().map(|permission| permission.as_str()).collect();
        let first = tool.description.split_once(". ").map_or(tool.description.as_str(), |(first, _)| first);
        table.row([
            (tool.name.clone(), crate::terminal::BOLD),
            (tool.version.to_string(), DIM),
            (risk.into(), style),
            (permissions.join(", "), DIM),
            (first.trim_end_matches('.').into(), anstyle::Style::new()),
        ]);
    }
    table.print();
}
