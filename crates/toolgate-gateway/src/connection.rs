//! A conversation with a server over its standard streams: one JSON-RPC message a line. The server may say anything at any time;
//! what answers no request of ours, or isn't a message at all, is passed over, and the conversation goes on.

mod pending;
mod protocol;
mod stderr_tail;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_contract::{
    BoxFuture, ChildProcess, ErrorCode, Output, Person, ServerCall, ServerConnection, ServerDescription, ToolError,
    counted,
};
use toolgate_dialects::strict_json;

use self::pending::PendingRequests;
use self::protocol::Protocol;
use self::stderr_tail::StderrTail;
use crate::definition::Definition;
use crate::elicitation;
use crate::foreign_text::excerpt;
use crate::lines::LineBuffer;

/// How long a server may take until it is ready to be called.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a server may ask the person during one call.
const MOST_QUESTIONS: usize = 5;

/// Requests of the server that may wait for an answer at a time.
const MOST_OPEN_REQUESTS: usize = 16;

/// Bytes of the id of a server's request.
const LONGEST_ID: usize = 256;

/// Characters of what a server says of an error.
const LONGEST_ERROR: usize = 2000;

/// Pages of a list of tools, and bytes of all of them.
const MOST_PAGES: usize = 200;
const LARGEST_LIST: usize = 16 * 1024 * 1024;

/// A server that is spoken to. Dropping it ends the server.
pub(crate) struct Connection {
    peer: Arc<ServerPeer>,
    protocol: Protocol,
    about: ServerDescription,
    /// The definitions of all tools, as the server last listed them.
    listed: tokio::sync::Mutex<Option<Vec<Value>>>,
}

/// The server's side of the conversation.
struct ServerPeer {
    server: String,
    /// The workspace, as the server is told it.
    root: String,
    /// Requests of the server that aren't answered yet.
    open_requests: AtomicUsize,
    child: Arc<dyn ChildProcess>,
    pending: PendingRequests,
    stderr: Mutex<StderrTail>,
    /// Whether the server said that its tools have changed.
    is_list_stale: AtomicBool,
    /// Who is asked what the server asks; one for each call that runs, and how often was asked for it.
    people: Mutex<Vec<(Arc<dyn Person>, usize)>>,
    /// Held while a message is written, so that messages don't mix.
    writing: tokio::sync::Mutex<()>,
}

impl Connection {
    /// Begins a conversation with a server that was just started.
    pub(crate) async fn open(server: &str, root: &Path, child: Arc<dyn ChildProcess>) -> Result<Self, ToolError> {
        // Whoever gives up while the server starts doesn't leave it running.
        let mut starting = StartingServer(Some(Arc::clone(&child)));
        let peer = Arc::new(ServerPeer {
            server: server.to_owned(),
            root: format!("file://{}", root.display()),
            child,
            open_requests: AtomicUsize::new(0),
            pending: PendingRequests::default(),
            stderr: Mutex::default(),
            is_list_stale: AtomicBool::new(true),
            people: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        });
        tokio::spawn(Arc::clone(&peer).read());
        let opened = tokio::time::timeout(START_TIMEOUT, protocol::greet(&peer)).await;
        let greeted = opened.unwrap_or_else(|_| {
            let time = counted(START_TIMEOUT.as_secs(), "second");
            Err(peer.fault(&format!("didn't answer within {time} after it was started")))
        });
        let (protocol, about) = greeted?;
        starting.0 = None;
        Ok(Self { peer, protocol, about, listed: tokio::sync::Mutex::default() })
    }

