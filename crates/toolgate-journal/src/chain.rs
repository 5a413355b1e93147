//! The chain of a journal: every line carries its number and the hash of the line before, and the last line of an
//! append a seal, if there is a key. One walk over the lines serves opening, catching up with other processes, and
//! verifying; it stops at the first line that doesn't fit and says why.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;

use serde::{Serialize, de::IgnoredAny};
use sha2::{Digest, Sha256};

use crate::JournalFault;
use crate::head::Head;
use crate::hex::{self, Hash};
use crate::signing_key::LineSigner;

const OPENING: &[u8] = b"{\"seq\":";
const PREVIOUS: &[u8] = b",\"prev\":\"";
const SEAL: &[u8] = b"\",\"seal\":\"";
const CLOSING: &[u8] = b"\"}";

/// Where a journal ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tip {
    /// Number of the last line.
    pub(crate) seq: u64,
    /// Its hash.
    pub(crate) hash: Hash,
    /// Size of the file up to here.
    pub(crate) size: u64,
}

impl Tip {
    /// Where an empty journal ends.
    pub(crate) const START: Self = Self { seq: 0, hash: [0; 32], size: 0 };

    /// Adds the line for `event` to `buffer`, sealed or not, and says where the journal ends after it.
    pub(crate) fn encode(
        &self,
        event: &impl Serialize,
        seal: Option<LineSigner<'_>>,
        buffer: &mut Vec<u8>,
    ) -> serde_json::Result<Self> {
        let (start, seq) = (buffer.len(), self.seq + 1);
        let _ = write!(buffer, "{{\"seq\":{seq}");
        // The event brings braces of its own: the opening one becomes the comma after the number.
        let body = buffer.len();
        serde_json::to_writer(&mut *buffer, event)?;
        buffer[body] = b',';
        buffer.pop();
        buffer.extend_from_slice(PREVIOUS);
        buffer.extend_from_slice(&hex::encode(&self.hash));
        let mut hasher = Sha256::new_with_prefix(&buffer[start..]);
        let unsealed = buffer.len();
        if let Some(seal) = seal {
            let hash = hasher.clone().finalize().into();
            buffer.extend_from_slice(SEAL);
            buffer.extend_from_slice(&hex::encode(&seal.of(seq, &hash)));
        }
        buffer.extend_from_slice(CLOSING);
        hasher.update(&buffer[unsealed..]);
        let hash = hasher.finalize().into();
        buffer.push(b'\n');
        Ok(Self { seq, hash, size: self.size + (buffer.len() - start) as u64 })
    }
}

/// What the line with this number begins with.
pub(crate) fn opening(seq: u64) -> Vec<u8> {
    [OPENING, seq.to_string().as_bytes(), b","].concat()
}

/// What ties a line to its neighbours.
struct ChainLink {
    seq: u64,
    prev: Hash,
    /// Its seal, and how much of the line that vouches for.
    seal: Option<(Hash, usize)>,
}

impl ChainLink {
    /// Reads the link out of a line; none if it isn't a line of a journal.
    fn read(line: &[u8]) -> Option<Self> {
        let rest = line.strip_prefix(OPENING)?;
        let digits = rest.iter().position(|&byte| byte == b',')?;
        let seq = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        let mut text = line.strip_suffix(CLOSING)?;
        let mut seal = None;
        if let Some((before, hash)) = split_hash(text, SEAL) {
            (text, seal) = (before, Some((hash, before.len())));
        }
        let (_, prev) = split_hash(text, PREVIOUS)?;
        serde_json::from_slice::<IgnoredAny>(line).ok()?;
        Some(Self { seq, prev, seal })
    }
}

/// Splits a text that ends in a named hash.
fn split_hash<'a>(text: &'a [u8], name: &[u8]) -> Option<(&'a [u8], Hash)> {
    let (rest, hash) = text.split_at_checked(text.len().checked_sub(hex::LENGTH)?)?;
    Some((rest.strip_suffix(name)?, hex::decode(hash)?))
}

/// A line as the walk sees it.
struct ChainLine {
    /// None when it isn't whole or isn't a line of a journal.
    link: Option<ChainLink>,
    hash: Hash,
    /// Its seal with the hash of the text before.
    seal: Option<(Hash, Hash)>,
    size: u64,
}

impl ChainLine {
    /// A line without its end, which is there or not.
    fn new(text: &[u8], whole: bool, size: u64) -> Self {
        let link = if whole { ChainLink::read(text) } else { None };
        let (mut hasher, mut hashed, mut seal) = (Sha256::new(), 0, None);
        if let Some((of, length)) = link.as_ref().and_then(|link| link.seal) {
            hasher.update(&text[..length]);
            (hashed, seal) = (length, Some((of, hasher.clone().finalize().into())));
        }
        hasher.update(&text[hashed..]);
        Self { link, hash: hasher.finalize().into(), seal, size }
    }
}

