//! What the workspace was when a command began that works straight on it: a list of everything, and a copy of every file,
//! smallest first, as far as the quota for undo goes. It lies in `.toolgate/snapshots/<call>/` while the command runs.
//! Whoever took it holds a lock on it; one without was left behind by somebody who was killed, and is settled by the next.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use rustix::fs::{AtFlags, FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Change, FileState, Files, Node, Place, Step, ToolError, Visitor, WalkOptions, Walked, sha256_of,
};

use crate::folder::{Folder, call_name};
use crate::{Contents, Durability, JournalError};

const LOCK: &str = "lock";
const LIST: &str = "list.json";
/// Stands for the content of a file that was more than could be kept.
const NOT_KEPT: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Where snapshots lie.
pub struct Snapshots {
    folder: Folder,
}

/// Whose snapshot it is, and what of the workspace it covers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scope {
    /// The run that the command belongs to.
    pub run: String,
    /// The call that started it.
    pub call: String,
    /// The roots that it can change.
    pub roots: Vec<usize>,
    /// Places that it can't touch.
    pub except: BTreeSet<Place>,
    /// Bytes of copies at the most.
    pub quota: u64,
}

/// What the workspace was.
pub struct Snapshot {
    scope: Scope,
    list: BTreeMap<Place, Was>,
    /// Names that aren't text, as they can be shown: no tool could reach them.
    unspeakable: BTreeSet<Place>,
    /// The number of the next copy, and how many bytes more can be kept.
    next: u64,
    room: u64,
    is_settled: bool,
    folder: Folder,
    parent: Folder,
    // The lock goes with it.
    _lock: File,
}

/// What was at a place.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Was {
    /// Of a file without its hash.
    state: FileState,
    number: u64,
    changed: Timestamp,
    /// The name of its copy.
    copy: Option<u64>,
    /// What a link held.
    target: Option<Vec<u8>>,
}

impl Was {
    /// Whether nothing was done to it. The time of change is the file system's own, and nobody can set it.
    fn is_still(&self, now: &Node) -> bool {
        let is_same = self.number == now.number && self.changed == now.changed && self.state.bytes == now.state.bytes;
        self.state.mode == now.state.mode && (self.state.is_folder() || is_same)
    }
}

impl Snapshots {
    pub(crate) fn new(folder: Folder) -> Self {
        Self { folder }
    }

    /// Takes one of everything that the command can change.
    pub fn take(&self, scope: Scope, files: &dyn Files) -> Result<Snapshot, ToolError> {
        let mut name = call_name(&scope.call);
        for number in 2.. {
            if self.folder.make_new(&name)? {
                break;
            }
            name = format!("{}-{number}", call_name(&scope.call));
        }
        let mut snapshot = self.open(&name, scope)?.ok_or_else(|| ToolError::internal("A new snapshot was taken."))?;
        let mut found = Vec::new();
        let (places, unspeakable) = snapshot.places(files)?;
        snapshot.unspeakable = unspeakable;
        for place in places {
            found.extend(files.node(&place, false)?.map(|node| (place, node)));
        }
        // The smallest first: then most can be kept, and what people write is small.
        found.sort_by_key(|(_, node)| node.state.bytes);
        for (place, node) in found {
            snapshot.keep(place, node, files)?;
        }
        snapshot.note()?;
        Ok(snapshot)
    }

    /// Those that somebody who was killed left behind.
    pub fn abandoned(&self) -> Result<Vec<Snapshot>, JournalError> {
        let mut found = Vec::new();
        for name in self.folder.names()?.into_iter().filter(|name| !name.starts_with('.')) {
            let Ok(folder) = self.folder.open(&name) else { continue };
            let noted = folder.existing(LIST)?.and_then(|list| serde_json::from_reader(list).ok());
            let (scope, list): (Scope, Vec<(Place, Was)>) = match noted {
                Some(noted) => noted,
                // It was never finished, so its command never began.
                None => (Scope::nobodys(), Vec::new()),
            };
            if let Some(mut snapshot) = self.open(&name, scope)? {
                snapshot.list = list.into_iter().collect();
                found.push(snapshot);
            }
        }
        Ok(found)
    }

