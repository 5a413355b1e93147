//! An agent's notes: the to-do list, the plan, the memory. Notes of one kind are one JSON value; its structure is up to
//! the tool that writes it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolError;

/// A kind of notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The to-do list of the session.
    Todo,
    /// The plan of the session.
    Plan,
    /// The memory of the workspace, across runs.
    Memory,
}

impl NoteKind {
    /// Its name in files and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Plan => "plan",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for NoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Todo => "the to-do list",
            Self::Plan => "the plan",
            Self::Memory => "the memory",
        })
    }
}

/// Computes the new notes from the old ones; none if nothing was written yet.
pub type NoteUpdate<'a> = dyn FnMut(Option<Value>) -> Result<Value, ToolError> + 'a;

/// Stores notes.
pub trait Notes: Send + Sync {
    /// The notes of one kind; none if nothing was written yet.
    fn read(&self, book: NoteKind) -> Result<Option<Value>, ToolError>;
    /// Rewrites the notes of one kind atomically. Secrets are redacted before they are stored.
    fn rewrite(&self, book: NoteKind, change: &mut NoteUpdate<'_>) -> Result<(), ToolError>;
}
