//! What the workspace was when a command began that works straight on it: a list of everything, and a copy of every file,
//! smallest first, as far as the quota for undo goes. It lies in `.toolgate/snapshots/<call>/` while the command runs.
//! Whoever took it holds a lock on it; one without was left behind by somebody who was killed, and is settled by the next.
//! The last one that was settled stays, as `.last`: the next begins from it, and copies only what has changed since.

mod entry;
mod filesystem_time;
mod manifest;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Files, ToolError, WorkspacePath};
use uuid::Uuid;

use self::entry::SnapshotEntry;
use self::filesystem_time::FilesystemTime;
use self::manifest::SnapshotManifest;
pub use self::snapshot::Snapshot;
use crate::directory::{DirectoryHandle, call_name};
use crate::{JournalError, SigningKey};

/// The last one that was settled.
const LAST: &str = ".last";
/// Begins the names of those that aren't whole: on their way in, or out.
const DRAFT: &str = ".draft-";
/// Begins the names of those that weren't made here.
const FOREIGN: &str = ".foreign-";
/// How long something is kept that nobody came for.
const A_DAY: SignedDuration = SignedDuration::from_hours(24);

/// Where snapshots lie.
pub struct SnapshotStore {
    directory: DirectoryHandle,
    key: Option<SigningKey>,
}

/// Whose snapshot it is, and what of the workspace it covers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotScope {
    /// The run that the command belongs to.
    pub run: String,
    /// The call that started it.
    pub call: String,
    /// The roots that it can change.
    pub roots: Vec<usize>,
    /// Places that it can't touch.
    pub except: BTreeSet<WorkspacePath>,
    /// Bytes of copies at the most.
    pub quota: u64,
}

/// What somebody who was killed left behind.
#[derive(Default)]
pub struct AbandonedSnapshots {
    /// Their snapshots.
    pub snapshots: Vec<Snapshot>,
    /// One sentence for each that was set aside.
    pub warnings: Vec<String>,
}

impl SnapshotStore {
    pub(crate) fn new(directory: DirectoryHandle, key: Option<SigningKey>) -> Self {
        Self { directory, key }
    }

    /// Takes one of everything that the command can change. Whoever asks has the turn to change files.
    pub fn take(&self, scope: SnapshotScope, files: &dyn Files) -> Result<Snapshot, ToolError> {
        let name = self.free(&call_name(&scope.call))?;
        let draft = format!("{DRAFT}{name}");
        let earlier = self.begin(&draft)?;
        let mut snapshot = self.open(&draft)?.ok_or_else(|| ToolError::internal("A new snapshot was taken."))?;
        snapshot.fill(scope, earlier, files)?;
        snapshot.note()?;
        snapshot.rename(&name)?;
        Ok(snapshot)
    }

    /// Those that somebody who was killed left behind. What doesn't show that it was made here is set aside: it could have
    /// come with a repository, and would put on record what never was.
    pub fn abandoned(&self) -> Result<AbandonedSnapshots, JournalError> {
        let mut found = AbandonedSnapshots::default();
        for name in self.directory.names()?.into_iter().filter(|name| !name.starts_with('.')) {
            match self.open(&name).and_then(|opened| opened.map(Snapshot::load_manifest).transpose()) {
                // Somebody works with it.
                Ok(None) => {}
                Ok(Some(Some(snapshot))) => found.snapshots.push(snapshot),
                Ok(Some(None)) | Err(_) => found.warnings.push(self.set_aside(&name)?),
            }
        }
        Ok(found)
    }

    /// Removes what nobody comes for any more: what is half made, or was kept for longer than a day.
    pub fn clear(&self) -> Result<(), JournalError> {
        for name in self.directory.names()? {
            let is_kept = name == LAST || name.starts_with(FOREIGN);
            let is_rubbish = name.starts_with(DRAFT) || is_kept && self.is_old(&name);
            if is_rubbish && !matches!(self.open(&name), Ok(None)) {
                self.directory.discard(&name);
            }
        }
        Ok(())
    }