    /// Opens one and locks it; none if somebody else has.
    fn open(&self, name: &str, scope: Scope) -> Result<Option<Snapshot>, JournalError> {
        let folder = self.folder.open(name)?;
        let lock = folder.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let (room, parent) = (scope.quota, Folder::at(self.folder.path())?);
        let (list, unspeakable, is_settled) = (BTreeMap::new(), BTreeSet::new(), false);
        Ok(Some(Snapshot { scope, list, unspeakable, next: 0, room, is_settled, folder, parent, _lock: lock }))
    }
}

impl Scope {
    fn nobodys() -> Self {
        Self { run: String::new(), call: String::new(), roots: Vec::new(), except: BTreeSet::new(), quota: 0 }
    }
}

impl Snapshot {
    /// Whose it is.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Files whose content couldn't be kept.
    pub fn beyond_quota(&self) -> usize {
        self.list.values().filter(|was| was.state.is_file() && was.copy.is_none()).count()
    }

    /// What differs by now from what it was, in the order of places; only at these places if some are given.
    pub fn changes(&self, files: &dyn Files, only: Option<&[Place]>) -> Result<Vec<Change>, ToolError> {
        let places = match only {
            Some(places) => places.iter().filter(|place| self.covers(place)).cloned().collect(),
            None => {
                let (mut places, _) = self.places(files)?;
                places.extend(self.list.keys().cloned());
                places
            }
        };
        let mut changes = Vec::new();
        for place in places {
            let (was, now) = (self.list.get(&place), files.node(&place, false)?);
            if was.zip(now.as_ref()).is_some_and(|(was, now)| was.is_still(now)) || was.is_none() && now.is_none() {
                continue;
            }
            let before = was.map(|was| self.state(was)).transpose()?;
            let after = files.node(&place, true)?.map(|node| node.state);
            if before != after {
                changes.push(Change { path: files.shown(&place), place, before, after });
            }
        }
        Ok(changes)
    }

    /// What came meanwhile under names that aren't text, as they can be shown.
    pub fn unspeakable(&self, files: &dyn Files) -> Result<Vec<String>, ToolError> {
        let (_, now) = self.places(files)?;
        Ok(now.difference(&self.unspeakable).map(|place| files.shown(place)).collect())
    }

    /// Hands what these places were over to the store of contents; from now on, what is there counts as what they were.
    pub fn hand_over(&mut self, changes: &[Change], contents: &Contents, files: &dyn Files) -> Result<(), ToolError> {
        for Change { place, before, .. } in changes {
            let (Some(was), Some(before)) = (self.list.get(place), before) else { continue };
            if let Some(target) = &was.target {
                contents.put(&target.clone().into())?;
            }
            if let Some(copy) = was.copy.map(|copy| copy.to_string())
                && let Some(file) = self.folder.existing(&copy)?
            {
                contents.adopt(&file, before, true)?;
                self.folder.remove(&copy)?;
                contents.own(&before.sha256)?;
            }
        }
        self.take_anew(changes.iter().map(|change| &change.place), files)
    }

