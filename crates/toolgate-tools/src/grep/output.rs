//! Builds one page of the reply from what the threads found.

use std::sync::atomic::Ordering;

use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::{Hands, ToolError, WorkspacePath};

use super::match_collector::MatchedLine;
use super::search::{ContentSearch, FileMatches, SearchCounters};
use super::{Args, GrepMode};
use crate::support::cursor::{Cursor, SortKey, page};

/// With at most this many matches, context is shown by default.
const FEW_MATCHES: usize = 3;

/// The result, in the requested mode.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// The lines that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<Vec<LineMatch>>,
    /// The files that have a match.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<String>>,
    /// How many lines match in each file.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Vec<FileMatchCount>>,
    /// Whether there are more; use `cursor`.
    has_more: bool,
    /// Totals for the entire search. Missing if it ended early because the page was full; mode `counts` always has
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<SearchTotals>,
    /// A remark about the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// One match.
#[derive(Debug, Serialize, JsonSchema)]
struct LineMatch {
    /// The file, relative to the workspace; bytes that aren't UTF-8 are escaped as `\xNN`.
    path: String,
    /// The line's number, from 1.
    line: u64,
    /// Column of the first match, in characters from 1.
    column: u64,
    /// The line, or the lines that a match spans.
    text: String,
    /// Whether the line is cut; `…` marks where.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    /// Lines before it that weren't shown with an earlier match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    /// The lines after, up to the next match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

/// How many lines match in a file.
#[derive(Debug, Serialize, JsonSchema)]
struct FileMatchCount {
    /// The file, relative to the workspace.
    path: String,
    /// Matching lines; with `multiline`, blocks of lines.
    count: u64,
}

/// Totals for the entire search.
#[derive(Debug, Serialize, JsonSchema)]
struct SearchTotals {
    /// Matching lines; missing in mode `files`, which stops at a file's first match.
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<u64>,
    /// Files with a match.
    files: u64,
    /// Files searched.
    searched: u64,
    /// Binary files among them, searched up to the first NUL byte.
    binary: u64,
    /// Files searched only in part: a line, or with `multiline` the file, exceeds 16 MiB.
    #[serde(skip_serializing_if = "is_zero")]
    too_long: u64,
    /// Files and directories that couldn't be read.
    #[serde(skip_serializing_if = "is_zero")]
    unreadable: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Builds the page, and says where the next one begins.
pub(super) fn answer(
    search: ContentSearch<'_>,
    args: &Args,
    unreadable: u64,
    hands: &dyn Hands,
) -> Result<Output, ToolError> {
    let root = hands.place(&args.path)?.root;
    let shown = |key: &SortKey| hands.shown(&WorkspacePath { root, path: key.path.clone() });
    let is_start = search.after.is_start();
    let note = if search.first.is_empty() { search.left_out.note() } else { None };
    let tally = search.tally;
    let mut found: Vec<(SortKey, FileMatches)> = search.first.into_ordered().collect();
    let mut output = Output { note, ..Output::default() };
    match args.mode {
        GrepMode::Matches => {
            let hits: usize = found.iter().map(|(_, file)| file.hits.len()).sum();
            if args.requested_context().is_none() && !(is_start && hits <= FEW_MATCHES) {
                found.iter_mut().for_each(|(_, file)| file.hits.iter_mut().for_each(MatchedLine::drop_context));
            }
            let matches = found.into_iter().flat_map(|(key, file)| {
                let path = shown(&key);
                let cursor = move |hit: &MatchedLine| Cursor { key: key.clone(), line: hit.line };
                file.hits.into_iter().map(move |hit| (cursor(&hit), shown_match(path.clone(), hit)))
            });
            (output.matches, output.has_more) = some(page(matches, args.limit, hands));
        }
        GrepMode::Files => {
            let files = found.into_iter().map(|(key, _)| (shown(&key), key));
            let files = files.map(|(path, key)| (Cursor::after(key), path));
            (output.files, output.has_more) = some(page(files, args.limit, hands));
        }
        GrepMode::Counts => {
            let counts =
                found.into_iter().map(|(key, file)| (FileMatchCount { path: shown(&key), count: file.count }, key));
            let counts = counts.map(|(count, key)| (Cursor::after(key), count));
            (output.counts, output.has_more) = some(page(counts, args.limit, hands));
        }
    }
    if is_start && (!output.has_more || args.mode == GrepMode::Counts) {
        output.totals = Some(totals(&tally, args.mode, unreadable));
    }
    Ok(output)
}

fn some<T>((page, has_more): (Vec<T>, bool)) -> (Option<Vec<T>>, bool) {
    (Some(page), has_more)
}

fn shown_match(path: String, hit: MatchedLine) -> LineMatch {
    let MatchedLine { line, column, text, before, after } = hit;
    LineMatch { path, line, column, text: text.shown, cut: text.is_cut, before, after }
}

fn totals(tally: &SearchCounters, mode: GrepMode, unreadable_directories: u64) -> SearchTotals {
    let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    SearchTotals {
        matches: (mode != GrepMode::Files).then(|| read(&tally.matches)),
        files: read(&tally.files),
        searched: read(&tally.searched),
        binary: read(&tally.binary),
        too_long: read(&tally.too_long),
        unreadable: read(&tally.unreadable) + unreadable_directories,
    }
}
