//! Symbols of the whole workspace by name, from the servers of all its languages.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_contract::{
    CodeAnswer, CodeFindings, CodeSymbol, ErrorCode, ServerHost, ServerReport, ServerStatus, ToolError, WorkspacePath,
};

use crate::answers::MOST_SEARCHED;
use crate::connection::{Connection, still_indexing};
use crate::documents::Fault;
use crate::languages::{LanguageServers, SyncedServer};
use crate::locations::shown_path;
use crate::protocol::symbol_kind;
use crate::symbol_question::{EmptyAnswer, answer_time};

/// Symbols that one server may add to an answer.
const MOST_SYMBOLS: usize = 500;

impl LanguageServers {
    /// Symbols by name, from the servers of all languages that the workspace has.
    pub(crate) async fn find_symbols(&self, query: &str, host: &dyn ServerHost) -> Result<CodeAnswer, ToolError> {
        let places = self.source_files(host, &WorkspacePath::in_workspace(""), MOST_SEARCHED)?;
        let files = host.files();
        let (mut chosen, mut fault) = (BTreeMap::new(), None);
        let (mut servers, mut symbols, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        // What has no symbols to search, such as JSON, isn't missed.
        let searched: Vec<WorkspacePath> = places.into_iter().filter(|place| self.has_symbols(place)).collect();
        for (language, install) in self.missing_for(searched.iter().map(|place| place.path.as_str())) {
            notes.push(format!(
                "Symbols of {language} are missing: no language server is installed for it (`{install}`)."
            ));
        }
        for place in searched {
            match self.choose(files.as_ref(), &place) {
                Ok(choice) => drop(chosen.entry(choice.key()).or_insert((choice.entry.name.clone(), place))),
                Err(error) => fault = Some(error),
            }
        }
        for (name, place) in chosen.into_values() {
            match self.symbols_of_server(&place, query, host).await {
                Ok(Some((report, found))) => {
                    if found.len() >= MOST_SYMBOLS {
                        notes.push(format!(
                            "`{name}` has more than {MOST_SYMBOLS} such symbols; give more of the name."
                        ));
                    }
                    servers.push(report);
                    symbols.extend(found);
                }
                Ok(None) => notes.push(format!("`{name}` can't search symbols by name.")),
                Err(error) => {
                    notes.push(format!("`{name}`: {}", error.message));
                    fault = Some(error);
                }
            }
        }
        match (servers.is_empty(), fault) {
            (true, Some(error)) => Err(error),
            (true, None) => {
                Err(ToolError::new(ErrorCode::ServerError, "No language server here can search symbols by name.")
                    .with_hint("Use `grep`.")
                    .with_details(json!({ "server_status": ServerStatus::Missing })))
            }
            (false, _) => Ok(CodeAnswer { servers, findings: CodeFindings::Symbols(symbols), notes, mark: None }),
        }
    }

    /// Whether some server for a file has symbols of the workspace to search.
    fn has_symbols(&self, place: &WorkspacePath) -> bool {
        self.catalog.servers.iter().any(|server| server.takes(&place.path) && !server.no_workspace_symbols)
    }

    /// Symbols by name from the server for a file; none if it can't search them.
    async fn symbols_of_server(
        &self,
        place: &WorkspacePath,
        query: &str,
        host: &dyn ServerHost,
    ) -> Result<Option<(ServerReport, Vec<CodeSymbol>)>, ToolError> {
        let SyncedServer { connection, state: _state, .. } = self.synced(place, host).await?;
        let found = async {
            if !connection.offers("workspaceSymbolProvider", "workspace/symbol") {
                return Ok(None);
            }
            let report = connection.readiness(Instant::now() + self.wait).await;
            let until = Instant::now() + answer_time(&report, self.wait);
            let ask = || connection.peer.request("workspace/symbol", json!({ "query": query }), until);
            let answer = connection.until_not_empty(ask, Value::is_null_or_empty).await?;
            Ok::<_, Fault>(Some((report, answer)))
        };
        let Some((report, answer)) = found.await.map_err(|fault| connection.failed(fault))? else { return Ok(None) };
        let items = answer.as_array().cloned().unwrap_or_default();
        if items.is_empty() && report.status == ServerStatus::Indexing {
            return Err(still_indexing(&report, self.wait));
        }
        let symbols = items.iter().take(MOST_SYMBOLS).filter_map(|item| symbol_in_words(&connection, host, item));
        Ok(Some((report, symbols.collect())))
    }
}

fn symbol_in_words(connection: &Connection, host: &dyn ServerHost, item: &Value) -> Option<CodeSymbol> {
    let uri = item["location"]["uri"].as_str()?;
    let place = connection.place_of(uri).filter(|place| !host.hides(place))?;
    let container = item["containerName"].as_str().filter(|container| !container.is_empty());
    let name = item["name"].as_str()?;
    Some(CodeSymbol {
        name: container.map_or_else(|| name.to_owned(), |container| format!("{container}.{name}")),
        kind: symbol_kind(item["kind"].as_u64().unwrap_or_default()).to_owned(),
        path: Some(shown_path(host, uri, Some(&place))),
        line: item["location"]["range"]["start"]["line"].as_u64().unwrap_or_default() as u32 + 1,
        end_line: None,
    })
}
