//! The processes of sessions. Every command is one, from its start to its end, whether its call waits for it or not.
//!
//! A command is one value on its way in, [`LaunchSpec`](toolgate_contract::LaunchSpec), and one on its way out,
//! [`ChildProcess`](toolgate_contract::ChildProcess). The steps of a `shell` call:
//!
//! 1. `ShellTool::run` (`tools/src/shell.rs`) asks its hands for a command.
//! 2. `CallHands::start` (`runtime/src/gate/hands/processes.rs`) makes the `LaunchSpec`: what was granted.
//! 3. `CallProcesses::launch` (`runtime/src/gate/call_processes.rs`) adds what policy hides and protects, and
//!    reserves a slot among the session's processes.
//! 4. `CommandSettlement::launch` (`runtime/src/gate/command_settlement.rs`) decides the `ApplyMode`, and takes a snapshot
//!    where changes are made in place.
//! 5. `SandboxedProcesses::launch` (`sandbox/src/process/sandboxed_processes.rs`) checks that the sandbox is strong enough.
//! 6. `Sandbox::launch` (`sandbox/src/process/launch.rs`) turns profile and spec into a `CommandPlan`, and takes a sandbox from the pool or makes one.
//! 7. `SandboxInstance::launch` (`sandbox/src/process/instance.rs`) sends it to the first process, which confined itself
//!    (`sandbox/src/process/setup/first_process.rs`).
//! 8. `exec::start` (`sandbox/src/process/setup/exec.rs`) connects the streams and calls `execve`.
//! 9. `Child` (`sandbox/src/process/child.rs`) comes back: streams, end, signals, denials, staged changes.
//! 10. `ProcessSupervisor::supervise` (`supervisor.rs`) reads and redacts its output and fills the spool and the screen of its
//!     [`SessionProcess`]; at the end, `settle` applies its changes.
//! 11. `CommandResult::of` (`tools/src/support/command_result.rs`) makes the reply.
//!
//! One task supervises each process. It alone reads its output and waits for its end, so that everything that has to be done
//! when a command has ended is done in one function. When the session's [`ProcessRegistry`] is dropped, all its processes are
//! killed.

mod follower;
mod output_throttle;
mod process_view;
mod session_process;
mod spool;
mod supervisor;
mod terminal_emulator;

use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use toolgate_contract::{ErrorCode, ProcessHandle, ToolError, counted};

pub use follower::ProcessFollower;
pub(crate) use output_throttle::OutputThrottle;
pub use process_view::ProcessView;
pub(crate) use session_process::NewProcess;
pub use session_process::SessionProcess;
pub(crate) use supervisor::{ProcessSupervisor, SupervisedChild};
pub use terminal_emulator::{ScreenCells, StyledRun};

/// How many ended processes can still be read.
const ENDED_KEPT: usize = 16;

/// The processes of one session: those that run, and those that ended last.
#[derive(Default)]
pub struct ProcessRegistry {
    entries: Mutex<Vec<Arc<SessionProcess>>>,
    running: Arc<AtomicU64>,
}

impl ProcessRegistry {
    /// Reserves a slot for one more process, unless the limit is reached.
    pub(crate) fn slot(&self, most: u64) -> Result<ProcessSlot, ToolError> {
        let taken =
            self.running.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| (now < most).then_some(now + 1));
        match taken {
            Ok(_) => Ok(ProcessSlot(Arc::clone(&self.running))),
            Err(_) => Err(ToolError::new(
                ErrorCode::LimitReached,
                format!(
                    "This session has {} already, and may have no more (`processes.most`).",
                    counted(most, "process")
                ),
            )
            .with_hint(format!("Stop one that is no longer needed. {}", self.said_running()))),
        }
    }

    pub(crate) fn add(&self, entry: Arc<SessionProcess>) {
        let mut entries = self.entries();
        entries.push(entry);
        let ended = entries.iter().filter(|entry| entry.has_ended()).count();
        if let (true, Some(oldest)) = (ended > ENDED_KEPT, entries.iter().position(|entry| entry.has_ended())) {
            entries.remove(oldest);
        }
    }

    pub(crate) fn remove(&self, process: &str) {
        self.entries().retain(|entry| entry.facts().id != process);
    }

    /// The process with this handle.
    pub fn find(&self, process: &str) -> Result<Arc<SessionProcess>, ToolError> {
        let found = self.entries().iter().find(|entry| entry.facts().id == process).cloned();
        found.ok_or_else(|| {
            let shown: String = process.chars().filter(|character| !character.is_control()).take(64).collect();
            ToolError::new(ErrorCode::NotFound, format!("This session has no process `{shown}`."))
                .with_hint(self.said_running())
        })
    }

    /// The processes that run, in a sentence.
    fn said_running(&self) -> String {
        let entries = self.entries();
        let running = entries.iter().filter(|entry| !entry.has_ended());
        let named: Vec<String> = running.map(|entry| format!("`{}`", entry.facts().id)).collect();
        match named.is_empty() {
            true => "No process is running.".to_owned(),
            false => format!("Running are {}.", named.join(", ")),
        }
    }

    /// All processes, oldest first.
    pub fn all(&self) -> Vec<Arc<SessionProcess>> {
        self.entries().clone()
    }

    /// Kills all processes, and waits until they have ended and that is recorded.
    pub async fn end(&self) {
        let entries = self.all();
        entries.iter().for_each(|entry| entry.kill());
        for entry in entries {
            entry.ended().await;
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Arc<SessionProcess>>> {
        self.entries.lock()
    }
}

impl Drop for ProcessRegistry {
    fn drop(&mut self) {
        self.entries().iter().for_each(|entry| entry.kill());
    }
}

/// A slot among the running processes of a session, free again when this is dropped.
pub(crate) struct ProcessSlot(Arc<AtomicU64>);

impl Drop for ProcessSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The registries of all sessions of a gate, for the person, who may see all of them.
#[derive(Default)]
pub struct ProcessRegistries(Mutex<Vec<Weak<ProcessRegistry>>>);

impl ProcessRegistries {
    pub(crate) fn know(&self, registry: &Arc<ProcessRegistry>) {
        let mut registries = self.0.lock();
        registries.retain(|known| known.strong_count() > 0);
        if !registries.iter().any(|known| known.as_ptr() == Arc::as_ptr(registry)) {
            registries.push(Arc::downgrade(registry));
        }
    }

    /// Every running process of every session.
    pub fn running(&self) -> Vec<Arc<SessionProcess>> {
        let registries = self.0.lock();
        let entries = registries.iter().filter_map(Weak::upgrade).flat_map(|registry| registry.all());
        entries.filter(|entry| !entry.has_ended()).collect()
    }
}