    async fn list_tools(&self) -> Result<Vec<Value>, ToolError> {
        let (mut tools, mut cursor, mut bytes) = (Vec::new(), None::<Value>, 0);
        for _ in 0..MOST_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let mut page = self.peer.request("tools/list", self.protocol.params(params)).await?;
            let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
                return Err(self.peer.fault("answered `tools/list` without a list of tools"));
            };
            bytes += listed.iter().map(|tool| tool.to_string().len()).sum::<usize>();
            tools.extend(listed);
            cursor = page.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
            if cursor.is_none() {
                return Ok(tools);
            }
            if bytes > LARGEST_LIST {
                break;
            }
        }
        Err(self.peer.fault("has a list of tools without an end"))
    }

    /// Refuses a tool that isn't defined as it was approved.
    async fn check_definition(&self, call: &ServerCall) -> Result<(), ToolError> {
        let mut listed = self.listed.lock().await;
        if self.peer.is_list_stale.swap(false, Ordering::SeqCst) || listed.is_none() {
            *listed = None;
            let tools = self.list_tools().await;
            *listed = Some(tools.inspect_err(|_| self.peer.is_list_stale.store(true, Ordering::SeqCst))?);
        }
        let now = listed.as_deref().and_then(|tools| hash_of(tools, &call.tool));
        let now = now.as_ref();
        if now == Some(&call.definition) {
            return Ok(());
        }
        let (server, tool) = (&self.peer.server, &call.tool);
        let what = match now {
            Some(_) => "defines it differently now",
            None => "doesn't define it any more, or not in a usable way",
        };
        let message =
            format!("`{tool}` wasn't called: a person approved its definition, and the MCP server `{server}` {what}.");
        let details = json!({ "server": server, "tool": tool, "approved": call.definition, "now": now });
        Err(ToolError::new(ErrorCode::DefinitionChanged, message)
            .with_hint(format!(
                "Go on without it. A person sees the difference and decides with: toolgate mcp approve {server}"
            ))
            .with_details(details))
    }
}

/// The hash of a tool's definition. One that is there twice has none.
fn hash_of(tools: &[Value], name: &str) -> Option<String> {
    let mut named = tools.iter().filter(|raw| raw.get("name").and_then(Value::as_str) == Some(name));
    let (raw, another) = (named.next()?, named.next());
    another.is_none().then(|| Definition::hash_of(raw))
}

/// A server that is just being started. Dropped before it is ready, it ends.
struct StartingServer(Option<Arc<dyn ChildProcess>>);

impl Drop for StartingServer {
    fn drop(&mut self) {
        self.0.iter().for_each(|child| child.kill());
    }
}

impl ServerConnection for Connection {
    fn describe(&self) -> BoxFuture<'_, Result<ServerDescription, ToolError>> {
        Box::pin(async { Ok(ServerDescription { tools: self.list_tools().await?, ..self.about.clone() }) })
    }

    fn call<'a>(&'a self, call: &'a ServerCall, person: Arc<dyn Person>) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async {
            self.check_definition(call).await?;
            let _asked = AskedPerson::new(&self.peer, person);
            let params = json!({ "name": call.tool, "arguments": call.args });
            self.peer.request("tools/call", self.protocol.params(params)).await
        })
    }

    fn is_open(&self) -> bool {
        self.peer.pending.is_open()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.peer.child.kill();
            let _ = self.peer.child.wait().await;
        })
    }
}

/// A person who can be asked while a call runs.
struct AskedPerson<'a> {
    peer: &'a ServerPeer,
    person: Arc<dyn Person>,
}

impl<'a> AskedPerson<'a> {
    fn new(peer: &'a ServerPeer, person: Arc<dyn Person>) -> Self {
        peer.people.lock().push((Arc::clone(&person), 0));
        Self { peer, person }
    }
}

impl Drop for AskedPerson<'_> {
    fn drop(&mut self) {
        self.peer.people.lock().retain(|(person, _)| !Arc::ptr_eq(person, &self.person));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.peer.child.kill();
    }
}

impl ServerPeer {
    /// Reads what the server writes, until it ends.
    async fn read(self: Arc<Self>) {
        let mut lines = LineBuffer::default();
        let mut reason = "ended";
        while let Some(output) = self.child.output().await {
            match output {
                Output::Err(piece) => self.stderr.lock().add(&piece),
                Output::Out(piece) => match lines.add(&piece) {
                    Ok(whole) => {
                        for line in whole {
                            self.hear(&line).await;
                        }
                    }
                    Err(_) => {
                        reason = "wrote a line that is longer than any message";
                        self.child.kill();
                    }
                },
            }
        }
        let reason = self.fault(reason);
        self.pending.close(reason);
        self.child.kill();
        let _ = self.child.wait().await;
        self.child.release();
    }

