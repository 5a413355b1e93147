//! Servers that run: MCP servers of a session, language servers of a workspace. A server starts with the first call that
//! needs it, is shared by further calls, and is stopped when nobody has called it for a while, or with whoever holds it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_contract::{
    ChildProcess, Denial, Enforced, ErrorCode, LaunchSpec, ServerConnection, ServerLifetime, ToolError, WorkspacePath,
    counted,
};

/// Failures in a row after which a server isn't started again for a while.
const FAILURES: u32 = 3;

/// How long a server that keeps failing is left alone; doubled with every further failure, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The MCP servers of one session, by name.
pub type SessionServers = RunningServers<dyn ServerConnection>;

/// The language servers of one workspace, by server and project.
pub(crate) type RunningLanguageServers = RunningServers<dyn ServerLifetime>;

/// Running servers of one kind, by name.
pub struct RunningServers<C: ?Sized> {
    /// What messages call them.
    kind: &'static str,
    slots: Mutex<HashMap<String, Arc<ServerSlot<C>>>>,
}

/// What is known of one server.
struct ServerSlot<C: ?Sized> {
    /// Held while it is started, so that it is started once.
    state: tokio::sync::Mutex<SlotState<C>>,
}

struct SlotState<C: ?Sized> {
    running: Option<Arc<RunningServer<C>>>,
    failures: u32,
    /// How many calls in a row it ended in.
    crashes: u32,
    /// Not before this it is tried again.
    paused_until: Option<Instant>,
}

/// Paths that a mount of the sandbox is over, with device and inode.
pub(crate) type CoveredPaths = Vec<(WorkspacePath, Option<(u64, u64)>)>;

/// A server that runs.
pub(crate) struct RunningServer<C: ?Sized> {
    pub(crate) connection: Arc<C>,
    /// How it was launched, for snapshots of what it can change; none for a server elsewhere.
    pub(crate) spec: Option<LaunchSpec>,
    /// Whether a sandbox keeps it from protected paths.
    pub(crate) is_confined: bool,
    /// Which guarantees hold.
    pub(crate) enforced: Enforced,
    /// The paths that are hidden or protected, with device and inode, as they were when it was launched.
    pub(crate) covered: CoveredPaths,
    /// The program, which knows what its sandbox kept from it; none for a server elsewhere.
    child: Option<Arc<dyn ChildProcess>>,
    /// Hidden files that it opened, as far as that was told.
    told: Mutex<Vec<WorkspacePath>>,
    last_used: Mutex<Instant>,
}

/// What confinement kept from a server.
#[derive(Debug, Default)]
pub(crate) struct ServerDenials {
    /// Connections and lookups that were denied.
    pub(crate) network: Vec<Denial>,
    /// Hidden files that it opened, and saw a decoy of.
    pub(crate) opened: Vec<WorkspacePath>,
}

impl<C: ?Sized> RunningServer<C> {
    pub(crate) fn new(
        connection: Arc<C>,
        spec: Option<LaunchSpec>,
        is_confined: bool,
        covered: CoveredPaths,
        enforced: Enforced,
    ) -> Self {
        let (told, last_used) = (Mutex::default(), Mutex::new(Instant::now()));
        Self { connection, spec, is_confined, covered, enforced, child: None, told, last_used }
    }

    /// A server that is this program.
    #[must_use]
    pub(crate) fn of_child(self, child: Arc<dyn ChildProcess>) -> Self {
        Self { child: Some(child), ..self }
    }

    /// What confinement kept from it since this was last asked.
    pub(crate) fn take_denials(&self) -> ServerDenials {
        let Some(child) = &self.child else { return ServerDenials::default() };
        let mut told = self.told.lock();
        let opened: Vec<WorkspacePath> = child.opened().into_iter().filter(|path| !told.contains(path)).collect();
        told.extend(opened.iter().cloned());
        ServerDenials { network: child.take_network_denials(), opened }
    }

    /// Notes that it is used now.
    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    fn idle_at(&self, idle: Duration) -> Instant {
        *self.last_used.lock() + idle
    }
}

impl<C: ServerLifetime + ?Sized> RunningServers<C> {
    /// No servers yet. `kind` is what messages call them.
    pub fn new(kind: &'static str) -> Self {
        Self { kind, slots: Mutex::default() }
    }

    /// Whether none was ever started.
    pub(crate) fn is_unused(&self) -> bool {
        self.slots.lock().is_empty()
    }

