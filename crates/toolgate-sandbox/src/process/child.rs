//! A running command as one value: its streams, its exit, signals, what was enforced and denied, and what it changed. All
//! methods take a shared reference, so that one task can read while others write or signal.

mod pty_master;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex as BlockingMutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::Mutex;
use toolgate_contract::{
    BoxFuture, ChildProcess, Denial, Enforced, ErrorCode, Output, Pids, Signal, StagedChanges, TerminalSize, ToolError,
    WorkspacePath, escape_path,
};

pub(super) use self::pty_master::PtyMaster;
use super::cgroup::MemoryCgroup;
use super::command_paths::CommandPaths;
use super::connect_broker::ConnectBroker;
use super::decoy_watch::DecoyWatch;
use super::denied_files::{denied_files, refused_changes, unseen_files};
use super::enforcement::Enforcement;
use super::error::SandboxError;
use super::instance::{SandboxInstance, pid_of};
use super::pipes::HostPipes;
use super::syscall::signals;
use crate::files::overlay_changes::{LayerDirectory, OverlayChanges};
use crate::network::{DenialLog, EgressProxy};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Ctrl-D (EOT), which ends the input of a program that reads a terminal line by line.
const END_OF_INPUT: &[u8] = &[4];

/// A confined command. Dropping it kills every process that it has started.
pub struct Child {
    output: Mutex<OutputPipes>,
    input: Mutex<Option<pipe::Sender>>,
    terminal: Option<PtyMaster>,
    enforcement: Enforcement,
    instance: SandboxInstance,
    process: OwnedFd,
    pids: Pids,
    exit: Mutex<Option<ChildExit>>,
    denial_log: DenialLog,
    decoys: DecoyWatch,
    confinement: Option<CommandConfinement>,
    // Dropped after the instance, when no process is left that could use them.
    resources: BlockingMutex<ChildResources>,
}

/// The parts of a new child: the sandbox that it runs in, and the descriptors received from there.
pub(super) struct NewChild {
    pub(super) instance: SandboxInstance,
    pub(super) process: OwnedFd,
    pub(super) pipes: HostPipes,
    pub(super) terminal: Option<PtyMaster>,
    pub(super) enforcement: Enforcement,
    pub(super) decoys: DecoyWatch,
    /// The command's confinement; none if it runs without.
    pub(super) confinement: Option<CommandConfinement>,
    pub(super) resources: ChildResources,
}

/// What a running command needs on the host, and what it leaves there.
#[derive(Default)]
pub(super) struct ChildResources {
    /// The proxy for its network connections.
    pub(super) proxy: Option<EgressProxy>,
    /// Makes its connections.
    #[expect(dead_code, reason = "it ends when this is dropped")]
    pub(super) broker: Option<ConnectBroker>,
    /// Its changes, if they are staged.
    pub(super) staged: Option<OverlayChanges>,
    /// A directory for its temporary files, if it has no `/tmp` of its own.
    #[expect(dead_code, reason = "the directory is removed when this is dropped")]
    pub(super) scratch: Option<LayerDirectory>,
    /// The cgroup that limits its memory, if it has a limit of its own.
    pub(super) cgroup: Option<MemoryCgroup>,
}

/// The confinement of a command, from which its denials are found.
pub(super) struct CommandConfinement {
    pub(super) paths: CommandPaths,
    /// The directory that it started in.
    pub(super) directory: PathBuf,
    /// The directory of the workspace.
    pub(super) workspace: PathBuf,
    /// What policy hides from it, with the absolute paths.
    pub(super) hidden: Vec<(WorkspacePath, PathBuf)>,
    pub(super) is_staged: bool,
}

/// A command's output, unless it has a terminal.
struct OutputPipes {
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
    out: Box<[u8]>,
    err: Box<[u8]>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildExit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal; by `KILL` when its sandbox was ended.
    Signal(i32),
}

