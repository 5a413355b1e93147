//! Brings the index up to date: walks what a question is about, on several threads, and indexes the files that aren't as
//! the index has them. Device, inode, size and both times of a file tell that; a file that was changed so shortly before it
//! was read that another change could have the same times is compared by content.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use toolgate_contract::{
    EntryKind, EntryMetadata, FileHands, ToolError, VisitedEntry, Visitor, WalkOptions, WalkStep, WorkspacePath,
};

use crate::analysis::{FileAnalysis, LONGEST_TEXT, analyze, decode};
use crate::index_state::{IndexState, content_hash};
use crate::outline::Lines;
use crate::segment::{AnalyzedFile, Segment, Stamp, VectorForm, most_bytes};
use crate::static_model::StaticModel;
use crate::workspace_index::IndexLimits;

/// Longer than the coarsest clock of a file system, in nanoseconds: some count in steps of two seconds.
const MARGIN: i64 = 3_000_000_000;
/// Bytes of text in one segment.
const SEGMENT_TEXT: u64 = 24 << 20;
/// How many files that aren't indexed yet are remembered.
const MOST_PENDING: usize = 20_000;

/// What a walk found.
pub(crate) struct Refreshed {
    /// Files that can be searched.
    pub(crate) files: u64,
    /// For each segment, the files that are as the index has them; those of new segments included.
    pub(crate) seen: Vec<Vec<bool>>,
    /// Files that aren't indexed yet, as far as they are remembered.
    pub(crate) pending: Vec<WorkspacePath>,
    /// How many those are altogether.
    pub(crate) pending_count: u64,
    /// Whether the index has no room for them.
    pub(crate) is_full: bool,
}

/// One walk, shared by its threads.
struct IndexWalk<'a> {
    state: &'a IndexState,
    model: Option<&'a StaticModel>,
    deadline: Instant,
    now: i64,
    /// Bytes that the index may still grow.
    room: AtomicU64,
    files: AtomicU64,
    is_full: AtomicBool,
    seen: Vec<Vec<AtomicBool>>,
    verified: Mutex<Vec<(usize, usize)>>,
    collected: Mutex<Collected>,
    pending: Mutex<(Vec<WorkspacePath>, u64)>,
}

/// Files that were analyzed, until there are enough for a segment.
#[derive(Default)]
struct Collected {
    files: Vec<AnalyzedFile>,
    bytes: u64,
    segments: Vec<Segment>,
}

/// Brings the index up to date with what is at and beneath these paths.
pub(crate) fn refresh(
    state: &mut IndexState,
    hands: &dyn FileHands,
    paths: &[String],
    limits: IndexLimits,
    model: Option<&StaticModel>,
) -> Result<Refreshed, ToolError> {
    let flags = |live: &crate::index_state::LiveSegment| live.alive.iter().map(|_| AtomicBool::new(false)).collect();
    let walk = IndexWalk {
        state,
        model,
        deadline: Instant::now() + limits.wait,
        now: SystemTime::now().duration_since(UNIX_EPOCH).map_or(i64::MAX, |now| now.as_nanos() as i64),
        room: AtomicU64::new(limits.max_bytes.saturating_sub(state.size() as u64)),
        files: AtomicU64::new(0),
        is_full: AtomicBool::new(false),
        seen: state.segments.iter().map(flags).collect(),
        verified: Mutex::default(),
        collected: Mutex::default(),
        pending: Mutex::default(),
    };
    let options = WalkOptions { gitignore: true, ..WalkOptions::default() };
    let mut scopes: Vec<WorkspacePath> = Vec::new();
    for path in paths {
        let place = hands.place(path)?;
        // What was walked once isn't walked again.
        if scopes.iter().any(|scope| scope.covers(&place)) {
            continue;
        }
        let done = std::mem::take(&mut scopes);
        let visitors = || -> Visitor<'_> { Box::new(|walked| walk.visit(walked, &done)) };
        hands.walk(path, &options, &visitors)?;
        scopes = done;
        scopes.push(place);
    }
    walk.finish_segment();
    let IndexWalk { files, is_full, seen, verified, collected, pending, .. } = walk;
    let seen: Vec<Vec<bool>> =
        seen.into_iter().map(|flags| flags.into_iter().map(AtomicBool::into_inner).collect()).collect();
    let (pending, pending_count) = pending.into_inner();
    let refreshed =
        Refreshed { files: files.into_inner(), seen, pending, pending_count, is_full: is_full.into_inner() };
    Ok(apply(state, refreshed, verified.into_inner(), collected.into_inner().segments, &scopes))
}

