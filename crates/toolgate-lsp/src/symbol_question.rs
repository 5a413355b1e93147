//! A question about the symbol at a place, to one server: what it defines, where it is used, what it is, who calls it, and what
//! giving it another name would change.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use toolgate_contract::{
    CodeAnswer, CodeFindings, CodeQuestion, CodeTarget, DefinitionKind, ServerHost, ServerReport, ServerStatus,
    ToolError, WorkspacePath, counted,
};

use crate::calls::MOST_CALLS;
use crate::connection::{Connection, ConnectionState, still_indexing};
use crate::documents::{Fault, at_position};
use crate::languages::SyncedServer;
use crate::locations::references_params;
use crate::peer::PeerFault;
use crate::protocol::{Location, Position};

/// How long one answer may take once the server has read the project: as long as a question waits for that, within these.
const SHORTEST_ANSWER: Duration = Duration::from_secs(5);
const LONGEST_ANSWER: Duration = Duration::from_secs(120);

/// How long one answer may take, where a question waits so long for a server that is indexing.
pub(crate) fn answer_timeout(wait: Duration) -> Duration {
    wait.clamp(SHORTEST_ANSWER, LONGEST_ANSWER)
}

/// How long one answer may take of a server that is like this. One that is still reading the project was waited for already.
pub(crate) fn answer_time(report: &ServerReport, wait: Duration) -> Duration {
    if report.status == ServerStatus::Indexing { SHORTEST_ANSWER } else { answer_timeout(wait) }
}

/// How long after its start a server's empty answer is doubted, and how often it is asked again.
const DOUBTED: Duration = Duration::from_secs(10);
const DOUBT_PAUSE: Duration = Duration::from_millis(250);
const DOUBTS: u32 = 8;

/// A question about the symbol at a place, to one server.
pub(crate) struct SymbolQuestion<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) question: &'a CodeQuestion,
    pub(crate) target: &'a CodeTarget,
    pub(crate) place: &'a WorkspacePath,
    pub(crate) host: &'a dyn ServerHost,
    pub(crate) wait: Duration,
}

impl SymbolQuestion<'_> {
    /// Answers it. `users` are files with the symbol's name, for a server that knows no others than those that are open.
    pub(crate) async fn answer(
        &self,
        server: &mut SyncedServer,
        users: Vec<WorkspacePath>,
    ) -> Result<CodeAnswer, Fault> {
        let Self { connection, target, place, host, .. } = self;
        let (uri, source, state) = (server.uri.clone(), Arc::clone(&server.source), &mut *server.state);
        let shown = host.files().shown(place);
        let until = Instant::now() + answer_timeout(self.wait);
        // What is wrong with the target follows from the file alone: nobody has to wait for the project to be told that.
        if let Err(Fault::Own(error)) = connection.position(target, &shown, &uri, &source, until).await {
            return Err(error.into());
        }
        let report = connection.readiness(Instant::now() + self.wait).await;
        let until = Instant::now() + answer_time(&report, self.wait);
        let mut notes = connection.open_users(state, *host, users, until).await?;
        let position = connection.position(target, &shown, &uri, &source, until).await?;
        let (findings, hidden) = self.findings(state, &uri, position, until).await?;
        let now = connection.report();
        let report = if now.status > report.status { now } else { report };
        if is_empty(&findings) && report.status == ServerStatus::Indexing {
            return Err(still_indexing(&report, self.wait).into());
        }
        if hidden > 0 {
            notes.push(format!("{} in files that policy hides.", counted(hidden as u64, "further place")));
        }
        if matches!(&findings, CodeFindings::Calls(calls) if calls.len() >= MOST_CALLS) {
            notes.push(format!("Only the first {MOST_CALLS} calls were followed; ask with less `depth`."));
        }
        notes.extend(connection.trouble_note());
        if report.status == ServerStatus::Indexing {
            notes.push("The server is still indexing: there may be more.".into());
        }
        Ok(CodeAnswer { servers: vec![report], findings, notes, mark: None })
    }

    async fn findings(
        &self,
        state: &mut ConnectionState,
        uri: &str,
        position: Position,
        until: Instant,
    ) -> Result<(CodeFindings, usize), Fault> {
        let (connection, host) = (self.connection, self.host);
        match self.question {
            CodeQuestion::Definition { kind, .. } => {
                let (capability, method, what) = definition_method(*kind);
                self.places(state, (capability, method, what), at_position(uri, position), until).await
            }
            CodeQuestion::References { .. } => {
                let asked = ("referencesProvider", "textDocument/references", "find references");
                self.places(state, asked, references_params(uri, position), until).await
            }
            CodeQuestion::Hover { .. } => {
                if !connection.offers("hoverProvider", "textDocument/hover") {
                    return Err(connection.lacks("describe symbols").into());
                }
                let ask = || connection.peer.request("textDocument/hover", at_position(uri, position), until);
                let answer = connection.until_not_empty(ask, Value::is_null).await?;
                Ok((CodeFindings::Hover(hover_text(&answer["contents"])), 0))
            }
            CodeQuestion::Calls { direction, depth, .. } => {
                let (calls, hidden) = connection.calls(host, uri, position, (*direction, *depth), until).await?;
                Ok((CodeFindings::Calls(calls), hidden))
            }
            CodeQuestion::Rename { new_name, .. } => {
                let edits = connection.rename(state, host, (uri, position), self.target, new_name, until).await?;
                Ok((CodeFindings::Edits(edits), 0))
            }
            CodeQuestion::Diagnostics { .. } | CodeQuestion::FileSymbols { .. } | CodeQuestion::FindSymbols { .. } => {
                Err(ToolError::internal("This question is about no symbol.").into())
            }
        }
    }

    async fn places(
        &self,
        state: &mut ConnectionState,
        (capability, method, what): (&str, &str, &str),
        params: Value,
        until: Instant,
    ) -> Result<(CodeFindings, usize), Fault> {
        let connection = self.connection;
        if !connection.offers(capability, method) {
            return Err(connection.lacks(what).into());
        }
        let ask = || connection.peer.request(method, params.clone(), until);
        let answer = connection.until_not_empty(ask, Value::is_null_or_empty).await?;
        let (places, hidden) = connection.places(state, self.host, Location::all(&answer), until).await?;
        Ok((CodeFindings::Places(places), hidden))
    }
}

