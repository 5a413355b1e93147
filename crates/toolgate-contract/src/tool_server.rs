//! Other MCP servers, whose tools can be called here. Whoever implements these speaks the protocol; where a server runs, what it
//! can touch and how long it lives is decided by the gate.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxFuture, ChildProcess, EgressPolicy, LaunchSpec, Person, RootAccess, SettledChanges, ToolError, Web};

/// The media type of artifacts that stand for what another server links to. No tool lets a model store one.
pub const SERVER_LINK: &str = "application/vnd.toolgate.mcp-link+json";

/// An MCP server that configuration names.
pub trait ToolServer: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &str;
    /// Where it is.
    fn location(&self) -> Result<ServerLocation, ToolError>;
    /// Fails if what it would be started from isn't what a person approved.
    fn check_files(&self) -> Result<(), ToolError> {
        Ok(())
    }
    /// What it may do in the workspace.
    fn workspace_access(&self) -> RootAccess;
    /// Hosts that it may connect to, beside those that policy allows.
    fn hosts(&self) -> &[String];
    /// Seconds without a call after which it is stopped.
    fn idle_seconds(&self) -> u64;
    /// Begins to speak to the server. What it lists from then on is told to the listener.
    fn connect(
        &self,
        channel: ServerChannel,
        listener: Arc<dyn ServerListener>,
    ) -> BoxFuture<'_, Result<Arc<dyn ServerConnection>, ToolError>>;
}

/// Hears what a running server lists.
pub trait ServerListener: Send + Sync {
    /// The server lists other tools than before: the hash of each definition, by the name that the server has for the tool.
    fn tools_listed(&self, server: &str, definitions: &BTreeMap<String, String>);
    /// The server says that its resources have changed.
    fn resources_changed(&self, server: &str);
}

/// The approved definition of a server's tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovedDefinition<'a> {
    /// The server.
    pub server: &'a str,
    /// The tool as the server calls it.
    pub tool: &'a str,
    /// The hash of the definition.
    pub hash: &'a str,
}

/// Where a server is.
pub enum ServerLocation {
    /// On this machine: a program that is started in a sandbox.
    Program(Box<LaunchSpec>),
    /// Elsewhere, at this host and port.
    Remote(String, u16),
}

/// What a server is spoken to through. The gate makes it, within what the server may reach.
pub enum ServerChannel {
    /// The standard streams of a program that was started.
    Program(Arc<dyn ChildProcess>),
    /// HTTP, as far as this egress policy lets it pass.
    Remote(Arc<dyn Web>, Arc<dyn EgressPolicy>),
}

/// A server that runs, whatever it speaks. Dropping the last hold on it ends it, with everything that it has started.
pub trait ServerLifetime: Any + Send + Sync {
    /// Whether it can still be spoken to.
    fn is_open(&self) -> bool;
    /// Ends it, and returns when it and all that it started are gone.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// An MCP server that runs.
pub trait ServerConnection: ServerLifetime {
    /// What it says of itself and of its tools.
    fn describe(&self) -> BoxFuture<'_, Result<ServerDescription, ToolError>>;
    /// Calls a tool, if the server defines it as it was approved. Gives the result as the server wrote it. What the server asks
    /// meanwhile is asked of this person.
    fn call<'a>(&'a self, call: &'a ServerCall, person: Arc<dyn Person>) -> BoxFuture<'a, Result<Value, ToolError>>;
    /// The resources that it lists, one page: the result as the server wrote it.
    fn list_resources<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Value, ToolError>>;
    /// The content of a resource: the result as the server wrote it.
    fn read_resource<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Value, ToolError>>;
    /// The last of what it wrote to its standard error.
    fn stderr(&self) -> String {
        String::new()
    }
}

/// A call of a server's tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCall {
    /// The tool as the server calls it.
    pub tool: String,
    /// The hash of its approved definition.
    pub definition: String,
    /// The hash of what the server said that it is when it was approved; none if it said nothing.
    pub server_hash: Option<String>,
    /// What the effect of the call has as its definition: this hash, and who the server is.
    pub approved_as: String,
    /// The arguments, validated against the approved schema.
    pub args: Value,
}

/// What is asked of a server beside calls of its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceRequest {
    /// A page of the list of resources, from this cursor on.
    List(Option<String>),
    /// The content of the resource with this URI.
    Read(String),
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
    /// What its sandbox kept from the server meanwhile, a sentence each. It may be why the tool failed.
    pub denials: Vec<String>,
}
