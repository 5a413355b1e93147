//! The head of a journal: a small file next to it, of fixed size and overwritten in place, with the number and hash of
//! the last line, and a signature over both. Without it, missing lines at the end couldn't be detected.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use serde::Deserialize;

use crate::chain::Tip;
use crate::directory::DirectoryHandle;
use crate::hex::{self, Hash};
use crate::{JournalError, JournalFault, SigningKey};

/// The size of the file: less than a disk sector, so that it is written completely or not at all.
pub(crate) const SIZE: usize = 256;

/// The file's name.
pub(crate) const NAME: &str = "events.head";

/// The end of a journal as last recorded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Head {
    /// Number of the last line.
    pub(crate) seq: u64,
    /// Its hash.
    pub(crate) hash: Hash,
    /// A signature over run, number and hash.
    pub(crate) signature: Option<Hash>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadJson {
    seq: u64,
    hash: String,
    #[serde(rename = "seal")]
    signature: Option<String>,
}

impl Head {
    /// The head of a journal that ends at `tip`. Of the signed parts only the run's id varies in length, and it comes
    /// first, so no two heads have the same signature.
    pub(crate) fn new(run: &str, tip: &Tip, key: Option<&SigningKey>) -> Self {
        let signature = key.map(|key| key.sign(&[run.as_bytes(), &tip.seq.to_be_bytes(), &tip.hash]));
        Self { seq: tip.seq, hash: tip.hash, signature }
    }

    /// One line of JSON, padded with spaces.
    pub(crate) fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [b' '; SIZE];
        bytes[SIZE - 1] = b'\n';
        let mut rest = &mut bytes[..];
        let mut put = |part: &[u8]| rest.write_all(part).expect("a head is shorter than its file");
        put(b"{\"seq\":");
        put(self.seq.to_string().as_bytes());
        put(b",\"hash\":\"");
        put(&hex::encode(&self.hash));
        if let Some(signature) = &self.signature {
            put(b"\",\"seal\":\"");
            put(&hex::encode(signature));
        }
        put(b"\"}");
        bytes
    }

    /// Reads a head, and accepts only the exact bytes that [`Head::encode`] would write.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let wire: HeadJson = serde_json::from_slice(bytes).ok()?;
        let signature = match wire.signature {
            Some(text) => Some(hex::decode(text.as_bytes())?),
            None => None,
        };
        let head = Self { seq: wire.seq, hash: hex::decode(wire.hash.as_bytes())?, signature };
        (head.encode().as_slice() == bytes).then_some(head)
    }

    /// Overwrites the file in place.
    pub(crate) fn write(&self, file: &File) -> io::Result<()> {
        file.write_all_at(&self.encode(), 0)
    }

    /// The head in a run's directory.
    pub(crate) fn find(directory: &DirectoryHandle) -> Result<Result<Self, JournalFault>, JournalError> {
        match directory.existing(NAME)? {
            Some(file) => Self::read(&file).map_err(|error| directory.error("couldn't be read", NAME, error)),
            None => Ok(Err(JournalFault::HeadMissing)),
        }
    }

    /// Reads the file.
    pub(crate) fn read(file: &File) -> io::Result<Result<Self, JournalFault>> {
        let mut bytes = vec![0; SIZE + 1];
        let mut length = 0;
        while length < bytes.len() {
            match file.read_at(&mut bytes[length..], length as u64)? {
                0 => break,
                count => length += count,
            }
        }
        Ok(Self::decode(&bytes[..length]).ok_or(JournalFault::HeadUnreadable))
    }

    /// Checks the signature.
    pub(crate) fn check(&self, run: &str, key: &SigningKey) -> Result<(), JournalFault> {
        match &self.signature {
            None => Err(JournalFault::SignatureMissing),
            Some(signature) if key.verifies(&[run.as_bytes(), &self.seq.to_be_bytes(), &self.hash], signature) => {
                Ok(())
            }
            Some(_) => Err(JournalFault::SignatureWrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_bytes_of_a_head_are_a_head() {
        let key = SigningKey::from([7; 32]);
        let tip = Tip { seq: u64::MAX, hash: [0xab; 32], size: 0 };
        for key in [Some(&key), None] {
            let head = Head::new("run", &tip, key);
            let bytes = head.encode();
            assert_eq!(Head::decode(&bytes), Some(head));
            assert_eq!(Head::decode(&bytes[..SIZE - 1]), None);
            assert_eq!(Head::decode(&[&bytes[..], b"\n"].concat()), None);
            let mut padded = bytes;
            padded[SIZE - 2] = b'\t';
            assert_eq!(Head::decode(&padded), None);
        }
    }
}
