//! A command to start, as one value from the hands of a tool to the sandbox that runs it. What it says is added to the
//! workspace's standing confinement; nothing on the way turns it into another shape.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Blob, EgressPolicy, ErrorCode, ToolError, WorkspacePath};

/// What runs the command lines of tools.
const SHELL: &str = "/bin/bash";

/// What a command sees in place of a hidden file. It is a comment, which most programs that load secrets ignore.
pub const DECOY_CONTENT: &[u8] = b"# Toolgate keeps this file from commands: it may hold secrets. This is a decoy.\n";

/// A command to start.
#[derive(Debug, Clone)]
pub struct LaunchSpec {
    /// The command as people see it and the record has it.
    pub command: String,
    /// What is executed: a path, or a name that is looked for in `PATH`.
    pub program: OsString,
    /// What the program is given, without its own name.
    pub arguments: Vec<OsString>,
    /// Variables beside the workspace's, which they override.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where the command starts.
    pub directory: StartDirectory,
    /// What its standard streams are.
    pub streams: Streams,
    /// What it may change beside the workspace: absolute paths that exist and lead over no link.
    pub writable: Vec<PathBuf>,
    /// What it may read though it lies in something hidden.
    pub read_only: Vec<PathBuf>,
    /// Directories that are the command's alone: what it does there is never staged. In each of them the link `workspace` leads
    /// to the workspace.
    pub own: Vec<PathBuf>,
    /// What policy hides: the command must not see these.
    pub hidden: Vec<WorkspacePath>,
    /// Files that the command sees with another content.
    pub substitutes: Vec<Substitute>,
    /// Files anywhere on the machine that the command sees with another content, and can't change. They are absolute and lead over no
    /// link; those that don't exist are skipped.
    pub replaced: Vec<(PathBuf, Blob)>,
    /// What policy lets nobody change: the command sees these as they are.
    pub protected: Vec<WorkspacePath>,
    /// What it can reach over the network.
    pub network: NetworkAccess,
    /// When its changes reach the workspace.
    pub apply_mode: ApplyMode,
    /// Whether policy reads it as a command that changes nothing. Then it can't.
    pub only_reads: bool,
    /// Whether it runs with no sandbox around it.
    pub unsandboxed: bool,
    /// Whether it has no caches of package managers: what commands put there would run with its secrets.
    pub without_caches: bool,
    /// Whether it can be stopped as a job of a shell can (Ctrl-Z), if it has a terminal. Whoever has the other end continues it.
    pub is_job: bool,
    /// Bytes of memory that each of its processes may use, if that is less than others may.
    pub memory_bytes: Option<u64>,
    /// Bytes of memory that it and everything that it starts may use together. Where no cgroup can limit that, each process may use so many.
    pub memory_together: Option<u64>,
}

impl LaunchSpec {
    /// A program with nothing to read, in the workspace's own directory, whose changes are made in place.
    pub fn program(program: impl Into<OsString>) -> Self {
        let program = program.into();
        Self {
            command: program.to_string_lossy().into_owned(),
            program,
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            directory: StartDirectory::default(),
            streams: Streams::Output,
            writable: Vec::new(),
            read_only: Vec::new(),
            own: Vec::new(),
            hidden: Vec::new(),
            substitutes: Vec::new(),
            replaced: Vec::new(),
            protected: Vec::new(),
            network: NetworkAccess::Off,
            apply_mode: ApplyMode::InPlace,
            only_reads: false,
            unsandboxed: false,
            without_caches: false,
            is_job: false,
            memory_bytes: None,
            memory_together: None,
        }
    }

    /// A line for the shell.
    pub fn shell(line: &str) -> Self {
        Self { command: line.to_owned(), ..Self::program(SHELL).argument("-c").argument(line) }
    }

    /// Adds one argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Says what the standard streams are.
    #[must_use]
    pub fn streams(mut self, streams: Streams) -> Self {
        self.streams = streams;
        self
    }

    /// Says what can be reached over the network.
    #[must_use]
    pub fn network(mut self, network: NetworkAccess) -> Self {
        self.network = network;
        self
    }

    /// Asks for a time at which changes reach the workspace.
    #[must_use]
    pub fn apply_mode(mut self, apply_mode: ApplyMode) -> Self {
        self.apply_mode = apply_mode;
        self
    }

    /// Takes from the command what policy takes from every tool.
    #[must_use]
    pub fn restricted(self, RestrictedPaths { hidden, substitutes, protected }: RestrictedPaths) -> Self {
        Self { hidden, substitutes, protected, ..self }
    }

    /// What policy takes from the command.
    pub fn restrictions(&self) -> RestrictedPaths {
        let (hidden, substitutes, protected) = (&self.hidden, &self.substitutes, &self.protected);
        RestrictedPaths { hidden: hidden.clone(), substitutes: substitutes.clone(), protected: protected.clone() }
    }

