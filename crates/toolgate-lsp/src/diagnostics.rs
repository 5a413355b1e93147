//! What a server finds wrong in a document, never older than the document: asked for after the change, or published for its
//! very version. Where a server publishes without versions, it is waited until it has been quiet for a while, and the answer
//! says so.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_contract::{CodeDiagnostic, CodeSeverity, ServerHost, WorkspacePath, file_uri_path};

use crate::catalog::DiagnosticsMode;
use crate::connection::{Connection, ConnectionState};
use crate::documents::Fault;
use crate::locations::{shortened, shown_path};
use crate::peer::{PeerFault, Published};
use crate::protocol::{Position, Range, severity};
use crate::source_text::SourceText;

/// How long a server may take to offer that it can be asked.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a server that publishes without versions has to be quiet.
const QUIET: Duration = Duration::from_millis(700);

/// Characters of a message.
const LONGEST_MESSAGE: usize = 600;

/// What was last found wrong, by file.
#[derive(Default)]
pub(crate) struct Baselines {
    files: HashMap<WorkspacePath, Vec<CodeDiagnostic>>,
}

impl Baselines {
    /// Remembers what is wrong in a file, and gives what was wrong before, if that is known.
    pub(crate) fn replace(&mut self, place: &WorkspacePath, now: &[CodeDiagnostic]) -> Option<Vec<CodeDiagnostic>> {
        self.files.insert(place.clone(), now.to_vec())
    }

    pub(crate) fn get(&self, place: &WorkspacePath) -> Option<&Vec<CodeDiagnostic>> {
        self.files.get(place)
    }

    pub(crate) fn places(&self) -> Vec<WorkspacePath> {
        self.files.keys().cloned().collect()
    }
}

/// What is wrong in one document.
pub(crate) struct FoundDiagnostics {
    pub(crate) items: Vec<CodeDiagnostic>,
    /// Whether it is certain that they are of the present text.
    pub(crate) is_exact: bool,
}

impl Connection {
    /// What is wrong in a document that was just synchronised.
    pub(crate) async fn diagnose(
        &self,
        state: &mut ConnectionState,
        host: &dyn ServerHost,
        place: &WorkspacePath,
        until: Instant,
    ) -> Result<FoundDiagnostics, Fault> {
        let uri = self.uri_of(place).unwrap_or_default();
        let Some(document) = state.documents.open.get(&uri) else {
            return Ok(FoundDiagnostics { items: Vec::new(), is_exact: true });
        };
        let (source, version, sent_at) = (document.source.clone(), document.version, document.sent_at);
        let (raw, is_exact) = match self.entry.diagnostics {
            DiagnosticsMode::Tsserver => (self.ask_tsserver(place, &uri, until).await?, true),
            DiagnosticsMode::Push => self.await_published(&uri, version, sent_at, until).await?,
            DiagnosticsMode::Pull | DiagnosticsMode::Automatic if self.can_pull(until).await => {
                (self.pull(&uri, until).await?, true)
            }
            DiagnosticsMode::Pull | DiagnosticsMode::Automatic => {
                self.await_published(&uri, version, sent_at, until).await?
            }
        };
        let shown = shown_path(host, &uri, Some(place));
        let mut items: Vec<CodeDiagnostic> =
            raw.iter().filter_map(|item| self.diagnostic_in_words(&shown, &source, item)).collect();
        items.sort_by(|one, other| {
            (one.line, one.severity, &one.message).cmp(&(other.line, other.severity, &other.message))
        });
        items.dedup();
        state.baseline.replace(place, &items);
        Ok(FoundDiagnostics { items, is_exact })
    }

    async fn can_pull(&self, until: Instant) -> bool {
        const METHOD: &str = "textDocument/diagnostic";
        if self.offers("diagnosticProvider", METHOD) {
            return true;
        }
        let is_late = self.entry.diagnostics == DiagnosticsMode::Pull;
        is_late && self.peer.registers(METHOD, until.min(self.started + REGISTER_TIMEOUT)).await
    }

    async fn pull(&self, uri: &str, until: Instant) -> Result<Vec<Value>, Fault> {
        let params = json!({ "textDocument": { "uri": uri } });
        let mut answer = self.peer.request("textDocument/diagnostic", params, until).await?;
        match answer["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Err(PeerFault::Refused { code: 0, message: "no list of diagnostics".into() }.into()),
        }
    }

    /// What was published for this version; without versions, what was published after it was sent, once the server is quiet.
    pub(crate) async fn await_published(
        &self,
        uri: &str,
        version: i64,
        sent_at: u64,
        until: Instant,
    ) -> Result<(Vec<Value>, bool), Fault> {
        let is_for_this = |published: &Published| match published.version {
            Some(of) => of >= version,
            None => published.serial > sent_at,
        };
        let mut published = self.peer.published(uri, until, is_for_this).await.ok_or_else(|| self.silence())?;
        // Some publish for the very version twice: before they know of other files' changes, and after.
        let is_last = published.version.is_some() && !self.entry.publishes_again;
        while !is_last && published.at + QUIET > Instant::now() {
            let (quiet, known) = (published.at + QUIET, published.serial);
            match self.peer.published(uri, quiet.min(until), |next| next.serial > known).await {
                Some(next) => published = next,
                None if self.peer.is_open() => break,
                None => return Err(self.silence()),
            }
        }
        let is_exact = published.version.is_some() && !self.entry.publishes_again;
        Ok((published.items.as_array().cloned().unwrap_or_default(), is_exact))
    }

