//! Questions and their answers. Every answer begins with telling the server what changed, and none is empty before the server
//! has read the project.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use toolgate_contract::{
    BoxFuture, ChangedSource, CodeAnswer, CodeDiagnostic, CodeFindings, CodeIntelligence, CodeQuestion, CodeTarget,
    EntryKind, ErrorCode, ServerHost, ServerReport, ServerStatus, ToolError, VisitedEntry, Visitor, WalkOptions,
    WalkStep, WorkspacePath, counted,
};

use crate::connection::still_indexing;
use crate::documents::{Fault, read_source};
use crate::languages::{LanguageServers, SyncedServer, concrete};
use crate::source_text::words;
use crate::symbol_question::{SymbolQuestion, answer_time, answer_timeout};
use crate::target::{ambiguous, last_part};

/// Files of a directory that are diagnosed.
const MOST_DIAGNOSED: usize = 50;

/// Files that may define a symbol of which only the name is known.
const MOST_CANDIDATES: usize = 30;

/// Files that are looked at for a name.
pub(crate) const MOST_SEARCHED: usize = 20_000;

/// New errors that are told after a change.
const MOST_NEW_ERRORS: usize = 10;

impl CodeIntelligence for LanguageServers {
    fn answer<'a>(
        &'a self,
        question: CodeQuestion,
        host: &'a dyn ServerHost,
    ) -> BoxFuture<'a, Result<CodeAnswer, ToolError>> {
        Box::pin(async move {
            match question {
                CodeQuestion::Diagnostics { paths, linters, since } => {
                    let before = since.map(|mark| self.marks.lock().found_at(&mark)).transpose()?;
                    let asked: Vec<String> = paths.iter().map(|path| host.files().shown(path)).collect();
                    // What the earlier answer says of other files is neither new nor gone.
                    let before: Option<Vec<CodeDiagnostic>> = before.map(|before| {
                        before
                            .iter()
                            .filter(|one| asked.iter().any(|path| is_below(&one.path, path)))
                            .cloned()
                            .collect()
                    });
                    let answer = self.diagnostics(paths, linters, host).await?;
                    Ok(self.marks.lock().compare(answer, before.as_deref()))
                }
                CodeQuestion::FileSymbols { path } => self.file_symbols(&path, host).await,
                CodeQuestion::FindSymbols { query } => self.find_symbols(&query, host).await,
                CodeQuestion::Definition { ref target, .. }
                | CodeQuestion::References { ref target }
                | CodeQuestion::Hover { ref target }
                | CodeQuestion::Calls { ref target, .. }
                | CodeQuestion::Rename { ref target, .. } => {
                    let target = self.located(target, host).await?;
                    self.about_symbol(&question, &target, host).await
                }
            }
        })
    }

    fn new_errors<'a>(
        &'a self,
        changed: Vec<ChangedSource>,
        within: Duration,
        host: &'a dyn ServerHost,
    ) -> BoxFuture<'a, Vec<CodeDiagnostic>> {
        Box::pin(async move {
            let until = Instant::now() + within;
            let mut found = Vec::new();
            for (key, changed) in self.by_running_server(changed, host) {
                let Some(connection) = host.warm(&key).await.and_then(|running| concrete(running).ok()) else {
                    continue;
                };
                let work = connection.errors_after(changed, host, until);
                if let Ok(Ok(errors)) = tokio::time::timeout_at(until, work).await {
                    found.extend(errors);
                }
            }
            found.truncate(MOST_NEW_ERRORS);
            found
        })
    }
}

