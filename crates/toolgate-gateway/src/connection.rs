//! A conversation with a server: what it says of itself, its tools, their calls, its resources. What is called is checked against
//! what a person approved, at the time of the call.

mod event_stream;
mod http_channel;
mod message_channel;
mod peer;
mod pending;
mod protocol;
mod running_calls;
mod stderr_tail;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_contract::{
    BoxFuture, ChildProcess, ErrorCode, Person, ServerCall, ServerConnection, ServerDescription, ServerLifetime,
    ToolError, counted, sha256,
};

pub(crate) use self::http_channel::{HttpChannel, read as read_body};
use self::message_channel::MessageChannel;
use self::peer::ServerPeer;
use self::protocol::Protocol;
pub use self::protocol::ProtocolChoice;
use self::running_calls::{MOST_QUESTIONS, TrackedServerCall};
use crate::definition::{Definition, canonical};

/// How long a server may take until it is ready to be called.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Pages of a list of tools, and bytes of all of them.
const MOST_PAGES: usize = 200;
const LARGEST_LIST: usize = 16 * 1024 * 1024;

/// What is known of a server before it is spoken to.
pub(crate) struct ServerFacts<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// The workspace's directory, for a server that has it.
    pub(crate) root: Option<&'a Path>,
    /// Which protocol versions are tried.
    pub(crate) protocol: ProtocolChoice,
    /// How long a call may take without a sign of life.
    pub(crate) timeout: Duration,
}

/// A server that is spoken to. Dropping it ends the server.
pub(crate) struct Connection {
    peer: Arc<ServerPeer>,
    protocol: Protocol,
    about: ServerDescription,
    timeout: Duration,
    /// The definitions of all tools, as the server last listed them.
    listed: tokio::sync::Mutex<Option<Vec<Value>>>,
}

impl Connection {
    /// Begins a conversation with a program that was just started.
    pub(crate) async fn to_program(facts: &ServerFacts<'_>, child: Arc<dyn ChildProcess>) -> Result<Self, ToolError> {
        let peer = ServerPeer::new(facts.name, facts.root, MessageChannel::Program(Arc::clone(&child)));
        tokio::spawn(Arc::clone(&peer).read(child));
        Self::open(peer, facts).await
    }

    /// Begins a conversation over HTTP.
    pub(crate) async fn to_address(facts: &ServerFacts<'_>, channel: HttpChannel) -> Result<Self, ToolError> {
        Self::open(ServerPeer::new(facts.name, facts.root, MessageChannel::Http(channel)), facts).await
    }

    async fn open(peer: Arc<ServerPeer>, facts: &ServerFacts<'_>) -> Result<Self, ToolError> {
        // Whoever gives up while the server starts doesn't leave it running.
        let mut starting = StartingServer(Some(Arc::clone(&peer)));
        let limit = START_TIMEOUT.min(facts.timeout);
        let opened = tokio::time::timeout(limit, protocol::greet(&peer, facts.protocol)).await;
        let greeted = opened.unwrap_or_else(|_| {
            let time = counted(limit.as_secs(), "second");
            Err(peer.fault(&format!("didn't answer within {time} after it was started")))
        });
        let (protocol, about) = greeted?;
        starting.0 = None;
        Ok(Self { peer, protocol, about, timeout: facts.timeout, listed: tokio::sync::Mutex::default() })
    }