fn is_empty(findings: &CodeFindings) -> bool {
    match findings {
        CodeFindings::Places(places) => places.is_empty(),
        CodeFindings::Diagnostics(items) => items.is_empty(),
        CodeFindings::Hover(text) => text.is_none(),
        CodeFindings::Symbols(symbols) => symbols.is_empty(),
        CodeFindings::Calls(calls) => calls.is_empty(),
        CodeFindings::Edits(edits) => edits.is_empty(),
    }
}

fn definition_method(kind: DefinitionKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        DefinitionKind::Definition => ("definitionProvider", "textDocument/definition", "find definitions"),
        DefinitionKind::Type => ("typeDefinitionProvider", "textDocument/typeDefinition", "find types"),
        DefinitionKind::Implementation => {
            ("implementationProvider", "textDocument/implementation", "find implementations")
        }
        DefinitionKind::Declaration => ("declarationProvider", "textDocument/declaration", "find declarations"),
    }
}

/// The text of a hover, in whichever of its four shapes.
fn hover_text(contents: &Value) -> Option<String> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => fields.get("value").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let text = match contents {
        Value::Array(parts) => parts.iter().filter_map(one).collect::<Vec<_>>().join("\n\n"),
        single => one(single)?,
    };
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Whether an answer says nothing.
pub(crate) trait EmptyAnswer {
    fn is_null_or_empty(&self) -> bool;
}

impl EmptyAnswer for Value {
    fn is_null_or_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Array(items) => items.is_empty(),
            _ => false,
        }
    }
}

impl Connection {
    /// The answer, asked for again while the server has just started and the answer is empty, or another one than before where
    /// the server is known for that: some say nothing, or not all, before they know.
    pub(crate) async fn until_not_empty<T: PartialEq, F: Future<Output = Result<T, PeerFault>>>(
        &self,
        ask: impl Fn() -> F,
        is_empty: impl Fn(&T) -> bool,
    ) -> Result<T, PeerFault> {
        let mut answer = ask().await?;
        let mut is_settled = !self.entry.settles;
        for _ in 0..DOUBTS {
            if (is_settled && !is_empty(&answer)) || self.started.elapsed() > DOUBTED {
                break;
            }
            tokio::time::sleep(DOUBT_PAUSE).await;
            let next = ask().await?;
            is_settled = !self.entry.settles || next == answer;
            answer = next;
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hover_has_four_shapes() {
        for contents in [
            json!("int"),
            json!({ "language": "c", "value": "int" }),
            json!({ "kind": "markdown", "value": "int" }),
            json!(["int", ""]),
        ] {
            assert_eq!(hover_text(&contents).as_deref(), Some("int"), "{contents}");
        }
        assert_eq!((hover_text(&Value::Null), hover_text(&json!(""))), (None, None));
    }
}
