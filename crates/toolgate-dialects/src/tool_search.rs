//! Finding tools of MCP servers, where there are too many to list them all.

use serde_json::{Value, json};
use toolgate_contract::TOOLS_FIND;

use crate::dialect::{DialectTool, EnterFault, NativeCall, Returned, ServerNames, ShownResult};
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::{Integer, Text};
use crate::parameter::{Arguments, Parameter};

const ABOUT: &str = "Finds tools of MCP servers by what they do. What it found can be called by its name.";
const QUERY: Parameter = Parameter::required("query", Text, "What the tool should do, in a few words");
/// Most tools that are shown at once.
const MOST_TOOLS: i64 = 20;

pub(crate) const CLAUDE: DialectTool = DialectTool::new(
    "ToolSearch",
    TOOLS_FIND,
    ABOUT,
    &[QUERY, Parameter::optional("max_results", Integer(1, i64::MAX), "How many to show; 5 if left out")],
    enter,
    leave,
);
pub(crate) const CODEX: DialectTool = DialectTool::new(
    "tool_search",
    TOOLS_FIND,
    ABOUT,
    &[QUERY, Parameter::optional("limit", Integer(1, i64::MAX), "How many to show; 8 if left out")],
    |args, memory| {
        let mut call = enter(args, memory)?;
        call.args["limit"] = args.integer("limit").unwrap_or(8).min(MOST_TOOLS).into();
        Ok(call)
    },
    leave,
);

/// `select:A,B` names tools; otherwise the words say what they are for.
fn enter(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let query = args.word("query");
    let query = match query.strip_prefix("select:") {
        Some(names) => names.replace(ServerNames::MCP.prefix, "").replace([',', '_'], " "),
        None => query.to_owned(),
    };
    let limit = args.integer("max_results").unwrap_or(5).min(MOST_TOOLS);
    Ok(NativeCall::new(TOOLS_FIND, json!({ "query": query, "limit": limit })))
}

fn leave(returned: &mut Returned<'_>) -> ShownResult {
    let tool = |tool: &Value| {
        let name = format!("{}{}", ServerNames::MCP.prefix, tool["name"].as_str().unwrap_or_default());
        json!({ "name": name, "description": tool["description"], "parameters": tool["args"] }).to_string()
    };
    ShownResult::ok(match returned.list("tools") {
        [] => "No matching tools found".to_owned(),
        tools => tools.iter().map(tool).collect::<Vec<_>>().join("\n"),
    })
}
