//! Calls of other MCP servers' tools: where a server runs, and what becomes of what it changes.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_changes::InPlaceCommand;
use toolgate_contract::{
    ApplyMode, CancellationToken, ChildProcess, Enforced, ErrorCode, LaunchSpec, NetworkAccess, Person,
    ResourceRequest, RootAccess, ServerCall, ServerChannel, ServerConnection, ServerDescription, ServerListener,
    ServerLocation, ServerReply, SettledChanges, ToolError, ToolServer, Web,
};
use toolgate_policy::Policy;

use super::call_processes::CallProcesses;
use super::command_settlement::snapshot;
use super::egress::CallEgress;
use super::server_launch::{covered, unless_cancelled};
use crate::servers::{RunningServer, ServerDenials, SessionServers};

/// The servers that configuration names.
pub type ToolServers = BTreeMap<String, Arc<dyn ToolServer>>;

/// The port of a host for which none is given.
const USUAL_PORT: u16 = 443;

/// An MCP server that runs.
type McpServer = RunningServer<dyn ServerConnection>;

/// What has to be known of a server's files before it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilesCheck {
    /// They are those that a person approved.
    Approved,
    /// Nothing: a person looks at what it says, to approve it.
    ByPerson,
}

/// Calls servers' tools for one call of ours.
pub(super) struct ServerCalls {
    pub(super) known: Arc<ToolServers>,
    pub(super) running: Arc<SessionServers>,
    pub(super) processes: Arc<CallProcesses>,
    pub(super) policy: Arc<Policy>,
    pub(super) web: Option<Arc<dyn Web>>,
    pub(super) listener: Arc<dyn ServerListener>,
    /// What confinement kept from a server that didn't start.
    pub(super) unstarted: Mutex<ServerDenials>,
    /// The server of which a tool is being called, by its name.
    pub(super) called: Mutex<Option<(String, Arc<McpServer>)>>,
}

/// What a server changed during a call, and how it was confined.
pub(super) struct ServerOutcome {
    pub(super) result: Result<ServerReply, ToolError>,
    pub(super) changes: Option<SettledChanges>,
    pub(super) enforced: Enforced,
    pub(super) denials: ServerDenials,
}

/// What a server answers about its resources, and what it was kept from meanwhile.
pub(super) struct ResourceOutcome {
    pub(super) result: Result<Value, ToolError>,
    pub(super) denials: ServerDenials,
}

impl ServerCalls {
    /// Whether a server may change something in the workspace.
    pub(super) fn may_change_workspace(&self, server: &str) -> bool {
        self.known.get(server).is_some_and(|server| server.workspace_access() == RootAccess::Write)
    }

    /// What a server says of itself.
    pub(super) async fn describe(&self, server: &str) -> Result<ServerDescription, ToolError> {
        self.start(server, FilesCheck::ByPerson).await?.connection.describe().await
    }

    /// What confinement kept from a server that didn't start, which may be why. A server that did tells with its calls.
    pub(super) fn take_unstarted(&self) -> ServerDenials {
        std::mem::take(&mut self.unstarted.lock())
    }

    /// The server whose call was given up, and what confinement kept from it until then; none if its calls have ended.
    pub(super) fn take_interrupted(&self) -> Option<(String, ServerDenials)> {
        let (server, running) = self.called.lock().take()?;
        Some((server, running.take_denials()))
    }

    /// Calls a tool. Whatever the server changed until then is settled, also if the call is cancelled.
    pub(super) async fn call(
        &self,
        server: &str,
        call: &ServerCall,
        person: Arc<dyn Person>,
        cancel: &CancellationToken,
    ) -> Result<ServerOutcome, ToolError> {
        let running = unless_cancelled(cancel, self.start_fresh(server)).await?;
        let in_place = self.snapshot(server, &running).await?;
        *self.called.lock() = Some((server.to_owned(), Arc::clone(&running)));
        let result = unless_cancelled(cancel, running.connection.call(call, person)).await;
        self.running.count_call(server, running.connection.is_open()).await;
        running.touch();
        let changes = match in_place {
            Some(in_place) => {
                // What it writes after this would be nobody's change, so it ends before its changes are settled.
                self.running.stop(server).await;
                self.settle(in_place).await?
            }
            None => None,
        };
        let result = result.map(|result| ServerReply { result, changes: changes.clone(), denials: Vec::new() });
        *self.called.lock() = None;
        let (enforced, denials) = (running.enforced.clone(), running.take_denials());
        Ok(ServerOutcome { result, changes, enforced, denials })
    }

    /// Asks a server for its resources.
    pub(super) async fn resource(
        &self,
        server: &str,
        request: ResourceRequest,
        cancel: &CancellationToken,
    ) -> Result<ResourceOutcome, ToolError> {
        let running = unless_cancelled(cancel, self.start_fresh(server)).await?;
        let connection = &running.connection;
        let work = async {
            match &request {
                ResourceRequest::List(cursor) => connection.list_resources(cursor.as_deref()).await,
                ResourceRequest::Read(uri) => connection.read_resource(uri).await,
            }
        };
        let result = unless_cancelled(cancel, work).await;
        running.touch();
        Ok(ResourceOutcome { result, denials: running.take_denials() })
    }

