//! The hash chain of a journal. Every line carries its number and the hash of the previous line. With a key, the last
//! line of each append also carries a signature. One walk over the lines serves opening, catching up with other
//! processes, and verifying; it stops at the first invalid line and says why.

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
const SIGNATURE: &[u8] = b"\",\"seal\":\"";
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

    /// Appends the line for `event` to `buffer`, with a signature if there is a signer. Returns where the journal ends
    /// after it.
    pub(crate) fn encode(
        &self,
        event: &impl Serialize,
        signer: Option<LineSigner<'_>>,
        buffer: &mut Vec<u8>,
    ) -> serde_json::Result<Self> {
        let (start, seq) = (buffer.len(), self.seq + 1);
        let _ = write!(buffer, "{{\"seq\":{seq}");
        // The event serializes with its own braces: the opening one is replaced by the comma after the number.
        let body = buffer.len();
        serde_json::to_writer(&mut *buffer, event)?;
        buffer[body] = b',';
        buffer.pop();
        buffer.extend_from_slice(PREVIOUS);
        buffer.extend_from_slice(&hex::encode(&self.hash));
        let mut hasher = Sha256::new_with_prefix(&buffer[start..]);
        let signed_length = buffer.len();
        if let Some(signer) = signer {
            let hash = hasher.clone().finalize().into();
            buffer.extend_from_slice(SIGNATURE);
            buffer.extend_from_slice(&hex::encode(&signer.of(seq, &hash)));
        }
        buffer.extend_from_slice(CLOSING);
        hasher.update(&buffer[signed_length..]);
        let hash = hasher.finalize().into();
        buffer.push(b'\n');
        Ok(Self { seq, hash, size: self.size + (buffer.len() - start) as u64 })
    }
}

/// The prefix of the line with this number.
pub(crate) fn opening(seq: u64) -> Vec<u8> {
    [OPENING, seq.to_string().as_bytes(), b","].concat()
}

/// The fields that link a line to its neighbours.
struct ChainLink {
    seq: u64,
    prev: Hash,
    /// The signature, and the length of the text that it covers.
    signature: Option<(Hash, usize)>,
}

impl ChainLink {
    /// Reads these fields from a line; none if it isn't a line of a journal.
    fn read(line: &[u8]) -> Option<Self> {
        let rest = line.strip_prefix(OPENING)?;
        let digits = rest.iter().position(|&byte| byte == b',')?;
        let seq = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        let mut text = line.strip_suffix(CLOSING)?;
        let mut signature = None;
        if let Some((before, hash)) = split_hash(text, SIGNATURE) {
            (text, signature) = (before, Some((hash, before.len())));
        }
        let (_, prev) = split_hash(text, PREVIOUS)?;
        serde_json::from_slice::<IgnoredAny>(line).ok()?;
        Some(Self { seq, prev, signature })
    }
}

/// Splits a text that ends in a named hash.
fn split_hash<'a>(text: &'a [u8], name: &[u8]) -> Option<(&'a [u8], Hash)> {
    let (rest, hash) = text.split_at_checked(text.len().checked_sub(hex::LENGTH)?)?;
    Some((rest.strip_suffix(name)?, hex::decode(hash)?))
}

/// A line as seen by [`walk`].
struct ChainLine {
    /// None when the line is incomplete or isn't a line of a journal.
    link: Option<ChainLink>,
    hash: Hash,
    /// The signature, and the hash of the text that it covers.
    signature: Option<(Hash, Hash)>,
    size: u64,
}

impl ChainLine {
    /// A line without its newline; `complete` says whether there was one.
    fn new(text: &[u8], complete: bool, size: u64) -> Self {
        let link = if complete { ChainLink::read(text) } else { None };
        let (mut hasher, mut hashed, mut signature) = (Sha256::new(), 0, None);
        if let Some((found, length)) = link.as_ref().and_then(|link| link.signature) {
            hasher.update(&text[..length]);
            (hashed, signature) = (length, Some((found, hasher.clone().finalize().into())));
        }
        hasher.update(&text[hashed..]);
        Self { link, hash: hasher.finalize().into(), signature, size }
    }
}

/// The last line of a file, where its beginning isn't read.
pub(crate) struct LastLine {
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
    /// Hash of the line before.
    pub(crate) prev: Hash,
}

impl LastLine {
    /// Reads a complete line without its newline; none unless it is a line of a chain, signed if there is a signer.
    pub(crate) fn read(text: &[u8], signer: Option<LineSigner<'_>>) -> Option<Self> {
        let ChainLine { link, hash, signature, .. } = ChainLine::new(text, true, 0);
        let ChainLink { seq, prev, .. } = link?;
        let is_signed = |signer: LineSigner<'_>| signature.is_some_and(|(found, of)| signer.verifies(seq, &of, &found));
        signer.is_none_or(is_signed).then_some(Self { seq, hash, prev })
    }
}

