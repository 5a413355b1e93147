//! The server's side of a conversation. The server may say anything at any time; what answers no request of ours, or isn't a message
//! at all, is passed over, and the conversation goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate_contract::{ChildProcess, ErrorCode, Output, ServerListener, ToolError};
use toolgate_dialects::strict_json;

use super::ServerFacts;
use super::message_channel::MessageChannel;
use super::pending::PendingRequests;
use super::running_calls::CallsInProgress;
use super::stderr_tail::StderrTail;
use crate::elicitation;
use crate::foreign_text::excerpt;
use crate::lines::LineBuffer;
use crate::sampling;

/// Requests of the server that may wait for an answer at a time.
const MOST_OPEN_REQUESTS: usize = 16;

/// Bytes of the id of a server's request.
const LONGEST_ID: usize = 256;

/// Characters of what a server says of an error.
const LONGEST_ERROR: usize = 2000;

/// The server's side of a conversation.
pub(super) struct ServerPeer {
    pub(super) server: String,
    /// The workspace, as the server is told it; none for a server that doesn't have it.
    root: Option<String>,
    pub(super) channel: MessageChannel,
    pub(super) pending: PendingRequests,
    /// The calls that run now.
    pub(super) calls: CallsInProgress,
    /// Whether the server said that its tools have changed.
    pub(super) is_list_stale: AtomicBool,
    /// Whether the server says so at all, unasked. Otherwise its tools are listed before every call.
    pub(super) announces_changes: AtomicBool,
    /// Whether the server can say when its lists change.
    pub(super) has_changing_lists: AtomicBool,
    /// Wakes whoever lists the tools again.
    pub(super) lists_changed: Arc<Notify>,
    /// Whether it may use the model of whoever calls it.
    pub(super) may_sample: bool,
    listener: Arc<dyn ServerListener>,
    /// Held while a message is written, so that messages don't mix.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// Requests of the server that aren't answered yet.
    open_requests: AtomicUsize,
    stderr: Mutex<StderrTail>,
}

impl ServerPeer {
    pub(super) fn new(facts: &ServerFacts<'_>, channel: MessageChannel) -> Arc<Self> {
        Arc::new(Self {
            server: facts.name.to_owned(),
            root: facts.root.map(|root| format!("file://{}", root.display())),
            channel,
            pending: PendingRequests::default(),
            calls: CallsInProgress::default(),
            is_list_stale: AtomicBool::new(true),
            announces_changes: AtomicBool::new(false),
            has_changing_lists: AtomicBool::new(false),
            lists_changed: Arc::default(),
            may_sample: facts.may_sample,
            listener: Arc::clone(&facts.listener),
            writing: tokio::sync::Mutex::default(),
            open_requests: AtomicUsize::new(0),
            stderr: Mutex::default(),
        })
    }

    /// Reads what a program writes, until it ends.
    pub(super) async fn read(self: Arc<Self>, child: Arc<dyn ChildProcess>) {
        let mut lines = LineBuffer::default();
        let mut reason = "ended";
        while let Some(output) = child.output().await {
            match output {
                Output::Err(piece) => self.stderr.lock().add(&piece),
                Output::Out(piece) => match lines.add(&piece) {
                    Ok(whole) => whole.iter().for_each(|line| self.hear(line)),
                    Err(_) => {
                        reason = "wrote a line that is longer than any message";
                        child.kill();
                    }
                },
            }
        }
        let reason = match child.ran_out_of_memory() {
            true => "was ended, as it used more memory than `memory_bytes` of its configuration lets it",
            false => reason,
        };
        self.pending.close(self.fault(reason));
        child.kill();
        let _ = child.wait().await;
        child.release();
    }

