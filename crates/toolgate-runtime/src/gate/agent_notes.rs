//! The agent's own notes for one call: secrets are redacted before anything is stored.

use std::sync::Arc;

use serde_json::Value;
use toolgate_contract::{NoteKind, NoteUpdate, Notes, ToolError};
use toolgate_journal::{RunOptions, SessionNotes, StateDirectory};
use toolgate_redact::Redactor;

/// The store of the agent's notes.
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

/// The notes that one call can read and write.
pub(super) struct RedactedNotes {
    /// None where nothing can be stored.
    pub(super) store: Option<Arc<AgentNotes>>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) session: String,
}

impl RedactedNotes {
    fn notebook(&self) -> Result<SessionNotes, ToolError> {
        let store = self.store.as_ref().ok_or_else(|| ToolError::internal("Notes can't be stored here."))?;
        Ok(store.state.notebook(&self.session, &store.options)?)
    }
}

impl Notes for RedactedNotes {
    fn read(&self, kind: NoteKind) -> Result<Option<Value>, ToolError> {
        self.notebook()?.read(kind)
    }

    fn rewrite(&self, kind: NoteKind, change: &mut NoteUpdate<'_>) -> Result<(), ToolError> {
        self.notebook()?.rewrite(kind, &mut |before| {
            let mut after = change(before)?;
            self.redactor.json(&mut after);
            Ok(after)
        })
    }
}
