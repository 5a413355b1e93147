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

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use toolgate_contract::{
    BoxFuture, ChildProcess, ErrorCode, Person, ServerCall, ServerConnection, ServerDescription, ServerLifetime,
    ServerListener, ToolError, counted, sha256,
};

pub(crate) use self::http_channel::{HttpChannel, read as read_body};
use self::message_channel::MessageChannel;
use self::peer::ServerPeer;
use self::protocol::Protocol;
pub use self::protocol::ProtocolChoice;
use self::running_calls::{MOST_QUESTIONS, TrackedServerCall};
use crate::definition::{Definition, canonical};
use crate::foreign_text::excerpt;

/// How long a server may take until it is ready to be called. One whose package is fetched first takes its time.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Pages of a list of tools, and bytes of all of them.
const MOST_PAGES: usize = 200;
const LARGEST_LIST: usize = 16 * 1024 * 1024;

/// How long it takes at least until a server that says that its tools have changed is asked again.
const PAUSE_BETWEEN_LISTS: Duration = Duration::from_millis(200);

/// The part of a server's identity that it is started from.
pub(crate) const INSTALLED: &str = "installed";

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
    /// Whether it may use the model of whoever calls it.
    pub(crate) may_sample: bool,
    /// Who hears what it lists.
    pub(crate) listener: Arc<dyn ServerListener>,
}

/// A server that is spoken to. Dropping it ends the server.
pub(crate) struct Connection(Arc<Conversation>);

/// What is known of a server that is spoken to.
struct Conversation {
    peer: Arc<ServerPeer>,
    protocol: Protocol,
    about: ServerDescription,
    /// The hash of what the server says that it is.
    server_hash: String,
    timeout: Duration,
    listener: Arc<dyn ServerListener>,
    /// The tools as the server last listed them.
    listed: tokio::sync::Mutex<Option<ListedTools>>,
}

/// What a server lists.
struct ListedTools {
    tools: Vec<Value>,
    /// The hash of each tool's definition. One that is there twice has none.
    hashes: BTreeMap<String, String>,
}

impl ListedTools {
    fn new(tools: Vec<Value>) -> Self {
        let mut hashes = BTreeMap::<String, Option<String>>::new();
        for raw in &tools {
            let Some(name) = raw.get("name").and_then(Value::as_str) else { continue };
            let entry = hashes.entry(name.to_owned());
            entry.and_modify(|hash| *hash = None).or_insert_with(|| Some(Definition::hash_of(raw)));
        }
        let hashes = hashes.into_iter().filter_map(|(name, hash)| Some((name, hash?))).collect();
        Self { tools, hashes }
    }
}

impl Connection {
    /// Begins a conversation with a program that was just started.
    pub(crate) async fn to_program(
        facts: &ServerFacts<'_>,
        child: Arc<dyn ChildProcess>,
        installed: Option<Value>,
    ) -> Result<Self, ToolError> {
        let peer = ServerPeer::new(facts, MessageChannel::Program(Arc::clone(&child)));
        tokio::spawn(Arc::clone(&peer).read(child));
        Self::open(peer, facts, installed).await
    }

    /// Begins a conversation over HTTP.
    pub(crate) async fn to_address(facts: &ServerFacts<'_>, channel: HttpChannel) -> Result<Self, ToolError> {
        Self::open(ServerPeer::new(facts, MessageChannel::Http(channel)), facts, None).await
    }

    async fn open(peer: Arc<ServerPeer>, facts: &ServerFacts<'_>, installed: Option<Value>) -> Result<Self, ToolError> {
        // Whoever gives up while the server starts doesn't leave it running.
        let mut starting = StartingServer(Some(Arc::clone(&peer)));
        let limit = START_TIMEOUT.min(facts.timeout);
        let opened = tokio::time::timeout(limit, protocol::greet(&peer, facts.protocol)).await;
        let greeted = opened.unwrap_or_else(|_| {
            let time = counted(limit.as_secs(), "second");
            Err(peer.fault(&format!("didn't answer within {time} after it was started")))
        });
        let (protocol, mut about) = greeted?;
        about.server = with_installed(about.server, installed);
        starting.0 = None;
        let conversation = Arc::new(Conversation {
            peer,
            protocol,
            server_hash: server_hash(&about.server),
            about,
            timeout: facts.timeout,
            listener: Arc::clone(&facts.listener),
            listed: tokio::sync::Mutex::default(),
        });
        tokio::spawn(follow_lists(Arc::downgrade(&conversation), Arc::clone(&conversation.peer.lists_changed)));
        subscribe(&conversation);
        Ok(Self(conversation))
    }
}