    /// The running server of this name. One that was launched before something was hidden, or before a hidden file was replaced,
    /// would see it, so it is started again.
    async fn start_fresh(&self, name: &str) -> Result<Arc<McpServer>, ToolError> {
        let running = self.start(name, FilesCheck::Approved).await?;
        if running.spec.is_none() {
            return Ok(running);
        }
        let restricted = self.processes.restricted_paths().await?;
        if running.covered == covered(&restricted, self.processes.files.as_ref()) {
            return Ok(running);
        }
        self.running.stop(name).await;
        self.start(name, FilesCheck::Approved).await
    }

    /// The running server of this name.
    async fn start(&self, name: &str, files: FilesCheck) -> Result<Arc<McpServer>, ToolError> {
        let server = self.known.get(name).ok_or_else(|| {
            let message = format!("No MCP server named `{name}` is configured.");
            ToolError::new(ErrorCode::NotFound, message).with_hint("`toolgate mcp list` shows those there are.")
        })?;
        let idle = Duration::from_secs(server.idle_seconds());
        self.running.running(name, idle, self.launch(server.as_ref(), files)).await
    }

    async fn launch(&self, server: &dyn ToolServer, files: FilesCheck) -> Result<McpServer, ToolError> {
        if files == FilesCheck::Approved {
            server.check_files()?;
        }
        match server.location()? {
            ServerLocation::Program(spec) => self.launch_program(server, *spec).await,
            ServerLocation::Remote(host, port) => {
                let Some(web) = self.web.clone() else {
                    return Err(ToolError::new(ErrorCode::NetworkDenied, "The network isn't available here."));
                };
                let reachable = hosts(server).into_iter().chain([(host, port)]).collect();
                let egress = Arc::new(CallEgress::of_server(Arc::clone(&self.policy), server.name(), reachable));
                let connection = server.connect(ServerChannel::Remote(web, egress), Arc::clone(&self.listener)).await?;
                Ok(RunningServer::new(connection, None, true, Vec::new(), Enforced::default()))
            }
        }
    }

    /// Starts a program in its sandbox, and begins to speak to it.
    async fn launch_program(&self, server: &dyn ToolServer, spec: LaunchSpec) -> Result<McpServer, ToolError> {
        let apply_mode = match server.workspace_access() {
            RootAccess::Read => ApplyMode::None,
            RootAccess::Write => ApplyMode::InPlace,
        };
        let egress = CallEgress::of_server(Arc::clone(&self.policy), server.name(), hosts(server));
        let spec = LaunchSpec {
            network: NetworkAccess::Listed(Arc::new(egress)),
            apply_mode,
            only_reads: apply_mode == ApplyMode::None,
            ..spec
        };
        let (listener, launched) = (Arc::clone(&self.listener), OnceLock::<Arc<dyn ChildProcess>>::new());
        let connect = |child: Arc<dyn ChildProcess>| {
            let child = launched.get_or_init(|| child);
            server.connect(ServerChannel::Program(Arc::clone(child)), listener)
        };
        let running = self.processes.launch_server(spec, connect).await;
        if let (Err(_), Some(child)) = (&running, launched.get()) {
            *self.unstarted.lock() = ServerDenials { network: child.take_network_denials(), opened: child.opened() };
        }
        running
    }

    /// The workspace before the call, for a server that may change it.
    async fn snapshot(&self, server: &str, running: &McpServer) -> Result<Option<Arc<InPlaceCommand>>, ToolError> {
        match &running.spec {
            Some(spec) if self.may_change_workspace(server) => {
                snapshot(&self.processes.settler, spec, running.is_confined).await
            }
            _ => Ok(None),
        }
    }

    async fn settle(&self, in_place: Arc<InPlaceCommand>) -> Result<Option<SettledChanges>, ToolError> {
        let _lock = self.processes.locks.acquire_for_settling().await;
        let settler = Arc::clone(&self.processes.settler);
        let work = tokio::task::spawn_blocking(move || settler.settle(None, Some(in_place), ApplyMode::InPlace));
        let settled = work.await.map_err(|_| ToolError::internal("The server's changes couldn't be settled."))??;
        Ok(Some(settled).filter(|settled| !settled.is_empty()))
    }
}

/// The hosts of a server's configuration, each with its port. This machine's loopback is reached by its address, whatever it is called.
fn hosts(server: &dyn ToolServer) -> Vec<(String, u16)> {
    let with_port =
        |text: &String| match text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?))) {
            Some((host, port)) => (host.to_owned(), port),
            None => (text.clone(), USUAL_PORT),
        };
    let with_address = |(host, port): (String, u16)| {
        let address = (host == "localhost").then(|| (Ipv4Addr::LOCALHOST.to_string(), port));
        [(host, port)].into_iter().chain(address)
    };
    server.hosts().iter().map(with_port).flat_map(with_address).collect()
}