    async fn list_tools(&self) -> Result<Vec<Value>, ToolError> {
        let (mut tools, mut cursor, mut bytes) = (Vec::new(), None::<Value>, 0);
        for _ in 0..MOST_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let mut page = self.timed("tools/list", params, None).await?;
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

    /// Refuses a server that says it is another one, and a tool that isn't defined as it was approved.
    async fn check_definition(&self, call: &ServerCall) -> Result<(), ToolError> {
        if let Some(approved) = &call.server_hash
            && *approved != server_hash(&self.about.server)
        {
            let now = crate::foreign_text::excerpt(&self.about.server.to_string(), 200);
            let what = format!("says that it is another one now: {now}");
            return Err(self.changed(call, &what, Some(approved.clone()), Some(server_hash(&self.about.server))));
        }
        let mut listed = self.listed.lock().await;
        let is_stale = self.peer.is_list_stale.swap(false, Ordering::SeqCst);
        if is_stale || listed.is_none() || !self.peer.announces_changes.load(Ordering::SeqCst) {
            *listed = None;
            let tools = self.list_tools().await;
            *listed = Some(tools.inspect_err(|_| self.peer.is_list_stale.store(true, Ordering::SeqCst))?);
        }
        let now = listed.as_deref().and_then(|tools| hash_of(tools, &call.tool));
        if now.as_ref() == Some(&call.definition) {
            return Ok(());
        }
        let what = match now {
            Some(_) => "defines it differently now",
            None => "doesn't define it any more, or not in a usable way",
        };
        Err(self.changed(call, what, Some(call.definition.clone()), now))
    }

    fn changed(&self, call: &ServerCall, what: &str, approved: Option<String>, now: Option<String>) -> ToolError {
        let (server, tool) = (&self.peer.server, &call.tool);
        let message =
            format!("`{tool}` wasn't called: a person approved its definition, and the MCP server `{server}` {what}.");
        let details = json!({ "server": server, "tool": tool, "approved": approved, "now": now });
        ToolError::new(ErrorCode::DefinitionChanged, message)
            .with_hint(format!(
                "Go on without it. A person sees the difference and decides with: toolgate mcp approve {server}"
            ))
            .with_details(details)
    }

    /// Calls a tool. A server of the version without a handshake asks the person by its result, and is then called again with the
    /// answers and with the state that it gave.
    async fn call_in_rounds(&self, call: &ServerCall, running: &TrackedServerCall<'_>) -> Result<Value, ToolError> {
        let mut params = json!({ "name": call.tool, "arguments": call.args });
        for _ in 0..=MOST_QUESTIONS {
            params["_meta"] = json!({ "progressToken": running.token });
            let mut result = self.timed("tools/call", params.clone(), Some(running)).await?;
            if self.protocol != Protocol::Stateless || result["resultType"] != "input_required" {
                return Ok(result);
            }
            params["inputResponses"] = self.answers(&result["inputRequests"]).await?.into();
            match result["requestState"].take() {
                Value::Null => drop(params.as_object_mut().and_then(|params| params.remove("requestState"))),
                state => params["requestState"] = state,
            }
        }
        Err(self.peer.fault("asks again and again instead of answering"))
    }

    /// What the person, or the gate, answers to the questions of a result.
    async fn answers(&self, asked: &Value) -> Result<Map<String, Value>, ToolError> {
        let mut answers = Map::new();
        for (name, request) in asked.as_object().into_iter().flatten().take(MOST_QUESTIONS) {
            let method = request["method"].as_str().unwrap_or_default();
            let Some(answer) = self.peer.serve(method, &request["params"]).await else {
                return Err(self.peer.fault(&format!("asks for `{}`, which isn't offered", crate::visible(method))));
            };
            answers.insert(name.clone(), answer);
        }
        Ok(answers)
    }

    /// A request that is given up when the server shows no sign of life for too long.
    async fn timed(
        &self,
        method: &str,
        params: Value,
        running: Option<&TrackedServerCall<'_>>,
    ) -> Result<Value, ToolError> {
        let answer = self.peer.request(method, self.protocol.params(params));
        tokio::pin!(answer);
        loop {
            let beat = async {
                match running {
                    Some(running) => running.pulse.beat.notified().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                () = beat => {}
                () = tokio::time::sleep(self.timeout) => {
                    if !running.is_some_and(|running| running.pulse.waits_for_person()) {
                        let (server, time) = (&self.peer.server, counted(self.timeout.as_secs(), "second"));
                        let message = format!("The MCP server `{server}` didn't answer `{method}` within {time}.");
                        return Err(ToolError::new(ErrorCode::Timeout, message).with_hint(
                            "The call may have had its effect. Look before you repeat it, or ask for less in one call.",
                        ));
                    }
                }
            }
        }
    }
}

/// The hash of what a server says that it is.
pub(crate) fn server_hash(about: &Value) -> String {
    sha256(canonical(about).to_string())
}

/// The hash of a tool's definition. One that is there twice has none.
fn hash_of(tools: &[Value], name: &str) -> Option<String> {
    let mut named = tools.iter().filter(|raw| raw.get("name").and_then(Value::as_str) == Some(name));
    let (raw, another) = (named.next()?, named.next());
    another.is_none().then(|| Definition::hash_of(raw))
}

/// A server that is just being started. Dropped before it is ready, it ends.
struct StartingServer(Option<Arc<ServerPeer>>);

impl Drop for StartingServer {
    fn drop(&mut self) {
        self.0.iter().for_each(|peer| peer.channel.close());
    }
}

impl ServerConnection for Connection {
    fn describe(&self) -> BoxFuture<'_, Result<ServerDescription, ToolError>> {
        Box::pin(async { Ok(ServerDescription { tools: self.list_tools().await?, ..self.about.clone() }) })
    }

    fn call<'a>(&'a self, call: &'a ServerCall, person: Arc<dyn Person>) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async {
            self.check_definition(call).await?;
            self.call_in_rounds(call, &self.peer.calls.begin(person)).await
        })
    }

    fn list_resources<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            self.timed("resources/list", params, None).await
        })
    }

    fn read_resource<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move { self.timed("resources/read", json!({ "uri": uri }), None).await })
    }

    fn stderr(&self) -> String {
        self.peer.stderr()
    }
}

impl ServerLifetime for Connection {
    fn is_open(&self) -> bool {
        self.peer.pending.is_open()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.peer.channel.end())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.peer.pending.close(ToolError::cancelled());
        self.peer.channel.close();
    }
}
