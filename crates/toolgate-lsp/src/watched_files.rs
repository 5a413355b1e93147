//! What changed in a project since a server was last asked. Each source file is known by size and change time; a server is told
//! of what differs, and gets the new text itself, whatever it makes of the message. The directories are watched, so that the
//! comparison is only made when something happened in them.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use toolgate_contract::{
    EntryKind, Files, ServerHost, ToolError, TreeWatch, VisitedEntry, Visitor, WalkOptions, WalkStep, WatchedChanges,
    WorkspacePath,
};

use crate::connection::Connection;
use crate::documents::{Fault, LARGEST_SOURCE, OpenDocuments, read_source};

/// Files that are compared. In a larger tree, only open documents and what the first of these files are is known.
const MOST_FILES: usize = 20_000;

/// Changed files whose text is given to the server at once. Of more, it is only told.
const MOST_GIVEN: usize = 50;

/// Files with other names, each of which is looked at before every question: a change through another name isn't noticed by the
/// directory.
const MOST_LINKED: usize = 100;

/// How long the watch alone is trusted: what a program writes through a mapping of a closed file, nobody is told of.
const TRUSTED: Duration = Duration::from_secs(30);

/// Size and change time of a file. A file that changed just now may change once more at the same time by the file system's
/// coarse clock, so its time doesn't count as known.
type SizeAndTime = (u64, i64);

/// How coarse the clock of a file system may be.
const COARSE_CLOCK: Duration = Duration::from_millis(50);

/// The source files of a project, as they were at the last question.
#[derive(Default)]
pub(crate) struct KnownFiles {
    files: Option<HashMap<WorkspacePath, SizeAndTime>>,
    /// Those that have other names too.
    linked: Vec<WorkspacePath>,
    /// What the files hold that the server is configured by.
    configuration: HashMap<WorkspacePath, Option<u64>>,
    watch: ProjectWatch,
    scanned: Option<Instant>,
    /// Whether it has to be started anew, as long as it runs.
    is_outdated: bool,
    /// Whether the server was told all of it. A question that was cancelled may have told only a part.
    pub(crate) is_told: bool,
}

/// Whether the project's directories are watched.
#[derive(Default)]
enum ProjectWatch {
    #[default]
    NotYet,
    Running(Box<dyn TreeWatch>),
    /// Not every change would be noticed, so each question compares.
    Impossible,
}

/// What is known of the project before a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProjectChange {
    /// Nothing happened in its directories.
    Untouched,
    /// No file differs.
    Same,
    /// The server was told of files that differ.
    Differs,
}

/// What happened to a file, as the protocol numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileChange {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

impl KnownFiles {
    /// Whether the file is one whose changes the watch notices.
    pub(crate) fn watches(&self, place: &WorkspacePath) -> bool {
        self.files.as_ref().is_some_and(|files| files.contains_key(place)) && !self.linked.contains(place)
    }

    /// Whether nothing happened since the server was told everything.
    fn is_untouched(&self, files: &dyn Files) -> bool {
        // The watch is asked first, and always: what it says of changes, it says once.
        let is_quiet = matches!(&self.watch, ProjectWatch::Running(watch) if watch.changes().is_empty());
        let is_recent = self.scanned.is_some_and(|scanned| scanned.elapsed() < TRUSTED);
        is_quiet && self.is_told && is_recent && self.linked.iter().all(|place| self.is_as_known(files, place))
    }

    fn is_as_known(&self, files: &dyn Files, place: &WorkspacePath) -> bool {
        let known = self.files.as_ref().and_then(|files| files.get(place));
        let now = files.status(place).ok().flatten();
        now.is_some_and(|now| known == Some(&(now.size, now.changed.as_nanosecond() as i64)))
    }
}

impl Connection {
    /// Finds what changed since the last question, and tells the server.
    pub(crate) async fn sync_project(
        &self,
        known: &mut KnownFiles,
        documents: &mut OpenDocuments,
        host: &dyn ServerHost,
    ) -> Result<ProjectChange, Fault> {
        if known.is_untouched(host.files().as_ref()) {
            return Ok(ProjectChange::Untouched);
        }
        known.is_told = false;
        let now = self.scan(known, host)?;
        let reconfigured = self.take_configuration(known, &now, host);
        let restarts = |place: &WorkspacePath| match known.files {
            Some(_) => self.entry.restarts_on(&place.path),
            // What changed while it started, it may have read before or after.
            None => self.is_newer(host, place),
        };
        known.is_outdated |= reconfigured.iter().any(restarts);
        if known.is_outdated {
            return Err(Fault::Reconfigured);
        }
        let before = known.files.as_ref();
        let changed = before.map(|before| differences(before, &now)).unwrap_or_default();
        if !changed.is_empty() {
            let directories = before.map(|before| directory_differences(before, &now)).unwrap_or_default();
            let begun = self.peer.begun(&self.entry.reload.progress);
            self.tell_changes(changed, directories, documents, host).await?;
            if reconfigured.iter().any(|place| self.entry.reloads_on(&place.path)) {
                self.reloads(begun).await;
            }
            known.files = Some(now);
            return Ok(ProjectChange::Differs);
        }
        known.files = Some(now);
        Ok(ProjectChange::Same)
    }

