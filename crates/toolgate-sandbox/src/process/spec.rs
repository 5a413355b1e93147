//! What to run inside: a program, its arguments, and what its three standard streams are.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// A program to run confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// A path, or a name that is looked for in the profile's `PATH`.
    pub program: OsString,
    /// What it is given, without its own name.
    pub arguments: Vec<OsString>,
    /// Variables beside the profile's, which they override.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where it starts; the profile's working directory unless said.
    pub working_directory: Option<PathBuf>,
    /// What it reads, and where it writes.
    pub streams: StandardStreams,
}

/// What the three standard streams of a command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardStreams {
    /// Nothing to read; output through two pipes.
    Output,
    /// Three pipes.
    Interactive,
    /// One terminal for all three.
    Terminal(PtySize),
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PtySize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl CommandSpec {
    /// A program with nothing to read.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            working_directory: None,
            streams: StandardStreams::Output,
        }
    }

    /// A line for the shell.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self::new("/bin/sh").argument("-c").argument(line)
    }

    /// Adds one argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Says what the standard streams are.
    #[must_use]
    pub fn streams(mut self, streams: StandardStreams) -> Self {
        self.streams = streams;
        self
    }
}
