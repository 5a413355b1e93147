//! From a symbol's name and line to a position. A line that is off by a few is forgiven; what could mean several places is
//! answered with all of them.

use serde_json::json;
use tokio::time::Instant;
use toolgate_contract::{CodeTarget, ErrorCode, ToolError, counted};

use crate::connection::Connection;
use crate::documents::Fault;
use crate::protocol::Position;
use crate::source_text::{SourceText, words};
use crate::symbols::DocumentSymbol;

/// How many lines away from the given one a symbol is looked for.
const NEARBY: u32 = 4;

/// Places that are listed where a name means several.
const MOST_LISTED: usize = 20;

impl Connection {
    /// The position of a target in a document.
    pub(crate) async fn position(
        &self,
        target: &CodeTarget,
        shown: &str,
        uri: &str,
        source: &SourceText,
        until: Instant,
    ) -> Result<Position, Fault> {
        let at = |offset: usize| Ok(source.position(offset, self.encoding));
        match (&target.symbol, target.line, target.column) {
            (_, Some(line), Some(column)) => {
                let offset = source.offset_of_column(line.saturating_sub(1), column);
                at(offset.ok_or_else(|| no_such_line(shown, source, line))?)
            }
            (Some(symbol), Some(line), None) => at(near(source, symbol, line, shown)?),
            (Some(symbol), None, _) => {
                let symbols = self.document_symbols(uri, until).await?;
                Ok(self.position_by_name(&symbols, source, symbol, shown)?)
            }
            (None, Some(line), None) => at(first_name(source, line, shown)?),
            (None, None, _) => {
                Err(ToolError::invalid_args("Name the `symbol`, with its `path` and `line` if you know them.").into())
            }
        }
    }

    /// The position of a symbol that a document defines, or at least has.
    fn position_by_name(
        &self,
        symbols: &[DocumentSymbol],
        source: &SourceText,
        symbol: &str,
        shown: &str,
    ) -> Result<Position, ToolError> {
        let named: Vec<&DocumentSymbol> = symbols.iter().filter(|known| known.is_called(symbol)).collect();
        match named[..] {
            [one] => Ok(name_in(source, one, symbol, self)),
            [] => {
                let last = last_part(symbol);
                let found: Vec<usize> = words(&source.text, last).collect();
                match found[..] {
                    [] => Err(ToolError::new(ErrorCode::NoMatch, format!("`{shown}` doesn't have `{symbol}`."))
                        .with_hint("Use `grep` to find where it is.")),
                    // Every place of a file's own text leads to the same symbol as often as not, so the first will do.
                    [first, ..] => Ok(source.position(first, self.encoding)),
                }
            }
            _ => {
                let places: Vec<_> = named
                    .iter()
                    .take(MOST_LISTED)
                    .map(|known| json!({ "path": shown, "line": known.name.start.line + 1, "symbol": known.path }))
                    .collect();
                Err(ambiguous(symbol, named.len(), places))
            }
        }
    }
}

/// The error for a name that means several places.
pub(crate) fn ambiguous(symbol: &str, count: usize, places: Vec<serde_json::Value>) -> ToolError {
    let listed: Vec<String> = places
        .iter()
        .map(|place| {
            format!(
                "{}:{} {}",
                place["path"].as_str().unwrap_or_default(),
                place["line"],
                place["symbol"].as_str().unwrap_or_default()
            )
        })
        .collect();
    let message = format!("`{symbol}` could be any of {count}: {}.", listed.join(", "));
    ToolError::new(ErrorCode::AmbiguousMatch, message)
        .with_hint("Give the `path` and `line` of the one that you mean.")
        .with_details(json!({ "places": places }))
}

/// Where a symbol's name stands. Some servers give the whole of a symbol as its name.
fn name_in(source: &SourceText, known: &DocumentSymbol, symbol: &str, connection: &Connection) -> Position {
    let start = source.offset(known.name.start, connection.encoding);
    let end = source.offset(known.name.end, connection.encoding).unwrap_or(source.text.len());
    let name = last_part(symbol);
    let found = start.and_then(|start| Some(start + words(source.text.get(start..end)?, name).next()?));
    found.map_or(known.name.start, |offset| source.position(offset, connection.encoding))
}

