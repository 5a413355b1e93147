//! Tools of a client's own: it registers them in its session, calls of them come back to it, and it posts their results. They are found,
//! validated, judged, approved and recorded like any other, and leave with the session.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::{JsonSchema, Schema};
use semver::Version;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;
use toolgate_contract::{
    AnyTool, ArgumentFormat, BoxFuture, Declaration, Effect, ErrorCode, Hands, Permission, PreparedCall, Preview,
    ResultForm, Risk, ToolError, VersionAdapter, payload_schema, schemars, sha256,
};

use crate::registry::RegisteredTool;

/// What begins the name of every such tool, so that none hides another.
const PREFIX: &str = "client__";

/// Whose tools these are, in effects.
const CLIENT: &str = "client";

/// Tools of one session, and characters of a name.
const MOST_TOOLS: usize = 128;
const LONGEST_NAME: usize = 48;

/// How long a client may take for a call.
const LONGEST_CALL: Duration = Duration::from_secs(600);

/// The tools that a session's client registered, and their calls that wait for a result.
#[derive(Default)]
pub struct ClientTools(Mutex<ClientToolsState>);

#[derive(Default)]
struct ClientToolsState {
    tools: BTreeMap<String, Arc<RegisteredTool>>,
    waiting: HashMap<String, (ClientToolCall, oneshot::Sender<Result<Value, String>>)>,
    is_ended: bool,
}

/// A tool as a client describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientToolDefinition {
    /// Its name, without what is put before it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub args_schema: Value,
    /// How much harm it can do.
    pub risk: Risk,
}

/// A call that waits for its client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClientToolCall {
    /// The call, under which its result is posted.
    pub tool_call_id: String,
    /// The tool, as the client named it.
    pub tool: String,
    /// Its validated arguments.
    pub args: Value,
}

/// Tells the client of a call.
pub type CallAnnouncer = Arc<dyn Fn(&ClientToolCall) + Send + Sync>;

impl ClientTools {
    /// Registers a tool, and gives its whole name. One of the same name is replaced, and what was approved of it doesn't count any more.
    pub fn register(
        self: &Arc<Self>,
        definition: ClientToolDefinition,
        announce: CallAnnouncer,
    ) -> Result<String, ToolError> {
        let tool = ClientTool::new(definition, Arc::clone(self), announce)?;
        let name = tool.declaration.name.clone();
        let registered = RegisteredTool::checked(Arc::new(tool)).map_err(|fault| invalid(fault.to_string()))?;
        let mut state = self.0.lock();
        if state.is_ended || (state.tools.len() >= MOST_TOOLS && !state.tools.contains_key(&name)) {
            return Err(ToolError::new(ErrorCode::LimitReached, "The session takes no more tools of its client."));
        }
        state.tools.insert(name.clone(), Arc::new(registered));
        Ok(name)
    }

    /// Removes a tool by its whole name. Calls that wait go on.
    pub fn remove(&self, name: &str) -> bool {
        self.0.lock().tools.remove(name).is_some()
    }

    /// The declarations of all of them.
    pub fn declarations(&self) -> Vec<Declaration> {
        self.0.lock().tools.values().map(|tool| tool.declaration().clone()).collect()
    }

    /// The calls that wait for a result.
    pub fn waiting(&self) -> Vec<ClientToolCall> {
        self.0.lock().waiting.values().map(|(call, _)| call.clone()).collect()
    }

    /// Takes the result of a call, or why it failed. Says whether the call waited for it; the first answer counts.
    pub fn answer(&self, tool_call_id: &str, result: Result<Value, String>) -> bool {
        let waiting = self.0.lock().waiting.remove(tool_call_id);
        waiting.is_some_and(|(_, sender)| sender.send(result).is_ok())
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        self.0.lock().tools.get(name).cloned()
    }

    /// Forgets all tools, and ends the calls that wait.
    pub(crate) fn end(&self) {
        let mut state = self.0.lock();
        state.is_ended = true;
        state.tools.clear();
        state.waiting.clear();
    }
}

