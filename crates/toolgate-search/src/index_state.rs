//! The index as one process has it: the segments, and which of their files count. The manifest in the store names the
//! segments; it is replaced in one step, so a process that is killed leaves the index as it was before.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolgate_journal::{JournalError, PartVersion, SearchStore, StoredPart};

use crate::segment::Segment;

/// The file of the store that names the segments.
pub(crate) const MANIFEST: &str = "manifest";
/// The form of the manifest; another is not read.
const FORM: &[u8; 8] = b"tgsearc1";
/// Segments smaller than this are merged, in bytes.
const SMALL: usize = 4 << 20;
/// How many small ones there may be.
const MOST_SMALL: usize = 6;

/// A segment, and which of its files count.
pub(crate) struct LiveSegment {
    pub(crate) segment: Arc<Segment>,
    /// Its name in the store; none if it isn't stored yet.
    pub(crate) name: Option<String>,
    /// Files that are still as the segment has them, as far as was known after the last walk.
    pub(crate) alive: Vec<bool>,
    /// Young files whose content was compared again once they weren't young any more.
    pub(crate) verified: Vec<bool>,
}

impl LiveSegment {
    pub(crate) fn new(segment: Segment) -> Self {
        let count = segment.files.len();
        Self { segment: Arc::new(segment), name: None, alive: vec![true; count], verified: vec![false; count] }
    }

    fn living(&self) -> usize {
        self.alive.iter().filter(|alive| **alive).count()
    }
}

#[derive(Serialize, Deserialize)]
struct ManifestEntry {
    name: String,
    dead: Vec<u32>,
    verified: Vec<u32>,
}

/// Where a file is: its segment, and its number there.
pub(crate) type FileNumber = (usize, usize);

/// The index in memory.
#[derive(Default)]
pub(crate) struct IndexState {
    pub(crate) segments: Vec<LiveSegment>,
    /// The living file at each path of each root.
    known: HashMap<u32, HashMap<String, FileNumber>>,
    /// The manifest that this state was read from or written to.
    version: Option<PartVersion>,
    /// Whether something isn't stored yet.
    pub(crate) is_changed: bool,
}

impl IndexState {
    /// The living file at a path.
    pub(crate) fn find(&self, root: usize, path: &str) -> Option<FileNumber> {
        self.known.get(&(root as u32))?.get(path).copied()
    }

    /// How many files it has.
    pub(crate) fn files(&self) -> usize {
        self.segments.iter().map(LiveSegment::living).sum()
    }

    /// How many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        self.segments.iter().map(|live| live.segment.size()).sum()
    }

    /// Reads the stored index again if another process changed it. Returns whether a part of it was damaged.
    pub(crate) fn synchronize(&mut self, store: &SearchStore) -> Result<bool, JournalError> {
        let version = store.version(MANIFEST);
        if version == self.version && version.is_some() {
            return Ok(false);
        }
        let (read, is_damaged) = read_segments(store, &self.segments)?;
        // What isn't stored yet is newer than what is.
        let own = std::mem::take(&mut self.segments).into_iter().filter(|live| live.name.is_none());
        self.segments = read.into_iter().chain(own).collect();
        self.version = version;
        self.is_changed |= is_damaged;
        self.number_files();
        Ok(is_damaged)
    }

    /// Adds a segment; its files take the place of older ones.
    pub(crate) fn add(&mut self, segment: Segment) {
        self.segments.push(LiveSegment::new(segment));
        self.is_changed = true;
        self.number_files();
    }

    /// A file isn't there any more, or is another.
    pub(crate) fn kill(&mut self, (segment, file): FileNumber) {
        self.segments[segment].alive[file] = false;
        self.is_changed = true;
    }

    /// Finds out anew which file is at each path: of two, the later.
    pub(crate) fn number_files(&mut self) {
        self.known.clear();
        for at in 0..self.segments.len() {
            let segment = Arc::clone(&self.segments[at].segment);
            for (file, record) in segment.files.iter().enumerate() {
                if !self.segments[at].alive[file] {
                    continue;
                }
                let older = self.known.entry(record.root).or_default().insert(record.path.clone(), (at, file));
                if let Some((older, file)) = older {
                    self.segments[older].alive[file] = false;
                }
            }
        }
    }

    /// Stores what isn't stored yet. The caller holds the lock.
    pub(crate) fn save(&mut self, store: &SearchStore) -> Result<(), JournalError> {
        if store.version(MANIFEST) != self.version {
            self.join_stored(store)?;
        }
        self.merge_small();
        self.segments.retain(|live| live.living() > 0);
        for live in self.segments.iter_mut().filter(|live| live.name.is_none()) {
            let Ok(bytes) = live.segment.to_bytes() else { continue };
            let name = format!("part-{:016x}", content_hash(&bytes));
            store.write(&name, &bytes)?;
            live.name = Some(name);
        }
        self.number_files();
        let numbers = |flags: &[bool], wanted: bool| {
            flags.iter().enumerate().filter(|(_, flag)| **flag == wanted).map(|(at, _)| at as u32).collect()
        };
        let entries: Vec<ManifestEntry> = self
            .segments
            .iter()
            .filter_map(|live| {
                let (dead, verified) = (numbers(&live.alive, false), numbers(&live.verified, true));
                Some(ManifestEntry { name: live.name.clone()?, dead, verified })
            })
            .collect();
        let Ok(bytes) = postcard::to_extend(&entries, FORM.to_vec()) else { return Ok(()) };
        store.write(MANIFEST, &bytes)?;
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).chain([MANIFEST]).collect();
        store.retain(&names)?;
        self.version = store.version(MANIFEST);
        self.is_changed = false;
        Ok(())
    }

    /// Another process stored its own view meanwhile: what it has, then what only this one has. Whatever is wrong in its
    /// view is found by the next walk.
    fn join_stored(&mut self, store: &SearchStore) -> Result<(), JournalError> {
        let dead: Vec<(String, Vec<bool>)> =
            self.segments.iter().filter_map(|live| Some((live.name.clone()?, live.alive.clone()))).collect();
        self.synchronize(store)?;
        for (name, alive) in dead {
            if let Some(live) = self.segments.iter_mut().find(|live| live.name.as_ref() == Some(&name)) {
                live.alive.iter_mut().zip(alive).for_each(|(is, was)| *is &= was);
            }
        }
        Ok(())
    }

    /// Merges small segments when there are many, and those that are mostly dead.
    fn merge_small(&mut self) {
        let is_small = |live: &LiveSegment| live.segment.size() < SMALL;
        let is_sparse = |live: &LiveSegment| live.living() * 2 < live.alive.len();
        let too_many = self.segments.iter().filter(|live| is_small(live)).count() > MOST_SMALL;
        let is_chosen = |live: &LiveSegment| is_sparse(live) || too_many && is_small(live);
        if !self.segments.iter().any(is_chosen) {
            return;
        }
        let (mut chosen, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.segments).into_iter().partition(is_chosen);
        self.segments = kept;
        while let Some(form) = chosen.first().map(|live| live.segment.form) {
            let (alike, others) = chosen.into_iter().partition(|live| live.segment.form == form);
            self.segments.push(merged(alike));
            chosen = others;
        }
        self.number_files();
    }
}

