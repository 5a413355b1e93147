//! The manifest of a snapshot on disk: one record with every path, then one for each later update of some paths. Each
//! record is signed together with the identity of its directory, so that none can be copied from elsewhere. It is
//! written and read for every command, so it is binary: parsing text would take longer than scanning the files
//! themselves.

use std::collections::BTreeMap;
use std::io::Read;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Durability, WorkspacePath};

use super::SnapshotScope;
use super::entry::SnapshotEntry;
use super::filesystem_time::ClockEpoch;
use crate::directory::{DirectoryHandle, append_once};
use crate::hex::Hash;
use crate::{JournalError, SigningKey};

const NAME: &str = "list";

/// The contents of a manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct ManifestContents {
    pub(super) scope: SnapshotScope,
    pub(super) epoch: Option<ClockEpoch>,
    pub(super) places: Vec<(WorkspacePath, SnapshotEntry)>,
}

/// The manifest of one snapshot.
pub(super) struct SnapshotManifest {
    key: Option<SigningKey>,
    /// Device and inode of its directory.
    identity: String,
    entries: u64,
}

impl SnapshotManifest {
    pub(super) fn of(directory: &DirectoryHandle, key: Option<SigningKey>) -> Result<Self, JournalError> {
        let facts = rustix::fs::fstat(directory.fd()).map_err(|errno| directory.error("is gone", ".", errno.into()))?;
        Ok(Self { key, identity: format!("{}:{}", facts.st_dev, facts.st_ino), entries: 0 })
    }

    /// Whether records are signed.
    pub(super) fn is_signed(&self) -> bool {
        self.key.is_some()
    }

    /// Writes the complete manifest.
    pub(super) fn write(
        &mut self,
        directory: &DirectoryHandle,
        contents: &ManifestContents,
    ) -> Result<(), JournalError> {
        self.entries = 0;
        let entry = self.entry(contents)?;
        directory.put(NAME, &entry, Durability::Os)
    }

    /// Appends the current state of some paths; none for a path where nothing exists any more.
    pub(super) fn add(
        &mut self,
        directory: &DirectoryHandle,
        updates: &[(&WorkspacePath, Option<&SnapshotEntry>)],
    ) -> Result<(), JournalError> {
        let entry = self.entry(&updates)?;
        let file = directory.file(NAME, OFlags::WRONLY | OFlags::APPEND)?;
        let size = file.metadata().map(|facts| facts.len());
        size.and_then(|size| append_once(&file, &entry, size))
            .map_err(|error| directory.error("couldn't be written", NAME, error))
    }

    /// Reads the manifest; none unless every record has a valid signature.
    pub(super) fn read(&mut self, directory: &DirectoryHandle) -> Result<Option<ManifestContents>, JournalError> {
        let Some(mut file) = directory.existing(NAME)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| directory.error("couldn't be read", NAME, error))?;
        self.entries = 0;
        let mut rest = bytes.as_slice();
        let contents = self.parse_entries(&mut rest);
        if contents.is_some() && !rest.is_empty() {
            // A process was killed while appending this record; the next record must not join it.
            let complete = (bytes.len() - rest.len()) as u64;
            let cut = directory.file(NAME, OFlags::WRONLY)?.set_len(complete);
            cut.map_err(|error| directory.error("couldn't be recovered", NAME, error))?;
        }
        Ok(contents)
    }

    /// Parses the records; a partial record at the end is left over in `rest`.
    fn parse_entries(&mut self, rest: &mut &[u8]) -> Option<ManifestContents> {
        let mut contents: ManifestContents = postcard::from_bytes(self.verified(take_entry(rest)?)?).ok()?;
        let mut places: BTreeMap<WorkspacePath, SnapshotEntry> = contents.places.into_iter().collect();
        while let Some(entry) = take_entry(rest) {
            let updates: Vec<(WorkspacePath, Option<SnapshotEntry>)> =
                postcard::from_bytes(self.verified(entry)?).ok()?;
            for (place, was) in updates {
                match was {
                    Some(was) => drop(places.insert(place, was)),
                    None => drop(places.remove(&place)),
                }
            }
        }
        contents.places = places.into_iter().collect();
        Some(contents)
    }

    fn entry(&mut self, content: &impl Serialize) -> Result<Vec<u8>, JournalError> {
        let content = postcard::to_allocvec(content).map_err(|error| {
            JournalError::io("The manifest of a snapshot can't be written")(std::io::Error::other(error))
        })?;
        let number = self.entries.to_be_bytes();
        let signature = self.key.as_ref().map_or([0; 32], |key| key.sign(&self.signed_bytes(&number, &content)));
        self.entries += 1;
        Ok([&(content.len() as u64).to_be_bytes(), signature.as_slice(), &content].concat())
    }

    /// The content of the next record, if its signature is valid.
    fn verified<'a>(&mut self, entry: &'a [u8]) -> Option<&'a [u8]> {
        let (signature, content) = entry.split_first_chunk()?;
        let number = self.entries.to_be_bytes();
        let is_valid = self.key.as_ref()?.verifies(&self.signed_bytes(&number, content), signature);
        self.entries += 1;
        is_valid.then_some(content)
    }

    fn signed_bytes<'a>(&'a self, number: &'a [u8; 8], content: &'a [u8]) -> [&'a [u8]; 5] {
        [b"snapshot: ", self.identity.as_bytes(), b" ", number, content]
    }
}

/// The signature and the content of the next record, if it is complete.
fn take_entry<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_be_bytes(*length)).ok()?.checked_add(size_of::<Hash>())?;
    let (entry, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(entry)
}
