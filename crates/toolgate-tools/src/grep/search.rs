//! Searches the files that a directory walk visits: the state shared by the threads, and each thread's part.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use toolgate_contract::{EntryKind, ErrorCode, Hands, SkipReason, ToolError, VisitedEntry, WalkStep};

use super::match_collector::{MatchCollector, MatchedLine};
use super::{Args, FREE_CONTEXT, GrepMode};
use crate::support::cursor::{ResumePoint, SortKey, SortOrder};
use crate::support::skipped_matches::SkippedMatches;
use crate::support::top_items::TopItems;

/// Maximum size of the compiled pattern.
const MAX_PATTERN_BYTES: usize = 10 * 1024 * 1024;
/// Maximum bytes of one file in a thread's memory: one line, or the entire file when matches may span lines.
const MAX_HELD_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of the first read; most files are smaller and are searched in this buffer.
const READ_BYTES: usize = 64 * 1024;

/// One search, shared by the worker threads.
pub(super) struct ContentSearch<'a> {
    hands: &'a dyn Hands,
    matcher: RegexMatcher,
    mode: GrepMode,
    multiline: bool,
    context: (usize, usize),
    order: SortOrder,
    pub(super) after: ResumePoint,
    /// One more than fits on the page, to know whether more follow.
    most: usize,
    pub(super) first: TopItems<FileMatches>,
    pub(super) left_out: SkippedMatches,
    pub(super) tally: SearchCounters,
}

/// The matches of one file.
pub(super) struct FileMatches {
    pub(super) hits: Vec<MatchedLine>,
    pub(super) count: u64,
}

/// Counters of the search so far.
#[derive(Default)]
pub(super) struct SearchCounters {
    pub(super) matches: AtomicU64,
    pub(super) files: AtomicU64,
    pub(super) searched: AtomicU64,
    pub(super) binary: AtomicU64,
    pub(super) too_long: AtomicU64,
    pub(super) unreadable: AtomicU64,
}

impl<'a> ContentSearch<'a> {
    pub(super) fn new(args: &Args, hands: &'a dyn Hands) -> Result<Self, ToolError> {
        let free = (FREE_CONTEXT as usize, FREE_CONTEXT as usize);
        let most = args.limit as usize + 1;
        Ok(Self {
            hands,
            matcher: matcher(args)?,
            mode: args.mode,
            multiline: args.multiline,
            context: if args.mode == GrepMode::Matches { args.requested_context().unwrap_or(free) } else { (0, 0) },
            order: args.order,
            after: ResumePoint::new(args.cursor.as_deref(), args.order)?,
            most,
            first: TopItems::new(most),
            left_out: SkippedMatches::default(),
            tally: SearchCounters::default(),
        })
    }

    /// Counts cover every file, so none is skipped in that mode.
    fn accepts(&self, key: &SortKey) -> bool {
        self.mode == GrepMode::Counts || self.first.accepts(key)
    }
}

/// Compiles the pattern as ripgrep would.
fn matcher(args: &Args) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).unicode(true).case_insensitive(args.ignore_case).fixed_strings(args.literal);
    builder.size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES).crlf(true);
    if args.multiline {
        builder.line_terminator(None);
    }
    builder.build(&args.pattern).map_err(|fault| {
        let hint = match fault.to_string() {
            words if words.contains("look-around") || words.contains("backreferences") => {
                "Look-around and backreferences aren't supported: use a broader pattern and filter the result."
            }
            words if words.contains("\\n") => "Set `multiline` to find text that spans several lines.",
            _ => "Fix the pattern at the marked position, or set `literal` to search for it as plain text.",
        };
        ToolError::invalid_args(format!("The pattern can't be used: {fault}")).with_hint(hint)
    })
}

/// One thread's part of a search.
pub(super) struct SearchWorker<'a> {
    search: &'a ContentSearch<'a>,
    matcher: RegexMatcher,
    searcher: Searcher,
    buffer: Vec<u8>,
}

impl<'a> SearchWorker<'a> {
    pub(super) fn new(search: &'a ContentSearch<'a>) -> Self {
        let mut builder = SearcherBuilder::new();
        builder.line_number(true).multi_line(search.multiline).heap_limit(Some(MAX_HELD_BYTES));
        builder.before_context(search.context.0).after_context(search.context.1);
        builder.binary_detection(BinaryDetection::quit(0)).memory_map(MmapChoice::never());
        builder.line_terminator(LineTerminator::crlf());
        let (searcher, buffer) = (builder.build(), vec![0; READ_BYTES]);
        Self { search, matcher: search.matcher.clone(), searcher, buffer }
    }

