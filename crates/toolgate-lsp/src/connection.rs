//! One running server for one project: what it was told, what it can do, and whether it is ready.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_contract::{
    BoxFuture, ChildProcess, ErrorCode, ServerHost, ServerLifetime, ServerReport, ServerStatus, ToolError,
    WorkspacePath, counted, file_uri, file_uri_path,
};

use crate::catalog::ServerEntry;
use crate::documents::{Fault, OpenDocuments};
use crate::peer::{LogSink, LspPeer, PeerFault};
use crate::protocol::PositionEncoding;
use crate::source_text::SourceText;
use crate::symbols::DocumentSymbol;
use crate::watched_files::{KnownFiles, ProjectChange};

/// How long a server may take until it has introduced itself.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a server has to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a server that is reading the project may say nothing until it counts as hung.
const LONGEST_SILENCE: Duration = Duration::from_secs(180);

/// How long a server may take until it reads the project again.
const RELOAD_BEGINS: Duration = Duration::from_secs(5);

/// A server that runs. Dropping it ends it.
pub(crate) struct Connection {
    pub(crate) peer: Arc<LspPeer>,
    pub(crate) entry: Arc<ServerEntry>,
    /// The project's directory.
    pub(crate) root: WorkspacePath,
    /// The directories of all roots.
    directories: Arc<[PathBuf]>,
    pub(crate) capabilities: Value,
    pub(crate) encoding: PositionEncoding,
    pub(crate) state: Arc<tokio::sync::Mutex<ConnectionState>>,
    versions: AtomicI64,
    pub(crate) started: Instant,
    /// When it began to read the project.
    pub(crate) started_at: SystemTime,
    /// Whether it was given time to begin its work.
    is_begun: AtomicBool,
}

/// What a server was told, and what it said before.
#[derive(Default)]
pub(crate) struct ConnectionState {
    pub(crate) documents: OpenDocuments,
    pub(crate) known: KnownFiles,
    /// Documents that were opened before other files changed, by URI, of a server that has to begin with them again.
    pub(crate) outdated: HashSet<String>,
    /// What was last found wrong in each file, to tell what is new.
    pub(crate) baseline: crate::diagnostics::Baselines,
    /// The symbols of files that weren't open, with the text that they are of, by URI.
    pub(crate) symbols: HashMap<String, (Arc<SourceText>, Arc<[DocumentSymbol]>)>,
}

/// Everything that a connection begins with.
pub(crate) struct NewConnection {
    pub(crate) entry: Arc<ServerEntry>,
    pub(crate) root: WorkspacePath,
    pub(crate) directories: Arc<[PathBuf]>,
    pub(crate) settings: Value,
    pub(crate) options: Value,
    pub(crate) log: LogSink,
}

impl Connection {
    /// Begins a conversation with a server that was just started.
    pub(crate) async fn open(new: NewConnection, child: Arc<dyn ChildProcess>) -> Result<Self, ToolError> {
        let NewConnection { entry, root, directories, settings, options, log } = new;
        // Before it reads anything: what changes after this, it may not have seen.
        let started_at = SystemTime::now();
        let directory = directories.get(root.root).map(|base| root.beneath(base)).unwrap_or_default();
        let root_uri = file_uri(&directory);
        let folder = json!({ "uri": root_uri, "name": "workspace" });
        let mut starting = StartingPeer(Some(LspPeer::start(&entry, child, settings.clone(), folder.clone(), log)));
        let peer = Arc::clone(starting.0.as_ref().expect("it was put there just now"));
        let until = Instant::now() + START_TIMEOUT;
        let params = initialize_params(&root_uri, &directory.display().to_string(), &folder, &options);
        let opened = async {
            let answer = peer.request("initialize", params, until).await?;
            peer.notify("initialized", json!({})).await?;
            if settings.as_object().is_some_and(|settings| !settings.is_empty()) {
                peer.notify("workspace/didChangeConfiguration", json!({ "settings": settings })).await?;
            }
            Ok::<Value, PeerFault>(answer)
        };
        let answer = opened.await.map_err(|fault| in_words(&entry.name, fault))?;
        starting.0 = None;
        let capabilities = answer["capabilities"].clone();
        Ok(Self {
            peer,
            entry,
            root,
            directories,
            encoding: PositionEncoding::of(&capabilities),
            capabilities,
            state: Arc::default(),
            versions: AtomicI64::new(0),
            started: Instant::now(),
            started_at,
            is_begun: AtomicBool::new(false),
        })
    }