    /// The server of this name, if it runs and isn't just being started or stopped.
    pub(crate) fn peek(&self, name: &str) -> Option<Arc<RunningServer<C>>> {
        let slot = self.slots.lock().get(name).cloned()?;
        let state = slot.state.try_lock().ok()?;
        state.running.clone().filter(|running| running.connection.is_open())
    }

    /// The running server of this name, or the one that `start` starts. Without a call for `idle`, it is stopped.
    pub(crate) async fn running(
        &self,
        name: &str,
        idle: Duration,
        start: impl Future<Output = Result<RunningServer<C>, ToolError>>,
    ) -> Result<Arc<RunningServer<C>>, ToolError> {
        let slot = Arc::clone(self.slots.lock().entry(name.to_owned()).or_insert_with(ServerSlot::new));
        let mut state = slot.state.lock().await;
        if let Some(running) = state.running.as_ref().filter(|running| running.connection.is_open()) {
            running.touch();
            return Ok(Arc::clone(running));
        }
        state.running = None;
        state.check_pause(self.kind, name)?;
        let started = start.await;
        state.count(&started);
        let running = Arc::new(started?);
        state.running = Some(Arc::clone(&running));
        tokio::spawn(stop_when_idle(Arc::downgrade(&slot), Arc::downgrade(&running), idle));
        Ok(running)
    }

    /// Counts whether a server outlived a call. One that keeps ending in its calls is left alone like one that doesn't start.
    pub(crate) async fn count_call(&self, name: &str, is_open: bool) {
        let slot = self.slots.lock().get(name).cloned();
        let Some(slot) = slot else { return };
        slot.state.lock().await.count_end(is_open);
    }

    /// Counts how a server is that nobody stopped: one that ended by itself crashed. Where each call says so with [`Self::count_call`],
    /// this isn't needed.
    pub(crate) async fn count_crash(&self, name: &str) {
        let slot = self.slots.lock().get(name).cloned();
        let Some(slot) = slot else { return };
        let mut state = slot.state.lock().await;
        let Some(is_open) = state.running.as_ref().map(|running| running.connection.is_open()) else { return };
        if !is_open {
            state.running = None;
        }
        state.count_end(is_open);
    }

    /// Ends a server, and waits until it is gone. Its next call starts it again.
    pub(crate) async fn stop(&self, name: &str) {
        let slot = self.slots.lock().get(name).cloned();
        let Some(slot) = slot else { return };
        let running = slot.state.lock().await.running.take();
        if let Some(running) = running {
            running.connection.end().await;
        }
    }

    /// Stops all of them.
    pub(crate) fn end(&self) {
        self.slots.lock().clear();
    }
}

impl<C: ?Sized> ServerSlot<C> {
    fn new() -> Arc<Self> {
        let state = SlotState { running: None, failures: 0, crashes: 0, paused_until: None };
        Arc::new(Self { state: tokio::sync::Mutex::new(state) })
    }
}

impl<C: ?Sized> SlotState<C> {
    fn check_pause(&self, kind: &str, name: &str) -> Result<(), ToolError> {
        let left = self.paused_until.map(|until| until.saturating_duration_since(Instant::now())).unwrap_or_default();
        if left.is_zero() {
            return Ok(());
        }
        let seconds = counted(left.as_secs() + 1, "second");
        let what = match self.failures {
            0 => format!("ended in {} in a row", counted(self.crashes, "call")),
            failures => format!("failed to start {} in a row", counted(failures, "time")),
        };
        let message = format!("The {kind} `{name}` {what}; it is tried again in {seconds}.");
        Err(ToolError::new(ErrorCode::ServerError, message).with_hint("Go on without its tools, or tell the person."))
    }

    /// Counts a call by whether the server outlived it.
    fn count_end(&mut self, is_open: bool) {
        match is_open {
            true => self.crashes = 0,
            false => {
                self.crashes += 1;
                self.pause(self.crashes);
            }
        }
    }

    fn count<T>(&mut self, started: &Result<T, ToolError>) {
        match started {
            Ok(_) => (self.failures, self.paused_until) = (0, None),
            Err(error) if error.code == ErrorCode::Cancelled => {}
            Err(_) => {
                self.failures += 1;
                self.pause(self.failures);
            }
        }
    }

    /// Leaves the server alone for a while, if it failed often enough in a row.
    fn pause(&mut self, failures: u32) {
        if let Some(more) = failures.checked_sub(FAILURES) {
            let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(more)).min(LONGEST_PAUSE);
            self.paused_until = Some(Instant::now() + pause);
        }
    }
}

