//! What each session made, and how it left it. Such a file a session may take away again without a question: nothing of
//! anybody else's is lost. Files are compared by content, so one that somebody else changed isn't the session's any more.

mod recorded;

use std::collections::{HashMap, HashSet};

pub(crate) use self::recorded::made_in_session;
use parking_lot::Mutex;
use toolgate_contract::{Change, EntryKind, FileState, Files, ToolError, WorkspacePath};

/// The largest number of remembered paths; beyond it everything is forgotten, and a person is asked again.
const MAX_PATHS: usize = 50_000;
/// A directory with more in it than this is not looked through; a person is asked.
const MAX_ENTRIES: usize = 2_000;
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The files, links and directories that sessions made.
#[derive(Default)]
pub(crate) struct OwnFiles {
    made: Mutex<HashMap<(String, WorkspacePath), FileState>>,
    /// The sessions whose record was read.
    read: Mutex<HashSet<String>>,
}

impl OwnFiles {
    /// Adds what earlier programs made in this session, by its record, which is read once.
    pub(crate) fn add_recorded(&self, session: &str, record: impl FnOnce() -> Vec<Vec<Change>>) {
        let mut read = self.read.lock();
        if !read.insert(session.to_owned()) {
            return;
        }
        let recorded = Self::default();
        record().iter().for_each(|changes| recorded.record(session, changes));
        let mut made = self.made.lock();
        for (key, state) in recorded.made.into_inner() {
            made.entry(key).or_insert(state);
        }
    }

    /// Records one change of a session. If it removes something that the session didn't make, nothing that it makes counts as
    /// the session's: it may be the same content under another name.
    pub(crate) fn record(&self, session: &str, changes: &[Change]) {
        let mut made = self.made.lock();
        if made.len() + changes.len() > MAX_PATHS {
            made.clear();
        }
        let key = |change: &Change| (session.to_owned(), change.place.clone());
        let was_own = |change: &Change| {
            let is_known = |before: &FileState| made.get(&key(change)).is_some_and(|known| known.is(before));
            change.before.as_ref().is_none_or(is_known)
        };
        let removes = |change: &Change| {
            let is_gone = change.after.as_ref().is_none_or(FileState::is_directory);
            is_gone && change.before.as_ref().is_some_and(|before| !before.is_directory())
        };
        let may_be_moved = changes.iter().any(|change| removes(change) && !was_own(change));
        let own: Vec<bool> = changes.iter().map(|change| !may_be_moved && was_own(change)).collect();
        for (change, is_own) in changes.iter().zip(own) {
            match &change.after {
                Some(after) if is_own => drop(made.insert(key(change), after.clone())),
                _ => drop(made.remove(&key(change))),
            }
        }
    }

    /// Whether there is nothing at this path but what the session made, as it left it. A link on the way leads elsewhere, so
    /// what is behind it isn't the session's.
    pub(crate) fn is_own(&self, session: &str, place: &WorkspacePath, files: &dyn Files) -> bool {
        let mut look = OwnershipCheck { made: self, session, files, entries: MAX_ENTRIES, bytes: MAX_BYTES };
        !place.path.is_empty() && look.is_reached_plainly(place) && look.is_own(place).unwrap_or(false)
    }

    fn has(&self, session: &str, place: &WorkspacePath, state: &FileState) -> bool {
        let made = self.made.lock();
        made.get(&(session.to_owned(), place.clone())).is_some_and(|known| known.is(state))
    }
}

/// One look at what is at a path.
struct OwnershipCheck<'a> {
    made: &'a OwnFiles,
    session: &'a str,
    files: &'a dyn Files,
    /// How much may still be looked at.
    entries: usize,
    bytes: u64,
}

impl OwnershipCheck<'_> {
    /// Whether every directory above is a directory, or isn't there.
    fn is_reached_plainly(&self, place: &WorkspacePath) -> bool {
        place.ancestors().filter(|directory| !directory.path.is_empty()).all(|directory| {
            let node = self.files.node(&directory, false);
            node.is_ok_and(|node| node.is_none_or(|node| node.state.is_directory()))
        })
    }

    fn is_own(&mut self, place: &WorkspacePath) -> Result<bool, ToolError> {
        let Some(unread) = self.files.node(place, false)? else { return Ok(true) };
        let remaining = self.entries.checked_sub(1).zip(self.bytes.checked_sub(unread.state.bytes));
        let Some((entries, bytes)) = remaining else { return Ok(false) };
        (self.entries, self.bytes) = (entries, bytes);
        let Some(node) = self.files.node(place, true)? else { return Ok(true) };
        if !self.made.has(self.session, place, &node.state) {
            return Ok(false);
        }
        if !node.state.is_directory() {
            return Ok(true);
        }
        for entry in self.files.entries(place)? {
            if entry.kind == EntryKind::Other || !self.is_own(&entry.place)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(text: &str) -> FileState {
        FileState::new(text, 1, 0o644)
    }

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> Change {
        let place = WorkspacePath::in_workspace(path);
        Change { path: path.into(), place, before: before.map(state), after: after.map(state) }
    }

    /// The path of a change, with its content before and after.
    type Step<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

    #[test]
    fn what_a_change_makes_the_sessions_own() {
        let cases: &[(&[&[Step<'_>]], &str, bool)] = &[
            (&[&[("a", None, Some("x"))]], "a=x", true),
            (&[&[("a", None, Some("x"))]], "a=y", false),
            (&[&[("a", None, Some("x"))], &[("a", Some("x"), Some("y"))]], "a=y", true),
            (&[&[("a", Some("x"), Some("y"))]], "a=y", false),
            // Somebody else changed it in between.
            (&[&[("a", None, Some("x"))], &[("a", Some("theirs"), Some("y"))]], "a=y", false),
            // Moved: of somebody else's, and of its own.
            (&[&[("a", Some("x"), None), ("b", None, Some("x"))]], "b=x", false),
            (&[&[("a", Some("x"), None), ("b", None, Some("x and more"))]], "b=x and more", false),
            (&[&[("a", None, Some("x"))], &[("a", Some("x"), None), ("b", None, Some("x"))]], "b=x", true),
            (&[&[("a", None, Some("x"))], &[("a", Some("x"), None)]], "a=x", false),
            // Moved over its own file.
            (&[&[("b", None, Some("y"))], &[("a", Some("x"), None), ("b", Some("y"), Some("x"))]], "b=x", false),
        ];
        for (story, wanted, expected) in cases {
            let own = OwnFiles::default();
            for changes in *story {
                let changes: Vec<Change> =
                    changes.iter().map(|(path, before, after)| change(path, *before, *after)).collect();
                own.record("s", &changes);
            }
            let (path, text) = wanted.split_once('=').unwrap();
            let has = |session: &str| own.has(session, &WorkspacePath::in_workspace(path), &state(text));
            assert_eq!(has("s"), *expected, "{story:?}");
            assert!(!has("other"), "{story:?}");
        }
    }
}
