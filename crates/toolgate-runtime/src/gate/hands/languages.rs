//! Hands on language servers: a call that may read the whole workspace can ask about its code.

use std::time::Duration;

use toolgate_contract::{
    Access, ChangedSource, CodeAnswer, CodeQuestion, FileEdit, SettledChanges, ToolError, WorkspacePath,
};

use super::call_hands::CallHands;

/// Changed files that language servers are told of after a call.
const MOST_CHANGED: usize = 20;

impl CallHands {
    /// Asks language servers. They see the whole workspace, so the call must have declared to read it, and each file of the
    /// question.
    pub(super) async fn ask_language_servers(&self, question: CodeQuestion) -> Result<CodeAnswer, ToolError> {
        self.reach(Access::Read, &WorkspacePath::in_workspace(""))?;
        for place in places(&question) {
            self.reach(Access::Read, place)?;
        }
        let languages = &self.services.languages;
        let answer = languages.ask(question, &self.services.cancel).await;
        let enforced = languages.enforced.lock().clone();
        self.note(|tally| tally.enforced.0.extend(enforced.0));
        answer
    }

    /// Remembers what a change replaced, for language servers that run.
    pub(super) fn note_sources(&self, edits: &[FileEdit]) {
        let source = |edit: &FileEdit| ChangedSource {
            place: edit.place.clone(),
            before: edit.before.as_ref().map(|content| content.bytes.clone()),
            is_new: edit.before.is_none(),
        };
        self.note(|tally| {
            let room = MOST_CHANGED.saturating_sub(tally.changed_sources.len());
            tally.changed_sources.extend(edits.iter().take(room).map(source));
        });
    }

    /// Remembers what a command changed. What was there before isn't at hand.
    pub(super) fn note_settled_sources(&self, settled: &SettledChanges) {
        let lines = settled.paths.iter().filter_map(|line| Some((line.starts_with('+'), line.get(1..)?.trim())));
        let sources = lines.filter(|(_, path)| !path.starts_with('/')).map(|(is_new, path)| ChangedSource {
            place: WorkspacePath::in_workspace(path),
            before: None,
            is_new,
        });
        self.note(|tally| {
            let room = MOST_CHANGED.saturating_sub(tally.changed_sources.len());
            tally.changed_sources.extend(sources.take(room));
        });
    }

    /// Asks the language servers that run which errors the call's changes caused.
    pub(in crate::gate) async fn find_new_errors(&self, within: Duration) {
        let changed = std::mem::take(&mut self.tally.lock().changed_sources);
        let errors = self.services.languages.new_errors(changed, within).await;
        self.note(|tally| tally.new_errors = errors);
    }
}

/// The files that a question is about.
fn places(question: &CodeQuestion) -> Vec<&WorkspacePath> {
    match question {
        CodeQuestion::Diagnostics { paths, .. } => paths.iter().collect(),
        CodeQuestion::FileSymbols { path } => vec![path],
        CodeQuestion::FindSymbols { .. } => Vec::new(),
        CodeQuestion::Definition { target, .. }
        | CodeQuestion::References { target }
        | CodeQuestion::Hover { target }
        | CodeQuestion::Calls { target, .. }
        | CodeQuestion::Rename { target, .. } => target.path.iter().collect(),
    }
}
