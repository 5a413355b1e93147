//! A server as configuration describes it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_contract::{
    BoxFuture, ErrorCode, LaunchSpec, RootAccess, ServerChannel, ServerConnection, ServerListener, ServerLocation,
    StartDirectory, Streams, ToolError, ToolServer, quoted,
};

use crate::connection::{Connection, INSTALLED, ProtocolChoice, ServerFacts};

/// Says what a program is started from: its package, and a hash of its files.
pub type InstalledFiles = Arc<dyn Fn() -> Option<Value> + Send + Sync>;

/// Says what a person approved that a server is.
pub type ApprovedIdentity = Arc<dyn Fn() -> Result<Option<Value>, ToolError> + Send + Sync>;

/// What configuration says of a server.
#[derive(Clone)]
pub struct ServerOptions {
    /// Its name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its variables, secrets included.
    pub environment: BTreeMap<OsString, OsString>,
    /// Its own directory, which is its home, and where it starts unless it starts in the workspace. It exists.
    pub home: PathBuf,
    /// Whether it starts in the workspace. What is there may then be taken for a part of it.
    pub starts_in_workspace: bool,
    /// The workspace's directory, which it is told as its root.
    pub directory: PathBuf,
    /// Directories beside the workspace that it may read, its own program's among them.
    pub roots: Vec<PathBuf>,
    /// What it may do in the workspace.
    pub workspace: RootAccess,
    /// Hosts that it may connect to.
    pub hosts: Vec<String>,
    /// Which protocol versions are tried.
    pub protocol: ProtocolChoice,
    /// How long a call may take without a sign of life.
    pub timeout: Duration,
    /// Seconds without a call after which it is stopped.
    pub idle_seconds: u64,
    /// Bytes of memory that it and all that it starts may use together.
    pub memory_bytes: u64,
    /// Whether it may use the model of whoever calls it.
    pub may_sample: bool,
    /// What it is started from. A part of who it is, which a person approves.
    pub installed: InstalledFiles,
    /// What a person approved that it is, its files among it; none if nobody has yet.
    pub approved: ApprovedIdentity,
}

/// A server that is started as a program and spoken to over its standard streams.
pub struct ConfiguredServer {
    options: ServerOptions,
}

impl ConfiguredServer {
    /// A server that isn't started yet.
    pub fn new(options: ServerOptions) -> Self {
        Self { options }
    }
}

impl ToolServer for ConfiguredServer {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn location(&self) -> Result<ServerLocation, ToolError> {
        let ServerOptions { command, environment, home, roots, .. } = &self.options;
        let [program, arguments @ ..] = &command[..] else {
            return Err(ToolError::internal("A server without a command can't be started."));
        };
        let home_variable = (OsString::from("HOME"), home.clone().into_os_string());
        Ok(ServerLocation::Program(Box::new(LaunchSpec {
            command: command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            arguments: arguments.iter().map(OsString::from).collect(),
            environment: [home_variable].into_iter().chain(environment.clone()).collect(),
            streams: Streams::Input,
            directory: match self.options.starts_in_workspace {
                true => StartDirectory::default(),
                false => StartDirectory::Machine(home.clone()),
            },
            without_caches: true,
            writable: vec![home.clone()],
            read_only: roots.clone(),
            memory_together: Some(self.options.memory_bytes),
            ..LaunchSpec::program(program)
        })))
    }

    fn check_files(&self) -> Result<(), ToolError> {
        let Some(approved) = (self.options.approved)()? else { return Ok(()) };
        let (approved, now) = (approved.get(INSTALLED).cloned(), (self.options.installed)());
        if approved == now {
            return Ok(());
        }
        let name = &self.options.name;
        let message = format!("The MCP server `{name}` wasn't started: its files aren't those that a person approved.");
        Err(ToolError::new(ErrorCode::DefinitionChanged, message)
            .with_hint(format!(
                "Go on without it. A person sees the difference and decides with: toolgate mcp approve {name}"
            ))
            .with_details(json!({ "server": name, "approved": approved, "now": now })))
    }

    fn workspace_access(&self) -> RootAccess {
        self.options.workspace
    }

    fn hosts(&self) -> &[String] {
        &self.options.hosts
    }

    fn idle_seconds(&self) -> u64 {
        self.options.idle_seconds
    }

    fn connect(
        &self,
        channel: ServerChannel,
        listener: Arc<dyn ServerListener>,
    ) -> BoxFuture<'_, Result<Arc<dyn ServerConnection>, ToolError>> {
        Box::pin(async move {
            let ServerChannel::Program(child) = channel else {
                return Err(ToolError::internal("A server that is a program isn't reached over HTTP."));
            };
            let ServerOptions { name, directory, protocol, timeout, may_sample, .. } = &self.options;
            let (root, may_sample) = (Some(directory.as_path()), *may_sample);
            let facts = ServerFacts { name, root, protocol: *protocol, timeout: *timeout, may_sample, listener };
            let connection = Connection::to_program(&facts, child, (self.options.installed)()).await?;
            Ok(Arc::new(connection) as Arc<dyn ServerConnection>)
        })
    }
}
