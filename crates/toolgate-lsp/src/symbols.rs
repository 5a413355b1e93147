//! The symbols of a document: flat, each with the names of what it is in.

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_contract::CodeSymbol;

use crate::connection::Connection;
use crate::documents::Fault;
use crate::protocol::{Position, Range, symbol_kind};

/// Symbols that lie in one another that deep are enough for any program.
const DEEPEST: usize = 32;

/// One symbol of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentSymbol {
    /// Its name, with what it is in: `Server.start`.
    pub(crate) path: String,
    pub(crate) kind: u64,
    /// Whether it is a block such as `impl Server`.
    pub(crate) is_implementation: bool,
    /// All of it.
    pub(crate) range: Range,
    /// Its name.
    pub(crate) name: Range,
}

impl DocumentSymbol {
    /// Whether it has this name, or this end of its path: `start`, `Server.start`, `Server::start`. A block that only implements
    /// something has no name of its own.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        if self.is_implementation {
            return false;
        }
        let (path, name) = (normal(&self.path), normal(name));
        path == name || path.strip_suffix(&name).is_some_and(|before| before.ends_with('.'))
    }

    pub(crate) fn in_words(&self) -> CodeSymbol {
        CodeSymbol {
            name: self.path.clone(),
            kind: symbol_kind(self.kind).to_owned(),
            path: None,
            line: self.name.start.line + 1,
            end_line: (self.range.end.line > self.range.start.line).then_some(self.range.end.line + 1),
        }
    }

    /// Whether others lie in it: a variable or a field is no place to be in.
    fn encloses(&self) -> bool {
        !matches!(self.kind, 7 | 8 | 13 | 14 | 15..=18 | 20 | 21)
    }
}

/// A name without what languages put around it: `Server::start()` and `impl Server` are as `Server.start`.
fn normal(name: &str) -> String {
    let plain = name.split('(').next().unwrap_or(name).replace("::", ".").replace('#', ".");
    plain.split('.').map(|part| part.rsplit(' ').next().unwrap_or(part)).collect::<Vec<_>>().join(".")
}

impl Connection {
    /// The symbols of an open document, in its order; none if the server can't tell.
    pub(crate) async fn document_symbols(&self, uri: &str, until: Instant) -> Result<Vec<DocumentSymbol>, Fault> {
        if !self.offers("documentSymbolProvider", "textDocument/documentSymbol") {
            return Ok(Vec::new());
        }
        let params = json!({ "textDocument": { "uri": uri } });
        let answer = self.peer.request("textDocument/documentSymbol", params, until).await?;
        let mut symbols = Vec::new();
        for symbol in answer.as_array().into_iter().flatten() {
            flatten(symbol, "", 0, &mut symbols);
        }
        symbols.sort_by_key(|symbol| (symbol.range.start, std::cmp::Reverse(symbol.range.end)));
        Ok(symbols)
    }
}

fn flatten(symbol: &Value, within: &str, depth: usize, into: &mut Vec<DocumentSymbol>) {
    let Some(name) = symbol["name"].as_str() else { return };
    let container = symbol["containerName"].as_str().filter(|container| within.is_empty() && !container.is_empty());
    let path = match (within, container) {
        ("", None) => name.to_owned(),
        ("", Some(container)) => format!("{container}.{name}"),
        (within, _) => format!("{within}.{name}"),
    };
    let range = Range::of(&symbol["range"]).or_else(|| Range::of(&symbol["location"]["range"]));
    let Some(range) = range else { return };
    let own = Range::of(&symbol["selectionRange"]).unwrap_or(range);
    into.push(DocumentSymbol {
        path: path.clone(),
        kind: symbol["kind"].as_u64().unwrap_or_default(),
        is_implementation: name.starts_with("impl ") || name.starts_with("impl<"),
        range,
        name: own,
    });
    if depth < DEEPEST {
        for child in symbol["children"].as_array().into_iter().flatten() {
            flatten(child, &path, depth + 1, into);
        }
    }
}

/// The innermost symbol that a position is in, other than the name at the position itself.
pub(crate) fn enclosing(symbols: &[DocumentSymbol], position: Position) -> Option<&DocumentSymbol> {
    let holds = |symbol: &&DocumentSymbol| symbol.range.start <= position && position <= symbol.range.end;
    symbols.iter().filter(|symbol| symbol.encloses()).filter(holds).max_by_key(|symbol| symbol.range.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u32, end: u32) -> Value {
        json!({ "start": { "line": start, "character": 0 }, "end": { "line": end, "character": 9 } })
    }

    #[test]
    fn symbols_know_what_they_are_in() {
        let tree = json!({ "name": "Server", "kind": 5, "range": range(0, 9), "selectionRange": range(0, 0), "children": [
            { "name": "start", "kind": 6, "range": range(2, 5), "selectionRange": range(2, 2), "children": [
                { "name": "port", "kind": 13, "range": range(3, 3), "selectionRange": range(3, 3) },
            ] },
        ] });
        let mut symbols = Vec::new();
        flatten(&tree, "", 0, &mut symbols);
        let inner = enclosing(&symbols, Position { line: 3, character: 4 }).unwrap();
        assert_eq!(inner.path, "Server.start", "a variable encloses nothing");
        assert!(inner.is_called("start") && inner.is_called("Server::start") && inner.is_called("Server.start"));
        assert!(!inner.is_called("art") && !inner.is_called("Other.start"));
        let method = DocumentSymbol { path: "impl Display for Server.start()".into(), ..inner.clone() };
        assert!(method.is_called("Server.start"));
        let mut rust = Vec::new();
        let block = json!({ "name": "impl Display for Server", "kind": 19, "range": range(0, 1), "children": [
            { "name": "fmt", "kind": 6, "range": range(1, 1) },
        ] });
        flatten(&block, "", 0, &mut rust);
        assert!(!rust[0].is_called("Server") && rust[1].is_called("Server::fmt"), "the block isn't the type itself");
        assert_eq!(enclosing(&symbols, Position { line: 10, character: 0 }), None);
    }
}
