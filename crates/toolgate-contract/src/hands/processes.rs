//! Hands on processes: those that a call starts, and those that its session has.

use std::sync::Arc;
use std::time::Duration;

use crate::{
    ApplyMode, BoxFuture, Denial, DeniedAccess, ProcessGuard, ProcessHandle, SettledChanges, SkillScript, Stream,
    Streams, ToolError,
};

/// Hands on processes.
pub trait ProcessHands {
    /// Starts a declared command in a directory that was declared for reading. It ends with the call, or after `longest`,
    /// unless it is detached.
    fn start<'a>(
        &'a self,
        command: &'a str,
        workdir: &'a str,
        streams: Streams,
        apply_mode: ApplyMode,
        longest: Duration,
    ) -> BoxFuture<'a, Result<ProcessGuard, ToolError>>;
    /// Starts a script of a declared skill, which was declared as the command that it amounts to. It starts in a directory of
    /// its own, and ends with the call, or after `longest`.
    fn start_script(&self, script: SkillScript, longest: Duration) -> BoxFuture<'_, Result<ProcessGuard, ToolError>>;
    /// Whether the caller wants to wait for the end, however long that takes: nobody would come back for what goes on.
    fn waits(&self) -> bool;
    /// How long a process may go on without its call.
    fn longest(&self) -> Duration;

    /// The session's processes, where attending to all of them was declared.
    fn processes(&self) -> Result<Vec<Arc<dyn ProcessHandle>>, ToolError>;
    /// A process of the session that the call declared to attend to.
    fn process(&self, id: &str) -> Result<Arc<dyn ProcessHandle>, ToolError>;
    /// Writes the declared text, which may be nothing, and then keys, into a process.
    fn feed<'a>(
        &'a self,
        process: &'a dyn ProcessHandle,
        text: &'a str,
        keys: &'a [u8],
    ) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Reports the exit code of a command.
    fn ended(&self, exit_code: i64);
    /// The output of an ended process, for this field of the payload. What is too long for a reply is stored already.
    fn output(&self, process: &dyn ProcessHandle, stream: Stream, field: &str) -> Result<String, ToolError>;
    /// What confinement kept from a process so far, which is noted as the call's. The errors that it wrote tell what it tried to
    /// do with files.
    fn denials(&self, process: &dyn ProcessHandle, errors: &str) -> Vec<Denial>;
    /// Tells of these in the reply: the gate adds them to the payload as `denied`.
    fn report_denied(&self, denied: Vec<DeniedAccess>);
    /// What became of an ended process' changes to the workspace.
    fn settled(&self, process: &dyn ProcessHandle) -> Option<SettledChanges>;
    /// Says that a secret was replaced in what the payload holds.
    fn redacted(&self, process: &dyn ProcessHandle);
}