    /// A version that no document had before: one that is opened again isn't mistaken for its predecessor.
    pub(crate) fn next_version(&self) -> i64 {
        self.versions.fetch_add(1_000_000, Ordering::SeqCst) + 1
    }

    /// The URI of a file.
    pub(crate) fn uri_of(&self, place: &WorkspacePath) -> Option<String> {
        self.directories.get(place.root).map(|base| file_uri(&place.beneath(base)))
    }

    /// The file of a URI; none if it isn't beneath a root.
    pub(crate) fn place_of(&self, uri: &str) -> Option<WorkspacePath> {
        let path = file_uri_path(uri)?;
        self.directories.iter().enumerate().find_map(|(root, base)| {
            let rest = path.strip_prefix(base).ok()?;
            Some(WorkspacePath { root, path: rest.to_str()?.to_owned() })
        })
    }

    /// Whether the server can answer requests of this kind.
    pub(crate) fn offers(&self, capability: &str, method: &str) -> bool {
        let value = &self.capabilities[capability];
        value.as_bool().unwrap_or(value.is_object()) || self.peer.is_registered(method)
    }

    /// The error for what the server has no answer to.
    pub(crate) fn lacks(&self, what: &str) -> ToolError {
        let message = format!("The language server `{}` can't {what}.", self.entry.name);
        ToolError::new(ErrorCode::ServerError, message)
            .with_hint("Use `grep` instead.")
            .with_details(json!({ "server": self.entry.name, "server_status": ServerStatus::Ready }))
    }

    /// Tells the server everything that changed since the last question, and opens the document that the question is about.
    pub(crate) async fn sync(
        &self,
        state: &mut ConnectionState,
        host: &dyn ServerHost,
        place: &WorkspacePath,
    ) -> Result<(String, Arc<SourceText>), Fault> {
        let change = self.sync_project(&mut state.known, &mut state.documents, host).await?;
        let known = &state.known;
        let is_settled =
            |other: &WorkspacePath| other == place || (change == ProjectChange::Untouched && known.watches(other));
        self.sync_others(&mut state.documents, host, is_settled).await?;
        if change == ProjectChange::Differs && self.entry.reopens {
            // Such a server looks at other files only when it begins with a document.
            state.outdated.extend(state.documents.open.keys().cloned());
        }
        let uri = self.uri_of(place).unwrap_or_default();
        if state.outdated.remove(&uri) {
            self.close_document(&mut state.documents, &uri).await?;
        }
        let given = self.sync_document(&mut state.documents, host, place).await?;
        state.known.is_told = true;
        Ok(given)
    }

    /// Waits until the server has begun to read the project again, after it had begun so often before: until then, it would answer of
    /// the old one.
    pub(crate) async fn reloads(&self, before: u64) {
        let until = Instant::now() + RELOAD_BEGINS;
        self.peer.begins(&self.entry.reload.progress, before, until).await;
    }

    /// Waits until the server has read the project, at most so long, and says how it is.
    pub(crate) async fn readiness(&self, until: Instant) -> ServerReport {
        let says = self.entry.says_when_ready;
        if !self.is_begun.swap(true, Ordering::SeqCst) && !says {
            let grace = Duration::from_millis(self.entry.grace_ms);
            self.peer.reports_work(until.min(Instant::now() + grace)).await;
        }
        self.peer.becomes_ready(says, until).await;
        self.report()
    }

    /// What the server says is wrong with the project, as a note.
    pub(crate) fn trouble_note(&self) -> Option<String> {
        let trouble = self.peer.trouble()?;
        Some(format!("`{}` says of the project: {trouble}", self.entry.name))
    }

    /// How the server is at this moment.
    pub(crate) fn report(&self) -> ServerReport {
        let progress = self.peer.busy_with(self.entry.says_when_ready);
        let status = if progress.is_some() { ServerStatus::Indexing } else { ServerStatus::Ready };
        ServerReport { server: self.entry.name.clone(), status, progress }
    }

