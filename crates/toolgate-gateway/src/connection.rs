//! A conversation with a server over its standard streams: one JSON-RPC message a line. The server may say anything at any time;
//! what answers no request of ours, or isn't a message at all, is passed over, and the conversation goes on.

mod pending;
mod protocol;
mod stderr_tail;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
use crate::foreign_text::cleaned;
use crate::lines::LineBuffer;

/// How long a server may take until it is ready to be called.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a server may ask the person during one call.
const MOST_QUESTIONS: usize = 5;

/// Pages of a list of tools, and bytes of all of them.
const MOST_PAGES: usize = 200;
const LARGEST_LIST: usize = 16 * 1024 * 1024;

/// A server that is spoken to. Dropping it ends the server.
pub(crate) struct Connection {
    peer: Arc<ServerPeer>,
    protocol: Protocol,
    about: ServerDescription,
    /// The hashes of all definitions, as the server last listed them.
    hashes: tokio::sync::Mutex<Option<HashMap<String, String>>>,
}

/// The server's side of the conversation.
struct ServerPeer {
    server: String,
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
    pub(crate) async fn open(server: &str, child: Arc<dyn ChildProcess>) -> Result<Self, ToolError> {
        let peer = Arc::new(ServerPeer {
            server: server.to_owned(),
            child,
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
        match greeted {
            Ok((protocol, about)) => Ok(Self { peer, protocol, about, hashes: tokio::sync::Mutex::default() }),
            Err(error) => {
                peer.child.kill();
                Err(error)
            }
        }
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
        let mut hashes = self.hashes.lock().await;
        if self.peer.is_list_stale.swap(false, Ordering::SeqCst) || hashes.is_none() {
            *hashes = None;
            let tools =
                self.list_tools().await.inspect_err(|_| self.peer.is_list_stale.store(true, Ordering::SeqCst))?;
            *hashes = Some(hashes_of(tools));
        }
        let now = hashes.as_ref().and_then(|hashes| hashes.get(&call.tool));
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

/// The hashes of definitions, by the name of the tool. A name that is there twice has none.
fn hashes_of(tools: Vec<Value>) -> HashMap<String, String> {
    let mut hashes = HashMap::<String, Option<String>>::new();
    for definition in tools.into_iter().filter_map(|raw| Definition::read(raw).ok()) {
        let entry = hashes.entry(definition.name().to_owned());
        entry.and_modify(|known| *known = None).or_insert_with(|| Some(definition.hash().to_owned()));
    }
    hashes.into_iter().filter_map(|(name, hash)| Some((name, hash?))).collect()
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
            (Some(method), Some(id)) => {
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
                    peer.write(&answer).await
                });
            }
            _ => {}
        }
    }

    /// The result of a request of the server; none for what isn't offered.
    async fn serve(&self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "ping" => Some(json!({})),
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
                let code = &answer["error"]["code"];
                let words = cleaned(answer["error"]["message"].as_str().unwrap_or("no reason given"));
                let message = format!("The MCP server `{}` refused `{method}`: {words} ({code}).", self.server);
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