    /// Remembers what the server's configuration holds, and gives the files of it that differ. Times don't tell: a file that was
    /// written again with the same content is no reason to start anew.
    fn take_configuration(
        &self,
        known: &mut KnownFiles,
        now: &HashMap<WorkspacePath, SizeAndTime>,
        host: &dyn ServerHost,
    ) -> Vec<WorkspacePath> {
        let is_part =
            |place: &&WorkspacePath| self.entry.restarts_on(&place.path) || self.entry.reloads_on(&place.path);
        let is_same = |place: &WorkspacePath| {
            let before = known.files.as_ref().and_then(|files| files.get(place));
            before.is_some_and(|before| before.1 >= 0 && now.get(place) == Some(before))
        };
        let digest = |place: &WorkspacePath| match known.configuration.get(place) {
            Some(digest) if is_same(place) => *digest,
            _ => host.files().content(place, LARGEST_SOURCE).ok().flatten().map(|content| digest_of(&content.bytes)),
        };
        let configuration: HashMap<WorkspacePath, Option<u64>> =
            now.keys().filter(is_part).map(|place| (place.clone(), digest(place))).collect();
        let before = std::mem::replace(&mut known.configuration, configuration);
        let known = &known.configuration;
        let differs = |place: &&WorkspacePath| before.get(*place) != known.get(*place);
        let places: BTreeSet<&WorkspacePath> = before.keys().chain(known.keys()).collect();
        places.into_iter().filter(differs).cloned().collect()
    }

    /// Whether a file that the server reads when it starts changed after that. A time that is yet to come says nothing.
    fn is_newer(&self, host: &dyn ServerHost, place: &WorkspacePath) -> bool {
        let nanoseconds =
            |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as i128;
        let since = nanoseconds(self.started_at)..=nanoseconds(SystemTime::now());
        let found = host.files().status(place).ok().flatten();
        self.entry.restarts_on(&place.path) && found.is_some_and(|found| since.contains(&found.changed.as_nanosecond()))
    }

    async fn tell_changes(
        &self,
        mut changed: Vec<(WorkspacePath, FileChange)>,
        directories: Vec<(WorkspacePath, FileChange)>,
        documents: &mut OpenDocuments,
        host: &dyn ServerHost,
    ) -> Result<(), Fault> {
        changed.sort_by(|(one, _), (other, _)| one.cmp(other));
        let events: Vec<_> = directories
            .iter()
            .chain(&changed)
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
        Ok(())
    }

    /// Looks at every source file, and watches every directory from before it is listed.
    fn scan(
        &self,
        known: &mut KnownFiles,
        host: &dyn ServerHost,
    ) -> Result<HashMap<WorkspacePath, SizeAndTime>, ToolError> {
        let files: Arc<_> = host.files();
        if matches!(known.watch, ProjectWatch::NotYet) {
            known.watch =
                files.watch(WatchedChanges::NamesAndContents).map_or(ProjectWatch::Impossible, ProjectWatch::Running);
        }
        let watch = match &known.watch {
            ProjectWatch::Running(watch) => Some(watch.as_ref()),
            ProjectWatch::NotYet | ProjectWatch::Impossible => None,
        };
        let is_watched = AtomicBool::new(watch.is_some_and(|watch| watch.add(&self.root)));
        let scanned = Instant::now();
        let found: Mutex<(HashMap<WorkspacePath, SizeAndTime>, Vec<WorkspacePath>)> = Mutex::default();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let settled = (now.saturating_sub(COARSE_CLOCK)).as_nanos() as i64;
        let visitors = || -> Visitor<'_> {
            Box::new(|entry: &VisitedEntry<'_>| {
                if host.hides(entry.place) {
                    return WalkStep::Past;
                }
                if entry.kind == EntryKind::Directory && !watch.is_some_and(|watch| watch.add(entry.place)) {
                    is_watched.store(false, Ordering::Relaxed);
                }
                if entry.kind != EntryKind::File || !self.entry.watches(&entry.place.path) {
                    return WalkStep::On;
                }
                let Some(facts) = entry.facts() else { return WalkStep::On };
                let mut found = found.lock();
                let changed = if facts.changed < settled { facts.changed } else { -1 };
                found.0.insert(entry.place.clone(), (facts.size, changed));
                if facts.links > 1 {
                    found.1.push(entry.place.clone());
                }
                if found.0.len() < MOST_FILES { WalkStep::On } else { WalkStep::Stop }
            })
        };
        let options = WalkOptions { gitignore: true, ..WalkOptions::default() };
        files.walk(&self.root, &options, &visitors)?;
        let (found, linked) = found.into_inner();
        if !is_watched.into_inner() || found.len() >= MOST_FILES || linked.len() > MOST_LINKED {
            known.watch = ProjectWatch::Impossible;
        }
        (known.linked, known.scanned) = (linked, Some(scanned));
        Ok(found)
    }
}

fn digest_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
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

/// The directories that have source files now and had none before, or the other way round: some servers remember that there was
/// no such directory.
fn directory_differences(
    before: &HashMap<WorkspacePath, SizeAndTime>,
    now: &HashMap<WorkspacePath, SizeAndTime>,
) -> Vec<(WorkspacePath, FileChange)> {
    let directories = |files: &HashMap<WorkspacePath, SizeAndTime>| -> BTreeSet<WorkspacePath> {
        files.keys().flat_map(WorkspacePath::ancestors).collect()
    };
    let (before, now) = (directories(before), directories(now));
    let come = now.difference(&before).map(|place| (place.clone(), FileChange::Created));
    let gone = before.difference(&now).map(|place| (place.clone(), FileChange::Deleted));
    come.chain(gone).collect()
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