    /// From now on, what is at these places counts as what they were.
    pub fn take_anew<'a>(
        &mut self,
        places: impl Iterator<Item = &'a Place>,
        files: &dyn Files,
    ) -> Result<(), ToolError> {
        for place in places {
            if let Some(Was { copy: Some(copy), state, .. }) = self.list.remove(place) {
                self.folder.remove(&copy.to_string())?;
                self.room += state.bytes;
            }
            if let (true, Some(node)) = (self.covers(place), files.node(place, false)?) {
                self.keep(place.clone(), node, files)?;
            }
        }
        Ok(())
    }

    /// Nothing of it is needed any more.
    pub fn done(mut self) {
        self.is_settled = true;
    }

    /// Writes the list down, for whoever comes after somebody was killed.
    pub fn note(&self) -> Result<(), JournalError> {
        let list: Vec<(&Place, &Was)> = self.list.iter().collect();
        let text = serde_json::to_vec(&(&self.scope, list)).map_err(JournalError::Encode)?;
        self.folder.put(LIST, &text, Durability::Os)
    }

    fn covers(&self, place: &Place) -> bool {
        self.scope.roots.contains(&place.root) && !self.scope.except.iter().any(|except| except.covers(place))
    }

    /// Everything that is there, and what is there under a name that isn't text.
    fn places(&self, files: &dyn Files) -> Result<(BTreeSet<Place>, BTreeSet<Place>), ToolError> {
        let found = Mutex::new((BTreeSet::new(), BTreeSet::new()));
        let visitors = || -> Visitor<'_> {
            Box::new(|walked: &Walked<'_>| {
                if self.scope.except.contains(walked.place) {
                    return Step::Past;
                }
                // A place that only shows a name leads nowhere.
                let is_shown = walked.place.path.contains("\\x") && matches!(files.node(walked.place, false), Ok(None));
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                let list = if is_shown { &mut found.1 } else { &mut found.0 };
                list.insert(walked.place.clone());
                Step::On
            })
        };
        for root in &self.scope.roots {
            let everything = WalkOptions { hidden: true, ..WalkOptions::default() };
            files.walk(&Place { root: *root, path: String::new() }, &everything, &visitors)?;
        }
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes what is at a place, and copies it if there is room.
    fn keep(&mut self, place: Place, node: Node, files: &dyn Files) -> Result<(), ToolError> {
        let Node { state, number, changed, .. } = node;
        let copy = match state.is_file() && state.bytes <= self.room {
            true => self.copy(&place, files)?,
            false => None,
        };
        let target = match state.is_link() {
            true => files.content(&place, u64::MAX)?.map(|link| link.bytes.to_vec()),
            false => None,
        };
        self.list.insert(place, Was { state, number, changed, copy, target });
        Ok(())
    }

    /// Copies a file. Where the file system can share blocks, this does.
    fn copy(&mut self, place: &Place, files: &dyn Files) -> Result<Option<u64>, ToolError> {
        // What can't be opened can't be changed by the command either, or it is gone already.
        let Ok(mut opened) = files.open(place) else { return Ok(None) };
        let name = self.next;
        let mut copy = self.folder.file(&name.to_string(), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        let copied = std::io::copy(&mut opened.file, &mut copy)
            .map_err(|error| ToolError::io(&format!("`{}` can't be kept for undo", place.path), &error))?;
        self.next += 1;
        self.room = self.room.saturating_sub(copied);
        Ok(Some(name))
    }

    /// What a place was, with its hash.
    fn state(&self, was: &Was) -> Result<FileState, ToolError> {
        if !was.state.is_file() {
            return Ok(was.state.clone());
        }
        let copy = was.copy.map(|copy| self.folder.existing(&copy.to_string())).transpose()?.flatten();
        let fault = |error: std::io::Error| ToolError::io("A copy for undo can't be read", &error);
        let (sha256, bytes) = match &copy {
            Some(copy) => sha256_of(copy).map_err(fault)?,
            None => (NOT_KEPT.to_owned(), was.state.bytes),
        };
        Ok(FileState { sha256, bytes, mode: was.state.mode })
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if self.is_settled {
            let names = self.folder.names().unwrap_or_default();
            for name in names.iter().filter(|name| *name != "." && *name != "..") {
                let _ = self.folder.remove(name);
            }
            let name = self.folder.path().file_name().unwrap_or_default();
            let _ = rustix::fs::unlinkat(self.parent.fd(), name, AtFlags::REMOVEDIR);
        }
    }
}