    /// When the command's changes reach the workspace, by what was asked for and what can be had. Nothing else decides that.
    /// `stages_at_end` says whether changes are staged for commands that don't ask for anything else.
    pub fn decide_apply_mode(&self, stages_at_end: bool) -> Result<ApplyMode, ToolError> {
        // What may go beyond the workspace, or has no sandbox, can't be staged.
        let goes_beyond = self.unsandboxed || !self.writable.is_empty();
        match self.apply_mode {
            ApplyMode::None => Ok(ApplyMode::None),
            // A rehearsal changes nothing either, and tells so in its own way.
            ApplyMode::InPlace | ApplyMode::AtEnd if self.only_reads && !goes_beyond => Ok(ApplyMode::None),
            ApplyMode::InPlace => Ok(ApplyMode::InPlace),
            ApplyMode::AtEnd if goes_beyond || !stages_at_end => Ok(ApplyMode::InPlace),
            ApplyMode::AtEnd => Ok(ApplyMode::AtEnd),
            ApplyMode::OnCommit if !goes_beyond => Ok(ApplyMode::OnCommit),
            ApplyMode::OnCommit => Err(self.not_rehearsed()),
        }
    }

    /// What lies outside the workspace can't be undone, so nothing that goes there can be tried first.
    fn not_rehearsed(&self) -> ToolError {
        let (message, hint) = match self.unsandboxed {
            true => ("A command with no sandbox around it can't be rehearsed.", "Rehearse it in the sandbox."),
            false => (
                "A command that may change places outside the workspace can't be rehearsed.",
                "Rehearse it without those places.",
            ),
        };
        ToolError::new(ErrorCode::SandboxDenied, message).with_hint(hint)
    }
}

/// The paths that policy takes from every command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestrictedPaths {
    /// Paths that policy hides from all tools.
    pub hidden: Vec<WorkspacePath>,
    /// Files that commands see with another content. A hidden file that is among them needs no decoy.
    pub substitutes: Vec<Substitute>,
    /// Paths that no tool may change.
    pub protected: Vec<WorkspacePath>,
}

/// A file that a command sees with another content than the workspace's. As long as it stays so, that is no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitute {
    /// The file.
    pub place: WorkspacePath,
    /// All of the content that the command sees.
    pub content: Blob,
    /// The permission bits that it sees.
    pub mode: u32,
    /// The modification time that it sees where the content is mounted over the file, in seconds since 1970.
    pub modified: Option<u32>,
    /// The lines in it that were added to the file's own content.
    pub added: Option<Blob>,
}

/// Where a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartDirectory {
    /// In the workspace, or in a directory beside it that was granted.
    Workspace(WorkspacePath),
    /// Anywhere on the machine.
    Machine(PathBuf),
}

impl Default for StartDirectory {
    fn default() -> Self {
        Self::Workspace(WorkspacePath::in_workspace(""))
    }
}

/// What a command can reach over the network.
#[derive(Debug, Clone)]
pub enum NetworkAccess {
    /// Itself alone: a loopback of its own.
    Off,
    /// Itself, and the hosts that this policy lets pass, by name.
    Listed(Arc<dyn EgressPolicy>),
    /// Whatever this machine can.
    Shared,
}

/// When a command's changes reach the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMode {
    /// As it makes them. Others see them, and it sees what others change.
    InPlace,
    /// When it has ended, as one change that can be undone.
    AtEnd,
    /// When somebody commits them.
    OnCommit,
    /// Never: it can't change the workspace.
    None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_beyond_the_workspace_is_made_in_place_or_refused() {
        use ApplyMode::{AtEnd, InPlace, None as Never, OnCommit};
        let plain = LaunchSpec::shell("true");
        let beyond = LaunchSpec { writable: vec!["/srv/data".into()], ..plain.clone() };
        let open = LaunchSpec { unsandboxed: true, ..plain.clone() };
        let reading = LaunchSpec { only_reads: true, ..plain.clone() };
        let reading_in_the_open = LaunchSpec { only_reads: true, ..open.clone() };
        for (spec, asked, stages_at_end, expected) in [
            (&plain, InPlace, true, Some(InPlace)),
            (&plain, AtEnd, true, Some(AtEnd)),
            (&plain, AtEnd, false, Some(InPlace)),
            (&plain, OnCommit, false, Some(OnCommit)),
            (&beyond, InPlace, true, Some(InPlace)),
            (&beyond, AtEnd, true, Some(InPlace)),
            (&beyond, OnCommit, true, None),
            (&open, AtEnd, true, Some(InPlace)),
            (&open, OnCommit, true, None),
            (&reading, InPlace, true, Some(Never)),
            (&reading, AtEnd, true, Some(Never)),
            (&reading, AtEnd, false, Some(Never)),
            (&reading, OnCommit, true, Some(OnCommit)),
            (&plain, Never, true, Some(Never)),
            (&reading_in_the_open, AtEnd, true, Some(InPlace)),
        ] {
            let decided = spec.clone().apply_mode(asked).decide_apply_mode(stages_at_end);
            assert_eq!(decided.clone().ok(), expected, "{spec:?} {asked:?} {stages_at_end}");
            assert!(decided.is_ok() || decided.is_err_and(|error| error.code == ErrorCode::SandboxDenied));
        }
    }
}
