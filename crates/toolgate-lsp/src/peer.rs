//! A conversation with a language server over its standard streams. A task reads what the server writes: answers, what it
//! publishes, how far it is, and its own requests, of which those that would change or open something are refused.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use toolgate_contract::{ChildProcess, ErrorCode, Output, ServerStatus, ToolError, file_uri, file_uri_path};

use crate::catalog::ServerEntry;
use crate::framing::{MessageBuffer, framed};

/// The server takes part in a request that was given up because of another change; it may be asked again.
const RETRIED_CODES: [i64; 3] = [-32801, -32802, -32800];

/// Bytes of what a server wrote about itself that are kept for an error.
const KEPT_LOG: usize = 4 * 1024;

/// How long a server may take to read a message.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// How a request failed.
#[derive(Debug, Clone)]
pub(crate) enum PeerFault {
    /// The server ended or can't be understood.
    Gone(ToolError),
    /// It didn't answer in time.
    Timeout,
    /// It refused, and says why.
    Refused { code: i64, message: String },
}

/// Receives what a server says about itself.
pub(crate) type LogSink = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// The server's side of the conversation.
pub(crate) struct LspPeer {
    pub(crate) server: String,
    child: Arc<dyn ChildProcess>,
    state: Mutex<PeerState>,
    /// Changes whenever something in the state does.
    changed: watch::Sender<u64>,
    writing: Arc<tokio::sync::Mutex<()>>,
    /// Answers `workspace/configuration`.
    settings: Value,
    folder: Value,
    log: LogSink,
    /// How what it logs begins once it has found the project's files; empty where that isn't waited for.
    found_files_words: Vec<String>,
}

#[derive(Default)]
struct PeerState {
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Value>>,
    closed: Option<ToolError>,
    /// Work that the server reports as going on, by token, in its words.
    progress: HashMap<String, String>,
    /// Whether it ever reported work.
    reported: bool,
    /// How often it began work, by title.
    begun: HashMap<String, u64>,
    /// What it says itself of being ready, where it has a word for that.
    quiescent: Option<bool>,
    /// Whether it logged that it has found the project's files.
    has_found_files: bool,
    /// What it says is wrong with the project, such as a manifest that it can't load.
    trouble: Option<String>,
    registered: HashSet<String>,
    published: HashMap<String, Published>,
    publications: u64,
    /// When it last said anything.
    heard: Option<Instant>,
    log: Vec<u8>,
}

/// What a server published about a document.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) version: Option<i64>,
    pub(crate) items: Value,
    /// Counts all publications of the server.
    pub(crate) serial: u64,
    pub(crate) at: Instant,
}

impl LspPeer {
    /// Begins to read what the server writes.
    pub(crate) fn start(
        entry: &ServerEntry,
        child: Arc<dyn ChildProcess>,
        settings: Value,
        folder: Value,
        log: LogSink,
    ) -> Arc<Self> {
        let peer = Arc::new(Self {
            server: entry.name.clone(),
            found_files_words: entry.found_files_words.clone(),
            child,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            writing: Arc::default(),
            settings,
            folder,
            log,
        });
        tokio::spawn(Arc::clone(&peer).read());
        peer
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().closed.is_none()
    }

    /// Kills the server and everything that it started. It counts as gone from now on, so that the next question starts another.
    pub(crate) fn kill(&self) {
        let fault = self.crashed("was ended");
        self.state.lock().closed.get_or_insert(fault);
        self.child.kill();
    }

    pub(crate) async fn wait(&self) {
        let _ = self.child.wait().await;
    }

    async fn read(self: Arc<Self>) {
        let mut buffer = MessageBuffer::default();
        let mut reason = "ended";
        while let Some(output) = self.child.output().await {
            match output {
                Output::Err(piece) => self.note(&piece),
                Output::Out(piece) => match buffer.add(&piece) {
                    Ok(messages) => messages.iter().for_each(|message| self.hear(message)),
                    Err(_) => {
                        reason = "wrote what isn't the protocol";
                        break;
                    }
                },
            }
        }
        let fault = self.crashed(reason);
        {
            let mut state = self.state.lock();
            state.closed.get_or_insert(fault);
            state.waiting.clear();
        }
        self.touch();
        self.child.kill();
        let _ = self.child.wait().await;
        self.child.release();
    }