impl ChildExit {
    /// The exit code as a shell reports it: a signal is 128 plus its number.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    fn from_status(status: Option<i32>) -> Self {
        match status {
            None => Self::Signal(libc::SIGKILL),
            Some(status) if libc::WIFSIGNALED(status) => Self::Signal(libc::WTERMSIG(status)),
            Some(status) => Self::Code(libc::WEXITSTATUS(status)),
        }
    }
}

impl Child {
    pub(super) fn new(new: NewChild) -> Self {
        let HostPipes { stdin, stdout, stderr } = new.pipes;
        let buffer = || vec![0; BUFFER_BYTES].into_boxed_slice();
        let denial_log = new.resources.proxy.as_ref().map(|proxy| proxy.denials().clone()).unwrap_or_default();
        let pids = Pids { pid: pid_of(new.process.as_fd()), sandbox_pid: new.instance.first_pid() };
        Self {
            output: Mutex::new(OutputPipes { stdout, stderr, out: buffer(), err: buffer() }),
            input: Mutex::new(stdin),
            terminal: new.terminal,
            enforcement: new.enforcement,
            instance: new.instance,
            process: new.process,
            pids,
            exit: Mutex::new(None),
            denial_log,
            decoys: new.decoys,
            confinement: new.confinement,
            resources: BlockingMutex::new(new.resources),
        }
    }

    /// What is really enforced.
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// The network connections and lookups that were denied so far.
    pub fn network_denials(&self) -> Vec<Denial> {
        self.denial_log.all()
    }

    /// Names that it looked up and never connected to, which may explain why it failed.
    pub fn unused_names(&self) -> Vec<Denial> {
        self.denial_log.unused()
    }

    /// The hidden files whose decoys it opened so far.
    pub fn opened_decoys(&self) -> Vec<PathBuf> {
        self.decoys.opened()
    }

    /// Takes its staged changes, if they were staged.
    pub fn take_staged(&self) -> Option<OverlayChanges> {
        self.resources.lock().staged.take()
    }

    /// The next output; none when no process has either stream, or the terminal, open any more.
    pub async fn output(&self) -> Option<Output> {
        let mut pipes = self.output.lock().await;
        let Some(terminal) = &self.terminal else { return pipes.next().await };
        match terminal.read(&mut pipes.out).await.unwrap_or(0) {
            0 => None,
            count => Some(Output::Out(pipes.out[..count].to_vec())),
        }
    }

    /// Everything that it writes from now on, to its standard output and to its standard error.
    pub async fn read_to_end(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        while let Some(piece) = self.output().await {
            match piece {
                Output::Out(bytes) => out.extend(bytes),
                Output::Err(bytes) => err.extend(bytes),
            }
        }
        (out, err)
    }

    /// Waits until the command has ended and every process that it started is gone. It can be cancelled and called again.
    pub async fn wait(&self) -> Result<ChildExit, SandboxError> {
        let mut exit = self.exit.lock().await;
        if let Some(exit) = *exit {
            return Ok(exit);
        }
        let ended = ChildExit::from_status(self.instance.ended().await?);
        *exit = Some(ended);
        self.decoys.close();
        Ok(ended)
    }

    /// Waits until the command is stopped, as by Ctrl-Z, if it is a job; for ever if it ends before that.
    pub async fn stopped(&self) {
        self.instance.stopped().await;
    }

