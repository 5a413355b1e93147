//! What MCP servers have to read beside their tools, as clients list and read it. An address is never taken from a model: where clients
//! show one, the model gets a link that leads to it, and gives that back.

use serde_json::{Value, json};
use toolgate_contract::{MCP_READ, MCP_RESOURCES, Reply, ToolError};

use crate::dialect::{Answered, DialectTool, EnterFault, EnterTool, LeaveTool, NativeCall, Returned, ShownResult};
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::Text;
use crate::parameter::{Arguments, Parameter};

const SERVER: Parameter = Parameter::optional("server", Text, "The server; all of them if left out");
const CURSOR: Parameter = Parameter::optional("cursor", Text, "The nextCursor of an earlier page");
const OF_SERVER: Parameter = Parameter::required("server", Text, "The server");
const URI: Parameter = Parameter::required("uri", Text, "The resource, as it was listed");

const LIST_ABOUT: &str = "Lists what an MCP server has to read.";
const READ_ABOUT: &str = "Reads a resource of an MCP server.";

const fn lists(name: &'static str, parameters: &'static [Parameter], leave: LeaveTool) -> DialectTool {
    DialectTool::new(name, MCP_RESOURCES, LIST_ABOUT, parameters, enter_list, leave)
}

const fn reads(
    name: &'static str,
    parameters: &'static [Parameter],
    enter: EnterTool,
    leave: LeaveTool,
) -> DialectTool {
    DialectTool::new(name, MCP_READ, READ_ABOUT, parameters, enter, leave)
}

pub(crate) const CLAUDE_LIST: DialectTool = lists("ListMcpResourcesTool", &[SERVER], leave_array);
pub(crate) const CLAUDE_READ: DialectTool =
    reads("ReadMcpResourceTool", &[OF_SERVER, URI], enter_read, |returned| shown_contents(returned, json!({})));
/// As Codex lists them, and opencode after it.
pub(crate) const CODEX_LIST: DialectTool = lists("list_mcp_resources", &[SERVER, CURSOR], leave_page);
pub(crate) const CODEX_READ: DialectTool = reads("read_mcp_resource", &[OF_SERVER, URI], enter_read, leave_contents);
pub(crate) const GEMINI_LIST: DialectTool =
    lists("list_mcp_resources", &[Parameter::optional("serverName", SERVER.kind, SERVER.about)], leave_lines);
pub(crate) const GEMINI_READ: DialectTool = reads("read_mcp_resource", &[URI], enter_read_listed, leave_text);

fn enter_list(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    match named_server(args) {
        Some(server) => Ok(NativeCall::new(MCP_RESOURCES, json!({ "server": server, "cursor": args.text("cursor") }))),
        None if args.text("cursor").is_some() => {
            Err(ToolError::invalid_args("Name the server whose next page this is.").into())
        }
        // Without a name, the native tool names the servers.
        None => Ok(NativeCall { then: Some(list_next), ..NativeCall::new(MCP_RESOURCES, json!({})) }),
    }
}

fn named_server(args: &Arguments) -> Option<&str> {
    args.text("server").or_else(|| args.text("serverName")).filter(|server| !server.is_empty())
}

/// Lists the resources of one server after the other. One that has none, or can't be asked, keeps nobody from the others.
fn list_next(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    let names = answered.earlier.first().unwrap_or(answered.reply).payload.as_ref();
    let names = names.and_then(|payload| payload["servers"].as_array());
    let next = names.and_then(|names| names.get(answered.earlier.len()));
    Ok(next.map(|server| {
        let call = NativeCall::new(MCP_RESOURCES, json!({ "server": server }));
        NativeCall { then: Some(list_next), is_part: true, ..call }
    }))
}

fn enter_read(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new(MCP_READ, json!({ "server": args.word("server"), "link": args.word("uri") })))
}

/// A client that names no server has it in the address: `SERVER:LINK`.
fn enter_read_listed(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    match args.word("uri").split_once(':') {
        Some((server, link)) => Ok(NativeCall::new(MCP_READ, json!({ "server": server, "link": link }))),
        None => Err(ToolError::invalid_args("Only a `uri` that `list_mcp_resources` has listed can be read.").into()),
    }
}

