//! `lsp`: what language servers know of code, as JSON in the protocol's own form.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_contract::file_uri;

use crate::dialect::{DialectTool, Returned, ShownResult};
use crate::languages::{self, CHARACTER, FILE, LINE, OPERATION, QUERY, remarks, uses};
use crate::memory::DialectMemory;

pub(super) const TOOL: DialectTool = DialectTool::new(
    "lsp",
    languages::NATIVE,
    "Asks a language server about the symbol at a place: where it is defined or used, what it is, who calls it.",
    &[OPERATION, FILE, LINE, CHARACTER, QUERY],
    languages::enter,
    leave,
);

fn leave(returned: &mut Returned<'_>) -> ShownResult {
    let operation = returned.args.word("operation");
    let found = found(returned, operation);
    let mut lines = vec![match found.is_empty() {
        true => format!("No results found for {operation}"),
        false => format!("{:#}", Value::Array(found)),
    }];
    lines.extend(remarks(returned));
    ShownResult::ok(lines.join("\n"))
}

fn found(returned: &Returned<'_>, operation: &str) -> Vec<Value> {
    let memory = &*returned.memory;
    let list = |name: &str, form: &dyn Fn(&Value) -> Value| returned.list(name).iter().map(form).collect();
    match operation {
        "findReferences" => {
            let in_file = |(path, uses): (&str, Vec<(u64, &str)>)| {
                let form = |(line, text): &(u64, &str)| location(memory, path, *line, None, Some(text));
                uses.iter().map(form).collect::<Vec<_>>()
            };
            uses(returned).into_iter().flat_map(in_file).collect()
        }
        "hover" => match returned.text("contents") {
            "" => Vec::new(),
            contents => vec![json!({ "contents": contents })],
        },
        "documentSymbol" | "workspaceSymbol" => list("symbols", &|symbol| {
            let path = symbol["path"].as_str().unwrap_or_else(|| returned.args.word("filePath"));
            let (line, end) = (symbol["line"].as_u64().unwrap_or(1), symbol["end_line"].as_u64());
            let location = location(memory, &memory.native(path), line, end, None);
            json!({ "name": symbol["name"], "kind": symbol["kind"], "location": location })
        }),
        "incomingCalls" => list("calls", &|call| json!({ "from": named(memory, call, "caller") })),
        "outgoingCalls" => list("calls", &|call| json!({ "to": named(memory, call, "callee") })),
        _ => list("places", &|place| placed(memory, place)),
    }
}

fn placed(memory: &DialectMemory, place: &Value) -> Value {
    let path = place["path"].as_str().unwrap_or_default();
    let mut placed = location(memory, path, place["line"].as_u64().unwrap_or(1), None, place["text"].as_str());
    if let Some(column) = place["column"].as_u64() {
        for edge in ["start", "end"] {
            placed["range"][edge]["character"] = column.saturating_sub(1).into();
        }
    }
    placed
}

/// The other function of a call, and where the call is.
fn named(memory: &DialectMemory, call: &Value, who: &str) -> Value {
    let mut named = placed(memory, call);
    named["name"] = call[who].clone();
    named
}

/// A place as the protocol has it, with lines from 0. Where its characters in a line aren't known, its text says more.
fn location(memory: &DialectMemory, path: &str, line: u64, end: Option<u64>, text: Option<&str>) -> Value {
    let at = |line: u64| json!({ "line": line.saturating_sub(1), "character": 0 });
    let mut location = json!({
        "uri": file_uri(Path::new(&memory.absolute(path))),
        "range": { "start": at(line), "end": at(end.unwrap_or(line)) },
    });
    if let Some(text) = text {
        location["text"] = text.trim().into();
    }
    location
}
