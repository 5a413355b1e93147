//! What an agent keeps beside its work: what is to be done, the plan, what is worth remembering. A note is a JSON value
//! in one of a few books; what a book looks like inside is the business of the tool that writes it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolError;

/// A book to write in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// What is to be done; the session's own.
    Todo,
    /// The plan; the session's own.
    Plan,
    /// What is worth remembering; the workspace's, across runs.
    Memory,
}

impl NoteKind {
    /// Its name, in files and events.
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
            Self::Todo => "the list of things to do",
            Self::Plan => "the plan",
            Self::Memory => "the memory",
        })
    }
}

/// Makes a book's new content out of the old; none when nothing was written yet.
pub type NoteUpdate<'a> = dyn FnMut(Option<Value>) -> Result<Value, ToolError> + 'a;

/// Keeps books.
pub trait Notes: Send + Sync {
    /// What a book holds; none when nothing was written yet.
    fn read(&self, book: NoteKind) -> Result<Option<Value>, ToolError>;
    /// Rewrites a book, and no other change comes in between. Secrets are replaced before anything is kept.
    fn rewrite(&self, book: NoteKind, change: &mut NoteUpdate<'_>) -> Result<(), ToolError>;
}