/// The resources of all pages, each with its server.
fn listed(returned: &Returned<'_>) -> Vec<Value> {
    let pages = returned.earlier.iter().chain([returned.reply]).filter_map(|reply| reply.payload.as_ref());
    pages.flat_map(listed_on).collect()
}

fn listed_on(page: &Value) -> Vec<Value> {
    let resource = |resource: &Value| {
        let mut shown = json!({ "server": page["server"], "uri": resource["link"], "name": resource["name"] });
        if let Some(description) = resource.get("description") {
            shown["description"] = description.clone();
        }
        shown
    };
    page["resources"].as_array().into_iter().flatten().map(resource).collect()
}

/// What is to be known of servers that couldn't be listed whole: why not, or how to go on.
fn unlisted(returned: &Returned<'_>) -> Vec<String> {
    if named_server(returned.args).is_some() {
        return Vec::new();
    }
    let names = returned.earlier.first().and_then(|reply| reply.payload.as_ref()).map(|payload| &payload["servers"]);
    let names = names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let replies = returned.earlier.iter().skip(1).chain([returned.reply]);
    let remark = |(server, reply): (&str, &Reply)| {
        let next = reply.payload.as_ref().and_then(|page| page["next"].as_str());
        let more = next.map(|_| format!("(`{server}` has more: name it to see all.)"));
        reply.error.as_ref().map(|error| format!("(`{server}` has nothing listed: {})", error.message)).or(more)
    };
    names.zip(replies).filter_map(remark).collect()
}

fn with_unlisted(returned: &Returned<'_>, shown: String) -> ShownResult {
    ShownResult::ok(std::iter::once(shown).chain(unlisted(returned)).collect::<Vec<_>>().join("\n"))
}

fn leave_array(returned: &mut Returned<'_>) -> ShownResult {
    with_unlisted(returned, Value::Array(listed(returned)).to_string())
}

fn leave_page(returned: &mut Returned<'_>) -> ShownResult {
    let mut page = json!({});
    if let Some(server) = named_server(returned.args) {
        page["server"] = server.into();
    }
    page["resources"] = listed(returned).into();
    if let Some(next) = returned.field("next").as_str().filter(|_| named_server(returned.args).is_some()) {
        page["nextCursor"] = next.into();
    }
    with_unlisted(returned, page.to_string())
}

fn leave_lines(returned: &mut Returned<'_>) -> ShownResult {
    let word = |resource: &Value, name: &str| resource[name].as_str().unwrap_or_default().to_owned();
    let line = |resource: &Value| {
        let (server, uri, name) = (word(resource, "server"), word(resource, "uri"), word(resource, "name"));
        let description = resource["description"].as_str().map(|text| format!(" | {text}")).unwrap_or_default();
        format!("\n- {server}:{uri} | {name}{description}")
    };
    let shown = match listed(returned).as_slice() {
        [] => "No MCP resources found.".to_owned(),
        resources => format!("Available MCP Resources:{}", resources.iter().map(line).collect::<String>()),
    };
    with_unlisted(returned, shown)
}

fn leave_contents(returned: &mut Returned<'_>) -> ShownResult {
    let about = json!({ "server": returned.args.word("server"), "uri": returned.args.word("uri") });
    shown_contents(returned, about)
}

fn shown_contents(returned: &Returned<'_>, mut about: Value) -> ShownResult {
    about["contents"] = json!([{ "uri": returned.args.word("uri"), "text": content(returned) }]);
    ShownResult::ok(about.to_string())
}

fn leave_text(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(content(returned))
}

/// The text, between the marks of its origin, and what is to be known of it.
fn content(returned: &Returned<'_>) -> String {
    let notes = returned.list("notes").iter().filter_map(Value::as_str);
    let parts = Some(returned.text("content")).filter(|text| !text.is_empty()).into_iter().chain(notes);
    parts.collect::<Vec<_>>().join("\n")
}
