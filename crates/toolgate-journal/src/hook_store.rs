//! What the hooks of clients keep from one event to the next: calls that a client executes, commands that a client was told to run
//! here, and the directory that a client's shell is in. Each is one small signed file of the state directory, so a file that
//! came with a repository, or that a command wrote, is never taken for one.

use std::io::Read;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toolgate_contract::Durability;

use crate::directory::{DirectoryHandle, call_name};
use crate::{JournalError, SigningKey};

/// The largest size of such a file, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// What hooks keep between events.
pub struct HookStore {
    directory: DirectoryHandle,
    key: SigningKey,
}

/// What a file of the store is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRecord {
    /// A call that was judged here and that a client executes.
    Entrusted,
    /// A command that a client was told to run here.
    Command,
    /// The directory of a client's shell.
    Directory,
}

impl HookRecord {
    fn prefix(self) -> &'static str {
        match self {
            Self::Entrusted => "entrusted-",
            Self::Command => "command-",
            Self::Directory => "directory-",
        }
    }
}

impl HookStore {
    pub(crate) fn new(directory: DirectoryHandle, key: SigningKey) -> Self {
        Self { directory, key }
    }

    /// Keeps a record under an id, in place of what was there.
    pub fn put(&self, kind: HookRecord, id: &str, record: &impl Serialize) -> Result<(), JournalError> {
        let name = file_name(kind, id);
        let bytes = serde_json::to_vec(record).map_err(JournalError::Encode)?;
        // It matters until the next event only; after a power failure there is none.
        self.directory.put(&name, &self.key.seal(&purpose(&name), &bytes), Durability::Os)
    }

    /// The record of this id; none if there is none that is signed.
    pub fn read<T: DeserializeOwned>(&self, kind: HookRecord, id: &str) -> Result<Option<T>, JournalError> {
        self.read_file(&file_name(kind, id))
    }

    /// Removes a record. Of several who try, one is told that it was there.
    pub fn remove(&self, kind: HookRecord, id: &str) -> Result<bool, JournalError> {
        let name = file_name(kind, id);
        match rustix::fs::unlinkat(self.directory.fd(), &name, rustix::fs::AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(error) => Err(self.directory.error("couldn't be removed", &name, error.into())),
        }
    }

    /// Every signed record of a kind, in the order of their file names.
    pub fn all<T: DeserializeOwned>(&self, kind: HookRecord) -> Result<Vec<T>, JournalError> {
        let mut names = self.directory.names()?;
        names.retain(|name| name.starts_with(kind.prefix()));
        names.sort();
        let read = names.iter().map(|name| self.read_file(name));
        read.filter_map(Result::transpose).collect()
    }

    fn read_file<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, JournalError> {
        let Some(file) = self.directory.existing(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.directory.error("couldn't be read", name, error))?;
        let content = self.key.unseal(&purpose(name), &bytes);
        Ok(content.and_then(|content| serde_json::from_slice(content).ok()))
    }
}

fn file_name(kind: HookRecord, id: &str) -> String {
    format!("{}{}", kind.prefix(), call_name(id))
}

/// What a signature is for: the file's name too, so that one record can't stand in for another.
fn purpose(name: &str) -> String {
    format!("hook record {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_what_was_signed_under_its_name_and_is_removed_once() {
        let directory = tempfile::tempdir().unwrap();
        let store =
            |key: u8| HookStore::new(DirectoryHandle::at(directory.path()).unwrap(), SigningKey::from([key; 32]));
        store(1).put(HookRecord::Command, "call_a", &"ls").unwrap();
        assert_eq!(store(1).read::<String>(HookRecord::Command, "call_a").unwrap().as_deref(), Some("ls"));
        assert_eq!(store(1).read::<String>(HookRecord::Entrusted, "call_a").unwrap(), None);
        assert_eq!(store(2).read::<String>(HookRecord::Command, "call_a").unwrap(), None, "another key signed it");
        let path = |name: &str| directory.path().join(name);
        std::fs::copy(path("command-call_a"), path("command-call_b")).unwrap();
        assert_eq!(store(1).all::<String>(HookRecord::Command).unwrap(), ["ls"], "a copy is signed for another name");
        assert!(store(1).remove(HookRecord::Command, "call_a").unwrap());
        assert!(!store(1).remove(HookRecord::Command, "call_a").unwrap());
    }
}