    /// The error for a question that failed. A server that doesn't answer is ended, so that the next question gets a new one; but not one
    /// that is busy reading the project, since all that it has read would be lost.
    pub(crate) fn failed(&self, fault: Fault) -> ToolError {
        match fault {
            Fault::Own(error) => error,
            Fault::Reconfigured => self.peer.outdated(),
            Fault::LspPeer(fault) => {
                if matches!(fault, PeerFault::Timeout) {
                    let report = self.report();
                    if report.status == ServerStatus::Indexing && self.peer.spoke_within(LONGEST_SILENCE) {
                        return still_indexing(&report, self.started.elapsed());
                    }
                    self.peer.kill();
                }
                in_words(&self.entry.name, fault)
            }
        }
    }
}

fn in_words(server: &str, fault: PeerFault) -> ToolError {
    match fault {
        PeerFault::Gone(error) => error,
        PeerFault::Timeout => {
            let message = format!("The language server `{server}` didn't answer in time and was ended.");
            ToolError::new(ErrorCode::Timeout, message)
                .with_hint("Ask once more, which starts it again, or use `grep`.")
                .with_details(json!({ "server": server, "server_status": ServerStatus::Timeout }))
        }
        PeerFault::Refused { code, message } => {
            let words: String = message.chars().filter(|one| !one.is_control()).take(500).collect();
            let message = format!("The language server `{server}` refused ({code}). Its words: {words}");
            ToolError::new(ErrorCode::ServerError, message)
                .with_hint("Check that the symbol is at that line, or use `grep`.")
                .with_details(json!({ "server": server, "server_status": ServerStatus::Ready, "code": code }))
        }
    }
}

/// The error for a server that is still reading the project and has found nothing so far.
pub(crate) fn still_indexing(report: &ServerReport, waited: Duration) -> ToolError {
    let progress = report.progress.as_deref().unwrap_or("no word on how far it is");
    let message = format!(
        "The language server `{}` is still indexing after {} ({progress}), and nothing is known so far. That doesn't mean \
         that there is nothing.",
        report.server,
        counted(waited.as_secs(), "second"),
    );
    ToolError::new(ErrorCode::Timeout, message)
        .with_hint("Ask again later, or use `grep` meanwhile.")
        .with_details(json!({ "server": report.server, "server_status": report.status, "progress": report.progress }))
}

fn initialize_params(root_uri: &str, root_path: &str, folder: &Value, options: &Value) -> Value {
    let symbols = json!({ "hierarchicalDocumentSymbolSupport": true });
    let link = json!({ "linkSupport": true });
    json!({
        // The server's parent in its own process namespace isn't us; one that watched ours would end at once.
        "processId": null,
        "clientInfo": { "name": "toolgate" },
        "rootUri": root_uri,
        "rootPath": root_path,
        "workspaceFolders": [folder],
        "initializationOptions": options,
        "capabilities": {
            "general": { "positionEncodings": ["utf-8", "utf-16"] },
            "workspace": {
                "configuration": true,
                "workspaceFolders": true,
                "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true },
                "didChangeConfiguration": { "dynamicRegistration": true },
                "workspaceEdit": { "documentChanges": true },
                "symbol": {},
                "diagnostics": { "refreshSupport": true },
            },
            "window": { "workDoneProgress": true },
            "textDocument": {
                "synchronization": { "didSave": true },
                "publishDiagnostics": { "versionSupport": true, "relatedInformation": false },
                "diagnostic": { "dynamicRegistration": true, "relatedDocumentSupport": false },
                "definition": link, "typeDefinition": link, "implementation": link, "declaration": link,
                "references": {},
                "documentSymbol": symbols,
                "hover": { "contentFormat": ["markdown", "plaintext"] },
                "callHierarchy": {},
                "rename": { "prepareSupport": true },
            },
            "experimental": { "serverStatusNotification": true },
        },
    })
}

impl ServerLifetime for Connection {
    fn is_open(&self) -> bool {
        self.peer.is_open()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let until = Instant::now() + END_TIMEOUT;
            if self.peer.request("shutdown", Value::Null, until).await.is_ok() {
                let _ = self.peer.notify("exit", Value::Null).await;
                let _ = tokio::time::timeout_at(until, self.peer.wait()).await;
            }
            self.peer.kill();
            self.peer.wait().await;
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.peer.kill();
    }
}

/// A server that is just being started. Dropped before it is ready, it ends.
struct StartingPeer(Option<Arc<LspPeer>>);

impl Drop for StartingPeer {
    fn drop(&mut self) {
        self.0.iter().for_each(|peer| peer.kill());
    }
}