    fn silence(&self) -> Fault {
        Fault::LspPeer(PeerFault::Timeout)
    }

    /// Asks tsserver through the server that wraps it. What that server publishes has no version and comes in parts.
    async fn ask_tsserver(&self, place: &WorkspacePath, uri: &str, until: Instant) -> Result<Vec<Value>, Fault> {
        let _ = place;
        let file = file_uri_path(uri).map(|path| path.display().to_string()).unwrap_or_default();
        let mut found = Vec::new();
        for command in ["syntacticDiagnosticsSync", "semanticDiagnosticsSync"] {
            let arguments = json!([command, { "file": file }]);
            let params = json!({ "command": "typescript.tsserverRequest", "arguments": arguments });
            let answer = self.peer.request("workspace/executeCommand", params, until).await?;
            let body = answer.get("body").unwrap_or(&answer);
            let Some(items) = body.as_array() else {
                let message = format!("tsserver has no answer to {command}");
                return Err(PeerFault::Refused { code: 0, message }.into());
            };
            found.extend(items.iter().map(from_tsserver));
        }
        Ok(found)
    }

    fn diagnostic_in_words(&self, shown: &str, source: &SourceText, item: &Value) -> Option<CodeDiagnostic> {
        let range = Range::of(&item["range"])?;
        let offset = source.offset(range.start, self.encoding);
        let code = match &item["code"] {
            Value::String(code) => Some(code.clone()),
            Value::Number(code) => Some(code.to_string()),
            _ => None,
        };
        let message = item["message"].as_str()?;
        Some(CodeDiagnostic {
            path: shown.to_owned(),
            line: range.start.line + 1,
            column: offset.map_or(range.start.character + 1, |offset| source.column(offset)),
            severity: severity(&item["severity"]),
            message: message.chars().take(LONGEST_MESSAGE).collect(),
            source: item["source"].as_str().map(str::to_owned).or_else(|| Some(self.entry.name.clone())),
            code,
            text: source.line(range.start.line).map(shortened),
        })
    }
}

/// A diagnostic of tsserver in the protocol's form. It counts from 1.
fn from_tsserver(item: &Value) -> Value {
    let position = |side: &str| {
        let count = |field: &str| item[side][field].as_u64().unwrap_or(1).saturating_sub(1) as u32;
        Position { line: count("line"), character: count("offset") }
    };
    let number = match item["category"].as_str() {
        Some("warning") => 2,
        Some("suggestion") => 4,
        Some("message") => 3,
        _ => 1,
    };
    json!({
        "range": Range { start: position("start"), end: position("end") },
        "severity": number, "code": item["code"], "message": item["text"], "source": "typescript",
    })
}

/// The errors that are there now and weren't before, whatever their lines are now.
pub(crate) fn new_errors(before: &[CodeDiagnostic], now: &[CodeDiagnostic]) -> Vec<CodeDiagnostic> {
    not_in(before, now).into_iter().filter(|one| one.severity == CodeSeverity::Error).collect()
}

/// What is there now and wasn't before, whatever its lines are now.
pub(crate) fn not_in(before: &[CodeDiagnostic], now: &[CodeDiagnostic]) -> Vec<CodeDiagnostic> {
    let mut known: HashMap<_, usize> = HashMap::new();
    before.iter().for_each(|one| *known.entry(one.identity()).or_default() += 1);
    let mut unmatched = Vec::new();
    for one in now {
        match known.get_mut(&one.identity()) {
            Some(left @ 1..) => *left -= 1,
            _ => unmatched.push(one),
        }
    }
    // A line that was edited and is as wrong as before has nothing new either.
    let mut left: Vec<_> =
        known.into_iter().flat_map(|(identity, count)| std::iter::repeat_n(identity, count)).collect();
    unmatched.retain(|one| {
        let (path, source, code, message, _) = one.identity();
        let same = left.iter().position(|old| (old.0, old.1, old.2, old.3) == (path, source, code, message));
        same.map(|index| left.swap_remove(index)).is_none()
    });
    unmatched.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: u32, message: &str, text: &str) -> CodeDiagnostic {
        CodeDiagnostic {
            path: "a.py".into(),
            line,
            column: 1,
            severity: CodeSeverity::Error,
            message: message.into(),
            source: None,
            code: None,
            text: Some(text.into()),
        }
    }

    #[test]
    fn an_error_that_only_moved_is_not_new() {
        let before = [error(1, "no x", "x()"), error(2, "no y", "y()")];
        let now = [error(5, "no x", "  x()"), error(6, "no x", "x()"), error(7, "no z", "z()")];
        let found: Vec<u32> = new_errors(&before, &now).iter().map(|one| one.line).collect();
        assert_eq!(found, [6, 7], "one more of the same is new");
        let edited = new_errors(&[error(1, "no x", "x()")], &[error(1, "no x", "x(2)")]);
        assert!(edited.is_empty(), "the line is as wrong as before");
        let warning = CodeDiagnostic { severity: CodeSeverity::Warning, ..error(1, "w", "w") };
        assert!(new_errors(&[], &[warning]).is_empty());
    }

    #[test]
    fn tsserver_counts_from_one() {
        let item = json!({ "start": { "line": 3, "offset": 5 }, "end": { "line": 3, "offset": 6 }, "text": "no", "code": 1,
            "category": "error" });
        let read = from_tsserver(&item);
        assert_eq!(read["range"]["start"], json!({ "line": 2, "character": 4 }));
        assert_eq!((&read["severity"], &read["message"]), (&json!(1), &json!("no")));
    }
}
