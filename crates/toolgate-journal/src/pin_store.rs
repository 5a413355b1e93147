//! What a person approved of strangers, such as the definitions of another server's tools. Each is one signed file of the user's
//! state directory, outside of all workspaces: neither a repository nor a confined command can make or change one.

use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::retry_on_intr;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolgate_contract::{Durability, sha256};

use crate::directory::DirectoryHandle;
use crate::{JournalError, SigningKey, hex};

/// A lock that is held.
pub struct PinLock {
    _file: File,
}

/// What was approved, by name.
pub struct PinStore {
    directory: PathBuf,
    key: SigningKey,
}

impl PinStore {
    /// The store in this directory, which is made if it doesn't exist.
    pub fn open(directory: &Path, key: SigningKey) -> Result<Self, JournalError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(JournalError::io(format!("`{}` couldn't be created", directory.display())))?;
        Ok(Self { directory: directory.to_owned(), key })
    }

    /// What was approved under this name; none if nothing was, or if the file isn't as it was signed.
    pub fn load<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, JournalError> {
        let (directory, file) = (DirectoryHandle::at(&self.directory)?, file_name(name));
        let Some(mut reader) = directory.existing(&file)? else { return Ok(None) };
        let mut text = String::new();
        reader.read_to_string(&mut text).map_err(|error| directory.error("couldn't be read", &file, error))?;
        let Ok(record) = serde_json::from_str::<Value>(&text) else { return Ok(None) };
        let (Some(pin), Some(seal)) = (record["pin"].as_str(), record["seal"].as_str()) else { return Ok(None) };
        let is_signed = hex::decode(seal.as_bytes()).is_some_and(|seal| self.key.verifies(&parts(name, pin), &seal));
        Ok(is_signed.then(|| serde_json::from_str(pin).ok()).flatten())
    }

    /// Waits until no other process holds the lock of this name. Held until it is dropped, or the process ends.
    pub fn lock(&self, name: &str) -> Result<PinLock, JournalError> {
        let (directory, file) = (DirectoryHandle::at(&self.directory)?, format!("{}.lock", &sha256(name)[..32]));
        let opened = directory.file(&file, OFlags::RDWR | OFlags::CREATE)?;
        retry_on_intr(|| rustix::fs::flock(&opened, FlockOperation::LockExclusive))
            .map_err(|errno| directory.error("couldn't be locked", &file, errno.into()))?;
        Ok(PinLock { _file: opened })
    }

    /// Removes what was approved under a name.
    pub fn remove(&self, name: &str) -> Result<(), JournalError> {
        let file = self.directory.join(file_name(name));
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(JournalError::io(format!("`{}` couldn't be removed", file.display()))(error))
            }
            _ => Ok(()),
        }
    }

    /// Approves this under a name, in place of what was approved before.
    pub fn put(&self, name: &str, pin: &impl Serialize) -> Result<(), JournalError> {
        let pin =
            serde_json::to_string(pin).map_err(|fault| JournalError::io("a pin couldn't be written")(fault.into()))?;
        let seal = hex::string(&self.key.sign(&parts(name, &pin)));
        let record = json!({ "name": name, "pin": pin, "seal": seal }).to_string();
        DirectoryHandle::at(&self.directory)?.put(&file_name(name), record.as_bytes(), Durability::Sync)
    }
}

/// What a seal is about: the name too, so that one pin can't stand in for another.
fn parts<'a>(name: &'a str, pin: &'a str) -> [&'a [u8]; 4] {
    [b"pin ", name.as_bytes(), b"\0", pin.as_bytes()]
}

fn file_name(name: &str) -> String {
    format!("{}.json", &sha256(name)[..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_what_was_signed_under_its_name_or_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let store = |key: u8| PinStore::open(directory.path(), SigningKey::from([key; 32])).unwrap();
        assert_eq!(store(1).load::<Vec<u8>>("a").unwrap(), None);
        store(1).put("a", &vec![1, 2]).unwrap();
        store(1).put("b", &vec![3]).unwrap();
        assert_eq!(store(1).load::<Vec<u8>>("a").unwrap(), Some(vec![1, 2]));
        assert_eq!(store(2).load::<Vec<u8>>("a").unwrap(), None, "another key signed it");
        let file = |name: &str| directory.path().join(file_name(name));
        std::fs::copy(file("b"), file("a")).unwrap();
        assert_eq!(store(1).load::<Vec<u8>>("a").unwrap(), None, "it was signed under another name");
        let forged = std::fs::read_to_string(file("b")).unwrap().replace("[3]", "[4]");
        std::fs::write(file("b"), forged).unwrap();
        assert_eq!(store(1).load::<Vec<u8>>("b").unwrap(), None);
    }
}