/// Whether a file is the path, or beneath it.
fn is_below(file: &str, path: &str) -> bool {
    path == "." || file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl LanguageServers {
    /// Changed files by the server that they belong to.
    fn by_running_server(
        &self,
        changed: Vec<ChangedSource>,
        host: &dyn ServerHost,
    ) -> BTreeMap<String, Vec<ChangedSource>> {
        let (files, mut by_server) = (host.files(), BTreeMap::<String, Vec<ChangedSource>>::new());
        for one in changed {
            if let Ok(choice) = self.choose(files.as_ref(), &one.place) {
                by_server.entry(choice.key()).or_default().push(one);
            }
        }
        by_server
    }

    /// The target with a file: where only a name is given, the file that defines it.
    async fn located(&self, target: &CodeTarget, host: &dyn ServerHost) -> Result<CodeTarget, ToolError> {
        let (None, Some(symbol)) = (&target.path, &target.symbol) else { return Ok(target.clone()) };
        let candidates = self.files_with(last_part(symbol), host, &WorkspacePath::in_workspace(""), &|_| true)?;
        if candidates.is_empty() {
            let message = format!("No source file of the workspace has `{symbol}`.");
            return Err(ToolError::new(ErrorCode::NoMatch, message).with_hint("Check the spelling with `grep`."));
        }
        let (mut places, mut fault) = (Vec::new(), None);
        for place in candidates.iter().take(MOST_CANDIDATES) {
            match self.definitions_in(place, symbol, host).await {
                Ok(lines) => places.extend(lines.into_iter().map(|(line, name)| (place.clone(), line, name))),
                Err(error) => fault = Some(error),
            }
        }
        match (&places[..], fault) {
            ([(place, line, _)], _) => {
                Ok(CodeTarget { path: Some(place.clone()), line: Some(*line), ..target.clone() })
            }
            ([], Some(error)) => Err(error),
            ([], None) => {
                // Nothing defines it by that name; where it is first written, the server knows what it means.
                Ok(CodeTarget { path: candidates.into_iter().next(), ..target.clone() })
            }
            (several, _) => {
                let files = host.files();
                let listed = several
                    .iter()
                    .take(20)
                    .map(|(place, line, name)| json!({ "path": files.shown(place), "line": line, "symbol": name }));
                Err(ambiguous(symbol, several.len(), listed.collect()))
            }
        }
    }

    /// Source files beneath a directory that have a name, those that seem to define it first.
    pub(crate) fn files_with(
        &self,
        name: &str,
        host: &dyn ServerHost,
        start: &WorkspacePath,
        is_wanted: &dyn Fn(&WorkspacePath) -> bool,
    ) -> Result<Vec<WorkspacePath>, ToolError> {
        let places = self.source_files(host, start, MOST_SEARCHED)?;
        let mut found = Vec::new();
        for place in places.into_iter().filter(is_wanted) {
            let Ok(Some(source)) = read_source(host, &place) else { continue };
            let Some(at) = words(&source.text, name).next() else { continue };
            let defines = words(&source.text, name).any(|at| looks_like_definition(&source.text[..at]));
            found.push((!defines, place, at));
        }
        found.sort();
        Ok(found.into_iter().map(|(_, place, _)| place).collect())
    }

    /// The files in a directory that some server understands, or the file itself.
    pub(crate) fn source_files(
        &self,
        host: &dyn ServerHost,
        start: &WorkspacePath,
        most: usize,
    ) -> Result<Vec<WorkspacePath>, ToolError> {
        let found: Mutex<Vec<WorkspacePath>> = Mutex::default();
        let visitors = || -> Visitor<'_> {
            Box::new(|entry: &VisitedEntry<'_>| {
                if host.hides(entry.place) {
                    return WalkStep::Past;
                }
                let is_source = || self.catalog.servers.iter().any(|server| server.takes(&entry.place.path));
                if entry.kind == EntryKind::File && is_source() {
                    found.lock().push(entry.place.clone());
                }
                WalkStep::On
            })
        };
        let options = WalkOptions { gitignore: true, ..WalkOptions::default() };
        host.files().walk(start, &options, &visitors)?;
        let mut found = found.into_inner();
        found.sort();
        found.truncate(most);
        Ok(found)
    }

    /// The lines of a file that define a symbol, with its whole name.
    async fn definitions_in(
        &self,
        place: &WorkspacePath,
        symbol: &str,
        host: &dyn ServerHost,
    ) -> Result<Vec<(u32, String)>, ToolError> {
        let SyncedServer { connection, uri, source, state } = self.synced(place, host).await?;
        let until = Instant::now() + answer_timeout(self.wait);
        let symbols = connection.document_symbols(&uri, until).await.map_err(|fault| connection.failed(fault))?;
        drop(state);
        // Some servers list what a file imports among its symbols.
        let is_import = |line: u32| source.line(line).is_some_and(|text| text.trim_start().starts_with("import "));
        let named = symbols.iter().filter(|known| known.is_called(symbol) && !is_import(known.name.start.line));
        Ok(named.map(|known| (known.name.start.line + 1, known.path.clone())).collect())
    }

    /// Answers a question about the symbol at a place.
    async fn about_symbol(
        &self,
        question: &CodeQuestion,
        target: &CodeTarget,
        host: &dyn ServerHost,
    ) -> Result<CodeAnswer, ToolError> {
        let place = target.path.as_ref().ok_or_else(|| {
            ToolError::invalid_args("Name the `symbol`, with its `path` and `line` if you know them.")
        })?;
        let mut server = self.synced(place, host).await?;
        let connection = Arc::clone(&server.connection);
        let asked = SymbolQuestion { connection: &connection, question, target, place, host, wait: self.wait };
        let users = self.users(&asked, &server)?;
        asked.answer(&mut server, users).await.map_err(|fault| connection.failed(fault))
    }

    async fn file_symbols(&self, place: &WorkspacePath, host: &dyn ServerHost) -> Result<CodeAnswer, ToolError> {
        let SyncedServer { connection, uri, source, state: _state } = self.synced(place, host).await?;
        let until = Instant::now() + self.wait + answer_timeout(self.wait);
        let found = async {
            let mut symbols = connection.document_symbols(&uri, until).await?;
            if symbols.is_empty() && !source.text.trim().is_empty() {
                connection.readiness(Instant::now() + self.wait).await;
                symbols = connection.document_symbols(&uri, until).await?;
            }
            Ok::<_, Fault>(symbols)
        };
        let symbols = found.await.map_err(|fault| connection.failed(fault))?;
        if !connection.offers("documentSymbolProvider", "textDocument/documentSymbol") {
            return Err(connection.lacks("list symbols"));
        }
        let symbols = symbols.iter().map(|symbol| symbol.in_words()).collect();
        // What a file has, its own text says; the project doesn't matter.
        let report = ServerReport { status: ServerStatus::Ready, progress: None, ..connection.report() };
        Ok(CodeAnswer {
            servers: vec![report],
            findings: CodeFindings::Symbols(symbols),
            notes: Vec::new(),
            mark: None,
        })
    }

    /// What is wrong in files and directories, by all servers and, if asked for, linters.
    async fn diagnostics(
        &self,
        paths: Vec<WorkspacePath>,
        linters: bool,
        host: &dyn ServerHost,
    ) -> Result<CodeAnswer, ToolError> {
        let mut places = Vec::new();
        for path in &paths {
            match host.files().status(path)? {
                None => return Err(ToolError::not_found(&host.files().shown(path))),
                Some(found) if found.kind == EntryKind::Directory => {
                    places.extend(self.source_files(host, path, MOST_SEARCHED)?);
                }
                Some(_) => places.push(path.clone()),
            }
        }
        places.sort();
        places.dedup();
        let left_out = places.len().saturating_sub(MOST_DIAGNOSED);
        places.truncate(MOST_DIAGNOSED);
        let mut answer = CodeAnswer {
            servers: Vec::new(),
            findings: CodeFindings::Diagnostics(Vec::new()),
            notes: Vec::new(),
            mark: None,
        };
        if left_out > 0 {
            let noun = counted(left_out as u64, "further file");
            answer.notes.push(format!("{noun} weren't looked at; name a smaller directory."));
        }
        let (mut found, mut fault) = (Vec::new(), None);
        for place in &places {
            match self.diagnose_file(place, host, &mut answer).await {
                Ok(items) => found.extend(items),
                Err(error) if linters || places.len() > 1 => fault = Some(error),
                Err(error) => return Err(error),
            }
        }
        if linters {
            let linted = self.lint(&places, host, &mut answer.notes).await?;
            // Some servers ask the same linter and have told it already.
            let is_known = |item: &CodeDiagnostic| found.iter().any(|known: &CodeDiagnostic| is_same(known, item));
            let new: Vec<CodeDiagnostic> = linted.items.into_iter().filter(|item| !is_known(item)).collect();
            found.extend(new);
            answer.servers.extend(linted.ran);
        }
        if let Some(error) = fault {
            match answer.servers.is_empty() {
                true => return Err(error),
                false => answer.notes.push(error.message),
            }
        }
        found.sort_by(|one, other| (&one.path, one.line, one.severity).cmp(&(&other.path, other.line, other.severity)));
        answer.findings = CodeFindings::Diagnostics(found);
        Ok(answer)
    }

    async fn diagnose_file(
        &self,
        place: &WorkspacePath,
        host: &dyn ServerHost,
        answer: &mut CodeAnswer,
    ) -> Result<Vec<CodeDiagnostic>, ToolError> {
        let SyncedServer { connection, mut state, .. } = self.synced(place, host).await?;
        let found = async {
            let report = connection.readiness(Instant::now() + self.wait).await;
            let found =
                connection.diagnose(&mut state, host, place, Instant::now() + answer_time(&report, self.wait)).await?;
            Ok::<_, Fault>((report, found))
        };
        let (report, found) = found.await.map_err(|fault| connection.failed(fault))?;
        if report.status == ServerStatus::Indexing && found.items.is_empty() {
            return Err(still_indexing(&report, self.wait));
        }
        if let Some(note) = connection.trouble_note() {
            add_note(answer, note);
        }
        if !found.is_exact {
            let note = format!(
                "`{}` doesn't say which state it is of: these are its last words after the files changed.",
                report.server
            );
            add_note(answer, note);
        }
        if !answer.servers.contains(&report) {
            answer.servers.push(report);
        }
        Ok(found.items)
    }
}

