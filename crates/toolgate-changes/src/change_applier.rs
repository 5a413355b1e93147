//! Applies file changes for one call, in this order: compare with what the tool saw, store for undo, record, write.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Once};

use toolgate_contract::{
    Change, ChangeSource, Changes, DIRECTORY_MODE, ErrorCode, EventPayload, FileContent, FileEdit, FileState, Files,
    OpenFile, SeenVersion, ToolError, WorkspacePath, sha256,
};
use toolgate_journal::{ChangeIntent, ChangeLock};

use crate::change_log::{ChangeLog, with_closed_directories};
use crate::workspace_changes::WorkspaceChanges;
use toolgate_contract::EventOrigin;
use toolgate_journal::Recorder;

/// The number of bytes compared at a time; they fit into the processor's cache.
const CHUNK: usize = 128 * 1024;

/// The permission bits of a new file, and of a directory that is made because a file in it is, before the umask.
const USUAL_FILE_MODE: u32 = 0o666;
const USUAL_DIRECTORY_MODE: u32 = 0o777;

/// What is made in a directory with this bit (setgid) belongs to the same group, and a new directory has the bit, too.
const SETGID: u32 = 0o2000;

/// How much freed memory the process keeps; glibc doubles this value.
const RETAINED_MEMORY: usize = 8 * 1024 * 1024;

/// Whether glibc would request this much from the kernel each time.
fn is_large(content: &FileContent) -> bool {
    content.bytes.len() >= 128 * 1024
}

/// Lets contents of some megabytes reuse memory that the process keeps. Glibc returns memory to the kernel when more is
/// free than the largest block that it has seen freed; getting it back, page by page, takes longer than the work on it.
/// So glibc is shown one large block, which is never touched. Where files are small, nothing is kept.
fn keep_freed_memory() {
    static SHOWN: Once = Once::new();
    SHOWN.call_once(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(RETAINED_MEMORY))));
}

/// Applies file changes for one call.
pub struct ChangeApplier {
    pub(crate) workspace: Arc<WorkspaceChanges>,
    pub(crate) recorder: Arc<dyn Recorder>,
    pub(crate) origin: Arc<EventOrigin>,
    pub(crate) session: String,
}

impl Changes for ChangeApplier {
    fn make(&self, edits: Vec<FileEdit>) -> Result<Vec<Change>, ToolError> {
        let change_log = self.workspace.log()?;
        let turn = change_log.turn(self.workspace.files.as_ref(), self.workspace.hidden_paths.as_ref())?;
        let written = edits.iter().filter(|edit| edit.after.is_some() && edit.before.is_none()).map(|edit| &edit.place);
        let directories = missing_directories(written, &BTreeSet::new(), self.workspace.files.as_ref())?;
        let made = directories.iter().map(|directory| &directory.place);
        let places: Vec<WorkspacePath> = made.chain(edits.iter().map(|edit| &edit.place)).cloned().collect();
        let running = change_log.watched();
        running.iter().try_for_each(|in_place| in_place.catch_up(Some(&places)))?;
        let id = self.workspace.clock.id().simple().to_string();
        let mut changes = Vec::new();
        let made = self.workspace.files.apply(&edits, &id, &mut || {
            changes = self.announce(change_log, &turn, &edits, &directories, &id)?;
            Ok(())
        });
        if made.is_ok()
            && let Err(error) =
                change_log.tell_commands(&id, &[&directories, &*changes].concat(), self.workspace.files.as_ref())
        {
            change_log.revert_unfinished(&turn, self.workspace.files.as_ref(), None)?;
            return Err(error.with_hint("Everything is as it was before."));
        }
        if let Err(error) = made {
            change_log.revert_unfinished(&turn, self.workspace.files.as_ref(), None)?;
            return Err(error);
        }
        turn.done()?;
        running.iter().try_for_each(|in_place| in_place.changed_by_others(&places))?;
        for change in &changes {
            self.workspace.reads.wrote(&self.session, &self.origin.tool_call_id, change);
        }
        self.made(&[&changes[..], &directories].concat());
        Ok(changes)
    }

    fn write_changes(&self, changes: Vec<Change>, source: &dyn ChangeSource) -> Result<(), ToolError> {
        self.write(changes, source, false)
    }

    fn undo_room(&self) -> u64 {
        self.workspace.log.as_ref().map_or(0, |change_log| change_log.contents().room())
    }

    fn run(&self) -> &str {
        &self.origin.run
    }

    fn saw(&self, place: &WorkspacePath, sha256: &str) {
        self.workspace.reads.saw(&self.session, &self.origin.tool_call_id, place, sha256);
    }

    fn seen(&self, place: &WorkspacePath) -> Option<SeenVersion> {
        self.workspace.reads.seen(&self.session, place)
    }

    fn author(&self, place: &WorkspacePath, sha256: &str) -> Option<String> {
        self.workspace.reads.author(place, sha256)
    }
}

impl ChangeApplier {
    /// Writes changes that the session made itself, and remembers what it made.
    pub(crate) fn write_own(&self, changes: &[Change], source: &dyn ChangeSource) -> Result<(), ToolError> {
        self.write(changes.to_vec(), source, true)?;
        self.made(changes);
        Ok(())
    }

