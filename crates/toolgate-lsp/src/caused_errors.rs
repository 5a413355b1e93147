//! The errors that a change caused: what is wrong after it, without what was wrong before.

use tokio::time::Instant;
use toolgate_contract::{ChangedSource, CodeDiagnostic, ServerHost, ServerStatus, WorkspacePath};

use crate::connection::{Connection, ConnectionState};
use crate::diagnostics;
use crate::documents::Fault;
use crate::source_text::SourceText;

/// Other files that are looked at for new errors.
const MOST_OTHER_FILES: usize = 10;

impl Connection {
    /// Finds out what was wrong in a file before it changed. False where nobody can tell any more.
    async fn knows_what_was_wrong(
        &self,
        state: &mut ConnectionState,
        changed: &ChangedSource,
        host: &dyn ServerHost,
        until: Instant,
    ) -> Result<bool, Fault> {
        let place = &changed.place;
        if state.baseline.get(place).is_some() {
            return Ok(true);
        }
        if changed.is_new {
            let exists = host.files().status(place)?.is_some();
            if exists {
                state.baseline.replace(place, &[]);
            }
            return Ok(exists);
        }
        // The server is asked about the text as it was: what the change replaced, or what it still has.
        if let Some(source) = changed.before.as_ref().and_then(|bytes| SourceText::parse(bytes)) {
            state.known.is_told = false;
            self.give_document(&mut state.documents, place, source).await?;
        } else if self.uri_of(place).is_none_or(|uri| !state.documents.open.contains_key(&uri)) {
            return Ok(false);
        }
        self.diagnose(state, host, place, until).await?;
        Ok(true)
    }

    /// The errors that a change caused, in the changed files and in others that were looked at before.
    pub(crate) async fn errors_after(
        &self,
        changed: Vec<ChangedSource>,
        host: &dyn ServerHost,
        until: Instant,
    ) -> Result<Vec<CodeDiagnostic>, Fault> {
        if self.report().status != ServerStatus::Ready {
            return Ok(Vec::new());
        }
        let mut state = self.state.lock().await;
        let mut places: Vec<WorkspacePath> = Vec::new();
        for one in changed {
            if self.knows_what_was_wrong(&mut state, &one, host, until).await? {
                places.push(one.place);
            }
        }
        let others = state.baseline.places().into_iter().filter(|place| !places.contains(place));
        let others: Vec<WorkspacePath> = others.take(MOST_OTHER_FILES).collect();
        let mut errors = Vec::new();
        for place in places.into_iter().chain(others) {
            let Some(before) = state.baseline.get(&place).cloned() else { continue };
            if self.sync(&mut state, host, &place).await.is_err() {
                continue;
            }
            let now = self.diagnose(&mut state, host, &place, until).await?;
            errors.extend(diagnostics::new_errors(&before, &now.items));
        }
        Ok(errors)
    }
}