    /// Keeps what the server writes about itself.
    fn note(&self, piece: &[u8]) {
        (self.log)(piece);
        let mut state = self.state.lock();
        state.log.extend_from_slice(piece);
        let excess = state.log.len().saturating_sub(KEPT_LOG);
        state.log.drain(..excess);
    }

    fn hear(self: &Arc<Self>, message: &[u8]) {
        let Ok(mut message) = serde_json::from_slice::<Value>(message) else {
            self.note(b"(a message that isn't JSON)\n");
            return;
        };
        self.state.lock().heard = Some(Instant::now());
        let method = message["method"].as_str().map(str::to_owned);
        let id = message.get("id").filter(|id| !id.is_null()).cloned();
        match (method, id) {
            (None, Some(id)) => {
                let waiting = id.as_u64().and_then(|id| self.state.lock().waiting.remove(&id));
                waiting.into_iter().for_each(|waiting| drop(waiting.send(message.take())));
            }
            (Some(method), Some(id)) => self.answer(method, id, message["params"].take()),
            (Some(method), None) => self.take_notification(&method, &message["params"]),
            (None, None) => {}
        }
    }

    fn take_notification(&self, method: &str, params: &Value) {
        match method {
            "textDocument/publishDiagnostics" => {
                let mut state = self.state.lock();
                state.publications += 1;
                let published = Published {
                    version: params["version"].as_i64(),
                    items: params["diagnostics"].clone(),
                    serial: state.publications,
                    at: Instant::now(),
                };
                let uri = params["uri"].as_str().unwrap_or_default().to_owned();
                state.published.insert(canonical_uri(&uri), published);
            }
            "$/progress" => self.take_progress(params),
            "experimental/serverStatus" => {
                let mut state = self.state.lock();
                state.quiescent = params["quiescent"].as_bool();
                let is_well = params["health"].as_str().is_none_or(|health| health == "ok");
                state.trouble = params["message"].as_str().filter(|_| !is_well).map(str::to_owned);
            }
            "window/logMessage" | "window/showMessage" => {
                let message = params["message"].as_str().unwrap_or_default();
                self.note(format!("{message}\n").as_bytes());
                if self.found_files_words.iter().any(|words| message.starts_with(words)) {
                    self.state.lock().has_found_files = true;
                }
            }
            _ => return,
        }
        self.touch();
    }