    fn write(&self, mut changes: Vec<Change>, source: &dyn ChangeSource, made: bool) -> Result<(), ToolError> {
        let change_log = self.workspace.log()?;
        let (files, hidden_paths) = (self.workspace.files.as_ref(), self.workspace.hidden_paths.as_ref());
        let turn = change_log.turn(files, hidden_paths)?;
        // From here on: what commands in place have changed is stored first, and could take the room.
        let _pin = change_log.contents().pin(&changes);
        let written: Vec<&Change> = changes.iter().filter(|change| change.after.is_some()).collect();
        let known = written.iter().map(|change| &change.place).collect();
        changes.extend(missing_directories(written.iter().map(|change| &change.place), &known, files)?);
        let places: Vec<WorkspacePath> = changes.iter().map(|change| change.place.clone()).collect();
        let running = change_log.watched();
        running.iter().try_for_each(|in_place| in_place.catch_up(Some(&places)))?;
        let id = self.workspace.clock.id().simple().to_string();
        if let Err(error) = change_log.adopt(&changes, files).and_then(|()| self.record(&turn, &id, &changes, made)) {
            change_log.own(&changes, files)?;
            change_log.revert_unfinished(&turn, files, None)?;
            return Err(error);
        }
        let written = files.write_changes(&changes, source, &id);
        if let Err(error) = written.and_then(|()| change_log.tell_commands(&id, &changes, files)) {
            // What the source gave away it gets back: only the workspace forgets it.
            with_closed_directories(&changes, files, || take_back(&changes, source, files))?;
            // The intent is still recorded: a partial change is reverted as after a crash.
            change_log.revert_unfinished(&turn, files, None)?;
            changes.iter().for_each(|change| source.reverted(change, files));
            return Err(error.with_hint("Everything is as it was before."));
        }
        turn.done()?;
        change_log.own(&changes, files)?;
        running.iter().try_for_each(|in_place| in_place.changed_by_others(&places))?;
        for change in &changes {
            self.workspace.reads.wrote(&self.session, &self.origin.tool_call_id, change);
        }
        Ok(())
    }

    /// Stores previous and new contents, and records what is about to change, in the journal and for recovery.
    fn announce(
        &self,
        change_log: &ChangeLog,
        turn: &ChangeLock,
        edits: &[FileEdit],
        directories: &[Change],
        id: &str,
    ) -> Result<Vec<Change>, ToolError> {
        if edits.iter().flat_map(|edit| [&edit.before, &edit.after]).flatten().any(is_large) {
            keep_freed_memory();
        }
        let changes = self.store_contents(change_log, edits)?;
        // The names of temporary files contain the index of their edit, so the directories come last.
        self.record(turn, id, &[&changes, directories].concat(), true)?;
        Ok(changes)
    }

    /// From here on the change can be reverted, even if this process is killed. What the journal has is noted before, so that
    /// whoever reverts the change finds it there.
    fn record(&self, turn: &ChangeLock, id: &str, changes: &[Change], made: bool) -> Result<(), ToolError> {
        let origin = Some(EventOrigin::clone(&self.origin));
        turn.note(&ChangeIntent { id: id.to_owned(), changes: changes.to_vec(), origin })?;
        let payload = EventPayload::FilesChanging { changes: changes.to_vec(), made };
        self.recorder.record(&[self.origin.event(self.workspace.clock.now(), payload)])
    }

    /// Remembers what the session made. Only for changes that are its own work: what is restored isn't, and what a command
    /// left in place may be somebody else's.
    fn made(&self, changes: &[Change]) {
        self.workspace.own_files.record(&self.session, changes);
    }

    /// Records the revert of a command's changes.
    pub(crate) fn record_reverted(&self, changes: &[Change]) -> Result<(), ToolError> {
        if changes.is_empty() {
            return Ok(());
        }
        let payload = EventPayload::FilesChanging { changes: changes.to_vec(), made: false };
        self.recorder.record(&[self.origin.event(self.workspace.clock.now(), payload)])?;
        changes.iter().for_each(|change| self.workspace.reads.wrote(&self.session, &self.origin.tool_call_id, change));
        Ok(())
    }