/// Lists the tools again whenever the server says that they have changed, so that nobody is told of a changed one.
async fn follow_lists(conversation: Weak<Conversation>, changed: Arc<Notify>) {
    loop {
        changed.notified().await;
        let Some(conversation) = conversation.upgrade() else { return };
        if !conversation.peer.pending.is_open() {
            return;
        }
        let mut listed = conversation.listed.lock().await;
        // What couldn't be listed is listed before the next call.
        let _ = conversation.refresh(&mut listed).await;
        drop(listed);
        drop(conversation);
        tokio::time::sleep(PAUSE_BETWEEN_LISTS).await;
    }
}

/// Asks a server that says when its lists change to say so. One that is a program and has a handshake does it unasked.
fn subscribe(conversation: &Arc<Conversation>) {
    let Conversation { peer, protocol, .. } = conversation.as_ref();
    if !peer.has_changing_lists.load(Ordering::SeqCst) {
        return;
    }
    let (peer, protocol) = (Arc::clone(peer), *protocol);
    match (protocol, &peer.channel) {
        (Protocol::Handshake, MessageChannel::Program(_)) => {}
        (Protocol::Handshake, MessageChannel::Http(channel)) => channel.listen(&peer),
        (Protocol::Stateless, _) => {
            let wanted = json!({ "notifications": { "toolsListChanged": true, "resourcesListChanged": true } });
            // It is answered when the server ends, or refuses it; then its tools are listed before every call, as always.
            tokio::spawn(async move { peer.request("subscriptions/listen", protocol.params_for(&peer, wanted)).await });
        }
    }
}

