//! Finds the end of a list without reading the rest: only its last line counts, which is signed and has the hash of the
//! line before.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::entry::RunListLine;
use crate::JournalError;
use crate::chain::{LastLine, Tip, hash_of, nth_line};
use crate::directory::DirectoryHandle;
use crate::hex::Hash;
use crate::signing_key::LineSigner;

/// How many bytes at the end are read first.
const CHUNK: u64 = 4096;

/// The end of a list.
pub(super) enum ListEnd {
    /// There is no list, or only the beginning of its first line.
    Missing,
    /// The last complete line is one that we wrote.
    Intact {
        tip: Tip,
        /// Hash of the line before.
        before: Hash,
        line: Box<RunListLine>,
    },
    /// The last line isn't one that we wrote.
    Changed,
}

impl ListEnd {
    pub(super) fn read(
        lists: &DirectoryHandle,
        name: &str,
        signer: Option<LineSigner<'_>>,
    ) -> Result<Self, JournalError> {
        let Some(file) = lists.existing(name)? else { return Ok(Self::Missing) };
        let last = last_line(&file).map_err(|error| lists.error("couldn't be read", name, error))?;
        let Some((text, size)) = last else { return Ok(Self::Missing) };
        let line: Option<RunListLine> = serde_json::from_slice(&text).ok();
        Ok(match (LastLine::read(&text, signer), line) {
            (Some(LastLine { seq, hash, prev }), Some(line)) => {
                Self::Intact { tip: Tip { seq, hash, size }, before: prev, line: Box::new(line) }
            }
            _ => Self::Changed,
        })
    }
}

/// The last complete line, without its newline, and where it ends.
fn last_line(file: &File) -> io::Result<Option<(Vec<u8>, u64)>> {
    let size = file.metadata()?.len();
    let mut length = CHUNK;
    loop {
        let start = size.saturating_sub(length);
        let mut bytes = vec![0; (size - start) as usize];
        file.read_exact_at(&mut bytes, start)?;
        let newlines: Vec<usize> =
            bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).take(2).collect();
        match newlines[..] {
            [end, before] => return Ok(Some((bytes[before + 1..end].to_vec(), start + end as u64 + 1))),
            [end] if start == 0 => return Ok(Some((bytes[..end].to_vec(), end as u64 + 1))),
            [] if start == 0 => return Ok(None),
            _ => length *= 4,
        }
    }
}

/// Whether the line with this number has this hash.
pub(super) fn has_line(lists: &DirectoryHandle, name: &str, number: u64, hash: &Hash) -> Result<bool, JournalError> {
    let Some(file) = lists.existing(name)? else { return Ok(false) };
    let found = nth_line(file, number).map_err(|error| lists.error("couldn't be read", name, error))?;
    Ok(number == 0 || found.is_some_and(|text| hash_of(&text) == *hash))
}