    /// The pidfd of the command's own process.
    pub fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// The pidfd of the sandbox's first process, which ends last.
    pub fn first_process(&self) -> Option<BorrowedFd<'_>> {
        self.instance.first_process()
    }

    async fn write_all(&self, mut bytes: &[u8]) -> Result<(), ToolError> {
        let Some(terminal) = &self.terminal else {
            let mut input = self.input.lock().await;
            let input = input.as_mut().ok_or_else(no_input)?;
            return input.write_all(bytes).await.map_err(|error| write_error(&error));
        };
        while !bytes.is_empty() {
            let written = terminal.write(bytes).await.map_err(|error| write_error(&error))?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    async fn end_input(&self) -> Result<(), ToolError> {
        match &self.terminal {
            Some(_) => self.write_all(END_OF_INPUT).await,
            None => self.input.lock().await.take().map(drop).ok_or_else(no_input),
        }
    }
}

impl OutputPipes {
    async fn next(&mut self) -> Option<Output> {
        let Self { stdout, stderr, out, err } = self;
        loop {
            let (from_out, read) = match (stdout.as_mut(), stderr.as_mut()) {
                (Some(stdout), Some(stderr)) => tokio::select! {
                    read = stdout.read(out) => (true, read),
                    read = stderr.read(err) => (false, read),
                },
                (Some(stdout), None) => (true, stdout.read(out).await),
                (None, Some(stderr)) => (false, stderr.read(err).await),
                (None, None) => return None,
            };
            // A stream that has ended is closed; when both have ended, there is no more output.
            match (read.unwrap_or(0), from_out) {
                (0, true) => *stdout = None,
                (0, false) => *stderr = None,
                (count, true) => return Some(Output::Out(out[..count].to_vec())),
                (count, false) => return Some(Output::Err(err[..count].to_vec())),
            }
        }
    }
}

impl ChildProcess for Child {
    fn output(&self) -> BoxFuture<'_, Option<Output>> {
        Box::pin(self.output())
    }

    fn wait(&self) -> BoxFuture<'_, Result<i32, ToolError>> {
        Box::pin(async { Ok(self.wait().await?.shell_code()) })
    }

    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.write_all(bytes))
    }

    fn close_input(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.end_input())
    }

    fn signal(&self, signal: Signal) -> Result<(), ToolError> {
        signals::send_to_group(self.process.as_fd(), number(signal).as_raw()).map_err(|_| {
            ToolError::new(ErrorCode::NotFound, "The process has ended, so there is nobody to signal.")
                .with_hint("Read its output; `list` shows which processes still run.")
        })
    }

    fn kill(&self) {
        self.instance.kill();
    }

    fn resize(&self, size: TerminalSize) -> Result<(), ToolError> {
        let terminal = self.terminal.as_ref().ok_or_else(|| ToolError::invalid_args("The process has no terminal."))?;
        terminal.resize(size).map_err(|error| ToolError::io("The terminal's size can't be changed", &error))
    }

    fn pids(&self) -> Pids {
        self.pids
    }

    fn enforced(&self) -> Enforced {
        self.enforcement.enforced()
    }

    fn denials(&self, errors: &str) -> Vec<Denial> {
        let mut denials = self.network_denials();
        denials.extend(self.unused_names());
        denials.extend(self.confinement.iter().flat_map(|confinement| confinement.denials(errors)));
        denials
    }

    fn take_network_denials(&self) -> Vec<Denial> {
        self.denial_log.take()
    }

    fn opened(&self) -> Vec<WorkspacePath> {
        let opened = self.opened_decoys();
        opened.iter().filter_map(|path| self.confinement.as_ref()?.place(path)).collect()
    }

    fn refused_changes(&self, errors: &str) -> Vec<String> {
        self.confinement.iter().flat_map(|confinement| confinement.refused_changes(errors)).collect()
    }

    fn staged(&self) -> Option<Box<dyn StagedChanges>> {
        self.take_staged().map(|staged| Box::new(staged) as _)
    }

    fn ran_out_of_memory(&self) -> bool {
        self.resources.lock().cgroup.as_ref().is_some_and(MemoryCgroup::ran_out_of_memory)
    }

    fn release(&self) {
        drop(std::mem::take(&mut *self.resources.lock()));
    }
}

impl CommandConfinement {
    /// The hidden workspace path with this absolute path, or else one whose symlinks lead there.
    fn place(&self, path: &Path) -> Option<WorkspacePath> {
        let leads_there = |known: &PathBuf| known.canonicalize().is_ok_and(|real| real == path);
        let by_name = self.hidden.iter().find(|(_, known)| known == path);
        let found = by_name.or_else(|| self.hidden.iter().find(|(_, known)| leads_there(known)));
        found.map(|(place, _)| place.clone())
    }