/// The last part of `Server.start` or `Server::start`.
pub(crate) fn last_part(symbol: &str) -> &str {
    let plain = symbol.split('(').next().unwrap_or(symbol);
    let last = plain.rsplit(['.', ':', '#']).next().unwrap_or(plain);
    if last.is_empty() { plain } else { last }
}

/// The name at the place of a target that has none itself.
pub(crate) fn name_at(source: &SourceText, target: &CodeTarget) -> Option<String> {
    let line = target.line?;
    let offset = match target.column {
        Some(column) => source.offset_of_column(line.checked_sub(1)?, column)?,
        None => first_name(source, line, "").ok()?,
    };
    let is_part = |character: &char| character.is_alphanumeric() || *character == '_';
    let before = source.text.get(..offset)?.chars().rev().take_while(is_part).map(char::len_utf8).sum::<usize>();
    Some(source.text.get(offset - before..)?.chars().take_while(is_part).collect())
}

/// The offset of a symbol at a line, or close to it.
fn near(source: &SourceText, symbol: &str, line: u32, shown: &str) -> Result<usize, ToolError> {
    let wanted = line.saturating_sub(1);
    if line == 0 || wanted >= source.lines() {
        return Err(no_such_line(shown, source, line));
    }
    let name = last_part(symbol);
    let by_distance = (0..=NEARBY).flat_map(|away| [wanted.checked_sub(away), Some(wanted + away)]).flatten();
    for candidate in by_distance {
        let Some((start, text)) = source.start(candidate).zip(source.line(candidate)) else { continue };
        if let Some(at) = words(text, name).next() {
            return Ok(start + at);
        }
    }
    let text = source.line(wanted).unwrap_or_default().trim();
    let message =
        format!("`{name}` isn't at line {line} of `{shown}`, nor {NEARBY} lines around it. The line is: {text}");
    Err(ToolError::new(ErrorCode::NoMatch, message).with_hint("Use `grep` or `lsp_symbols` to find its line."))
}

/// The offset of the first name in a line.
fn first_name(source: &SourceText, line: u32, shown: &str) -> Result<usize, ToolError> {
    let wanted = line.saturating_sub(1);
    let text = source.line(wanted).filter(|_| line > 0).ok_or_else(|| no_such_line(shown, source, line))?;
    let at = text.find(|character: char| character.is_alphabetic() || character == '_').unwrap_or_default();
    Ok(source.start(wanted).unwrap_or_default() + at)
}

fn no_such_line(shown: &str, source: &SourceText, line: u32) -> ToolError {
    let message = format!("`{shown}` has {}; there is no such place in line {line}.", counted(source.lines(), "line"));
    ToolError::invalid_args(message).with_hint("Lines and columns are counted from 1.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_off_by_a_few_is_forgiven() {
        let source = SourceText::parse(b"a\nb\nstart()\nc\nrestart()\nd\ne\nf\ng\nh\n").unwrap();
        for (line, expected) in [(3, true), (1, true), (7, true), (9, false), (0, false), (99, false)] {
            let found = near(&source, "Server::start", line, "x");
            assert_eq!(found.is_ok(), expected, "{line}: {found:?}");
            assert!(found.is_err() || found == Ok(4), "restart is another");
        }
    }

    #[test]
    fn the_name_at_a_place_is_a_whole_word() {
        let source = SourceText::parse("  é = greet_all(x)\n".as_bytes()).unwrap();
        for (column, expected) in
            [(None, Some("é")), (Some(7), Some("greet_all")), (Some(9), Some("greet_all")), (Some(99), None)]
        {
            let target = CodeTarget { line: Some(1), column, ..CodeTarget::default() };
            assert_eq!(name_at(&source, &target).as_deref(), expected, "{column:?}");
        }
    }

    #[test]
    fn a_name_is_taken_apart() {
        for (symbol, last) in [("a", "a"), ("A.b", "b"), ("A::b", "b"), ("A#b", "b"), ("f(x)", "f"), (".", ".")] {
            assert_eq!(last_part(symbol), last);
        }
    }
}