    /// Takes one message of the server. What isn't one is kept with its errors, where a person looks for the cause.
    pub(super) fn hear(self: &Arc<Self>, line: &[u8]) {
        let Ok(message) = strict_json::parse(line) else {
            self.stderr.lock().add(&[line, b"\n"].concat());
            return;
        };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (None, Some(id)) => self.pending.answer(id.as_u64(), message),
            (Some("notifications/tools/list_changed"), None) => {
                self.is_list_stale.store(true, Ordering::SeqCst);
                self.lists_changed.notify_one();
            }
            (Some("notifications/resources/list_changed"), None) => self.listener.resources_changed(&self.server),
            (Some("notifications/progress"), None) => self.calls.hear_progress(&self.server, &message["params"]),
            (Some(method), Some(id)) if is_usable_id(id) && self.begin_request() => {
                // In a task of its own: neither a person who thinks nor a server that doesn't read keeps us from reading.
                let (peer, method, id, params) =
                    (Arc::clone(self), method.to_owned(), id.clone(), message["params"].clone());
                tokio::spawn(async move {
                    let answer = match peer.serve(&method, &params).await {
                        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                        Err(reason) => json!({ "jsonrpc": "2.0", "id": id, "error": {
                            "code": -32601, "message": reason,
                        } }),
                    };
                    let written = peer.channel.send(&peer, &answer).await;
                    peer.open_requests.fetch_sub(1, Ordering::SeqCst);
                    written
                });
            }
            _ => {}
        }
    }

    /// Counts a request of the server. One that doesn't read answers can't have more and more of them waiting.
    fn begin_request(&self) -> bool {
        let begun = self.open_requests.fetch_add(1, Ordering::SeqCst) < MOST_OPEN_REQUESTS;
        if !begun {
            self.open_requests.fetch_sub(1, Ordering::SeqCst);
        }
        begun
    }

    /// The result of a request of the server, or why it gets none.
    pub(super) async fn serve(&self, method: &str, params: &Value) -> Result<Value, String> {
        match (method, &self.root) {
            ("ping", _) => Ok(json!({})),
            ("roots/list", Some(root)) => Ok(json!({ "roots": [{ "uri": root, "name": "workspace" }] })),
            ("roots/list", None) => Ok(json!({ "roots": [] })),
            ("elicitation/create", _) => Ok(match self.calls.begin_question() {
                Some(question) => elicitation::answer(&self.server, params, question.person.as_ref()).await,
                None => json!({ "action": "cancel" }),
            }),
            ("sampling/createMessage", _) if self.may_sample => match self.calls.begin_question() {
                Some(question) => sampling::answer(&self.server, params, question.person.as_ref()).await,
                None => Err("No call of a client runs, or it was asked too often for it.".into()),
            },
            ("sampling/createMessage", _) => Err(format!(
                "Sampling is off. A person turns it on with `sampling = true` in `[mcp.servers.{}]`.",
                self.server
            )),
            _ => Err("This client doesn't offer that.".into()),
        }
    }

    /// Sends a request, and waits for its answer. A request that nobody waits for any more is cancelled.
    pub(super) async fn request(self: &Arc<Self>, method: &str, params: Value) -> Result<Value, ToolError> {
        let mut waiting = self.pending.begin(Arc::clone(self))?;
        let message = json!({ "jsonrpc": "2.0", "id": waiting.id, "method": method, "params": params });
        self.channel.send(self, &message).await.inspect_err(|_| waiting.forget())?;
        let mut answer = waiting.answer().await?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => {
                let code = answer["error"]["code"].as_i64().unwrap_or_default();
                let words = excerpt(answer["error"]["message"].as_str().unwrap_or("no reason given"), LONGEST_ERROR);
                let message =
                    format!("The MCP server `{}` refused `{method}` ({code}). Its words: {words}", self.server);
                Err(ToolError::new(ErrorCode::ServerError, message).with_details(json!({ "code": code })))
            }
        }
    }

    pub(super) async fn notify(self: &Arc<Self>, method: &str, params: Value) -> Result<(), ToolError> {
        self.channel.send(self, &json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
    }

    /// The last of what a program wrote to its standard error.
    pub(super) fn stderr(&self) -> String {
        self.stderr.lock().text()
    }

    /// The error for a server that failed, with the last of what it wrote about it.
    pub(super) fn fault(&self, what: &str) -> ToolError {
        let errors = self.stderr();
        let message = format!("The MCP server `{}` {what}.", self.server);
        let error = ToolError::new(ErrorCode::ServerError, message);
        match errors.is_empty() {
            true => error.with_hint("Go on without its tools, or tell the person."),
            false => error
                .with_hint("Go on without its tools, or tell the person: its own words are in `stderr`.")
                .with_details(json!({ "stderr": errors })),
        }
    }
}

/// Whether an id is one that a protocol would use: it is sent back, and kept until then.
fn is_usable_id(id: &Value) -> bool {
    id.is_number() || id.as_str().is_some_and(|id| id.len() <= LONGEST_ID)
}
