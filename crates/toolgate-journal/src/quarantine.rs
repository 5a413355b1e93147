//! Quarantined changes: files that commands created or changed but that were not written to the workspace, because
//! policy blocks the path, because another process changed the file meanwhile, or because git or an editor would run or
//! load it automatically. They wait in `.toolgate/quarantine/<call>/` for a person to review.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, Mode};
use serde::{Deserialize, Serialize};

use crate::JournalError;
use crate::directory::{DirectoryHandle, call_name};
use toolgate_contract::Durability;

const LIST: &str = "held.json";

/// All quarantined changes, by call.
pub struct Quarantine {
    directory: DirectoryHandle,
}

/// One quarantined change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedChange {
    /// The path in the workspace that it was meant for.
    pub path: String,
    /// Why it was not written.
    pub reason: String,
    /// The file's mode; none if the command removed the file.
    pub mode: Option<u32>,
    /// Its name in the call's directory; none for changes without content.
    pub name: Option<String>,
}

/// Writes a file under a name in a directory.
pub type PlaceFile<'a> = dyn Fn(BorrowedFd<'_>, &str) -> std::io::Result<()> + 'a;

/// The quarantine directory of one call.
pub struct CallQuarantine {
    directory: DirectoryHandle,
    changes: Vec<QuarantinedChange>,
    /// Names of files to delete with the next [`CallQuarantine::save`].
    dropped: Vec<String>,
}

impl Quarantine {
    pub(crate) fn new(directory: DirectoryHandle) -> Self {
        Self { directory }
    }

    /// The quarantine directory of a call, created if there is none.
    pub fn for_call(&self, call: &str) -> Result<CallQuarantine, JournalError> {
        CallQuarantine::of(self.directory.make(&call_name(call))?)
    }

    /// The calls with quarantined changes, sorted.
    pub fn calls(&self) -> Result<Vec<String>, JournalError> {
        let entries = std::fs::read_dir(self.directory.path());
        let entries = entries.map_err(|error| self.directory.error("couldn't be listed", ".", error))?;
        let mut calls: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        calls.sort();
        Ok(calls)
    }

    /// The quarantined changes of a call; empty if there is no such call.
    pub fn changes(&self, call: &str) -> Result<Vec<QuarantinedChange>, JournalError> {
        let Ok(quarantine) = self.directory.open(&call_name(call)) else { return Ok(Vec::new()) };
        Ok(CallQuarantine::of(quarantine)?.changes)
    }

    /// Removes one change from quarantine, and the call's directory with the last of them.
    pub fn remove(&self, call: &str, taken: &QuarantinedChange) -> Result<(), JournalError> {
        let mut quarantine = self.for_call(call)?;
        quarantine.remove(&taken.path);
        quarantine.save()?;
        if quarantine.changes.is_empty() {
            quarantine.directory.remove(LIST)?;
            let _ = rustix::fs::unlinkat(self.directory.fd(), call_name(call), AtFlags::REMOVEDIR);
        }
        Ok(())
    }
}

impl CallQuarantine {
    fn of(directory: DirectoryHandle) -> Result<Self, JournalError> {
        let changes = match directory.existing(LIST)? {
            Some(file) => serde_json::from_reader(file).map_err(JournalError::Encode)?,
            None => Vec::new(),
        };
        Ok(Self { directory, changes, dropped: Vec::new() })
    }

    /// Adds one change, whose content `place_file` writes under a name in the directory. An earlier change of the same
    /// path is dropped. It takes effect with the next [`CallQuarantine::save`].
    pub fn add(
        &mut self,
        path: &str,
        reason: &str,
        mode: Option<u32>,
        place_file: Option<&PlaceFile<'_>>,
    ) -> Result<(), JournalError> {
        self.remove(path);
        let names = self.changes.iter().filter_map(|change| change.name.as_ref()).chain(&self.dropped);
        let last = names.filter_map(|name| name.parse::<u64>().ok()).max();
        let name = place_file.map(|place_file| {
            let name = last.map_or(0, |last| last + 1).to_string();
            // A process may have been killed after writing this file and before saving the list.
            self.remove_content(&name)?;
            let placed = place_file(self.directory.fd().as_fd(), &name);
            placed.map_err(|error| self.directory.error("couldn't be filled", &name, error))?;
            Ok(name)
        });
        let (path, reason, name) = (path.to_owned(), reason.to_owned(), name.transpose()?);
        self.changes.push(QuarantinedChange { path, reason, mode, name });
        Ok(())
    }

