//! Which content of a file each session last saw, and which call wrote it. Files are compared by content, never by
//! time: a file that was touched but not changed is the same file.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;

use toolgate_contract::{Change, SeenVersion, WorkspacePath};

/// The largest number of remembered paths; beyond it everything is forgotten, and the next read starts again.
const MAX_PATHS: usize = 50_000;

/// The contents that sessions have seen and written.
#[derive(Default)]
pub(crate) struct ReadTracker {
    seen: Mutex<HashMap<(String, WorkspacePath), SeenVersion>>,
    authors: Mutex<HashMap<WorkspacePath, SeenVersion>>,
}

impl ReadTracker {
    /// Records that a call of this session has read this content.
    pub(crate) fn saw(&self, session: &str, tool_call_id: &str, place: &WorkspacePath, sha256: &str) {
        let seen = SeenVersion { sha256: sha256.to_owned(), tool_call_id: tool_call_id.to_owned() };
        bounded(&self.seen).insert((session.to_owned(), place.clone()), seen);
    }

    /// Records that a call of this session has made this change.
    pub(crate) fn wrote(&self, session: &str, tool_call_id: &str, change: &Change) {
        let Some(after) = &change.after else {
            bounded(&self.seen).remove(&(session.to_owned(), change.place.clone()));
            return;
        };
        self.saw(session, tool_call_id, &change.place, &after.sha256);
        let made = SeenVersion { sha256: after.sha256.clone(), tool_call_id: tool_call_id.to_owned() };
        bounded(&self.authors).insert(change.place.clone(), made);
    }

    pub(crate) fn seen(&self, session: &str, place: &WorkspacePath) -> Option<SeenVersion> {
        bounded(&self.seen).get(&(session.to_owned(), place.clone())).cloned()
    }

    /// The call that wrote the content with this hash.
    pub(crate) fn author(&self, place: &WorkspacePath, sha256: &str) -> Option<String> {
        let authors = bounded(&self.authors);
        authors.get(place).filter(|made| made.sha256 == sha256).map(|made| made.tool_call_id.clone())
    }
}

fn bounded<K, V>(map: &Mutex<HashMap<K, V>>) -> MutexGuard<'_, HashMap<K, V>> {
    let mut map = map.lock();
    if map.len() >= MAX_PATHS {
        map.clear();
    }
    map
}