/// Takes over what a walk found: files of its scope that it didn't see are gone.
fn apply(
    state: &mut IndexState,
    mut refreshed: Refreshed,
    verified: Vec<(usize, usize)>,
    segments: Vec<Segment>,
    scopes: &[WorkspacePath],
) -> Refreshed {
    for (segment, file) in verified {
        state.segments[segment].verified[file] = true;
        state.is_changed = true;
    }
    let mut has_gone = false;
    for at in 0..state.segments.len() {
        let segment = std::sync::Arc::clone(&state.segments[at].segment);
        for (file, record) in segment.files.iter().enumerate() {
            let is_gone = state.segments[at].alive[file] && !refreshed.seen[at][file];
            let place = || WorkspacePath { root: record.root as usize, path: record.path.clone() };
            if is_gone && scopes.iter().any(|scope| scope.covers(&place())) {
                state.kill((at, file));
                has_gone = true;
            }
        }
    }
    if has_gone {
        state.number_files();
    }
    for segment in segments {
        refreshed.seen.push(vec![true; segment.files.len()]);
        state.add(segment);
    }
    refreshed
}

impl IndexWalk<'_> {
    fn visit(&self, walked: &VisitedEntry<'_>, done: &[WorkspacePath]) -> WalkStep {
        if done.iter().any(|scope| scope.covers(walked.place)) {
            return WalkStep::Past;
        }
        if walked.kind == EntryKind::File && walked.left_out.is_none() {
            self.file(walked);
        }
        WalkStep::On
    }

    fn file(&self, walked: &VisitedEntry<'_>) {
        let Some(facts) = walked.facts() else { return };
        let stamp = Stamp::from(facts);
        self.files.fetch_add(1, Ordering::Relaxed);
        let known = self.state.find(walked.place.root, &walked.place.path);
        if let Some((segment, file)) = known {
            let live = &self.state.segments[segment];
            let record = &live.segment.files[file];
            if record.stamp == stamp {
                let lacks_vectors = self.model.is_some() && live.segment.form != self.form();
                if lacks_vectors && self.index(walked, &stamp) {
                    return;
                }
                if !record.is_young || live.verified[file] {
                    self.seen[segment][file].store(true, Ordering::Relaxed);
                    return;
                }
                let same =
                    walked.open().ok().and_then(read_text).is_some_and(|read| content_hash(&read.0) == record.content);
                if same {
                    self.seen[segment][file].store(true, Ordering::Relaxed);
                    if !self.is_young(&stamp) {
                        self.verified.lock().push((segment, file));
                    }
                    return;
                }
            }
        }
        if !self.index(walked, &stamp) {
            self.put_off(walked);
        }
    }

    /// The form of the vectors that files get.
    fn form(&self) -> VectorForm {
        self.model.map(StaticModel::form).unwrap_or_default()
    }

    /// Whether there is time and room to index a file. Nearly all take less room than their text does.
    fn can_index(&self, stamp: &Stamp) -> bool {
        let has_room = self.room.load(Ordering::Relaxed) >= stamp.size.min(LONGEST_TEXT as u64) + 256;
        self.is_full.fetch_or(!has_room, Ordering::Relaxed);
        has_room && Instant::now() < self.deadline
    }

    /// Remembers a file that isn't indexed.
    fn put_off(&self, walked: &VisitedEntry<'_>) {
        let mut pending = self.pending.lock();
        pending.1 += 1;
        if pending.0.len() < MOST_PENDING {
            pending.0.push(walked.place.clone());
        }
    }

    /// Indexes a file. False if there is no time or no room for it.
    fn index(&self, walked: &VisitedEntry<'_>, stamp: &Stamp) -> bool {
        if !self.can_index(stamp) {
            return false;
        }
        let Some((bytes, before, after)) = walked.open().ok().and_then(read_text) else {
            // What can't be read can't be searched.
            self.files.fetch_sub(1, Ordering::Relaxed);
            return true;
        };
        let analysis = analyze(&walked.place.path, &bytes);
        if !self.take_room(most_bytes(&walked.place.path, &analysis, self.form())) {
            return false;
        }
        let vectors = self.vectors(&analysis, &bytes);
        let analyzed = AnalyzedFile {
            root: walked.place.root as u32,
            path: walked.place.path.clone(),
            stamp: before,
            content: content_hash(&bytes),
            is_young: before != after || self.is_young(&before),
            analysis,
            vectors,
        };
        self.collect(analyzed, bytes.len() as u64);
        true
    }

    fn collect(&self, analyzed: AnalyzedFile, bytes: u64) {
        let mut collected = self.collected.lock();
        collected.files.push(analyzed);
        collected.bytes += bytes;
        if collected.bytes < SEGMENT_TEXT {
            return;
        }
        drop(collected);
        self.finish_segment();
    }

    /// Makes a segment of the files that were analyzed. Others go on meanwhile.
    fn finish_segment(&self) {
        let mut collected = self.collected.lock();
        collected.bytes = 0;
        let files = std::mem::take(&mut collected.files);
        drop(collected);
        if !files.is_empty() {
            let segment = Segment::build(files, self.form());
            self.collected.lock().segments.push(segment);
        }
    }

    /// The vectors of a file's chunks.
    fn vectors(&self, analysis: &FileAnalysis, bytes: &[u8]) -> Vec<i8> {
        let mut vectors = Vec::new();
        let Some((model, text)) = self.model.zip(decode(bytes)) else { return vectors };
        let lines = Lines::new(&text);
        for chunk in &analysis.chunks {
            model.embed(&text[lines.start(chunk.first as usize)..lines.start(chunk.end as usize)], &mut vectors);
        }
        vectors
    }

    fn take_room(&self, bytes: u64) -> bool {
        let has_room =
            self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes)).is_ok();
        self.is_full.fetch_or(!has_room, Ordering::Relaxed);
        has_room
    }

    /// Whether another change could have the same times.
    fn is_young(&self, stamp: &Stamp) -> bool {
        stamp.changed.saturating_add(MARGIN) >= self.now
    }
}

impl From<EntryMetadata> for Stamp {
    fn from(facts: EntryMetadata) -> Self {
        let EntryMetadata { size, modified, changed, device, inode, .. } = facts;
        Self { device, inode, size, modified, changed }
    }
}

/// The part of a file that is indexed, and its stamps before and after it was read.
pub(crate) fn read_text(mut file: File) -> Option<(Vec<u8>, Stamp, Stamp)> {
    let before = stamp_of(&file)?;
    let mut bytes = Vec::with_capacity(before.size.min(LONGEST_TEXT as u64) as usize + 1);
    (&mut file).take(LONGEST_TEXT as u64 + 1).read_to_end(&mut bytes).ok()?;
    Some((bytes, before, stamp_of(&file)?))
}

fn stamp_of(file: &File) -> Option<Stamp> {
    let facts = file.metadata().ok()?;
    let time = |seconds: i64, nanoseconds: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
    Some(Stamp {
        device: facts.dev(),
        inode: facts.ino(),
        size: facts.size(),
        modified: time(facts.mtime(), facts.mtime_nsec()),
        changed: time(facts.ctime(), facts.ctime_nsec()),
    })
}
