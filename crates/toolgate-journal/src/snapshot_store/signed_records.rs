//! The records of a snapshot in one file. Each is signed together with the identity of its directory and its position, so
//! that none can be copied from elsewhere.

use std::io::Read;

use rustix::fs::OFlags;
use toolgate_contract::Durability;

use super::change_notice;
use crate::directory::{DirectoryHandle, append_once};
use crate::hex::Hash;
use crate::{JournalError, SigningKey};

const NAME: &str = "list";

/// The records of one snapshot.
pub(super) struct SignedRecords {
    key: Option<SigningKey>,
    /// Device and inode of its directory.
    identity: String,
    /// How many there are, which is the position of the next.
    count: u64,
}

impl SignedRecords {
    pub(super) fn of(directory: &DirectoryHandle, key: Option<SigningKey>) -> Result<Self, JournalError> {
        Ok(Self { key, identity: change_notice::identity(directory)?, count: 0 })
    }

    /// The key that signs records.
    pub(super) fn key(&self) -> Option<&SigningKey> {
        self.key.as_ref()
    }

    /// Replaces all records by this one.
    pub(super) fn write(&mut self, directory: &DirectoryHandle, record: &[u8]) -> Result<(), JournalError> {
        self.count = 0;
        let signed = self.sign(record);
        directory.put(NAME, &signed, Durability::Os)
    }

    /// Adds a record.
    pub(super) fn append(&mut self, directory: &DirectoryHandle, record: &[u8]) -> Result<(), JournalError> {
        let signed = self.sign(record);
        let file = directory.file(NAME, OFlags::WRONLY | OFlags::APPEND)?;
        let size = file.metadata().map(|facts| facts.len());
        size.and_then(|size| append_once(&file, &signed, size))
            .map_err(|error| directory.error("couldn't be written", NAME, error))
    }

    /// Reads the records; none unless there is one and every one has a valid signature.
    pub(super) fn read(&mut self, directory: &DirectoryHandle) -> Result<Option<Vec<Vec<u8>>>, JournalError> {
        let Some(mut file) = directory.existing(NAME)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| directory.error("couldn't be read", NAME, error))?;
        self.count = 0;
        let mut rest = bytes.as_slice();
        let records = self.verify_all(&mut rest);
        if records.is_some() && !rest.is_empty() {
            // A process was killed while appending this record; the next record must not join it.
            let complete = (bytes.len() - rest.len()) as u64;
            let cut = directory.file(NAME, OFlags::WRONLY)?.set_len(complete);
            cut.map_err(|error| directory.error("couldn't be recovered", NAME, error))?;
        }
        Ok(records)
    }

    /// Verifies the records; a partial record at the end is left over in `rest`.
    fn verify_all(&mut self, rest: &mut &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut records = Vec::new();
        while let Some(signed) = take_signed(rest) {
            records.push(self.verified(signed)?.to_vec());
        }
        (!records.is_empty()).then_some(records)
    }

    /// A record with its length and signature.
    fn sign(&mut self, record: &[u8]) -> Vec<u8> {
        let number = self.count.to_be_bytes();
        let signature = self.key.as_ref().map_or([0; 32], |key| key.sign(&self.signed_bytes(&number, record)));
        self.count += 1;
        [&(record.len() as u64).to_be_bytes(), signature.as_slice(), record].concat()
    }

    /// The content of the next record, if its signature is valid.
    fn verified<'a>(&mut self, signed: &'a [u8]) -> Option<&'a [u8]> {
        let (signature, content) = signed.split_first_chunk()?;
        let number = self.count.to_be_bytes();
        let is_valid = self.key.as_ref()?.verifies(&self.signed_bytes(&number, content), signature);
        self.count += 1;
        is_valid.then_some(content)
    }

    fn signed_bytes<'a>(&'a self, number: &'a [u8; 8], content: &'a [u8]) -> [&'a [u8]; 5] {
        [b"snapshot: ", self.identity.as_bytes(), b" ", number, content]
    }
}

/// The signature and the content of the next record, if it is complete.
fn take_signed<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_be_bytes(*length)).ok()?.checked_add(size_of::<Hash>())?;
    let (signed, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(signed)
}