    /// Stores the content before and after, and refuses when the file isn't what the tool saw.
    fn store_contents(&self, change_log: &ChangeLog, edits: &[FileEdit]) -> Result<Vec<Change>, ToolError> {
        let mut changes = Vec::with_capacity(edits.len());
        for FileEdit { place, before, after, moved_from } in edits {
            let there = self.unchanged(before.as_ref(), place)?;
            let moved = moved_from.as_ref().map(|from| self.workspace.files.node(from, false)).transpose()?.flatten();
            let store = |content: &FileContent, mode: Option<u32>| {
                change_log.contents().put(&content.bytes)?;
                let bytes = content.bytes.len() as u64;
                let mode = mode.unwrap_or_else(|| USUAL_FILE_MODE & !self.workspace.files.umask());
                Ok::<_, ToolError>(FileState::new(content.bytes.sha256(), bytes, mode))
            };
            let old_mode = there.as_ref().map(|there| there.mode);
            let stored = before.as_ref().map(|content| store(content, old_mode)).transpose()?;
            let after = after.as_ref().map(|content| store(content, content.mode.or(old_mode))).transpose()?;
            let as_it_was = |stored: FileState, there: FileState| FileState {
                modified: there.modified,
                owner: there.owner,
                ..stored
            };
            let before = stored.zip(there).map(|(stored, there)| as_it_was(stored, there));
            let after = after.map(|after| match moved {
                Some(moved) => as_it_was(after, moved.state),
                None => after,
            });
            changes.push(Change { path: self.workspace.files.shown(place), place: place.clone(), before, after });
        }
        Ok(changes)
    }

    /// The metadata of the existing file, or an error when it is no longer what the tool saw.
    fn unchanged(&self, before: Option<&FileContent>, place: &WorkspacePath) -> Result<Option<FileState>, ToolError> {
        let files = self.workspace.files.as_ref();
        let is_unchanged = match before {
            Some(file) if !file.is_link() => match files.open(place) {
                Ok(opened) => holds(&opened, &file.bytes, place)?,
                Err(error) if error.code == ErrorCode::NotFound => false,
                Err(error) => return Err(error),
            },
            other => files.content(place, u64::MAX)?.as_ref() == other,
        };
        if !is_unchanged {
            return Err(self.changed_meanwhile(place));
        }
        Ok(files.node(place, false)?.map(|node| node.state))
    }

    fn changed_meanwhile(&self, place: &WorkspacePath) -> ToolError {
        let now = self.workspace.files.content(place, u64::MAX).ok().flatten();
        let by = now.and_then(|content| self.workspace.reads.author(place, content.bytes.sha256()));
        let by = by.map_or_else(|| "something outside this gate".into(), |call| format!("the call {call}"));
        ToolError::new(
            ErrorCode::StaleFile,
            format!("`{}` was changed by {by} in the meantime.", self.workspace.files.shown(place)),
        )
    }
}

/// The directories that have to be made before these paths can be written, apart from `known` ones.
fn missing_directories<'p>(
    written: impl Iterator<Item = &'p WorkspacePath>,
    known: &BTreeSet<&WorkspacePath>,
    files: &dyn Files,
) -> Result<Vec<Change>, ToolError> {
    let (mut there, mut missing) = (BTreeMap::new(), BTreeMap::<WorkspacePath, Change>::new());
    for place in written {
        let (mut new, mut outer_mode) = (Vec::new(), 0);
        for directory in place.ancestors().rev() {
            if known.contains(&directory) {
                break;
            }
            let made = missing.get(&directory).and_then(|made| made.after.as_ref()).map(|made| made.mode);
            if let Some(mode) = made.or(there.get(&directory).copied()) {
                outer_mode = mode;
                break;
            }
            match files.node(&directory, false)? {
                Some(node) => {
                    outer_mode = node.state.mode;
                    there.insert(directory, outer_mode);
                    break;
                }
                None => new.push(directory),
            }
        }
        let mode = DIRECTORY_MODE | USUAL_DIRECTORY_MODE & !files.umask() | outer_mode & SETGID;
        missing.extend(new.into_iter().map(|directory| {
            let after = Some(FileState::new(sha256(""), 0, mode));
            let change = Change { path: files.shown(&directory), place: directory.clone(), before: None, after };
            (directory, change)
        }));
    }
    Ok(missing.into_values().collect())
}

/// Gives the source back what it has put in place already.
fn take_back(changes: &[Change], source: &dyn ChangeSource, files: &dyn Files) -> Result<(), ToolError> {
    for change in changes {
        let Some(after) = change.after.as_ref().filter(|after| after.is_file() || after.is_link()) else { continue };
        if files.node(&change.place, true)?.is_some_and(|node| node.state.is(after)) {
            let place_file =
                |directory: BorrowedFd<'_>, name: &[u8]| files.link_or_copy(&change.place, directory, name);
            let fault = |error| ToolError::io(&format!("What was made of `{}` can't be kept", change.path), &error);
            source.take_back(change, &place_file).map_err(fault)?;
        }
    }
    Ok(())
}

/// Whether a file contains exactly these bytes. It is read in chunks, so that a large file doesn't have to fit into
/// memory.
fn holds(opened: &OpenFile, expected: &[u8], place: &WorkspacePath) -> Result<bool, ToolError> {
    if opened.size != expected.len() as u64 {
        return Ok(false);
    }
    let (mut file, mut rest) = (&opened.file, expected);
    let mut piece = vec![0; CHUNK.min(expected.len() + 1)];
    loop {
        let length = match file.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read.map_err(|error| ToolError::io(&format!("`{}` can't be read", place.path), &error))?,
        };
        match rest.split_at_checked(length) {
            _ if length == 0 => return Ok(rest.is_empty()),
            Some((now, more)) if *now == piece[..length] => rest = more,
            _ => return Ok(false),
        }
    }
}
