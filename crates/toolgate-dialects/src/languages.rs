//! One tool for all questions to language servers, as two clients have it: an operation, and a place in a file that counts from 1.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use crate::dialect::{EnterFault, NativeCall, Returned};
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::{Choice, Integer, Text};
use crate::parameter::{Arguments, Parameter};

const FROM_1: crate::parameter::ParameterKind = Integer(1, u32::MAX as i64);

pub(crate) const OPERATION: Parameter = Parameter::required(
    "operation",
    Choice(&[
        "goToDefinition",
        "findReferences",
        "hover",
        "documentSymbol",
        "workspaceSymbol",
        "goToImplementation",
        "prepareCallHierarchy",
        "incomingCalls",
        "outgoingCalls",
    ]),
    "What to find out",
);
pub(crate) const FILE: Parameter = Parameter::required("filePath", Text, "The file");
pub(crate) const LINE: Parameter = Parameter::required("line", FROM_1, "The line, from 1");
pub(crate) const CHARACTER: Parameter = Parameter::required("character", FROM_1, "The character in the line, from 1");
pub(crate) const QUERY: Parameter = Parameter::optional("query", Text, "For workspaceSymbol: a part of the name");

/// The native tool that answers most operations.
pub(crate) const NATIVE: &str = "lsp_definition";

pub(crate) fn enter(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let path = memory.native(args.word("filePath"));
    let symbol = json!({ "path": path, "line": args.integer("line"), "column": args.integer("character") });
    let with = |name: &str, value: &str| {
        let mut symbol = symbol.clone();
        symbol[name] = value.into();
        symbol
    };
    Ok(match args.word("operation") {
        "findReferences" => NativeCall::new("lsp_references", symbol),
        "hover" => NativeCall::new("lsp_hover", symbol),
        "documentSymbol" => NativeCall::new("lsp_symbols", json!({ "path": path })),
        "workspaceSymbol" => NativeCall::new("lsp_symbols", json!({ "query": query(args)? })),
        "goToImplementation" => NativeCall::new(NATIVE, with("kind", "implementation")),
        "incomingCalls" => NativeCall::new("lsp_calls", with("direction", "incoming")),
        "outgoingCalls" => NativeCall::new("lsp_calls", with("direction", "outgoing")),
        // The function of a call hierarchy is where it is defined.
        _ => NativeCall::new(NATIVE, symbol),
    })
}

/// What to look for among all symbols. All of them would be too many to be of use.
fn query(args: &Arguments) -> Result<&str, EnterFault> {
    let query = args.word("query").trim();
    match query.is_empty() {
        false => Ok(query),
        true => Err(ToolError::invalid_args("`workspaceSymbol` needs a `query`: a part of the symbol's name.").into()),
    }
}

/// What is to be known of an answer beside itself: that the server doesn't know everything yet, and its remarks.
pub(crate) fn remarks(returned: &Returned<'_>) -> Vec<String> {
    let status = returned.text("server_status");
    let incomplete = (!matches!(status, "" | "ready")).then(|| {
        let server = returned.text("server");
        format!("(The language server {server} is {status}: there may be more.)")
    });
    let notes = returned.list("notes").iter().filter_map(Value::as_str).map(|note| format!("({note})"));
    incomplete.into_iter().chain(notes).collect()
}

/// The uses of a symbol: each file with the numbers and texts of its lines.
pub(crate) fn uses<'a>(returned: &'a Returned<'_>) -> Vec<(&'a str, Vec<(u64, &'a str)>)> {
    let line = |text: &'a Value| {
        let (number, text) = text.as_str()?.split_once(": ")?;
        Some((number.parse().ok()?, text))
    };
    let file = |file: &'a Value| {
        let uses = file["uses"].as_array().into_iter().flatten().filter_map(line).collect();
        (file["path"].as_str().unwrap_or_default(), uses)
    };
    returned.list("files").iter().map(file).collect()
}