    /// What it tried to change where it may only read, by the error messages that it wrote; relative to the workspace.
    fn refused_changes(&self, errors: &str) -> Vec<String> {
        let shown = |path: PathBuf| {
            let path = path.strip_prefix(&self.workspace).unwrap_or(&path);
            escape_path(path.as_os_str().as_bytes()).into_owned()
        };
        refused_changes(errors, &self.paths, &self.directory).into_iter().map(shown).collect()
    }

    /// The file accesses that it was denied, by the error messages that it wrote.
    fn denials(&self, errors: &str) -> Vec<Denial> {
        let mut denials = denied_files(errors, &self.paths, &self.directory);
        denials.extend(unseen_files(errors, &self.paths, &self.directory));
        denials.extend(self.is_staged.then(|| rename_denied(errors)).flatten());
        denials.extend(self.is_staged.then(|| hard_link_denied(errors)).flatten());
        denials.extend(shadow_memory_denied(errors));
        denials
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Child").field("process", &self.process).finish_non_exhaustive()
    }
}

/// Every root is a file system of its own, as `/tmp` is, and nothing can be renamed from one to another (EXDEV).
fn rename_denied(errors: &str) -> Option<Denial> {
    let is_that = errors.contains("cross-device link") || errors.contains("EXDEV");
    let reason = "Something wasn't renamed or linked, as the workspace, `/tmp`, the home and every other root are file systems of \
                  their own. `mv` and `cp` copy from one to another.";
    is_that.then(|| Denial { code: ErrorCode::SandboxDenied, missing: Vec::new(), reason: reason.into(), rule: None })
}

/// An overlay copies a file of the lower layer before it links it, and git wants the very file that it saw. So it gets no link
/// at all and copies, unless it was told to make links.
fn hard_link_denied(errors: &str) -> Option<Denial> {
    let reason = "Git made no hard links to objects that existed before, as the command's changes are staged until it ends. \
                  `git clone` without `--local` copies them.";
    let is_that = errors.contains("fatal: failed to create link");
    is_that.then(|| Denial { code: ErrorCode::SandboxDenied, missing: Vec::new(), reason: reason.into(), rule: None })
}

/// Sanitizers reserve address space for their shadow memory, which the limit on each process's memory refuses.
fn shadow_memory_denied(errors: &str) -> Option<Denial> {
    let reason = "The sanitizer couldn't reserve its shadow memory: no memory cgroup can be made here, so the memory of each process \
                  is limited, and what is reserved counts. Run Toolgate where it can make one, such as a systemd user session \
                  with delegated controllers, or the program without sanitizer.";
    let is_that = errors.contains("Sanitizer")
        && ["ReserveShadowMemoryRange failed", "failed to allocate", "ulimit -v", "Shadow memory"]
            .iter()
            .any(|words| errors.contains(words));
    is_that.then(|| Denial { code: ErrorCode::SandboxDenied, missing: Vec::new(), reason: reason.into(), rule: None })
}

fn no_input() -> ToolError {
    ToolError::invalid_args("The process has no input, or its input was closed.")
        .with_hint("Start the command with `stdin: true` or `tty: true` to write to it.")
}

fn write_error(error: &std::io::Error) -> ToolError {
    ToolError::io("The process doesn't read any more", error).with_hint("Read its output; it may have ended.")
}

fn number(signal: Signal) -> rustix::process::Signal {
    match signal {
        Signal::Int => rustix::process::Signal::INT,
        Signal::Term => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
        Signal::Hup => rustix::process::Signal::HUP,
        Signal::Quit => rustix::process::Signal::QUIT,
        Signal::Usr1 => rustix::process::Signal::USR1,
        Signal::Usr2 => rustix::process::Signal::USR2,
        Signal::Stop => rustix::process::Signal::STOP,
        Signal::Cont => rustix::process::Signal::CONT,
    }
}
