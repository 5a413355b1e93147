//! A confined command as tools see it: what it writes, and what can be done to it meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::Mutex;
use toolgate_contract::{
    BoxFuture, Controls, Denial, Enforced, ErrorCode, Output, Process, Signal, StagedChanges, TerminalSize, ToolError,
    WorkspacePath,
};

use crate::files::overlay_changes::{LayerDirectory, OverlayChanges};
use crate::network::DenialLog;
use crate::process::denied_files::denied_files;
use crate::process::{self, Child, DecoyWatch, Profile, PtyMaster, SandboxError, Signaller};

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// What ends the input of whoever reads a terminal line by line.
const END_OF_INPUT: &[u8] = &[4];

pub(super) struct SandboxedProcess {
    running: Child,
    out: Box<[u8]>,
    err: Box<[u8]>,
    controls: Arc<ChildControls>,
    beside: CommandResources,
}

/// What goes with a command.
#[derive(Default)]
pub(super) struct CommandResources {
    /// What it changes, where that is kept apart.
    pub(super) layers: Option<OverlayChanges>,
    /// Its temporary files, where they have a directory that somebody has to remove.
    #[expect(dead_code, reason = "the directory is removed when this is dropped")]
    pub(super) scratch: Option<LayerDirectory>,
}

impl SandboxedProcess {
    /// A command that runs; what holds it, unless nothing does; and what goes with it.
    pub(super) fn new(
        mut running: Child,
        held: Option<CommandConfinement>,
        beside: CommandResources,
    ) -> Result<Self, SandboxError> {
        let controls = ChildControls {
            held,
            is_apart: beside.layers.is_some(),
            notes: running.notes(),
            decoys: running.decoys(),
            process: running.signaller()?,
            input: Mutex::new(running.stdin.take()),
            terminal: running.terminal.take(),
        };
        let piece = || vec![0; PIECE].into_boxed_slice();
        Ok(Self { running, out: piece(), err: piece(), controls: Arc::new(controls), beside })
    }

    async fn next(&mut self) -> Option<Output> {
        if let Some(terminal) = &self.controls.terminal {
            return match terminal.read(&mut self.out).await.unwrap_or(0) {
                0 => None,
                count => Some(Output::Out(self.out[..count].to_vec())),
            };
        }
        loop {
            let Child { stdout, stderr, .. } = &mut self.running;
            // A stream that has ended is let go; when both have, it is over.
            let (from_out, read) = match (stdout.as_mut(), stderr.as_mut()) {
                (Some(stdout), Some(stderr)) => tokio::select! {
                    read = stdout.read(&mut self.out) => (true, read),
                    read = stderr.read(&mut self.err) => (false, read),
                },
                (Some(stdout), None) => (true, stdout.read(&mut self.out).await),
                (None, Some(stderr)) => (false, stderr.read(&mut self.err).await),
                (None, None) => return None,
            };
            match (read.unwrap_or(0), from_out) {
                (0, true) => self.running.stdout = None,
                (0, false) => self.running.stderr = None,
                (count, true) => return Some(Output::Out(self.out[..count].to_vec())),
                (count, false) => return Some(Output::Err(self.err[..count].to_vec())),
            }
        }
    }
}

impl Process for SandboxedProcess {
    fn output(&mut self) -> BoxFuture<'_, Option<Output>> {
        Box::pin(self.next())
    }

    fn wait(&mut self) -> BoxFuture<'_, Result<i32, ToolError>> {
        Box::pin(async { Ok(self.running.wait().await?.shell_code()) })
    }

    fn kill(&self) {
        self.running.kill();
    }

    fn controls(&self) -> Arc<dyn Controls> {
        Arc::clone(&self.controls) as Arc<dyn Controls>
    }

    fn enforced(&self) -> Enforced {
        self.running.enforcement().enforced()
    }

    fn staged(&mut self) -> Option<Box<dyn StagedChanges>> {
        self.beside.layers.take().map(|layers| Box::new(layers) as _)
    }
}

/// What a command is held to.
pub(super) struct CommandConfinement {
    pub(super) profile: Profile,
    /// Where it was started.
    pub(super) workdir: PathBuf,
    /// What policy hides from it, and the directories that this is in.
    pub(super) hidden: Vec<WorkspacePath>,
    pub(super) roots: Vec<PathBuf>,
}

