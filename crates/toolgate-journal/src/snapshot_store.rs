//! Where snapshots of the workspace are stored: in `.toolgate/snapshots/<call>/` while a command runs, locked by the process
//! that took it. An unlocked snapshot was left behind by a killed process, and the next process settles it. The last settled
//! snapshot stays as `.last`, for the next one to start from. What a snapshot says is for `toolgate-changes` to know; here it
//! is a list of signed records, and copies of files.

mod change_notice;
mod filesystem_time;
mod signed_records;
mod stored_snapshot;

use std::collections::BTreeSet;
use std::io;

use jiff::SignedDuration;
use uuid::Uuid;

pub use self::change_notice::{ChangeNotice, NoticeKind};
pub use self::filesystem_time::{ClockEpoch, FilesystemTime};
use self::signed_records::SignedRecords;
pub use self::stored_snapshot::StoredSnapshot;
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

impl SnapshotStore {
    pub(crate) fn new(directory: DirectoryHandle, key: Option<SigningKey>) -> Self {
        Self { directory, key }
    }

    /// A free name for a new snapshot of this call.
    pub fn name_for(&self, call: &str) -> Result<String, JournalError> {
        self.free(&call_name(call))
    }

    /// Turns the last settled snapshot into the draft of a new one; none if there is none that can be opened.
    pub fn begin_from_last(&self, name: &str) -> Option<StoredSnapshot> {
        let draft = draft_name(name);
        self.directory.rename(LAST, &draft).ok()?;
        change_notice::clear(&self.directory.open(&draft).ok()?);
        self.lock(&draft).ok().flatten()
    }

    /// Begins an empty draft of a new snapshot, in place of any other draft with this name.
    pub fn begin(&self, name: &str) -> Result<StoredSnapshot, JournalError> {
        let draft = draft_name(name);
        self.directory.discard(&draft);
        self.directory.make(&draft)?;
        let in_use = || self.directory.error("is in use", &draft, io::ErrorKind::ResourceBusy.into());
        self.lock(&draft)?.ok_or_else(in_use)
    }

    /// The snapshots that killed processes left behind, as `read` understands them, and one warning for each that it
    /// doesn't. Such a snapshot is renamed and not used: it could have come with a repository, and would record changes that
    /// never happened.
    pub fn abandoned<T>(
        &self,
        read: impl Fn(StoredSnapshot) -> Option<T>,
    ) -> Result<(Vec<T>, Vec<String>), JournalError> {
        let (mut snapshots, mut warnings) = (Vec::new(), Vec::new());
        for name in self.unsettled()? {
            match self.lock(&name) {
                // In use by another process.
                Ok(None) => {}
                locked => match locked.ok().flatten().and_then(&read) {
                    Some(snapshot) => snapshots.push(snapshot),
                    None => warnings.push(self.reject(&name)?),
                },
            }
        }
        Ok((snapshots, warnings))
    }

    /// The snapshots of commands that aren't settled, of every process.
    pub fn unsettled(&self) -> Result<Vec<String>, JournalError> {
        Ok(self.directory.names()?.into_iter().filter(|name| !name.starts_with('.')).collect())
    }

    /// Tells these commands what a call changed. The caller holds the change lock. Without a key nobody could tell a notice
    /// from one that a command wrote, so there are none.
    pub fn notify(&self, snapshots: &[String], notice: &ChangeNotice) -> Result<(), JournalError> {
        let Some(key) = &self.key else { return Ok(()) };
        for name in snapshots {
            // A snapshot that can't be opened is of a command that never began, and is gone by now.
            if let Ok(directory) = self.directory.open(name) {
                change_notice::add(&directory, key, notice)?;
            }
        }
        Ok(())
    }

    /// Deletes unused snapshots: incomplete ones, and those kept for longer than a day.
    pub fn clear(&self) -> Result<(), JournalError> {
        for name in self.directory.names()? {
            let is_kept = name == LAST || name.starts_with(FOREIGN);
            let is_unused = name.starts_with(DRAFT) || is_kept && self.is_old(&name);
            if is_unused && !matches!(self.lock(&name), Ok(None)) {
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

    /// The first of `name`, `name-2`, … that doesn't exist yet.
    fn free(&self, name: &str) -> Result<String, JournalError> {
        let taken: BTreeSet<String> = self.directory.names()?.into_iter().collect();
        let is_free = |name: &String| !taken.contains(name) && !taken.contains(&draft_name(name));
        let mut names = std::iter::once(name.to_owned()).chain((2_u64..).map(|number| format!("{name}-{number}")));
        Ok(names.find(is_free).expect("there are more numbers than names"))
    }

    /// Opens and locks a snapshot; none if another process holds it.
    fn lock(&self, name: &str) -> Result<Option<StoredSnapshot>, JournalError> {
        let directory = self.directory.open(name)?;
        let records = SignedRecords::of(&directory, self.key.clone())?;
        StoredSnapshot::lock(DirectoryHandle::at(self.directory.path())?, directory, records)
    }
}

/// The name of a snapshot that isn't complete yet.
fn draft_name(name: &str) -> String {
    format!("{DRAFT}{name}")
}

impl DirectoryHandle {
    fn rename(&self, name: &str, to: &str) -> Result<(), JournalError> {
        rustix::fs::renameat(self.fd(), name, self.fd(), to)
            .map_err(|errno| self.error("couldn't be put in place", name, errno.into()))
    }

    /// Deletes a snapshot as far as possible. A half-deleted one must not be taken for one that was left behind, so it
    /// is renamed first; the next start deletes what is left.
    fn discard(&self, name: &str) {
        let gone = draft_name(&Uuid::now_v7().simple().to_string());
        if self.rename(name, &gone).is_ok() && std::fs::remove_dir_all(self.path().join(&gone)).is_err() {
            let _ = self.remove(&gone);
        }
    }
}