impl Conversation {
    async fn list_tools(&self) -> Result<Vec<Value>, ToolError> {
        let (mut tools, mut cursor, mut bytes) = (Vec::new(), None::<Value>, 0);
        for _ in 0..MOST_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let mut page = self.timed("tools/list", params, None).await?;
            let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
                return Err(self.peer.fault("answered `tools/list` without a list of tools"));
            };
            let page_start = tools.len();
            tools.extend(listed);
            cursor = page.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
            if cursor.is_none() {
                return Ok(tools);
            }
            // The last page is bounded as every message is; nearly all lists are one page, and are listed before every call.
            bytes += tools[page_start..].iter().map(|tool| tool.to_string().len()).sum::<usize>();
            if bytes > LARGEST_LIST {
                break;
            }
        }
        Err(self.peer.fault("has a list of tools without an end"))
    }

    /// Refuses a server that says it is another one, and a tool that isn't defined as it was approved.
    async fn check_definition(&self, call: &ServerCall) -> Result<(), ToolError> {
        if let Some(approved) = &call.server_hash
            && *approved != self.server_hash
        {
            let now = excerpt(&self.about.server.to_string(), 300);
            let what = format!("is another one now: {now}");
            return Err(self.changed(call, &what, Some(approved.clone()), Some(self.server_hash.clone())));
        }
        let mut listed = self.listed.lock().await;
        let is_stale = self.peer.is_list_stale.load(Ordering::SeqCst);
        if is_stale || listed.is_none() || !self.peer.announces_changes.load(Ordering::SeqCst) {
            self.refresh(&mut listed).await?;
        }
        let now = listed.as_ref().and_then(|listed| listed.hashes.get(&call.tool)).cloned();
        if now.as_ref() == Some(&call.definition) {
            return Ok(());
        }
        let what = match now {
            Some(_) => "defines it differently now",
            None => "doesn't define it any more, or not in a usable way",
        };
        Err(self.changed(call, what, Some(call.definition.clone()), now))
    }

    /// Lists the tools again. Whoever listens is told if they aren't those that were listed before.
    async fn refresh(&self, listed: &mut Option<ListedTools>) -> Result<(), ToolError> {
        self.peer.is_list_stale.store(false, Ordering::SeqCst);
        let tools = self.list_tools().await.inspect_err(|_| {
            self.peer.is_list_stale.store(true, Ordering::SeqCst);
            *listed = None;
        })?;
        if listed.as_ref().is_none_or(|before| before.tools != tools) {
            let now = ListedTools::new(tools);
            self.listener.tools_listed(&self.peer.server, &now.hashes);
            *listed = Some(now);
        }
        Ok(())
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
        let mut answered = Map::new();
        for _ in 0..=MOST_QUESTIONS {
            let mut params = Map::from_iter([
                ("name".to_owned(), json!(call.tool)),
                ("arguments".to_owned(), call.args.clone()),
                ("_meta".to_owned(), json!({ "progressToken": running.token })),
            ]);
            params.append(&mut answered);
            let mut result = self.timed("tools/call", params.into(), Some(running)).await?;
            if self.protocol != Protocol::Stateless || result["resultType"] != "input_required" {
                return Ok(result);
            }
            answered.insert("inputResponses".into(), self.answers(&result["inputRequests"]).await?.into());
            let state = Some(result["requestState"].take()).filter(|state| !state.is_null());
            answered.extend(state.map(|state| ("requestState".to_owned(), state)));
        }
        Err(self.peer.fault("asks again and again instead of answering"))
    }

    /// What the person, or the gate, answers to the questions of a result.
    async fn answers(&self, asked: &Value) -> Result<Map<String, Value>, ToolError> {
        let mut answers = Map::new();
        for (name, request) in asked.as_object().into_iter().flatten().take(MOST_QUESTIONS) {
            let method = request["method"].as_str().unwrap_or_default();
            let answer = self.peer.serve(method, &request["params"]).await.map_err(|reason| {
                self.peer.fault(&format!("asks for `{}`, which it doesn't get: {reason}", excerpt(method, 80)))
            })?;
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
        let answer = self.peer.request(method, self.protocol.params_for(&self.peer, params));
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

/// Who a server is: what it says, and what we know of its files. What it says of its files itself doesn't count.
fn with_installed(mut server: Value, installed: Option<Value>) -> Value {
    if let Some(fields) = server.as_object_mut() {
        fields.remove(INSTALLED);
    }
    match (installed, server) {
        (None, server) => server,
        (Some(installed), Value::Object(mut fields)) => {
            fields.insert(INSTALLED.into(), installed);
            Value::Object(fields)
        }
        (Some(installed), other) => json!({ "says": other, INSTALLED: installed }),
    }
}

/// The hash of what a server says that it is.
pub(crate) fn server_hash(about: &Value) -> String {
    sha256(canonical(about).to_string())
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
        Box::pin(async { Ok(ServerDescription { tools: self.0.list_tools().await?, ..self.0.about.clone() }) })
    }

    fn call<'a>(&'a self, call: &'a ServerCall, person: Arc<dyn Person>) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async {
            self.0.check_definition(call).await?;
            self.0.call_in_rounds(call, &self.0.peer.calls.begin(person)).await
        })
    }

    fn list_resources<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            self.0.timed("resources/list", params, None).await
        })
    }

    fn read_resource<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move { self.0.timed("resources/read", json!({ "uri": uri }), None).await })
    }

    fn stderr(&self) -> String {
        self.0.peer.stderr()
    }
}

impl ServerLifetime for Connection {
    fn is_open(&self) -> bool {
        self.0.peer.pending.is_open()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.peer.channel.end())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.peer.pending.close(ToolError::cancelled());
        self.0.peer.lists_changed.notify_one();
        self.0.peer.channel.close();
    }
}