    fn take_progress(&self, params: &Value) {
        let (token, value) = (params["token"].to_string(), &params["value"]);
        let mut state = self.state.lock();
        let mut words: Vec<String> = ["title", "message"]
            .iter()
            .filter_map(|field| value[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned))
            .collect();
        if let Some(percentage) = value["percentage"].as_u64() {
            words.push(format!("{percentage} %"));
        }
        match value["kind"].as_str() {
            Some("begin") => {
                state.reported = true;
                *state.begun.entry(value["title"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
                state.progress.insert(token, words.join(", "));
            }
            Some("report") if !words.is_empty() => {
                if let Some(known) = state.progress.get_mut(&token) {
                    *known = words.join(", ");
                }
            }
            Some("end") => drop(state.progress.remove(&token)),
            _ => {}
        }
    }

    /// Answers a request of the server, in a task of its own: a server that doesn't read keeps nobody from reading.
    fn answer(self: &Arc<Self>, method: String, id: Value, params: Value) {
        let result = match method.as_str() {
            "workspace/configuration" => {
                let items = params["items"].as_array().cloned().unwrap_or_default();
                Some(items.iter().map(|item| self.section(item["section"].as_str())).collect())
            }
            "client/registerCapability" => {
                let registered = params["registrations"].as_array().cloned().unwrap_or_default();
                let methods = registered.iter().filter_map(|one| one["method"].as_str().map(str::to_owned));
                self.state.lock().registered.extend(methods);
                Some(Value::Null)
            }
            "workspace/workspaceFolders" => Some(json!([self.folder])),
            "workspace/applyEdit" => Some(json!({ "applied": false, "failureReason": "Only the gate changes files." })),
            "window/showDocument" => Some(json!({ "success": false })),
            "window/workDoneProgress/create"
            | "client/unregisterCapability"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/codeLens/refresh"
            | "workspace/foldingRange/refresh" => Some(Value::Null),
            _ => None,
        };
        let message = match result {
            Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            None => json!({ "jsonrpc": "2.0", "id": id, "error": {
                "code": -32601, "message": "This client doesn't offer that.",
            } }),
        };
        self.touch();
        let peer = Arc::clone(self);
        tokio::spawn(async move { peer.write(&message).await });
    }

    /// The settings of a section, such as `python.analysis`.
    fn section(&self, name: Option<&str>) -> Value {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return self.settings.clone() };
        let pointer = format!("/{}", name.replace('.', "/"));
        self.settings.pointer(&pointer).cloned().unwrap_or(Value::Null)
    }

    /// Sends a request and waits for its answer. Work that was given up because something changed is asked for again.
    pub(crate) async fn request(&self, method: &str, params: Value, until: Instant) -> Result<Value, PeerFault> {
        loop {
            match self.request_once(method, &params, until).await {
                Err(PeerFault::Refused { code, .. }) if RETRIED_CODES.contains(&code) && Instant::now() < until => {
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
                done => return done,
            }
        }
    }

    async fn request_once(&self, method: &str, params: &Value, until: Instant) -> Result<Value, PeerFault> {
        let (id, answer) = {
            let mut state = self.state.lock();
            if let Some(reason) = &state.closed {
                return Err(PeerFault::Gone(reason.clone()));
            }
            state.last_id += 1;
            let (sender, answer) = oneshot::channel();
            let id = state.last_id;
            state.waiting.insert(id, sender);
            (id, answer)
        };
        let waiting = UnansweredRequest { peer: self, id };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let answered = async {
            self.write(&message).await?;
            answer.await.map_err(|_| PeerFault::Gone(self.reason()))
        };
        let answered = match tokio::time::timeout_at(until, answered).await {
            Ok(answered) => answered,
            Err(_) => Err(PeerFault::Timeout),
        };
        drop(waiting);
        let mut answer = answered?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(PeerFault::Refused {
                code: answer["error"]["code"].as_i64().unwrap_or_default(),
                message: answer["error"]["message"].as_str().unwrap_or("no reason given").to_owned(),
            }),
        }
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) -> Result<(), PeerFault> {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        // A server that doesn't read any more would be waited for without end.
        tokio::time::timeout(WRITE_TIMEOUT, self.write(&message)).await.unwrap_or(Err(PeerFault::Timeout))
    }

    async fn write(&self, message: &Value) -> Result<(), PeerFault> {
        let (child, bytes) = (Arc::clone(&self.child), framed(&message.to_string()));
        let turn = Arc::clone(&self.writing).lock_owned().await;
        // In a task of its own: a call that is cancelled must not leave half of a message in the pipe.
        let written = tokio::spawn(async move {
            let _turn = turn;
            child.write(&bytes).await
        });
        written.await.ok().and_then(Result::ok).ok_or_else(|| PeerFault::Gone(self.reason()))
    }

    fn touch(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Waits until the state is as wanted; false if it isn't by then.
    async fn wait_until(&self, until: Instant, wanted: impl Fn(&PeerState) -> bool) -> bool {
        let mut changes = self.changed.subscribe();
        loop {
            {
                let state = self.state.lock();
                if wanted(&state) {
                    return true;
                }
                if state.closed.is_some() {
                    return false;
                }
            }
            if tokio::time::timeout_at(until, changes.changed()).await.is_err() {
                return false;
            }
        }
    }

    /// Waits until the server asked for a method to be used.
    pub(crate) async fn registers(&self, method: &str, until: Instant) -> bool {
        self.wait_until(until, |state| state.registered.contains(method)).await
    }

    pub(crate) fn is_registered(&self, method: &str) -> bool {
        self.state.lock().registered.contains(method)
    }

    /// How far the server is; none if it reports no work. Where it has a word for being ready, that counts.
    pub(crate) fn busy_with(&self, says_when_ready: bool) -> Option<String> {
        let state = self.state.lock();
        let mut work: Vec<&str> = self.counted_progress(&state).collect();
        work.sort_unstable();
        let is_searching = !self.has_found_files(&state);
        match (says_when_ready, state.quiescent) {
            (true, Some(true)) => None,
            (true, _) if work.is_empty() => Some("reading the project".into()),
            _ if work.is_empty() && is_searching => Some("looking for the project's files".into()),
            _ if work.is_empty() => None,
            _ => Some(work.join("; ")),
        }
    }

    /// Whether it said anything within this time.
    pub(crate) fn spoke_within(&self, time: Duration) -> bool {
        self.state.lock().heard.is_some_and(|heard| heard.elapsed() < time)
    }

    /// What the server says is wrong with the project.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state.lock().trouble.as_ref().map(|text| text.chars().filter(|one| !one.is_control()).take(300).collect())
    }

    /// Waits until the server reports no work any more.
    pub(crate) async fn becomes_ready(&self, says_when_ready: bool, until: Instant) -> bool {
        self.wait_until(until, |state| match says_when_ready {
            true => state.quiescent == Some(true),
            false => self.counted_progress(state).next().is_none() && self.has_found_files(state),
        })
        .await
    }

    /// How often the server began work with this title.
    pub(crate) fn begun(&self, title: &str) -> u64 {
        self.state.lock().begun.get(title).copied().unwrap_or_default()
    }

    /// Waits until the server has begun work with this title more often than before.
    pub(crate) async fn begins(&self, title: &str, before: u64, until: Instant) -> bool {
        self.wait_until(until, |state| state.begun.get(title).copied().unwrap_or_default() > before).await
    }

    /// The work that keeps answers from being complete. A server that says when it has found the project's files does the rest when it
    /// is asked; pyright never says the end of some of it.
    fn counted_progress<'a>(&self, state: &'a PeerState) -> impl Iterator<Item = &'a str> {
        let counts = self.found_files_words.is_empty();
        state.progress.values().map(String::as_str).filter(move |_| counts)
    }

    fn has_found_files(&self, state: &PeerState) -> bool {
        self.found_files_words.is_empty() || state.has_found_files
    }

    /// Waits until the server begins to report work.
    pub(crate) async fn reports_work(&self, until: Instant) -> bool {
        self.wait_until(until, |state| state.reported).await
    }

    /// How much was published so far.
    pub(crate) fn publications(&self) -> u64 {
        self.state.lock().publications
    }

    /// What was published last about a document, if `wanted` accepts it; waits for that.
    pub(crate) async fn published(
        &self,
        uri: &str,
        until: Instant,
        wanted: impl Fn(&Published) -> bool,
    ) -> Option<Published> {
        let uri = canonical_uri(uri);
        let is_there = |state: &PeerState| state.published.get(&uri).is_some_and(&wanted);
        if !self.wait_until(until, is_there).await {
            return None;
        }
        self.state.lock().published.get(&uri).cloned()
    }

    fn reason(&self) -> ToolError {
        self.state.lock().closed.clone().unwrap_or_else(|| self.crashed("doesn't take requests any more"))
    }

    /// The error for a server that has to start anew because of its configuration.
    pub(crate) fn outdated(&self) -> ToolError {
        self.crashed("has to start anew, since its configuration changed again")
    }

    /// The error for a server that failed, with the last of what it wrote.
    fn crashed(&self, what: &str) -> ToolError {
        let log = self.state.lock().log.clone();
        let log: String =
            String::from_utf8_lossy(&log).chars().filter(|one| !one.is_control() || *one == '\n').collect();
        let message = format!("The language server `{}` {what}.", self.server);
        ToolError::new(ErrorCode::ServerError, message)
            .with_hint("Ask once more, which starts it again, or use `grep`. `toolgate lsp logs` has its own words.")
            .with_details(json!({ "server": self.server, "server_status": ServerStatus::Crashed, "log": log.trim() }))
    }
}

/// A request that waits for its answer. Given up before that, it is cancelled.
struct UnansweredRequest<'a> {
    peer: &'a LspPeer,
    id: u64,
}

impl Drop for UnansweredRequest<'_> {
    fn drop(&mut self) {
        // Answered requests were taken out already; those that time out are ended with the server.
        self.peer.state.lock().waiting.remove(&self.id);
    }
}

/// A URI in one spelling: servers escape other characters than we do.
fn canonical_uri(uri: &str) -> String {
    file_uri_path(uri).map_or_else(|| uri.to_owned(), |path| file_uri(&path))
}