/// Adds a note that isn't there yet: several files have the same server.
fn add_note(answer: &mut CodeAnswer, note: String) {
    if !answer.notes.contains(&note) {
        answer.notes.push(note);
    }
}

/// Whether two findings are one, whoever tells it.
fn is_same(one: &CodeDiagnostic, other: &CodeDiagnostic) -> bool {
    (&one.path, one.line, &one.code, &one.message) == (&other.path, other.line, &other.code, &other.message)
}

/// Whether what stands before a name reads like the beginning of a definition.
fn looks_like_definition(before: &str) -> bool {
    const WORDS: [&str; 24] = [
        "def",
        "class",
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "function",
        "interface",
        "const",
        "let",
        "var",
        "func",
        "static",
        "mod",
        "namespace",
        "union",
        "macro_rules!",
        "#define",
        "int",
        "void",
        "bool",
        "char",
        "typedef",
    ];
    let line = before.rsplit(['\n', '\r']).next().unwrap_or_default();
    line.split_whitespace().next_back().is_some_and(|word| WORDS.contains(&word.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_told_from_uses() {
        for (before, expected) in [("x = 1\ndef ", true), ("pub fn ", true), ("return ", false), ("", false)] {
            assert_eq!(looks_like_definition(before), expected, "{before}");
        }
    }
}
