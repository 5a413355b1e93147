//! The agent's own notes: one small signed JSON file for each kind, in the session's directory or, for notes that outlive
//! sessions, in the state directory.

use std::sync::Arc;

use serde_json::Value;
use toolgate_contract::{Durability, NoteKind, NoteUpdate, ToolError};

use crate::SigningKey;
use crate::directory::DirectoryHandle;
use crate::signed_file::SignedFile;

/// The notes of one session, and those that all sessions share.
pub struct SessionNotes {
    session: DirectoryHandle,
    shared: Arc<DirectoryHandle>,
    id: String,
    key: Option<SigningKey>,
    durability: Durability,
}

impl SessionNotes {
    pub(crate) fn new(
        session: DirectoryHandle,
        shared: Arc<DirectoryHandle>,
        id: &str,
        key: Option<SigningKey>,
        durability: Durability,
    ) -> Self {
        Self { session, shared, id: id.to_owned(), key, durability }
    }

    /// Reads one kind of notes; none when nothing was written yet.
    pub fn read(&self, kind: NoteKind) -> Result<Option<Value>, ToolError> {
        self.with_file(kind, |file| file.read())
    }

    /// Rewrites one kind of notes. The lock excludes other changes in between.
    pub fn rewrite(&self, kind: NoteKind, change: &mut NoteUpdate<'_>) -> Result<(), ToolError> {
        self.with_file(kind, |file| file.rewrite(change))
    }

    fn with_file<T>(&self, kind: NoteKind, work: impl FnOnce(&SignedFile<'_>) -> T) -> T {
        let (directory, owner) = match kind {
            NoteKind::Todo | NoteKind::Plan => (&self.session, self.id.as_str()),
            NoteKind::Memory => (&*self.shared, "workspace"),
        };
        work(&SignedFile {
            directory,
            name: kind.as_str(),
            owner,
            content: &kind.to_string(),
            key: self.key.as_ref(),
            durability: self.durability,
        })
    }
}
