//! What a run consists of: operations as plain values. A list of them can be printed, read back, and shortened: each
//! refers to others by their number, and one whose partner is gone does nothing.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::mutation::Mutation;
use crate::tree_path::TreePath;

/// One step, by one of those who work in the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Operation {
    /// Its number, which stays the same when others are dropped.
    pub(crate) id: u32,
    pub(crate) by: Actor,
    #[serde(rename = "do")]
    pub(crate) act: Act,
}

/// Who does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Actor {
    /// An agent's call, through the first MCP server.
    ServerA,
    /// An agent's call, through the second MCP server.
    ServerB,
    /// The program on the command line, one process for one operation.
    Program,
    /// Somebody without Toolgate.
    Person,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    /// A script without Toolgate.
    Script(Vec<Mutation>),
    Read(TreePath),
    /// `list`, `find` or `grep` for this word.
    Search(String, String),
    /// The whole file becomes lines of this word.
    Write(TreePath, String, u32),
    Append(TreePath, String),
    /// The first line is replaced by this word.
    Edit(TreePath, String),
    /// The first line of one file is replaced, and another file is created, by one patch.
    Patch(TreePath, String, TreePath),
    Delete(TreePath, bool),
    Move(TreePath, TreePath, bool),
    /// A command that its call waits for.
    Shell(How, Vec<Mutation>),
    /// A command that runs this and then goes on, until it is ended.
    Begin(How, Vec<Mutation>),
    /// The command of that operation does this, while others work too.
    Feed(u32, Vec<Mutation>),
    /// The command of that operation ends by itself, or is stopped.
    End(u32, bool),
    Rehearse(Vec<Mutation>),
    Commit(u32),
    /// Undoes the call of that operation.
    Undo(u32),
    UndoLast,
    /// Undoes everything of the server's run that the operation's call belongs to.
    UndoRun(u32),
    /// Releases one of the changes that the operation's call had quarantined; the flag replaces what is there.
    Release(u32, usize, bool),
    /// The server ends as it should, and starts again.
    Restart,
    /// The server is killed, and starts again.
    Kill,
    /// The server is killed so many microseconds after it was asked to do this.
    KillDuring(Box<Act>, u64),
    /// The call is cancelled so many microseconds after it began.
    CancelDuring(Box<Act>, u64),
}

/// How a command works on the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    /// On an overlay, if the setting has overlays.
    Layer,
    /// In place, with its input open.
    Input,
    /// In place, on a terminal.
    Terminal,
}

impl Act {
    /// The number of the operation that it is about.
    pub(crate) fn refers_to(&self) -> Option<u32> {
        match self {
            Self::Feed(of, _) | Self::End(of, _) | Self::Commit(of) | Self::Undo(of) | Self::UndoRun(of) => Some(*of),
            Self::Release(of, ..) => Some(*of),
            _ => None,
        }
    }

    /// Whether it may change files through a call, so that it can be undone.
    pub(crate) fn is_undoable(&self) -> bool {
        match self {
            Self::Script(_) | Self::Read(_) | Self::Search(..) | Self::Feed(..) | Self::Rehearse(_) => false,
            Self::Restart | Self::Kill => false,
            Self::KillDuring(act, _) | Self::CancelDuring(act, _) => act.is_undoable(),
            Self::End(..) => false,
            _ => true,
        }
    }
}

/// One operation a line.
pub(crate) fn print(operations: &[Operation]) -> String {
    operations.iter().fold(String::new(), |mut text, operation| {
        let _ = writeln!(text, "{}", serde_json::to_string(operation).expect("an operation can be written as JSON"));
        text
    })
}

/// Reads what [`print`] wrote; empty lines and those that begin with `#` say nothing.
pub(crate) fn parse(text: &str) -> Result<Vec<Operation>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(n, line)| serde_json::from_str(line).map_err(|fault| format!("line {}: {fault}", n + 1))).collect()
}
