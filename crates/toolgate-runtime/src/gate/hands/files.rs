//! Hands on files: each path is held to what was declared, and to what policy hides.

use std::fs::File;

use toolgate_changes::{FoldedChanges, fold_build_output};
use toolgate_contract::{
    Access, Change, ChangeSource, DirectoryEntry, EntryMetadata, EntryStatus, FileContent, FileEdit, FileHands,
    FileState, Hands, OpenFile, SeenVersion, ToolError, VisitedEntry, Visitor, VisitorFactory, WalkHandle, WalkOptions,
    WalkStep, WorkspacePath,
};

use super::call_hands::CallHands;

impl FileHands for CallHands {
    fn place(&self, path: &str) -> Result<WorkspacePath, ToolError> {
        self.declared(Access::Read, path)
    }

    fn target(&self, access: Access, path: &str) -> Result<WorkspacePath, ToolError> {
        self.declared(access, path)
    }

    fn shown(&self, place: &WorkspacePath) -> String {
        self.services.files.shown(place)
    }

    fn open(&self, path: &str) -> Result<OpenFile, ToolError> {
        self.open_at(&self.declared(Access::Read, path)?)
    }

    fn open_at(&self, place: &WorkspacePath) -> Result<OpenFile, ToolError> {
        self.reach(Access::Read, place)?;
        let opened = self.services.files.open(place)?;
        self.refuse_hidden_link(place, &opened.file)?;
        Ok(opened)
    }

    fn content_at(&self, place: &WorkspacePath, most: u64) -> Result<Option<FileContent>, ToolError> {
        self.reach(Access::Read, place)?;
        if let Ok(opened) = self.services.files.open(place) {
            self.refuse_hidden_link(place, &opened.file)?;
        }
        self.services.files.content(place, most)
    }

    fn state_at(&self, place: &WorkspacePath) -> Result<Option<FileState>, ToolError> {
        self.reach(Access::Read, place)?;
        let node = self.services.files.node(place, true)?;
        if let Some(file) = node.as_ref().and_then(|node| node.file.as_ref()) {
            self.refuse_hidden_link(place, file)?;
        }
        Ok(node.map(|node| node.state))
    }

    fn names_at(&self, place: &WorkspacePath) -> Result<u64, ToolError> {
        self.reach(Access::Read, place)?;
        Ok(self.services.files.node(place, false)?.map_or(0, |node| node.links))
    }

    fn status(&self, path: &str) -> Result<Option<EntryStatus>, ToolError> {
        let place = self.declared(Access::Read, path)?;
        self.reach(Access::Read, &place)?;
        self.services.files.status(&place)
    }

    fn replaced_ancestor(&self, place: &WorkspacePath) -> Result<Option<WorkspacePath>, ToolError> {
        self.reach(Access::Read, place)?;
        for ancestor in place.ancestors() {
            let node = self.services.files.node(&ancestor, false)?;
            if node.is_some_and(|node| !node.state.is_directory()) {
                return Ok(Some(ancestor));
            }
        }
        Ok(None)
    }

    fn entries_at(&self, place: &WorkspacePath) -> Result<Vec<DirectoryEntry>, ToolError> {
        self.reach(Access::Read, place)?;
        let mut entries = self.services.files.entries(place)?;
        entries.retain(|entry| !self.services.hidden_paths.hides(Access::Read, &entry.place));
        Ok(entries)
    }

    fn walk<'v>(&self, path: &str, options: &WalkOptions, visitors: &'v VisitorFactory<'v>) -> Result<u64, ToolError> {
        let start = self.declared(Access::Read, path)?;
        self.reach(Access::Read, &start)?;
        let guarded = || -> Visitor<'_> {
            let mut visit = visitors();
            Box::new(move |walked: &VisitedEntry<'_>| {
                if self.is_cancelled() {
                    WalkStep::Stop
                } else if self.services.hidden_paths.hides(Access::Read, walked.place) {
                    WalkStep::Past
                } else {
                    let handle = LinkCheckedHandle { hands: self, place: walked.place, handle: walked.handle };
                    visit(&VisitedEntry { handle: &handle, ..*walked })
                }
            })
        };
        let unreadable = self.services.files.walk(&start, options, &guarded)?;
        if self.is_cancelled() { Err(ToolError::cancelled()) } else { Ok(unreadable) }
    }

    fn hides_something(&self, directory: &WorkspacePath) -> Result<bool, ToolError> {
        self.reach(Access::Read, directory)?;
        let entries = self.services.files.entries(directory)?;
        Ok(entries.iter().any(|entry| self.services.hidden_paths.hides(Access::Delete, &entry.place)))
    }

    fn change(&self, edits: Vec<FileEdit>) -> Result<Vec<Change>, ToolError> {
        for edit in &edits {
            let access = if edit.after.is_some() { Access::Write } else { Access::Delete };
            self.reach(access, &edit.place)?;
        }
        self.note_sources(&edits);
        let changes = self.services.changes.make(edits)?;
        self.note_changes(&changes);
        Ok(changes)
    }

    fn write_changes(&self, changes: Vec<Change>, source: &dyn ChangeSource) -> Result<(), ToolError> {
        for change in &changes {
            let access = if change.after.is_some() { Access::Write } else { Access::Delete };
            self.reach(access, &change.place)?;
        }
        self.services.changes.write_changes(changes.clone(), source)?;
        self.note_changes(&changes);
        Ok(())
    }

    fn suspend_mode(&self, directory: &WorkspacePath) -> Result<(), ToolError> {
        self.reach(Access::Delete, directory).or_else(|_| self.reach(Access::Write, directory))?;
        self.services.files.suspend_mode(directory)
    }

    fn restore_mode(&self, directory: &WorkspacePath) {
        self.services.files.restore_mode(directory);
    }

    fn undo_room(&self) -> u64 {
        self.services.changes.undo_room()
    }

    fn saw(&self, place: &WorkspacePath, sha256: &str) {
        self.services.changes.saw(place, sha256);
    }

    fn seen(&self, place: &WorkspacePath) -> Option<SeenVersion> {
        self.services.changes.seen(place)
    }

    fn author(&self, place: &WorkspacePath, sha256: &str) -> Option<String> {
        self.services.changes.author(place, sha256)
    }
}

/// Opens an entry of a walk unless policy hides the file under another name.
struct LinkCheckedHandle<'a> {
    hands: &'a CallHands,
    place: &'a WorkspacePath,
    handle: &'a dyn WalkHandle,
}

impl WalkHandle for LinkCheckedHandle<'_> {
    fn open(&self) -> Result<File, ToolError> {
        let file = self.handle.open()?;
        self.hands.refuse_hidden_link(self.place, &file)?;
        Ok(file)
    }

    fn facts(&self) -> Option<EntryMetadata> {
        self.handle.facts()
    }
}

impl CallHands {
    /// Counts changes that were made; build output is folded.
    fn note_changes(&self, changes: &[Change]) {
        let FoldedChanges { listed, folded } = fold_build_output(changes, self.services.files.as_ref());
        self.note(|tally| {
            tally.files_changed.extend(listed.into_iter().map(|change| change.path.clone()));
            tally.folded.extend(folded);
        });
    }
}
