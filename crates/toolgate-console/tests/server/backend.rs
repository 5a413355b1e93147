//! A test workspace that serves HTTP.

use std::sync::Arc;
use std::time::Duration;

use toolgate_console::{ConsoleBackend, LiveEvents, SessionRun};
use toolgate_contract::{Clock, ToolError, erase};
use toolgate_journal::{EventStore, Inbox, StateDirectory};
use toolgate_runtime::{ApprovalQueueClient, Gate};
use toolgate_testkit::{HangingTool, LongOutputTool, TestWorkspace};

/// A workspace with an approval queue, at which calls wait only if their session says how long.
pub(crate) struct ConsoleTestBackend {
    pub(crate) workspace: TestWorkspace,
    live: LiveEvents,
}

impl ConsoleTestBackend {
    /// The built-in tools and some of the testkit's, under this configuration, with a file to read.
    pub(crate) fn new(config: &str) -> Self {
        let own = [erase(LongOutputTool), erase(HangingTool)];
        let workspace = TestWorkspace::new(toolgate_tools::all().into_iter().chain(own), config);
        workspace.file("hello.txt", "hello\nworld\n").file(".env", "TOKEN=x\n");
        Self { workspace: workspace.with_approval_queue(Duration::ZERO), live: LiveEvents::default() }
    }
}

impl ConsoleBackend for ConsoleTestBackend {
    fn gate(&self) -> &Gate {
        &self.workspace.gate
    }

    fn state(&self) -> &StateDirectory {
        &self.workspace.state
    }

    fn store(&self) -> Result<Arc<dyn EventStore>, ToolError> {
        Ok(Arc::new(self.workspace.state.index()?))
    }

    fn inbox(&self) -> Result<Arc<dyn Inbox>, ToolError> {
        Ok(Arc::new(self.workspace.state.inbox()?))
    }

    fn queue(&self) -> Option<&ApprovalQueueClient> {
        self.workspace.queue.as_ref()
    }

    fn clock(&self) -> &dyn Clock {
        self.workspace.clock.as_ref()
    }

    fn owner(&self) -> String {
        "ada".into()
    }

    fn begin(&self, session: &str) -> Result<SessionRun, ToolError> {
        let (session, run) = self.workspace.begin_session(session);
        Ok(SessionRun { session: session.watched_by(Arc::new(self.live.clone())), run })
    }

    fn live(&self) -> &LiveEvents {
        &self.live
    }

    fn finish(&self) {}
}
