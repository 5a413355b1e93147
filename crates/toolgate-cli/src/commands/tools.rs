//! `toolgate tools`: lists the tools that a model can call.

mod examples;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use toolgate_contract::{ArgumentFormat, Declaration, Risk};
use toolgate_dialects::{DefinitionFormat, DialectSet, definition};

use self::examples::example;
use super::Invocation;
use super::dialects::checked;
use crate::exit::Exit;
use crate::output::{outln, write_list};
use crate::terminal::{BOLD, DIM, GREEN, RED, TextTable, YELLOW, paint, wrapped};
use crate::workspace::open_workspace;
use toolgate_runtime::quoted;

/// Show the tools that policy offers.
///
/// Examples:
///   toolgate tools
///   toolgate tools read
///   toolgate tools --format anthropic
///   toolgate tools --dialect claude --format anthropic
///   toolgate tools --dialect codex,native --format openai-responses
///   toolgate tools --format openai --strict
///   toolgate --json tools --all
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ToolsArgs {
    /// Show one tool: what it does, its arguments, and an example.
    #[arg(value_name = "NAME", conflicts_with = "all")]
    name: Option<String>,
    /// Also show tools that policy doesn't offer.
    #[arg(long)]
    all: bool,
    /// Print definitions in the format of a model or client.
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatFlag>,
    /// With --format: let the provider hold its model to the schema, wherever a schema can be strict.
    #[arg(long, requires = "format")]
    strict: bool,
    /// Show the tools of dialects, `native` for the native ones; `toolgate dialects` lists them.
    #[arg(long, value_name = "NAMES")]
    dialect: Option<DialectSet>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatFlag {
    Openai,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Mcp,
}

impl ToolsArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let workspace = open_workspace(&invocation.location)?;
        let tools: Vec<&Declaration> =
            if self.all { workspace.gate.declarations().collect() } else { workspace.gate.offered(&[]).collect() };
        let words = self.dialect.as_ref().filter(|set| !set.is_native()).map(ToString::to_string);
        let dialects = self.dialect.map(|set| checked(set, workspace.gate.declarations())).transpose()?;
        let mapped = dialects.map(|dialects| dialects.declarations(tools.iter().copied()));
        let tools = match (&self.name, &mapped) {
            (Some(name), Some(mapped)) => vec![named(name, mapped.iter())?],
            (Some(name), None) => vec![named(name, workspace.gate.declarations())?],
            (None, Some(mapped)) => mapped.iter().collect(),
            (None, None) => tools,
        };
        match self.format {
            Some(format) => {
                let defined = |tool: &&Declaration| definition(&with_strictness(tool, self.strict), format.into());
                let definitions: Vec<Value> = tools.iter().map(defined).collect();
                match invocation.json {
                    true => outln!("{}", json!(definitions)),
                    false => outln!("{}", serde_json::to_string_pretty(&definitions)?),
                }
            }
            None if invocation.json => write_list(&tools)?,
            None if self.name.is_some() => tools.iter().for_each(|tool| print_tool(tool, words.as_deref())),
            None => print_table(&tools),
        }
        Ok(Exit::Ok)
    }
}

impl From<FormatFlag> for DefinitionFormat {
    fn from(format: FormatFlag) -> Self {
        match format {
            FormatFlag::Openai => Self::OpenAi,
            FormatFlag::OpenaiResponses => Self::OpenAiResponses,
            FormatFlag::Gemini => Self::Gemini,
            FormatFlag::Anthropic => Self::Anthropic,
            FormatFlag::Mcp => Self::Mcp,
        }
    }
}

/// The tool, declared as strict if that is wished. A tool that takes free text has a grammar instead.
fn with_strictness(tool: &Declaration, strict: bool) -> Declaration {
    let mut tool = tool.clone();
    if let ArgumentFormat::Function { strict: declared } = &mut tool.form {
        *declared |= strict;
    }
    tool
}

fn named<'a>(name: &str, mut known: impl Iterator<Item = &'a Declaration>) -> Result<&'a Declaration> {
    let found = known.find(|tool| tool.name == name);
    found.with_context(|| format!("there is no tool `{name}`; `toolgate tools --all` lists them"))
}

/// The arguments that a call needs: the required ones, or `path`, where it is one way of several to say which file.
pub(super) fn needed_arguments(tool: &Declaration) -> Vec<&str> {
    let required = tool.args_schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let path = tool.args_schema.get("properties").and_then(|arguments| arguments.get("path"));
    match path.is_some_and(|path| path.get("default").is_none_or(Value::is_null)) && required.is_empty() {
        true => vec!["path"],
        false => required,
    }
}

/// One tool: what it does, its arguments, and a call of it; for those of a dialect and of other programs one with the needed
/// arguments.
fn print_tool(tool: &Declaration, dialect: Option<&str>) {
    outln!("{} {}", paint(BOLD, &tool.name), paint(DIM, &tool.version));
    outln!("{}\n", wrapped(&tool.description, 0));
    let (needed, required) = (needed_arguments(tool), tool.args_schema.get("required").and_then(Value::as_array));
    let arguments = tool.args_schema.get("properties").and_then(Value::as_object);
    let mut table = TextTable::new(&["ARGUMENT", "TYPE", "", "WHAT IT IS"]);
    let mut least = serde_json::Map::new();
    for (name, schema) in arguments.into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
        if needed.contains(&name.as_str()) {
            least.insert(name.clone(), example_of(schema));
        }
        let text = |field: &str| schema.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        table.row([
            (name.clone(), BOLD),
            (type_of(schema), DIM),
            (if is_required { "required".into() } else { String::new() }, YELLOW),
            (text("description"), anstyle::Style::new()),
        ]);
    }
    table.print();
    let own = example(&tool.name).filter(|_| dialect.is_none());
    let args = own.map_or_else(|| Value::from(least).to_string(), str::to_owned);
    let dialect = dialect.map(|names| format!("--dialect {names} ")).unwrap_or_default();
    outln!("\nExample: toolgate call {dialect}{} {}", tool.name, quoted(&args));
}

/// The type of an argument, or its values; `null`, which stands for leaving it out, isn't named.
fn type_of(schema: &Value) -> String {
    let values = values_of(schema);
    if !values.is_empty() {
        return values.join(", ");
    }
    match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect::<Vec<_>>().join(" or ")
        }
        _ => "one of several".into(),
    }
}

/// The texts that an argument may be, if those are known.
fn values_of(schema: &Value) -> Vec<&str> {
    let list = |field: &str| schema.get(field).and_then(Value::as_array).into_iter().flatten();
    let alternatives = ["oneOf", "anyOf"].into_iter().flat_map(list).flat_map(values_of);
    list("enum").chain(schema.get("const")).filter_map(Value::as_str).chain(alternatives).collect()
}

fn example_of(schema: &Value) -> Value {
    if let Some(value) = values_of(schema).first() {
        return json!(value);
    }
    match type_of(schema).as_str() {
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("…"),
    }
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
            (tool.name.clone(), BOLD),
            (tool.version.to_string(), DIM),
            (risk.into(), style),
            (permissions.join(", "), DIM),
            (first.trim_end_matches('.').into(), anstyle::Style::new()),
        ]);
    }
    table.print();
}