    /// Drops the change of a path, with the next [`CallQuarantine::save`].
    pub fn remove(&mut self, path: &str) {
        let dropped = self.changes.extract_if(.., |change| change.path == path);
        self.dropped.extend(dropped.filter_map(|change| change.name));
    }

    /// Saves the list, then deletes the files that are no longer in it.
    pub fn save(&mut self) -> Result<(), JournalError> {
        let text = serde_json::to_vec_pretty(&self.changes).map_err(JournalError::Encode)?;
        self.directory.put(LIST, &text, Durability::Os)?;
        std::mem::take(&mut self.dropped).iter().try_for_each(|name| self.remove_content(name))
    }

    /// Copies files that somebody else can still write to, by another name or because `has_writers` tells of one, so that nobody changes
    /// what is quarantined. A file that can't be copied stays as it is.
    pub fn own_contents(&self, has_writers: &dyn Fn(&File) -> bool) {
        for change in &self.changes {
            let _ = self.own_content(change, has_writers);
        }
    }

    fn own_content(&self, change: &QuarantinedChange, has_writers: &dyn Fn(&File) -> bool) -> Result<(), JournalError> {
        let (Some(name), Some(mut shared)) = (&change.name, self.open(change)?) else { return Ok(()) };
        if shared.metadata().is_ok_and(|found| found.nlink() < 2) && !has_writers(&shared) {
            return Ok(());
        }
        let mut copy = self.directory.draft()?;
        std::io::copy(&mut shared, &mut copy.file)
            .map_err(|error| self.directory.error("couldn't be copied", name, error))?;
        copy.place(&self.directory, name, Durability::Os)
    }

    /// Removes quarantined content: a file, a link, or a directory that was quarantined as a whole.
    fn remove_content(&self, name: &str) -> Result<(), JournalError> {
        let path = self.directory.path().join(name);
        match std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            true => {
                std::fs::remove_dir_all(path).map_err(|error| self.directory.error("couldn't be removed", name, error))
            }
            false => self.directory.remove(name),
        }
    }

    /// The target of a quarantined symbolic link.
    pub fn link(&self, name: &str) -> Result<Vec<u8>, JournalError> {
        let link = rustix::fs::readlinkat(self.directory.fd(), name, Vec::new());
        Ok(link.map_err(|errno| self.directory.error("couldn't be read", name, errno.into()))?.into_bytes())
    }

    /// Opens the content of a change, if it has any. The file has the mode that the command gave it, which may keep its owner
    /// out.
    pub fn open(&self, change: &QuarantinedChange) -> Result<Option<File>, JournalError> {
        let Some(name) = change.name.as_deref() else { return Ok(None) };
        match self.directory.existing(name) {
            Err(JournalError::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
                self.open_closed(name)
            }
            opened => opened,
        }
    }

    /// Opens a file whose mode keeps its owner out, and leaves the mode as it was.
    fn open_closed(&self, name: &str) -> Result<Option<File>, JournalError> {
        let fault = |errno: rustix::io::Errno| self.directory.error("couldn't be opened", name, errno.into());
        let found = rustix::fs::statat(self.directory.fd(), name, AtFlags::SYMLINK_NOFOLLOW).map_err(fault)?;
        let mode = Mode::from_raw_mode(found.st_mode & 0o7777);
        let set = |mode| rustix::fs::chmodat(self.directory.fd(), name, mode, AtFlags::empty());
        set(mode | Mode::RUSR).map_err(fault)?;
        let opened = self.directory.existing(name);
        set(mode).map_err(fault)?;
        opened
    }
}