fn invalid(why: impl Into<String>) -> ToolError {
    ToolError::invalid_args(why)
}

/// A tool of a client.
struct ClientTool {
    declaration: Declaration,
    name: String,
    definition: String,
    tools: Arc<ClientTools>,
    announce: CallAnnouncer,
}

/// What a client's tool gave back.
#[derive(Debug, Serialize, JsonSchema)]
struct ClientToolOutput {
    /// The result, as the client posted it.
    result: Value,
}

impl ClientTool {
    fn new(
        definition: ClientToolDefinition,
        tools: Arc<ClientTools>,
        announce: CallAnnouncer,
    ) -> Result<Self, ToolError> {
        let ClientToolDefinition { name, description, args_schema, risk } = definition;
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if name.is_empty() || name.len() > LONGEST_NAME || !is_plain {
            return Err(invalid(format!("A tool's name has 1 to {LONGEST_NAME} letters, digits, `_` or `-`.")));
        }
        if args_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(invalid("The schema of a tool's arguments has the type `object`."));
        }
        let hash = sha256(serde_json::json!([name, description, args_schema, risk]).to_string());
        let schema = Schema::try_from(args_schema).map_err(|fault| invalid(fault.to_string()))?;
        let declaration = Declaration {
            name: format!("{PREFIX}{name}"),
            version: Version::new(1, 0, 0),
            description,
            args_schema: schema,
            return_schema: payload_schema::<ClientToolOutput>(),
            required_permissions: vec![Permission::McpCall],
            side_effects: Vec::new(),
            risk,
            parallel: true,
            form: ArgumentFormat::Function { strict: false },
            result_form: ResultForm::default(),
        };
        Ok(Self { declaration, name, definition: hash, tools, announce })
    }
}

impl AnyTool for ClientTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn adapters(&self) -> &[VersionAdapter] {
        &[]
    }

    fn longest(&self) -> Option<Duration> {
        Some(LONGEST_CALL)
    }

    fn prepare(&self, args: Value) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(PreparedClientCall {
            tool: self.name.clone(),
            args,
            definition: self.definition.clone(),
            tools: Arc::clone(&self.tools),
            announce: Arc::clone(&self.announce),
        }))
    }
}

/// A call that is ready to be given to its client.
struct PreparedClientCall {
    tool: String,
    args: Value,
    definition: String,
    tools: Arc<ClientTools>,
    announce: CallAnnouncer,
}

impl PreparedCall for PreparedClientCall {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::UseServer {
            server: CLIENT.to_owned(),
            tool: Some(self.tool.clone()),
            definition: Some(self.definition.clone()),
        }]
    }

    fn preview(&self, _: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        Ok(None)
    }

    fn run<'a>(self: Box<Self>, hands: &'a dyn Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let Self { tool, args, tools, announce, .. } = *self;
            let call = ClientToolCall { tool_call_id: hands.call().to_owned(), tool, args };
            let answered = tools.begin(call.clone())?;
            let _waiting = WaitingCall { tools: &tools, id: &call.tool_call_id };
            announce(&call);
            match answered.await {
                Ok(Ok(result)) => serde_json::to_value(ClientToolOutput { result })
                    .map_err(|fault| ToolError::internal(fault.to_string())),
                Ok(Err(why)) => Err(ToolError::new(ErrorCode::ServerError, format!("The client's tool failed: {why}"))),
                Err(_) => Err(ToolError::cancelled()),
            }
        })
    }
}

impl ClientTools {
    fn begin(&self, call: ClientToolCall) -> Result<oneshot::Receiver<Result<Value, String>>, ToolError> {
        let mut state = self.0.lock();
        if state.is_ended {
            return Err(ToolError::cancelled());
        }
        let (sender, answered) = oneshot::channel();
        state.waiting.insert(call.tool_call_id.clone(), (call, sender));
        Ok(answered)
    }
}

/// A call that waits. Dropped, nobody waits for its result any more.
struct WaitingCall<'a> {
    tools: &'a ClientTools,
    id: &'a str,
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.tools.0.lock().waiting.remove(self.id);
    }
}
