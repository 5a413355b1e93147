//! A test workspace that serves MCP.

use std::sync::Arc;

use toolgate_contract::{EventPayload, RefusedRequest, erase};
use toolgate_journal::{list_runs, read_events};
use toolgate_mcp::{McpOptions, McpServer};
use toolgate_runtime::Ceiling;
use toolgate_testkit::{HangingTool, LongOutputTool, TestWorkspace, WritingTool};

/// A workspace in which each client gets a session and a run of its own.
pub(crate) struct McpTestBackend {
    pub(crate) workspace: TestWorkspace,
    pub(crate) ceilings: Vec<Ceiling>,
    /// Counts how often its tool ran.
    pub(crate) writing: WritingTool,
}

impl McpTestBackend {
    /// The built-in tools and some of the testkit's, under this configuration, with a file to read.
    pub(crate) fn new(config: &str) -> Self {
        let writing = WritingTool::default();
        let own = [erase(writing.clone()), erase(LongOutputTool), erase(HangingTool)];
        let workspace = TestWorkspace::new(toolgate_tools::all().into_iter().chain(own), config);
        workspace.file("hello.txt", "hello\nworld\n").file(".env", "TOKEN=x\n");
        Self { workspace, ceilings: Vec::new(), writing }
    }

    /// A server for this backend.
    pub(crate) fn serve(self, options: McpOptions) -> McpTestServer {
        let backend = Arc::new(self);
        let options = McpOptions { ceilings: backend.ceilings.clone(), ..options };
        let server = McpServer::new(backend.workspace.workspace(), options).unwrap();
        McpTestServer { backend, server }
    }
}

/// A server and its backend.
pub(crate) struct McpTestServer {
    pub(crate) backend: Arc<McpTestBackend>,
    pub(crate) server: Arc<McpServer>,
}

impl McpTestServer {
    /// A server under the default policy.
    pub(crate) fn start() -> Self {
        Self::configured("")
    }

    /// A server under this configuration.
    pub(crate) fn configured(config: &str) -> Self {
        McpTestBackend::new(config).serve(McpOptions::default())
    }

    /// The text of a file in the workspace.
    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.backend.workspace.path().join(path)).unwrap()
    }

    /// The payloads of everything that was recorded for clients.
    pub(crate) fn recorded(&self) -> Vec<EventPayload> {
        let state = &self.backend.workspace.state;
        let runs = list_runs(state.path()).unwrap();
        let events = runs.iter().flat_map(|run| read_events(&state.run_dir(run).unwrap()).unwrap());
        events.map(|event| event.unwrap().event.payload).collect()
    }

    /// The kinds of what was recorded for clients.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let kind = |payload: &EventPayload| serde_json::to_value(payload).unwrap()["kind"].as_str().unwrap().to_owned();
        self.recorded().iter().map(kind).collect()
    }

    /// How often an event of this kind was recorded.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.kinds().iter().filter(|recorded| *recorded == kind).count()
    }

    /// The requests that were refused, by the record.
    pub(crate) fn refusals(&self) -> Vec<RefusedRequest> {
        let refused = self.recorded().into_iter().filter_map(|payload| match payload {
            EventPayload::RequestRefused(refusal) => Some(refusal),
            _ => None,
        });
        refused.collect()
    }
}
