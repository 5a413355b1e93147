//! Locations of answers as places that a reader understands: path, line, text, and what the place is in. What policy hides
//! isn't among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;
use toolgate_contract::{CodePlace, ServerHost, WorkspacePath, file_uri_path};

use crate::connection::{Connection, ConnectionState};
use crate::documents::{Fault, read_source};
use crate::protocol::{Location, Position};
use crate::source_text::SourceText;
use crate::symbols::{DocumentSymbol, enclosing};

/// Files whose symbols are asked for, to say what a place is in.
const MOST_FILES: usize = 60;

/// Files whose symbols are remembered.
const MOST_REMEMBERED: usize = 500;

/// Characters of a line that are shown.
const LONGEST_LINE: usize = 200;

/// Files that were read for one answer.
#[derive(Default)]
pub(crate) struct ReadFiles {
    files: BTreeMap<String, Option<Arc<SourceText>>>,
}

impl ReadFiles {
    /// The text of a file; none if it is hidden, gone, or no text.
    pub(crate) fn read(
        &mut self,
        connection: &Connection,
        host: &dyn ServerHost,
        uri: &str,
    ) -> Option<Arc<SourceText>> {
        let known = self.files.entry(uri.to_owned()).or_insert_with(|| {
            let place = connection.place_of(uri)?;
            read_source(host, &place).ok().flatten().map(Arc::new)
        });
        known.clone()
    }
}

impl Connection {
    /// Places in words, sorted, each once. The second value counts those that policy hides.
    pub(crate) async fn places(
        &self,
        state: &mut ConnectionState,
        host: &dyn ServerHost,
        mut locations: Vec<Location>,
        until: Instant,
    ) -> Result<(Vec<CodePlace>, usize), Fault> {
        let (mut read, mut hidden, mut places) = (ReadFiles::default(), 0, Vec::new());
        locations.sort_by(|one, other| (&one.uri, one.range.start).cmp(&(&other.uri, other.range.start)));
        locations.dedup_by(|one, other| one.uri == other.uri && one.range.start == other.range.start);
        let mut symbols: BTreeMap<String, Arc<[DocumentSymbol]>> = BTreeMap::new();
        for Location { uri, range } in locations {
            let place = self.place_of(&uri);
            if place.as_ref().is_some_and(|place| host.hides(place)) {
                hidden += 1;
                continue;
            }
            let source = read.read(self, host, &uri);
            if let Some(source) = source.as_ref().filter(|_| !symbols.contains_key(&uri) && symbols.len() < MOST_FILES)
            {
                let found = self.symbols_of(state, host, &uri, source, until).await?;
                symbols.insert(uri.clone(), found);
            }
            let symbol = symbols.get(&uri).and_then(|symbols| enclosing(symbols, range.start));
            places.push(self.place_in_words(host, &uri, place.as_ref(), source.as_deref(), range.start, symbol));
        }
        places.sort_by(|one, other| (&one.path, one.line, one.column).cmp(&(&other.path, other.line, other.column)));
        Ok((places, hidden))
    }

    /// The symbols of a file, which follow from its text alone. One that isn't open is opened for that, and closed again.
    async fn symbols_of(
        &self,
        state: &mut ConnectionState,
        host: &dyn ServerHost,
        uri: &str,
        source: &Arc<SourceText>,
        until: Instant,
    ) -> Result<Arc<[DocumentSymbol]>, Fault> {
        let Some(place) = self.place_of(uri).filter(|place| self.entry.takes(&place.path)) else {
            return Ok(Arc::default());
        };
        if let Some((_, symbols)) = state.symbols.get(uri).filter(|(of, _)| of.text == source.text) {
            return Ok(Arc::clone(symbols));
        }
        let was_open = state.documents.open.contains_key(uri);
        if !was_open && self.sync_document(&mut state.documents, host, &place).await.is_err() {
            return Ok(Arc::default());
        }
        let symbols = self.document_symbols(uri, until).await;
        if !was_open {
            self.close_document(&mut state.documents, uri).await?;
        }
        let symbols: Arc<[DocumentSymbol]> = match symbols {
            Err(Fault::LspPeer(crate::peer::PeerFault::Refused { .. })) => return Ok(Arc::default()),
            symbols => symbols?.into(),
        };
        if state.symbols.len() >= MOST_REMEMBERED {
            state.symbols.clear();
        }
        if !symbols.is_empty() {
            state.symbols.insert(uri.to_owned(), (Arc::clone(source), Arc::clone(&symbols)));
        }
        Ok(symbols)
    }

    pub(crate) fn place_in_words(
        &self,
        host: &dyn ServerHost,
        uri: &str,
        place: Option<&WorkspacePath>,
        source: Option<&SourceText>,
        position: Position,
        symbol: Option<&DocumentSymbol>,
    ) -> CodePlace {
        let column = source
            .and_then(|source| Some(source.column(source.offset(position, self.encoding)?)))
            .unwrap_or(position.character + 1);
        let text = source.and_then(|source| source.line(position.line)).map(shortened);
        CodePlace {
            path: shown_path(host, uri, place),
            line: position.line + 1,
            column,
            text,
            symbol: symbol.map(|symbol| symbol.path.clone()),
        }
    }
}

/// A path as a reader writes it; outside of the workspace it is absolute.
pub(crate) fn shown_path(host: &dyn ServerHost, uri: &str, place: Option<&WorkspacePath>) -> String {
    match place {
        Some(place) => host.files().shown(place),
        None => file_uri_path(uri).map_or_else(|| uri.to_owned(), |path| path.display().to_string()),
    }
}

/// A line's text, without what surrounds it, and not too long.
pub(crate) fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The parameters of `textDocument/references`.
pub(crate) fn references_params(uri: &str, position: Position) -> serde_json::Value {
    json!({
        "textDocument": { "uri": uri }, "position": position, "context": { "includeDeclaration": true },
    })
}