    /// Takes one line of the server. What isn't a message is kept with its errors, where a person looks for the cause.
    async fn hear(self: &Arc<Self>, line: &[u8]) {
        let Ok(message) = strict_json::parse(line) else {
            self.stderr.lock().add(&[line, b"\n"].concat());
            return;
        };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (None, Some(id)) => self.pending.answer(id, &message),
            (Some("notifications/tools/list_changed"), None) => self.is_list_stale.store(true, Ordering::SeqCst),
            (Some(method), Some(id)) if is_usable_id(id) && self.begin_request() => {
                // In a task of its own: neither a person who thinks nor a server that doesn't read keeps us from reading.
                let (peer, method, id, params) =
                    (Arc::clone(self), method.to_owned(), id.clone(), message["params"].clone());
                tokio::spawn(async move {
                    let answer = match peer.serve(&method, &params).await {
                        Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                        None => json!({ "jsonrpc": "2.0", "id": id, "error": {
                            "code": -32601, "message": "This client doesn't offer that.",
                        } }),
                    };
                    let written = peer.write(&answer).await;
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

    /// The result of a request of the server; none for what isn't offered.
    async fn serve(&self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "ping" => Some(json!({})),
            "roots/list" => Some(json!({ "roots": [{ "uri": self.root, "name": "workspace" }] })),
            "elicitation/create" => Some(match self.person_to_ask() {
                Some(person) => elicitation::answer(&self.server, params, person.as_ref()).await,
                None => json!({ "action": "cancel" }),
            }),
            _ => None,
        }
    }

    /// The person of the call that began last, unless the server asked often enough.
    fn person_to_ask(&self) -> Option<Arc<dyn Person>> {
        let mut people = self.people.lock();
        let (person, asked) = people.last_mut()?;
        *asked += 1;
        (*asked <= MOST_QUESTIONS).then(|| Arc::clone(person))
    }

    /// Sends a request, and waits for its answer. A request that nobody waits for any more is cancelled.
    async fn request(self: &Arc<Self>, method: &str, params: Value) -> Result<Value, ToolError> {
        let mut waiting = self.pending.begin(Arc::clone(self))?;
        self.write(&json!({ "jsonrpc": "2.0", "id": waiting.id, "method": method, "params": params })).await?;
        let answer = waiting.answer().await?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => {
                let code = answer["error"]["code"].as_i64().unwrap_or_default();
                let words = excerpt(answer["error"]["message"].as_str().unwrap_or("no reason given"), LONGEST_ERROR);
                let message =
                    format!("The MCP server `{}` refused `{method}` ({code}). Its words: {words}", self.server);
                Err(ToolError::new(ErrorCode::ServerError, message).with_details(json!({ "code": code })))
            }
        }
    }

    async fn notify(&self, method: &str, params: Value) -> Result<(), ToolError> {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
    }

    async fn write(&self, message: &Value) -> Result<(), ToolError> {
        let _turn = self.writing.lock().await;
        self.child
            .write(format!("{message}\n").as_bytes())
            .await
            .map_err(|_| self.fault("doesn't take requests any more"))
    }

    /// The error for a server that failed, with the last of what it wrote about it.
    fn fault(&self, what: &str) -> ToolError {
        let errors = self.stderr.lock().text();
        let message = format!("The MCP server `{}` {what}.", self.server);
        let error = ToolError::new(ErrorCode::ServerError, message)
            .with_hint("Go on without its tools, or tell the person: its own words are in `stderr`.");
        if errors.is_empty() { error } else { error.with_details(json!({ "stderr": errors })) }
    }
}

/// Whether an id is one that a protocol would use: it is sent back, and kept until then.
fn is_usable_id(id: &Value) -> bool {
    id.is_number() || id.as_str().is_some_and(|id| id.len() <= LONGEST_ID)
}
