//! `LSP`: what language servers know of code, as text.

use serde_json::Value;
use toolgate_contract::counted;

use crate::dialect::{DialectTool, Returned, ShownResult};
use crate::languages::{self, CHARACTER, FILE, LINE, OPERATION, QUERY, remarks, uses};

pub(super) const TOOL: DialectTool = DialectTool::new(
    "LSP",
    languages::NATIVE,
    "Asks a language server about the symbol at a place: where it is defined or used, what it is, who calls it.",
    &[OPERATION, FILE, LINE, CHARACTER, QUERY],
    languages::enter,
    leave,
);

fn leave(returned: &mut Returned<'_>) -> ShownResult {
    let mut lines = match returned.args.word("operation") {
        "findReferences" => references(returned),
        "hover" => hover(returned),
        "documentSymbol" => symbols(returned, "Document symbols:".to_owned(), "No symbols found in document."),
        "workspaceSymbol" => {
            let found = format!("Found {} in workspace:", counted(returned.list("symbols").len(), "symbol"));
            symbols(returned, found, "No symbols found in workspace.")
        }
        "incomingCalls" => calls(returned, "incoming", "caller"),
        "outgoingCalls" => calls(returned, "outgoing", "callee"),
        "goToImplementation" => places(returned, "Implemented in", "implementation"),
        "prepareCallHierarchy" => places(returned, "Call hierarchy item:", "call hierarchy item"),
        _ => places(returned, "Defined in", "definition"),
    };
    lines.extend(remarks(returned));
    ShownResult::ok(lines.join("\n"))
}

/// `path:line`, and what is there.
fn place(place: &Value) -> String {
    let text = place["text"].as_str().map(|text| format!("  {}", text.trim())).unwrap_or_default();
    format!("{}:{}{text}", place["path"].as_str().unwrap_or_default(), place["line"])
}

fn places(returned: &Returned<'_>, one: &str, what: &str) -> Vec<String> {
    match returned.list("places") {
        [] => vec![format!("No {what} found.")],
        [only] => vec![format!("{one} {}", place(only))],
        several => {
            let first = format!("Found {}:", counted(several.len(), what));
            std::iter::once(first).chain(several.iter().map(|found| format!("  {}", place(found)))).collect()
        }
    }
}

fn references(returned: &Returned<'_>) -> Vec<String> {
    let files = uses(returned);
    if files.is_empty() {
        return vec!["No references found.".to_owned()];
    }
    let total = usize::try_from(returned.number("total")).unwrap_or(0);
    let mut lines = vec![format!("Found {} across {}:", counted(total, "reference"), counted(files.len(), "file"))];
    for (path, uses) in files {
        lines.push(format!("\n{path}:"));
        lines.extend(uses.iter().map(|(number, text)| format!("  Line {number}: {}", text.trim())));
    }
    lines
}

fn hover(returned: &Returned<'_>) -> Vec<String> {
    let (line, character) = (returned.args.integer("line"), returned.args.integer("character"));
    match returned.text("contents") {
        "" => vec!["No hover information available.".to_owned()],
        contents => vec![format!("Hover info at {}:{}:\n\n{contents}", line.unwrap_or(1), character.unwrap_or(1))],
    }
}

fn symbols(returned: &Returned<'_>, found: String, nothing: &str) -> Vec<String> {
    let symbol = |symbol: &Value| {
        let path = symbol["path"].as_str().map(|path| format!("{path}: ")).unwrap_or_default();
        let (name, kind) = (symbol["name"].as_str().unwrap_or_default(), symbol["kind"].as_str().unwrap_or_default());
        format!("{path}{name} ({kind}) - Line {}", symbol["line"])
    };
    match returned.list("symbols") {
        [] => vec![nothing.to_owned()],
        symbols => std::iter::once(found).chain(symbols.iter().map(symbol)).collect(),
    }
}

fn calls(returned: &Returned<'_>, direction: &str, who: &str) -> Vec<String> {
    let call = |call: &Value| format!("  {} - {}", call[who].as_str().unwrap_or_default(), place(call));
    match returned.list("calls") {
        [] => vec![format!("No {direction} calls found.")],
        calls => {
            let found = format!("Found {}:", counted(calls.len(), &format!("{direction} call")));
            std::iter::once(found).chain(calls.iter().map(call)).collect()
        }
    }
}
