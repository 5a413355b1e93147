//! The list of a snapshot on disk: one entry with everything, then one for every time that some places were taken anew. Each
//! is sealed together with the very directory that it lies in, so that none can be brought from elsewhere. It is written and
//! read at every command, so it is binary: as text it would take longer than to look at the files themselves.

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

/// What a list says.
#[derive(Serialize, Deserialize)]
pub(super) struct ManifestContents {
    pub(super) scope: SnapshotScope,
    pub(super) era: Option<ClockEpoch>,
    pub(super) places: Vec<(WorkspacePath, SnapshotEntry)>,
}

/// The list of one snapshot.
pub(super) struct SnapshotManifest {
    key: Option<SigningKey>,
    /// Which directory it lies in.
    identity: String,
    entries: u64,
}

impl SnapshotManifest {
    pub(super) fn of(directory: &DirectoryHandle, key: Option<SigningKey>) -> Result<Self, JournalError> {
        let facts = rustix::fs::fstat(directory.fd()).map_err(|errno| directory.error("is gone", ".", errno.into()))?;
        Ok(Self { key, identity: format!("{}:{}", facts.st_dev, facts.st_ino), entries: 0 })
    }

    /// Whether anybody could tell that it was written here.
    pub(super) fn is_sealed(&self) -> bool {
        self.key.is_some()
    }

    /// Writes everything down.
    pub(super) fn write(&mut self, directory: &DirectoryHandle, noted: &ManifestContents) -> Result<(), JournalError> {
        self.entries = 0;
        let entry = self.entry(noted)?;
        directory.put(NAME, &entry, Durability::Os)
    }

    /// Adds what some places are now; nothing where nothing is any more.
    pub(super) fn add(
        &mut self,
        directory: &DirectoryHandle,
        anew: &[(&WorkspacePath, Option<&SnapshotEntry>)],
    ) -> Result<(), JournalError> {
        let entry = self.entry(&anew)?;
        let file = directory.file(NAME, OFlags::WRONLY | OFlags::APPEND)?;
        let size = file.metadata().map(|facts| facts.len());
        size.and_then(|size| append_once(&file, &entry, size))
            .map_err(|error| directory.error("couldn't be written", NAME, error))
    }

    /// Reads it; none unless every entry was sealed here, with this key.
    pub(super) fn read(&mut self, directory: &DirectoryHandle) -> Result<Option<ManifestContents>, JournalError> {
        let Some(mut file) = directory.existing(NAME)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| directory.error("couldn't be read", NAME, error))?;
        self.entries = 0;
        let mut rest = bytes.as_slice();
        let noted = self.parse_entries(&mut rest);
        if noted.is_some() && !rest.is_empty() {
            // Whoever wrote this was killed before anything was done about it; what comes next must not join it.
            let whole = (bytes.len() - rest.len()) as u64;
            let cut = directory.file(NAME, OFlags::WRONLY)?.set_len(whole);
            cut.map_err(|error| directory.error("couldn't be mended", NAME, error))?;
        }
        Ok(noted)
    }

    /// What the entries say; half an entry at the end is left over.
    fn parse_entries(&mut self, rest: &mut &[u8]) -> Option<ManifestContents> {
        let mut noted: ManifestContents = postcard::from_bytes(self.unsealed(take_entry(rest)?)?).ok()?;
        let mut places: BTreeMap<WorkspacePath, SnapshotEntry> = noted.places.into_iter().collect();
        while let Some(entry) = take_entry(rest) {
            let anew: Vec<(WorkspacePath, Option<SnapshotEntry>)> = postcard::from_bytes(self.unsealed(entry)?).ok()?;
            for (place, was) in anew {
                match was {
                    Some(was) => drop(places.insert(place, was)),
                    None => drop(places.remove(&place)),
                }
            }
        }
        noted.places = places.into_iter().collect();
        Some(noted)
    }

    fn entry(&mut self, content: &impl Serialize) -> Result<Vec<u8>, JournalError> {
        let content = postcard::to_allocvec(content).map_err(|error| {
            JournalError::io("The list of a snapshot can't be written")(std::io::Error::other(error))
        })?;
        let number = self.entries.to_be_bytes();
        let seal = self.key.as_ref().map_or([0; 32], |key| key.seal(&self.sealed(&number, &content)));
        self.entries += 1;
        Ok([&(content.len() as u64).to_be_bytes(), seal.as_slice(), &content].concat())
    }

    /// What the next entry says, if it was sealed here.
    fn unsealed<'a>(&mut self, entry: &'a [u8]) -> Option<&'a [u8]> {
        let (seal, content) = entry.split_first_chunk()?;
        let number = self.entries.to_be_bytes();
        let holds = self.key.as_ref()?.holds(&self.sealed(&number, content), seal);
        self.entries += 1;
        holds.then_some(content)
    }

    fn sealed<'a>(&'a self, number: &'a [u8; 8], content: &'a [u8]) -> [&'a [u8]; 5] {
        [b"snapshot: ", self.identity.as_bytes(), b" ", number, content]
    }
}

/// The seal and the content of the next entry, if it is whole.
fn take_entry<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_be_bytes(*length)).ok()?.checked_add(size_of::<Hash>())?;
    let (entry, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(entry)
}
