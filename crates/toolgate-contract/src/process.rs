//! Running commands, as a cleared tool sees it. How they are confined is for whoever implements this to know.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BoxFuture, Denial, EgressPolicy, Enforced, SettledChanges, StagedChanges, ToolError, WorkspacePath};

/// A command to start.
#[derive(Debug, Clone)]
pub struct LaunchSpec {
    /// A line for the shell.
    pub command: String,
    /// What is started instead of a shell: then the line only says what that amounts to.
    pub program: Option<Program>,
    /// Where it starts.
    pub workdir: WorkspacePath,
    /// What policy hides: the command must not see these.
    pub hidden: Vec<WorkspacePath>,
    /// What policy lets nobody change: the command sees these as they are.
    pub protected: Vec<WorkspacePath>,
    /// What its standard streams are.
    pub streams: Streams,
    /// When its changes reach the workspace.
    pub apply_mode: ApplyMode,
    /// What it may change beside the workspace: absolute paths that exist.
    pub writable: Vec<String>,
    /// Whether it runs with no sandbox around it.
    pub unsandboxed: bool,
    /// What it may reach over the network; none means nothing.
    pub egress: Option<Arc<dyn EgressPolicy>>,
}

/// A program that is started by its path, with arguments that no shell reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Where it is, or its name if it is one of the machine's own.
    pub path: PathBuf,
    /// What it is given.
    pub arguments: Vec<OsString>,
    /// The directory that it belongs to: it may look into that, wherever it lies.
    pub home: PathBuf,
    /// Where it starts: a directory of its own, which nobody else looks into.
    pub workdir: PathBuf,
}

/// When a command's changes reach the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApplyMode {
    /// As it makes them. Others see them, and it sees what others change.
    AtOnce,
    /// When it has ended, as one change that can be taken back.
    #[default]
    AtItsEnd,
    /// When somebody commits them.
    WhenCommitted,
}

/// What the three standard streams of a command are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Streams {
    /// Nothing to read; output through two pipes.
    #[default]
    Output,
    /// Three pipes: it can be written to.
    Input,
    /// One terminal for all three.
    Terminal(TerminalSize),
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// Starts commands, confined as configuration says.
pub trait ProcessLauncher: Send + Sync {
    /// Starts one.
    fn start(&self, order: LaunchSpec) -> BoxFuture<'_, Result<Box<dyn Process>, ToolError>>;
    /// Whether confined commands are kept from what nobody may change. Where they aren't, it has to be put back after them.
    fn protects(&self) -> BoxFuture<'_, Result<bool, ToolError>>;
}

/// A command that runs. Dropping it kills everything that it has started.
pub trait Process: Send {
    /// The next piece of output; none when nobody holds either stream any more.
    fn output(&mut self) -> BoxFuture<'_, Option<Output>>;
    /// Waits until it and all that it started are gone. Gives its code as a shell would.
    fn wait(&mut self) -> BoxFuture<'_, Result<i32, ToolError>>;
    /// Kills it and all that it started, at once.
    fn kill(&self);
    /// What can be done to it while somebody listens to it.
    fn controls(&self) -> Arc<dyn Controls>;
    /// Which guarantees hold.
    fn enforced(&self) -> Enforced;
    /// What it changed, where that was kept apart. Ask when it has ended; once.
    fn staged(&mut self) -> Option<Box<dyn StagedChanges>> {
        None
    }
    /// What became of its changes. Ask when it has ended; once.
    fn settled(&mut self) -> Option<SettledChanges> {
        None
    }
}

/// What can be done to a command from outside while it runs. Outlives the command; then everything here fails but
/// for what can be told of it.
pub trait Controls: Send + Sync {
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
    /// What confinement kept from it so far. The errors that it wrote tell what it tried to do with files.
    fn denials(&self, _errors: &str) -> Vec<Denial> {
        Vec::new()
    }
    /// Hidden files that it opened so far, and saw a decoy of.
    fn opened(&self) -> Vec<WorkspacePath> {
        Vec::new()
    }
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