/// The hash that the next line has of this one, which comes without its newline.
pub(crate) fn hash_of(text: &[u8]) -> Hash {
    Sha256::digest(text).into()
}

/// The line with this number, counted from 1, without its newline.
pub(crate) fn nth_line(file: File, number: u64) -> io::Result<Option<Vec<u8>>> {
    let mut input = BufReader::with_capacity(64 * 1024, file);
    for _ in 1..number {
        input.skip_until(b'\n')?;
    }
    let mut text = Vec::new();
    input.read_until(b'\n', &mut text)?;
    Ok(text.pop_if(|last| *last == b'\n').map(|_| text))
}

fn next_line(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<Option<ChainLine>> {
    buffer.clear();
    let size = input.read_until(b'\n', buffer)? as u64;
    if size == 0 {
        return Ok(None);
    }
    let complete = buffer.pop_if(|last| *last == b'\n').is_some();
    Ok(Some(ChainLine::new(buffer, complete, size)))
}

/// The outcome of a [`walk`].
pub(crate) struct ChainCheck {
    /// The last valid line.
    pub(crate) tip: Tip,
    /// The last line that the head covers, or that belongs to the one append written after the head. Without a key this
    /// can't be told, and it is the last valid line.
    pub(crate) trusted: Tip,
    /// What is wrong after the last valid line.
    pub(crate) fault: Option<JournalFault>,
}

/// Follows the chain from `start` to the end of `input`, and compares the end with the head if there is a trusted one.
pub(crate) fn walk(
    mut input: impl BufRead,
    start: Tip,
    head: Option<&Head>,
    signer: Option<LineSigner<'_>>,
) -> io::Result<ChainCheck> {
    let mut buffer = Vec::new();
    let (mut tip, mut trusted, mut before) = (start, start, None);
    let known = head.map_or(u64::MAX, |head| head.seq);
    let mut line = next_line(&mut input, &mut buffer)?;
    while let Some(this) = line {
        let next = next_line(&mut input, &mut buffer)?;
        let number = tip.seq + 1;
        let Some(link) = &this.link else {
            let followed = follows(next.as_ref(), &mut input, &mut buffer)?;
            let fault =
                if followed { JournalFault::Unreadable { line: number } } else { JournalFault::Torn { line: number } };
            return Ok(ChainCheck { tip, trusted, fault: Some(fault) });
        };
        if link.seq != number || link.prev != tip.hash {
            let fault =
                BrokenLink { number, before, tip: &tip, hash: this.hash, link, next: next.as_ref(), head }.name();
            return Ok(ChainCheck { tip, trusted, fault: Some(fault) });
        }
        if head.is_some_and(|head| head.seq == number && head.hash != this.hash) {
            return Ok(ChainCheck { tip, trusted, fault: Some(JournalFault::Changed { line: number }) });
        }
        before = Some(tip.hash);
        tip = Tip { seq: number, hash: this.hash, size: tip.size + this.size };
        let is_signed = || {
            this.signature.is_some_and(|(signature, hash)| {
                signer.is_some_and(|signer| signer.verifies(number, &hash, &signature))
            })
        };
        if signer.is_none() || number <= known || trusted.seq <= known && is_signed() {
            trusted = tip;
        }
        line = next;
    }
    let fault = match head {
        Some(head) if head.seq > tip.seq => Some(JournalFault::CutOff { line: tip.seq + 1, expected: head.seq }),
        Some(head) if head.seq < tip.seq && signer.is_none() => {
            Some(JournalFault::AfterSignature { line: head.seq + 1 })
        }
        _ if trusted.seq < tip.seq => Some(JournalFault::AfterSignature { line: trusted.seq + 1 }),
        _ => None,
    };
    Ok(ChainCheck { tip, trusted, fault })
}

/// Whether a valid line follows an invalid one.
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

/// A line that doesn't continue the chain, with its neighbours.
struct BrokenLink<'a> {
    /// The expected number of the line.
    number: u64,
    /// Hash of the second to last valid line, where it is known.
    before: Option<Hash>,
    /// The last valid line.
    tip: &'a Tip,
    /// Hash of the line itself.
    hash: Hash,
    link: &'a ChainLink,
    next: Option<&'a ChainLine>,
    head: Option<&'a Head>,
}

impl BrokenLink<'_> {
    /// Finds out what was done to the file. Of two candidates, the genuine one is the one whose hash its successor or
    /// the head records.
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

    /// Whether the text after this line was written to follow `hash`.
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