impl CommandConfinement {
    /// The hidden place that is really there; by its own name if it has one, since a link may lead there too.
    fn place(&self, path: &Path) -> Option<WorkspacePath> {
        let is = |place: &&WorkspacePath, found: &dyn Fn(PathBuf) -> Option<PathBuf>| {
            let named = self.roots.get(place.root).map(|root| root.join(&place.path));
            named.and_then(found).is_some_and(|found| found == path)
        };
        let named = self.hidden.iter().find(|place| is(place, &Some));
        named.or_else(|| self.hidden.iter().find(|place| is(place, &|path| path.canonicalize().ok()))).cloned()
    }
}

/// The host's hold on a command.
struct ChildControls {
    held: Option<CommandConfinement>,
    /// Whether its changes are kept apart.
    is_apart: bool,
    notes: DenialLog,
    decoys: Arc<DecoyWatch>,
    process: Signaller,
    input: Mutex<Option<pipe::Sender>>,
    terminal: Option<PtyMaster>,
}

impl ChildControls {
    async fn write_all(&self, mut bytes: &[u8]) -> Result<(), ToolError> {
        let Some(terminal) = &self.terminal else {
            let mut input = self.input.lock().await;
            let input = input.as_mut().ok_or_else(no_input)?;
            return input.write_all(bytes).await.map_err(|error| unheard(&error));
        };
        while !bytes.is_empty() {
            let written = terminal.write(bytes).await.map_err(|error| unheard(&error))?;
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

impl Controls for ChildControls {
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.write_all(bytes))
    }

    fn close_input(&self) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(self.end_input())
    }

    fn signal(&self, signal: Signal) -> Result<(), ToolError> {
        self.process.send(number(signal)).map_err(|_| {
            ToolError::new(ErrorCode::NotFound, "The process has ended, so there is nobody to signal.")
                .with_hint("Read its output; `list` shows which processes still run.")
        })
    }

    fn kill(&self) {
        self.process.kill();
    }

    fn resize(&self, size: TerminalSize) -> Result<(), ToolError> {
        let terminal = self.terminal.as_ref().ok_or_else(|| ToolError::invalid_args("The process has no terminal."))?;
        terminal.resize(self::size(size)).map_err(|error| ToolError::io("The terminal's size can't be changed", &error))
    }

    fn denials(&self, errors: &str) -> Vec<Denial> {
        let mut denials = self.notes.all();
        denials.extend(self.notes.unused());
        let files = self.held.as_ref().map(|held| denied_files(errors, &held.profile, &held.workdir));
        denials.extend(files.into_iter().flatten());
        denials.extend(self.is_apart.then(|| directory_rename_denied(errors)).flatten());
        denials
    }

    fn opened(&self) -> Vec<WorkspacePath> {
        let opened = self.decoys.opened();
        opened.iter().filter_map(|path| self.held.as_ref()?.place(path)).collect()
    }
}

/// An overlay can't rename a directory that was there before; programs that don't copy instead give up.
fn directory_rename_denied(errors: &str) -> Option<Denial> {
    let is_that = errors.contains("cross-device link") || errors.contains("EXDEV");
    let reason = "A directory that was there before wasn't renamed, as the command's changes are kept apart until it ends. `mv` \
                  copies it instead; with `stdin: true` the command works straight on the workspace, and can rename it.";
    is_that.then(|| Denial { code: ErrorCode::SandboxDenied, missing: Vec::new(), reason: reason.into(), rule: None })
}

fn no_input() -> ToolError {
    ToolError::invalid_args("The process has no input, or its input was closed.")
        .with_hint("Start the command with `stdin: true` or `tty: true` to write to it.")
}

fn unheard(error: &std::io::Error) -> ToolError {
    ToolError::io("The process doesn't read any more", error).with_hint("Read its output; it may have ended.")
}

pub(super) fn size(size: TerminalSize) -> process::PtySize {
    process::PtySize { rows: size.rows, columns: size.columns }
}

fn number(signal: Signal) -> process::Signal {
    match signal {
        Signal::Int => process::Signal::INT,
        Signal::Term => process::Signal::TERM,
        Signal::Kill => process::Signal::KILL,
        Signal::Hup => process::Signal::HUP,
        Signal::Quit => process::Signal::QUIT,
        Signal::Usr1 => process::Signal::USR1,
        Signal::Usr2 => process::Signal::USR2,
        Signal::Stop => process::Signal::STOP,
        Signal::Cont => process::Signal::CONT,
    }
}