    pub(super) fn visit(&mut self, walked: &VisitedEntry<'_>) -> WalkStep {
        let search = self.search;
        if let Some(why) = walked.left_out {
            return self.visit_left_out(walked, why);
        }
        let mut key = SortKey::by_path(&walked.place.path);
        let is_too_late = search.order == SortOrder::Path && !search.accepts(&key);
        match walked.kind {
            EntryKind::Directory if is_too_late || !search.after.reaches_into(&key.path) => return WalkStep::Past,
            EntryKind::File if !is_too_late => {}
            _ => return WalkStep::On,
        }
        if search.order == SortOrder::Path && search.after.line(&key).is_none() {
            return WalkStep::On;
        }
        let Some(file) = self.open(walked) else { return WalkStep::On };
        if search.order == SortOrder::Newest {
            key.modified = modified(&file);
        }
        if let Some(after) = search.after.line(&key).filter(|_| search.accepts(&key)) {
            self.search_file(file, key, after);
        }
        WalkStep::On
    }

    /// Only an empty result needs to know what was skipped.
    fn visit_left_out(&mut self, walked: &VisitedEntry<'_>, why: SkipReason) -> WalkStep {
        if !self.search.first.is_empty() || !self.search.left_out.may_check() {
            return WalkStep::Stop;
        }
        if walked.kind == EntryKind::File
            && let Ok(file) = walked.open()
        {
            let mut collector = MatchCollector::new(self.search.mode, &self.search.matcher, 0, 1);
            let is_searched = self.search_content(file, &mut collector).is_ok();
            if is_searched && collector.count > 0 {
                self.search.left_out.count(why);
            }
        }
        WalkStep::On
    }

    fn open(&self, walked: &VisitedEntry<'_>) -> Option<File> {
        match walked.open() {
            Ok(file) => Some(file),
            // Removed or replaced since the walk saw it, so there is nothing to search.
            Err(error) if error.code != ErrorCode::IoError => None,
            Err(_) => {
                add(&self.search.tally.unreadable, 1);
                None
            }
        }
    }

    fn search_file(&mut self, file: File, key: SortKey, after: u64) {
        let search = self.search;
        let mut collector = MatchCollector::new(search.mode, &search.matcher, after, search.most);
        let outcome = self.search_content(file, &mut collector);
        let MatchCollector { hits, count, is_binary, .. } = collector;
        let tally = &search.tally;
        add(&tally.searched, 1);
        match outcome {
            Err(_) if search.hands.is_cancelled() => return,
            Err(fault) if is_too_long(&fault) => add(&tally.too_long, 1),
            Err(_) => add(&tally.unreadable, 1),
            Ok(()) => {}
        }
        add(&tally.binary, u64::from(is_binary));
        let weight = if search.mode == GrepMode::Matches { hits.len() } else { usize::from(count > 0) };
        if weight > 0 {
            add(&tally.matches, count);
            add(&tally.files, 1);
            search.first.add(key, weight, FileMatches { hits, count });
        }
    }

    /// Searches one file. A file that fits in the buffer is read and searched in one step.
    fn search_content(&mut self, mut file: File, collector: &mut MatchCollector<'_>) -> io::Result<()> {
        let length = file.read(&mut self.buffer)?;
        let start = &self.buffer[..length];
        if length < self.buffer.len() {
            return self.searcher.search_slice(&self.matcher, start, collector);
        }
        let rest = PrefixedReader { start, file, hands: self.search.hands };
        self.searcher.search_reader(&self.matcher, rest, collector)
    }
}

/// A file whose first bytes were already read; reading ends when the call is cancelled.
struct PrefixedReader<'a> {
    start: &'a [u8],
    file: File,
    hands: &'a dyn Hands,
}

impl Read for PrefixedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.start.is_empty() {
            return self.start.read(into);
        }
        if self.hands.is_cancelled() {
            return Err(io::Error::other("the call was cancelled"));
        }
        self.file.read(into)
    }
}

fn is_too_long(fault: &io::Error) -> bool {
    fault.kind() == io::ErrorKind::Other
}

fn modified(file: &File) -> i64 {
    let nanoseconds =
        |facts: std::fs::Metadata| facts.mtime().saturating_mul(1_000_000_000).saturating_add(facts.mtime_nsec());
    file.metadata().map_or(0, nanoseconds)
}

pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
