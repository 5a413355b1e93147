//! What changed in a project since a server was last asked. Each source file is known by size and change time, which are compared
//! before every question; a server is told of what differs, and gets the new text itself, whatever it makes of the message.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::json;
use toolgate_contract::{
    EntryKind, ServerHost, ToolError, VisitedEntry, Visitor, WalkOptions, WalkStep, WorkspacePath,
};

use crate::connection::Connection;
use crate::documents::{Fault, OpenDocuments, read_source};

/// Files that are compared. In a larger tree, only open documents and what the first of these files are is known.
const MOST_FILES: usize = 20_000;

/// Changed files whose text is given to the server at once. Of more, it is only told.
const MOST_GIVEN: usize = 50;

/// Size and change time of a file. A file that changed just now may change once more at the same time by the file system's
/// coarse clock, so its time doesn't count as known.
type SizeAndTime = (u64, i64);

/// How coarse the clock of a file system may be.
const COARSE_CLOCK: Duration = Duration::from_millis(50);

/// The source files of a project, as they were at the last question.
#[derive(Default)]
pub(crate) struct KnownFiles {
    files: Option<HashMap<WorkspacePath, SizeAndTime>>,
}

/// What happened to a file, as the protocol numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileChange {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

impl Connection {
    /// Finds what changed since the last question, and tells the server. Says whether anything did.
    pub(crate) async fn sync_project(
        &self,
        known: &mut KnownFiles,
        documents: &mut OpenDocuments,
        host: &dyn ServerHost,
    ) -> Result<bool, Fault> {
        let now = self.scan(host)?;
        let Some(before) = known.files.replace(now) else { return Ok(false) };
        let now = known.files.as_ref().expect("it was put there just now");
        let mut changed = differences(&before, now);
        if changed.is_empty() {
            return Ok(false);
        }
        changed.sort_by(|(one, _), (other, _)| one.cmp(other));
        let events: Vec<_> = changed
            .iter()
            .filter_map(|(place, change)| Some(json!({ "uri": self.uri_of(place)?, "type": *change as u8 })))
            .collect();
        self.peer.notify("workspace/didChangeWatchedFiles", json!({ "changes": events })).await?;
        let mut given = 0;
        for (place, change) in &changed {
            let uri = self.uri_of(place).unwrap_or_default();
            if *change == FileChange::Deleted {
                self.close_document(documents, &uri).await?;
            } else if documents.open.contains_key(&uri) || (given < MOST_GIVEN && self.entry.takes(&place.path)) {
                given += 1;
                if let Ok(Some(source)) = read_source(host, place) {
                    self.give_document(documents, place, source).await?;
                }
            }
        }
        Ok(true)
    }

    fn scan(&self, host: &dyn ServerHost) -> Result<HashMap<WorkspacePath, SizeAndTime>, ToolError> {
        let found: Mutex<HashMap<WorkspacePath, SizeAndTime>> = Mutex::default();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let settled = (now.saturating_sub(COARSE_CLOCK)).as_nanos() as i64;
        let visitors = || -> Visitor<'_> {
            Box::new(|entry: &VisitedEntry<'_>| {
                if host.hides(entry.place) {
                    return WalkStep::Past;
                }
                if entry.kind != EntryKind::File || !self.entry.watches(&entry.place.path) {
                    return WalkStep::On;
                }
                let mut found = found.lock();
                if let Some(facts) = entry.facts() {
                    let changed = if facts.changed < settled { facts.changed } else { -1 };
                    found.insert(entry.place.clone(), (facts.size, changed));
                }
                if found.len() < MOST_FILES { WalkStep::On } else { WalkStep::Stop }
            })
        };
        let options = WalkOptions { gitignore: true, ..WalkOptions::default() };
        let files: Arc<_> = host.files();
        files.walk(&self.root, &options, &visitors)?;
        Ok(found.into_inner())
    }
}

fn differences(
    before: &HashMap<WorkspacePath, SizeAndTime>,
    now: &HashMap<WorkspacePath, SizeAndTime>,
) -> Vec<(WorkspacePath, FileChange)> {
    let come = now.iter().filter_map(|(place, stamp)| match before.get(place) {
        None => Some((place.clone(), FileChange::Created)),
        Some(old) if old != stamp || stamp.1 < 0 => Some((place.clone(), FileChange::Changed)),
        Some(_) => None,
    });
    let gone = before.keys().filter(|place| !now.contains_key(*place));
    come.chain(gone.map(|place| (place.clone(), FileChange::Deleted))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_went_and_changed_is_found() {
        fn at<T>(path: &str, value: T) -> (WorkspacePath, T) {
            (WorkspacePath::in_workspace(path), value)
        }
        let before = HashMap::from([at("a", (1, 1)), at("b", (1, 1)), at("c", (1, 1))]);
        let now = HashMap::from([at("a", (1, 1)), at("b", (1, 2)), at("d", (1, 1))]);
        let mut found = differences(&before, &now);
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let expected = [("b", FileChange::Changed), ("c", FileChange::Deleted), ("d", FileChange::Created)];
        assert_eq!(found, expected.map(|(path, change)| at(path, change)));
    }
}