/// One segment of several whose vectors have one form.
fn merged(parts: Vec<LiveSegment>) -> LiveSegment {
    let alive: Vec<(&Segment, &[bool])> = parts.iter().map(|live| (&*live.segment, &*live.alive)).collect();
    let verified = parts.iter().flat_map(|live| live.alive.iter().zip(&live.verified)).filter(|(alive, _)| **alive);
    LiveSegment {
        verified: verified.map(|(_, verified)| *verified).collect(),
        ..LiveSegment::new(Segment::merge(&alive))
    }
}

/// The segments that the manifest names, and whether something of it couldn't be read. Those that are in memory already
/// aren't read again.
fn read_segments(store: &SearchStore, loaded: &[LiveSegment]) -> Result<(Vec<LiveSegment>, bool), JournalError> {
    let entries = match store.read(MANIFEST)? {
        StoredPart::Missing => return Ok((Vec::new(), false)),
        StoredPart::Damaged => return Ok((Vec::new(), true)),
        StoredPart::Content(bytes) => bytes.strip_prefix(FORM).and_then(|bytes| postcard::from_bytes(bytes).ok()),
    };
    let Some(entries): Option<Vec<ManifestEntry>> = entries else { return Ok((Vec::new(), true)) };
    let (mut read, mut is_damaged) = (Vec::new(), false);
    for entry in entries {
        let known = loaded.iter().find(|live| live.name.as_ref() == Some(&entry.name));
        let segment = match known {
            Some(live) => Some(Arc::clone(&live.segment)),
            None => match store.read(&entry.name)? {
                // Another version of the program wrote it: nothing is wrong, and its files are indexed again.
                StoredPart::Content(bytes) if Segment::is_of_another_form(&bytes) => continue,
                StoredPart::Content(bytes) => Segment::from_bytes(&bytes).map(Arc::new),
                StoredPart::Missing | StoredPart::Damaged => None,
            },
        };
        let Some(segment) = segment else {
            is_damaged = true;
            continue;
        };
        let count = segment.files.len();
        let (mut alive, mut verified) = (vec![true; count], vec![false; count]);
        mark(&mut alive, &entry.dead, false);
        mark(&mut verified, &entry.verified, true);
        read.push(LiveSegment { segment, name: Some(entry.name), alive, verified });
    }
    Ok((read, is_damaged))
}

/// Sets what is known of these files of a segment. A number that is none of them, in a damaged list, is passed over.
fn mark(files: &mut [bool], numbers: &[u32], value: bool) {
    for at in numbers {
        if let Some(file) = files.get_mut(*at as usize) {
            *file = value;
        }
    }
}

/// A hash of content, to tell one version from another. Whoever makes two with one hash deceives only the ranking.
pub(crate) fn content_hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = FACTOR ^ bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        hash = (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    }
    for byte in words.remainder() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(FACTOR).rotate_left(29);
    }
    (hash ^ (hash >> 32)).wrapping_mul(FACTOR)
}
