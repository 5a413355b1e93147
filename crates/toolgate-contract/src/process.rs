//! A command that runs, as whoever started it sees it. How it is confined is for whoever implements this to know.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BoxFuture, Denial, Enforced, LaunchSpec, StagedChanges, TerminalSize, ToolError, WorkspacePath};

/// Starts commands, confined as configuration says.
pub trait ProcessLauncher: Send + Sync {
    /// Starts one.
    fn launch(&self, spec: LaunchSpec) -> BoxFuture<'_, Result<Arc<dyn ChildProcess>, ToolError>>;
    /// Whether confined commands are kept from what nobody may change. Where they aren't, it has to be put back after them.
    fn protects(&self) -> BoxFuture<'_, Result<bool, ToolError>>;
}

/// A command that runs, or has ended. Dropping the last hold on it kills everything that it has started. Once it has ended,
/// nothing can be done to it any more; what can be told of it still can.
pub trait ChildProcess: Send + Sync {
    /// The next piece of output; none when nobody holds either stream any more.
    fn output(&self) -> BoxFuture<'_, Option<Output>>;
    /// Waits until it and all that it started are gone. Gives its code as a shell would.
    fn wait(&self) -> BoxFuture<'_, Result<i32, ToolError>>;
    /// Writes to its input, or types into its terminal. Waits while it doesn't read.
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>>;
    /// Ends its input.
    fn close_input(&self) -> BoxFuture<'_, Result<(), ToolError>>;
    /// Sends a signal to it and its process group.
    fn signal(&self, signal: Signal) -> Result<(), ToolError>;
    /// Kills it and all that it started, at once.
    fn kill(&self);
    /// Changes the size of its terminal.
    fn resize(&self, size: TerminalSize) -> Result<(), ToolError>;
    /// Its numbers on this machine.
    fn pids(&self) -> Pids;
    /// Which guarantees hold.
    fn enforced(&self) -> Enforced;
    /// What confinement kept from it so far. The errors that it wrote tell what it tried to do with files.
    fn denials(&self, errors: &str) -> Vec<Denial>;
    /// The connections and lookups that were denied since this was last asked, for a program that many calls share. They are no
    /// longer among `denials`.
    fn take_network_denials(&self) -> Vec<Denial>;
    /// Hidden files that it opened so far, and saw a decoy of.
    fn opened(&self) -> Vec<WorkspacePath>;
    /// What it tried to change where it may only read, as a caller would write the paths. The errors that it wrote tell.
    fn refused_changes(&self, errors: &str) -> Vec<String>;
    /// What it changed, where that was staged. Ask when it has ended; once.
    fn staged(&self) -> Option<Box<dyn StagedChanges>>;
    /// Whether the kernel killed a process of it because all of them together used more memory than they may.
    fn ran_out_of_memory(&self) -> bool {
        false
    }
    /// Lets go of what only a running command needs, and of staged changes that nobody took. It has ended.
    fn release(&self);
}

/// The numbers of a command's processes on this machine, as `ps` shows them outside of the sandbox. Inside it has others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pids {
    /// The command itself; none if it had ended before it could be asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<u32>,
    /// The first process of its sandbox, from which all others descend.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox_pid: Option<u32>,
}

/// What to tell of a command that was kept from something: what was refused, and a denial for each hidden file that it
/// opened, at most so many by name. What merely explains a failure is told of a command that failed.
pub fn reported_denials(
    refused: Vec<Denial>,
    opened: &[WorkspacePath],
    most_named: usize,
    has_failed: bool,
    of_hidden: impl Fn(&WorkspacePath) -> Denial,
) -> Vec<Denial> {
    let mut denials = refused;
    denials.extend(opened.iter().take(most_named).map(of_hidden));
    if let (Some(last), more @ 1..) = (denials.last_mut(), opened.len().saturating_sub(most_named)) {
        last.reason.push_str(&format!(" So it was with {more} more."));
    }
    denials.retain(|denial| has_failed || !denial.is_mere_reason());
    denials
}

/// A signal that a process can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// As Ctrl-C would.
    Int,
    /// Asks it to end.
    Term,
    /// Ends it.
    Kill,
    /// As if its terminal had gone; many servers read their configuration anew.
    Hup,
    /// As Ctrl-\\ would.
    Quit,
    /// Whatever the program makes of it.
    Usr1,
    /// Whatever the program makes of it.
    Usr2,
    /// Holds it.
    Stop,
    /// Lets it go on.
    Cont,
}

/// One of a process' two streams. With a terminal everything is on the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output, or the terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of what a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// On its standard output.
    Out(Vec<u8>),
    /// On its standard error.
    Err(Vec<u8>),
}