/// Waits until a server wasn't used for so long, and lets go of it.
async fn stop_when_idle<C: ServerLifetime + ?Sized>(
    slot: Weak<ServerSlot<C>>,
    running: Weak<RunningServer<C>>,
    idle: Duration,
) {
    while let Some(until) = running.upgrade().map(|running| running.idle_at(idle)) {
        if until > Instant::now() {
            tokio::time::sleep_until(until).await;
            continue;
        }
        let Some(slot) = slot.upgrade() else { return };
        let mut state = slot.state.lock().await;
        // A call may have come meanwhile, or be in it.
        let is_idle = |running: &Arc<RunningServer<C>>| {
            running.idle_at(idle) <= Instant::now() && Arc::strong_count(running) == 1
        };
        match &state.running {
            Some(running) if is_idle(running) => state.running = None,
            Some(running) => running.touch(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use toolgate_contract::{BoxFuture, Person, ServerCall, ServerDescription};

    use super::*;

    struct Silent;

    impl ServerConnection for Silent {
        fn describe(&self) -> BoxFuture<'_, Result<ServerDescription, ToolError>> {
            Box::pin(async { Ok(ServerDescription::default()) })
        }

        fn call<'a>(
            &'a self,
            _: &'a ServerCall,
            _: Arc<dyn Person>,
        ) -> BoxFuture<'a, Result<serde_json::Value, ToolError>> {
            Box::pin(async { Ok(serde_json::Value::Null) })
        }

        fn list_resources<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<serde_json::Value, ToolError>> {
            Box::pin(async { Ok(serde_json::Value::Null) })
        }

        fn read_resource<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<serde_json::Value, ToolError>> {
            Box::pin(async { Ok(serde_json::Value::Null) })
        }
    }

    impl ServerLifetime for Silent {
        fn is_open(&self) -> bool {
            true
        }

        fn end(&self) -> BoxFuture<'_, ()> {
            Box::pin(async {})
        }
    }

    fn running() -> RunningServer<dyn ServerConnection> {
        RunningServer::new(Arc::new(Silent), Some(LaunchSpec::shell("true")), true, Vec::new(), Enforced::default())
    }

    const IDLE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_server_starts_once_and_stops_when_nobody_uses_it() {
        let servers = SessionServers::new("MCP server");
        let first = servers.running("a", IDLE, async { Ok(running()) }).await.unwrap();
        let again = servers.running("a", IDLE, async { panic!("it runs already") }).await.unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        drop(again);
        tokio::time::sleep(IDLE * 2).await;
        assert!(Arc::strong_count(&first) == 2, "a call in it keeps it");
        let gone = Arc::downgrade(&first);
        drop(first);
        tokio::time::sleep(IDLE * 3).await;
        assert!(gone.upgrade().is_none());
        servers.running("a", IDLE, async { Ok(running()) }).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_keeps_ending_in_its_calls_is_left_alone_for_a_while() {
        let servers = SessionServers::new("MCP server");
        for _ in 0..FAILURES {
            servers.running("a", IDLE, async { Ok(running()) }).await.unwrap();
            servers.count_call("a", false).await;
            servers.stop("a").await;
        }
        let paused = servers.running("a", IDLE, async { panic!("it is left alone") }).await.err().unwrap();
        assert!(paused.message.contains("ended in 3 calls in a row"), "{paused}");
        tokio::time::sleep(FIRST_PAUSE).await;
        servers.running("a", IDLE, async { Ok(running()) }).await.unwrap();
        servers.count_call("a", true).await;
        servers.count_call("a", false).await;
        servers.stop("a").await;
        servers.running("a", IDLE, async { Ok(running()) }).await.expect("it worked in between");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_keeps_failing_is_left_alone_for_a_while() {
        let servers = SessionServers::new("MCP server");
        let fail = || async { Err(ToolError::new(ErrorCode::ServerError, "It ended.")) };
        for _ in 0..FAILURES {
            assert_eq!(servers.running("a", IDLE, fail()).await.err().unwrap().message, "It ended.");
        }
        let paused = servers.running("a", IDLE, async { panic!("it is left alone") }).await.err().unwrap();
        assert!(paused.message.contains("failed to start 3 times in a row"), "{paused}");
        tokio::time::sleep(FIRST_PAUSE).await;
        servers.running("a", IDLE, async { Ok(running()) }).await.unwrap();
    }
}
