//! Tells the command of a snapshot, whichever process runs it, what other calls changed meanwhile, so that nobody counts
//! those changes as the command's. Each change is a signed file in the directory `others` of the snapshot, written under the
//! change lock before the change is complete. The command's process reads and removes it; after a kill, recovery does.

use std::io::Read;

use serde::{Deserialize, Serialize};
use toolgate_contract::{Change, Durability};
use uuid::Uuid;

use crate::directory::DirectoryHandle;
use crate::hex::Hash;
use crate::{JournalError, SigningKey};

const OTHERS: &str = "others";

/// What another call changed while a command ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeNotice {
    /// Identifies the change.
    pub id: String,
    /// Each path's before and after.
    pub changes: Vec<Change>,
    /// How it is known.
    pub kind: NoticeKind,
}

/// How a change is known that a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A call made it this moment.
    Made,
    /// Another command made it in place, and it was found some time later: a snapshot that was taken in between has it
    /// already.
    Found,
    /// The change with this id was reverted: it doesn't count.
    Reverted,
}

/// Adds a notice to a snapshot. The caller holds the change lock.
pub(super) fn add(directory: &DirectoryHandle, key: &SigningKey, notice: &ChangeNotice) -> Result<(), JournalError> {
    let others = directory.make(OTHERS)?;
    let last = names(&others)?.iter().filter_map(|name| name.split('-').next()?.parse::<u64>().ok()).max();
    // The number gives the order, the id makes the name unique: a notice that was read is removed, its number is used again.
    let name = format!("{:016}-{}", last.map_or(0, |last| last + 1), Uuid::now_v7().simple());
    let content = serde_json::to_vec(notice).map_err(JournalError::Encode)?;
    let signature = key.sign(&signed_bytes(&identity(directory)?, &name, &content));
    others.put(&name, &[signature.as_slice(), &content].concat(), Durability::Os)
}

/// The notices of a snapshot by name, in order. Those without a valid signature are ignored.
pub(super) fn read(
    directory: &DirectoryHandle,
    key: Option<&SigningKey>,
) -> Result<Vec<(String, ChangeNotice)>, JournalError> {
    let Some((others, key)) = open(directory)?.zip(key) else { return Ok(Vec::new()) };
    let (identity, mut notices) = (identity(directory)?, Vec::new());
    for name in names(&others)? {
        let Some(mut file) = others.existing(&name)? else { continue };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| others.error("couldn't be read", &name, error))?;
        let Some((signature, content)) = bytes.split_first_chunk::<{ size_of::<Hash>() }>() else { continue };
        if key.verifies(&signed_bytes(&identity, &name, content), signature) {
            notices.extend(serde_json::from_slice(content).ok().map(|notice| (name, notice)));
        }
    }
    Ok(notices)
}

/// Removes a notice that was read.
pub(super) fn remove(directory: &DirectoryHandle, name: &str) -> Result<(), JournalError> {
    open(directory)?.map_or(Ok(()), |others| others.remove(name))
}

/// Removes all notices.
pub(super) fn clear(directory: &DirectoryHandle) {
    // What stays has no valid signature for another snapshot, or is about a change that the command's record already covers.
    let _ = std::fs::remove_dir_all(directory.path().join(OTHERS));
}

fn open(directory: &DirectoryHandle) -> Result<Option<DirectoryHandle>, JournalError> {
    match directory.open(OTHERS) {
        Ok(others) => Ok(Some(others)),
        Err(JournalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn names(others: &DirectoryHandle) -> Result<Vec<String>, JournalError> {
    let mut names = others.names()?;
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    Ok(names)
}

/// Device and inode of a snapshot's directory.
pub(super) fn identity(directory: &DirectoryHandle) -> Result<String, JournalError> {
    let facts = rustix::fs::fstat(directory.fd()).map_err(|errno| directory.error("is gone", ".", errno.into()))?;
    Ok(format!("{}:{}", facts.st_dev, facts.st_ino))
}

fn signed_bytes<'a>(identity: &'a str, name: &'a str, content: &'a [u8]) -> [&'a [u8]; 6] {
    [b"change notice: ", identity.as_bytes(), b" ", name.as_bytes(), b" ", content]
}
