//! Writes in the agent's own books for one call: secrets are replaced before anything is kept.

use std::sync::Arc;

use serde_json::Value;
use toolgate_contract::{NoteKind, NoteUpdate, Notes, ToolError};
use toolgate_journal::{RunOptions, SessionNotes, StateDirectory};
use toolgate_redact::Redactor;

/// Where the agent's notes are kept.
pub struct AgentNotes {
    state: StateDirectory,
    options: RunOptions,
}

impl AgentNotes {
    /// Notes in this state directory.
    pub fn new(state: StateDirectory, options: RunOptions) -> Self {
        Self { state, options }
    }
}

/// The books that one call reaches.
pub(super) struct RedactedNotes {
    /// None where nothing can be kept.
    pub(super) store: Option<Arc<AgentNotes>>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) session: String,
}

impl RedactedNotes {
    fn notebook(&self) -> Result<SessionNotes, ToolError> {
        let store = self.store.as_ref().ok_or_else(|| ToolError::internal("Nothing can be noted here."))?;
        Ok(store.state.notebook(&self.session, &store.options)?)
    }
}

impl Notes for RedactedNotes {
    fn read(&self, book: NoteKind) -> Result<Option<Value>, ToolError> {
        self.notebook()?.read(book)
    }

    fn rewrite(&self, book: NoteKind, change: &mut NoteUpdate<'_>) -> Result<(), ToolError> {
        self.notebook()?.rewrite(book, &mut |before| {
            let mut after = change(before)?;
            self.redactor.json(&mut after);
            Ok(after)
        })
    }
}
