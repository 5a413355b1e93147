//! Writes in the agent's own books for one call: secrets are replaced before anything is kept.

use std::sync::Arc;

use serde_json::Value;
use toolgate_contract::{Book, Notes, Rewrite, ToolError};
use toolgate_journal::{Notebook, RunOptions, State};

use crate::redact::Redactor;

/// Where books are kept.
pub(crate) struct NoteStore {
    state: State,
    options: RunOptions,
}

impl NoteStore {
    pub(crate) fn new(state: State, options: RunOptions) -> Self {
        Self { state, options }
    }
}

/// The books that one call reaches.
pub(super) struct Writer {
    /// None where nothing can be kept.
    pub(super) store: Option<Arc<NoteStore>>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) session: String,
}

impl Writer {
    fn notebook(&self) -> Result<Notebook, ToolError> {
        let store = self.store.as_ref().ok_or_else(|| ToolError::internal("Nothing can be noted here."))?;
        Ok(store.state.notebook(&self.session, &store.options)?)
    }
}

impl Notes for Writer {
    fn read(&self, book: Book) -> Result<Option<Value>, ToolError> {
        self.notebook()?.read(book)
    }

    fn rewrite(&self, book: Book, change: &mut Rewrite<'_>) -> Result<(), ToolError> {
        self.notebook()?.rewrite(book, &mut |before| {
            let mut after = change(before)?;
            self.redactor.json(&mut after);
            Ok(after)
        })
    }
}
