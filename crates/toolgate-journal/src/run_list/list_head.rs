//! The head of a list of runs: how many entries it had, and the hash of the last. It is kept outside of the workspace,
//! in the user's state directory, where whoever tampers with a workspace can't reach it.
//!
//! The file is found by the identity of the workspace's directory (inode and time of birth), so that a workspace that
//! was moved keeps its head, and another directory at the same path has none.

use std::fs::DirBuilder;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_contract::Durability;

use super::entry::hash_text;
use crate::directory::DirectoryHandle;
use crate::hex::{self, Hash};
use crate::workspace_identity::workspace_key;
use crate::{JournalError, SigningKey};

/// The largest head that is read.
const MOST_BYTES: u64 = 64 * 1024;

/// The end of a list, as last written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ListHead {
    /// The workspace's path, for people who look at the file.
    pub(super) workspace: String,
    /// The id of the list.
    pub(super) list: String,
    /// How many entries it has.
    pub(super) entries: u64,
    /// Hash of the last one.
    #[serde(with = "hash_text")]
    pub(super) hash: Hash,
    /// The time of the last one.
    pub(super) time: Timestamp,
}

/// A head with its signature.
#[derive(Serialize, Deserialize)]
struct SignedHead {
    #[serde(flatten)]
    head: ListHead,
    #[serde(with = "hash_text")]
    seal: Hash,
}

/// Where the head of one workspace's list is kept.
pub(super) struct HeadDirectory {
    directory: PathBuf,
    name: String,
    key: SigningKey,
}

impl HeadDirectory {
    /// The head of the workspace that has this state directory.
    pub(super) fn of(directory: &Path, key: &SigningKey, state: &DirectoryHandle) -> Result<Self, JournalError> {
        let name = format!("{}.json", workspace_key(state)?);
        Ok(Self { directory: directory.to_owned(), name, key: key.clone() })
    }

    /// The head; none if there is none with a valid signature.
    pub(super) fn read(&self) -> Option<ListHead> {
        let file = DirectoryHandle::at(&self.directory).ok()?.existing(&self.name).ok()??;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        let SignedHead { head, seal } = serde_json::from_slice(&bytes).ok()?;
        self.key.verifies(&[&self.signed_bytes(&head)], &seal).then_some(head)
    }

    /// Replaces the head.
    pub(super) fn write(&self, head: &ListHead, durability: Durability) -> Result<(), JournalError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(JournalError::io(format!("`{}` couldn't be created", self.directory.display())))?;
        let signed = SignedHead { head: head.clone(), seal: self.key.sign(&[&self.signed_bytes(head)]) };
        let bytes = serde_json::to_vec(&signed).map_err(JournalError::Encode)?;
        DirectoryHandle::at(&self.directory)?.put(&self.name, &bytes, durability)
    }

    fn signed_bytes(&self, head: &ListHead) -> Vec<u8> {
        let ListHead { workspace, list, entries, hash, time } = head;
        let text = serde_json::json!(["head of a list", self.name, workspace, list, entries, hex::string(hash), time]);
        text.to_string().into_bytes()
    }
}
