//! Snapshots of the workspace, taken before a command that changes files in place: a list of every path, and a copy of
//! every file, smallest first, up to the quota for undo. A snapshot is in `.toolgate/snapshots/<call>/` while the
//! command runs, locked by the process that took it. An unlocked snapshot was left behind by a killed process, and the
//! next process settles it. The last settled snapshot stays as `.last`: the next one starts from it, and copies only
//! what has changed since.

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

/// The last settled snapshot.
const LAST: &str = ".last";
/// The prefix of incomplete snapshots: being created, or being deleted.
const DRAFT: &str = ".draft-";
/// The prefix of snapshots without a valid signature.
const FOREIGN: &str = ".foreign-";
/// How long an unused snapshot is kept.
const RETENTION: SignedDuration = SignedDuration::from_hours(24);

/// The snapshots of one workspace.
pub struct SnapshotStore {
    directory: DirectoryHandle,
    key: Option<SigningKey>,
}

/// The call that a snapshot belongs to, and the part of the workspace that it covers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotScope {
    /// The run that the command belongs to.
    pub run: String,
    /// The call that started it.
    pub call: String,
    /// The roots that the command can change.
    pub roots: Vec<usize>,
    /// Paths that the command can't change.
    pub except: BTreeSet<WorkspacePath>,
    /// The total size of copies, in bytes.
    pub quota: u64,
}

/// Snapshots that killed processes left behind.
#[derive(Default)]
pub struct AbandonedSnapshots {
    /// The snapshots with a valid signature.
    pub snapshots: Vec<Snapshot>,
    /// One warning for each snapshot without a valid signature.
    pub warnings: Vec<String>,
}

impl SnapshotStore {
    pub(crate) fn new(directory: DirectoryHandle, key: Option<SigningKey>) -> Self {
        Self { directory, key }
    }

    /// Takes a snapshot of everything that the command can change. The caller holds the change lock.
    pub fn take(&self, scope: SnapshotScope, files: &dyn Files) -> Result<Snapshot, ToolError> {
        let name = self.free(&call_name(&scope.call))?;
        let draft = format!("{DRAFT}{name}");
        let earlier = self.begin(&draft)?;
        let mut snapshot = self.open(&draft)?.ok_or_else(|| ToolError::internal("A new snapshot was taken."))?;
        snapshot.fill(scope, earlier, files)?;
        snapshot.save()?;
        snapshot.rename(&name)?;
        Ok(snapshot)
    }

    /// The snapshots that killed processes left behind. One without a valid signature is renamed and not used: it could
    /// have come with a repository, and would record changes that never happened.
    pub fn abandoned(&self) -> Result<AbandonedSnapshots, JournalError> {
        let mut found = AbandonedSnapshots::default();
        for name in self.directory.names()?.into_iter().filter(|name| !name.starts_with('.')) {
            match self.open(&name).and_then(|opened| opened.map(Snapshot::load_manifest).transpose()) {
                // In use by another process.
                Ok(None) => {}
                Ok(Some(Some(snapshot))) => found.snapshots.push(snapshot),
                Ok(Some(None)) | Err(_) => found.warnings.push(self.reject(&name)?),
            }
        }
        Ok(found)
    }

    /// Deletes unused snapshots: incomplete ones, and those kept for longer than a day.
    pub fn clear(&self) -> Result<(), JournalError> {
        for name in self.directory.names()? {
            let is_kept = name == LAST || name.starts_with(FOREIGN);
            let is_unused = name.starts_with(DRAFT) || is_kept && self.is_old(&name);
            if is_unused && !matches!(self.open(&name), Ok(None)) {
                self.directory.discard(&name);
            }
        }
        Ok(())
    }

    /// Whether it has been there for longer than a day, by the clock of its file system.
    fn is_old(&self, name: &str) -> bool {
        let now = self.directory.draft().and_then(|draft| FilesystemTime::now(&draft.file));
        let age = now.and_then(|now| Ok(now.since(self.directory.open(name)?.fd())));
        !matches!(age, Ok(Some(age)) if age < RETENTION)
    }

    /// Renames a snapshot that isn't trusted, and describes that in one sentence.
    fn reject(&self, name: &str) -> Result<String, JournalError> {
        let aside = self.free(&format!("{FOREIGN}{name}"))?;
        self.directory.rename(name, &aside)?;
        let why = match self.key {
            Some(_) => "has no valid signature of this user",
            None => "may have come with the repository, and there is no signing key to check it",
        };
        let (was, is) = (self.directory.path().join(name), self.directory.path().join(aside));
        let rest = "so undo doesn't cover what changed since. It is kept for a day, as";
        Ok(format!("The snapshot `{}` {why}, {rest} `{}`.", was.display(), is.display()))
    }

    /// Creates the directory of a new snapshot, with the entries of the last one.
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
        // None, or an unusable one: the signature is invalid, or the clock was set since.
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

    /// Opens and locks a snapshot; none if another process holds it.
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

    /// Deletes a snapshot as far as possible. A half-deleted one must not be taken for one that was left behind, so it
    /// is renamed first; the next start deletes what is left.
    fn discard(&self, name: &str) {
        let gone = format!("{DRAFT}{}", Uuid::now_v7().simple());
        if self.rename(name, &gone).is_ok() && std::fs::remove_dir_all(self.path().join(&gone)).is_err() {
            let _ = self.remove(&gone);
        }
    }
}