fn next_line(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<Option<ChainLine>> {
    buffer.clear();
    let size = input.read_until(b'\n', buffer)? as u64;
    if size == 0 {
        return Ok(None);
    }
    let whole = buffer.pop_if(|last| *last == b'\n').is_some();
    Ok(Some(ChainLine::new(buffer, whole, size)))
}

/// The outcome of a walk.
pub(crate) struct ChainCheck {
    /// The last line that fits.
    pub(crate) tip: Tip,
    /// The last line of those that the head knows, or that came in the one append it was never told of. Without a key
    /// nobody can tell, and it is the last line that fits.
    pub(crate) vouched: Tip,
    /// What is wrong after the last line that fits.
    pub(crate) fault: Option<JournalFault>,
}

/// Follows the chain from `start` to the end of `input`, and holds the end against the head if there is one to trust.
pub(crate) fn walk(
    mut input: impl BufRead,
    start: Tip,
    head: Option<&Head>,
    seal: Option<LineSigner<'_>>,
) -> io::Result<ChainCheck> {
    let mut buffer = Vec::new();
    let (mut tip, mut vouched, mut before) = (start, start, None);
    let known = head.map_or(u64::MAX, |head| head.seq);
    let mut line = next_line(&mut input, &mut buffer)?;
    while let Some(this) = line {
        let next = next_line(&mut input, &mut buffer)?;
        let number = tip.seq + 1;
        let Some(link) = &this.link else {
            let followed = follows(next.as_ref(), &mut input, &mut buffer)?;
            let fault =
                if followed { JournalFault::Unreadable { line: number } } else { JournalFault::Torn { line: number } };
            return Ok(ChainCheck { tip, vouched, fault: Some(fault) });
        };
        if link.seq != number || link.prev != tip.hash {
            let fault =
                BrokenLink { number, before, tip: &tip, hash: this.hash, link, next: next.as_ref(), head }.name();
            return Ok(ChainCheck { tip, vouched, fault: Some(fault) });
        }
        if head.is_some_and(|head| head.seq == number && head.hash != this.hash) {
            return Ok(ChainCheck { tip, vouched, fault: Some(JournalFault::Changed { line: number }) });
        }
        before = Some(tip.hash);
        tip = Tip { seq: number, hash: this.hash, size: tip.size + this.size };
        let is_sealed = || this.seal.is_some_and(|(of, hash)| seal.is_some_and(|seal| seal.holds(number, &hash, &of)));
        if seal.is_none() || number <= known || vouched.seq <= known && is_sealed() {
            vouched = tip;
        }
        line = next;
    }
    let fault = match head {
        Some(head) if head.seq > tip.seq => Some(JournalFault::CutOff { line: tip.seq + 1, expected: head.seq }),
        Some(head) if head.seq < tip.seq && seal.is_none() => Some(JournalFault::AfterSeal { line: head.seq + 1 }),
        _ if vouched.seq < tip.seq => Some(JournalFault::AfterSeal { line: vouched.seq + 1 }),
        _ => None,
    };
    Ok(ChainCheck { tip, vouched, fault })
}

/// Whether a proper line comes after one that isn't.
fn follows(next: Option<&ChainLine>, input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<bool> {
    if next.is_some_and(|next| next.link.is_some()) {
        return Ok(true);
    }
    while let Some(line) = next_line(input, buffer)? {
        if line.link.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A line that doesn't fit behind the one before it, with its neighbourhood.
struct BrokenLink<'a> {
    /// Where the line stands.
    number: u64,
    /// Hash of the last line but one that fits, where it is known.
    before: Option<Hash>,
    /// The last line that fits.
    tip: &'a Tip,
    /// The line itself.
    hash: Hash,
    link: &'a ChainLink,
    next: Option<&'a ChainLine>,
    head: Option<&'a Head>,
}

impl BrokenLink<'_> {
    /// Finds out what was done. The one that can be believed is whichever its successor, or the head, vouches for.
    fn name(&self) -> JournalFault {
        let line = self.number;
        if self.successor_names(&self.tip.hash) {
            let swapped = self.next.is_some_and(|next| next.hash == self.link.prev) && self.link.seq == line + 1;
            return if swapped { JournalFault::Swapped { line } } else { JournalFault::Added { line } };
        }
        if self.link.seq == self.tip.seq && Some(self.link.prev) == self.before {
            return JournalFault::Added { line: line - 1 };
        }
        match self.successor_names(&self.hash) {
            true if self.link.seq > line => JournalFault::Dropped { line, through: self.link.seq - 1 },
            true if self.link.seq == line && line > 1 => JournalFault::Changed { line: line - 1 },
            _ => JournalFault::Changed { line },
        }
    }

    /// Whether what comes after this line was made to come after `hash`.
    fn successor_names(&self, hash: &Hash) -> bool {
        match self.next.and_then(|next| next.link.as_ref()) {
            Some(link) => link.prev == *hash,
            None => self.head.is_some_and(|head| head.hash == *hash),
        }
    }
}

/// A part of a file, read without moving the handle's own position.
pub(crate) struct FileRange<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl<'a> FileRange<'a> {
    /// The bytes from `at` to `end`.
    pub(crate) fn new(file: &'a File, at: u64, end: u64) -> BufReader<Self> {
        BufReader::with_capacity(64 * 1024, Self { file, at, end })
    }
}

impl Read for FileRange<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let count = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
