//! Other MCP servers, whose tools can be called here. Whoever implements these speaks the protocol; where a server runs, what it
//! can touch and how long it lives is decided by the gate.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxFuture, ChildProcess, LaunchSpec, Person, RootAccess, SettledChanges, ToolError};

/// An MCP server that configuration names.
pub trait ToolServer: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &str;
    /// How it is started.
    fn launch_spec(&self) -> Result<LaunchSpec, ToolError>;
    /// What it may do in the workspace.
    fn workspace_access(&self) -> RootAccess;
    /// Hosts that it may connect to, beside those that policy allows.
    fn hosts(&self) -> &[String];
    /// Seconds without a call after which it is stopped.
    fn idle_seconds(&self) -> u64;
    /// Begins to speak to a server that was started.
    fn connect(&self, child: Arc<dyn ChildProcess>) -> BoxFuture<'_, Result<Arc<dyn ServerConnection>, ToolError>>;
}

/// A server that runs. Dropping the last hold on it ends it, with everything that it has started.
pub trait ServerConnection: Send + Sync {
    /// What it says of itself and of its tools.
    fn describe(&self) -> BoxFuture<'_, Result<ServerDescription, ToolError>>;
    /// Calls a tool, if the server defines it as it was approved. Gives the result as the server wrote it. What the server asks
    /// meanwhile is asked of this person.
    fn call<'a>(&'a self, call: &'a ServerCall, person: Arc<dyn Person>) -> BoxFuture<'a, Result<Value, ToolError>>;
    /// Whether it can still be spoken to.
    fn is_open(&self) -> bool;
    /// Ends it, and returns when it and all that it started are gone.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// A call of a server's tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCall {
    /// The tool as the server calls it.
    pub tool: String,
    /// The hash of its approved definition.
    pub definition: String,
    /// What the effect of the call has as its definition: this hash, and who the server is.
    pub approved_as: String,
    /// The arguments, validated against the approved schema.
    pub args: Value,
}

/// What a server says of itself. None of it is to be believed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerDescription {
    /// Its name and version.
    #[serde(default)]
    pub server: Value,
    /// What it wants models to be told.
    pub instructions: Option<String>,
    /// The definitions of its tools, as it wrote them.
    pub tools: Vec<Value>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerReply {
    /// The result as the server wrote it.
    pub result: Value,
    /// What the server changed in the workspace during the call.
    pub changes: Option<SettledChanges>,
}