    /// Whether it has lain there for longer than a day, by the clock of its file system.
    fn is_old(&self, name: &str) -> bool {
        let now = self.directory.draft().and_then(|draft| FilesystemTime::now(&draft.file));
        let age = now.and_then(|now| Ok(now.since(self.directory.open(name)?.fd())));
        !matches!(age, Ok(Some(age)) if age < A_DAY)
    }

    /// Says in one sentence what was set aside.
    fn set_aside(&self, name: &str) -> Result<String, JournalError> {
        let aside = self.free(&format!("{FOREIGN}{name}"))?;
        self.directory.rename(name, &aside)?;
        let why = match self.key {
            Some(_) => "wasn't sealed here",
            None => "can't be told from one that came with the repository, since there is no seal's key",
        };
        let (was, is) = (self.directory.path().join(name), self.directory.path().join(aside));
        let rest = "so undo doesn't cover what changed since. It is kept for a day, as";
        Ok(format!("The snapshot `{}` {why}, {rest} `{}`.", was.display(), is.display()))
    }

    /// Makes the directory of a new one, with what the last one knew.
    fn begin(&self, draft: &str) -> Result<BTreeMap<WorkspacePath, SnapshotEntry>, JournalError> {
        let last = match self.directory.rename(LAST, draft) {
            Ok(()) => self.open(draft).and_then(|last| last.map(Snapshot::load_manifest).transpose()),
            Err(_) => Ok(None),
        };
        if let Ok(Some(Some(last))) = last
            && let Some(places) = last.into_entries_of_this_epoch()
        {
            return Ok(places);
        }
        // None, or one that says nothing: it came from elsewhere, or the clock was set since.
        self.directory.discard(draft);
        self.directory.make(draft).map(|_| BTreeMap::new())
    }

    /// The first of `name`, `name-2`, … that doesn't exist yet.
    fn free(&self, name: &str) -> Result<String, JournalError> {
        let taken: BTreeSet<String> = self.directory.names()?.into_iter().collect();
        let is_free = |name: &String| !taken.contains(name) && !taken.contains(&format!("{DRAFT}{name}"));
        let mut names = std::iter::once(name.to_owned()).chain((2_u64..).map(|number| format!("{name}-{number}")));
        Ok(names.find(is_free).expect("there are more numbers than names"))
    }

    /// Opens one and locks it; none if somebody else has.
    fn open(&self, name: &str) -> Result<Option<Snapshot>, JournalError> {
        let directory = self.directory.open(name)?;
        let list = SnapshotManifest::of(&directory, self.key.clone())?;
        Snapshot::lock(DirectoryHandle::at(self.directory.path())?, directory, list)
    }
}

impl SnapshotScope {
    fn empty() -> Self {
        Self { run: String::new(), call: String::new(), roots: Vec::new(), except: BTreeSet::new(), quota: 0 }
    }

    fn covers(&self, place: &WorkspacePath) -> bool {
        self.roots.contains(&place.root) && !self.except.iter().any(|except| except.covers(place))
    }
}

impl DirectoryHandle {
    fn rename(&self, name: &str, to: &str) -> Result<(), JournalError> {
        rustix::fs::renameat(self.fd(), name, self.fd(), to)
            .map_err(|errno| self.error("couldn't be put in place", name, errno.into()))
    }

    /// Removes a snapshot and everything in it, as far as possible. What is half removed must not be taken for one that was
    /// left behind, so it loses its name first; what is left then goes with the next start.
    fn discard(&self, name: &str) {
        let gone = format!("{DRAFT}{}", Uuid::now_v7().simple());
        if self.rename(name, &gone).is_ok() && std::fs::remove_dir_all(self.path().join(&gone)).is_err() {
            let _ = self.remove(&gone);
        }
    }
}
