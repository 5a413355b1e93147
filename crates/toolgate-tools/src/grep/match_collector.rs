//! Collects the matches of one file: line, column, text and context. A very long line is cut around its match, so a
//! minified file takes no more of a reply than any other.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::GrepMode;

/// Maximum characters shown of a line.
const MAX_LINE: usize = 500;
/// Maximum characters shown of a match that spans several lines.
const MAX_LINES: usize = 4_000;

/// One match.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MatchedLine {
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) text: ClippedText,
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
}

impl MatchedLine {
    pub(super) fn drop_context(&mut self) {
        self.before.clear();
        self.after.clear();
    }
}

/// Text as shown to the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClippedText {
    pub(super) shown: String,
    pub(super) is_cut: bool,
}

/// Receives what the searcher finds in one file.
pub(super) struct MatchCollector<'a> {
    mode: GrepMode,
    matcher: &'a RegexMatcher,
    /// Matches up to this line were in an earlier page.
    after: u64,
    most: usize,
    before: Vec<String>,
    pub(super) hits: Vec<MatchedLine>,
    /// Matching lines counted so far.
    pub(super) count: u64,
    pub(super) is_binary: bool,
}

impl<'a> MatchCollector<'a> {
    pub(super) fn new(mode: GrepMode, matcher: &'a RegexMatcher, after: u64, most: usize) -> Self {
        Self { mode, matcher, after, most, before: Vec::new(), hits: Vec::new(), count: 0, is_binary: false }
    }
}

impl Sink for &mut MatchCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        let before = std::mem::take(&mut self.before);
        let line = found.line_number().unwrap_or(0);
        match self.mode {
            GrepMode::Files => return Ok(false),
            GrepMode::Counts => return Ok(true),
            GrepMode::Matches if line <= self.after => return Ok(true),
            GrepMode::Matches => {}
        }
        let bytes = without_ending(found.bytes());
        let at = self.matcher.find(bytes).ok().flatten().map_or(0, |at| at.start());
        let most = if bytes.contains(&b'\n') { MAX_LINES } else { MAX_LINE };
        let column = String::from_utf8_lossy(&bytes[..at]).chars().count() as u64 + 1;
        self.hits.push(MatchedLine { line, column, text: cut(bytes, at, most), before, after: Vec::new() });
        Ok(self.hits.len() < self.most)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.mode == GrepMode::Matches {
            let text = || cut(without_ending(context.bytes()), 0, MAX_LINE).shown;
            match context.kind() {
                SinkContextKind::Before => self.before.push(text()),
                // Lines after a match from an earlier page were shown with it.
                _ => self.hits.last_mut().into_iter().for_each(|hit| hit.after.push(text())),
            }
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

fn without_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// At most `most` characters of a line, around the byte `at`.
fn cut(line: &[u8], at: usize, most: usize) -> ClippedText {
    // A UTF-8 character has at most four bytes, so this window is enough however long the line is.
    let (lead, enough) = (most * 3 / 10, most * 4 + 4);
    if line.len() < enough {
        let shown = String::from_utf8_lossy(line);
        if shown.chars().count() <= most {
            return ClippedText { shown: shown.into_owned(), is_cut: false };
        }
    }
    let head = String::from_utf8_lossy(&line[at.saturating_sub(enough)..at]);
    let tail = String::from_utf8_lossy(&line[at..line.len().min(at + enough)]);
    let skipped = head.chars().count().saturating_sub(lead);
    let room = most - (head.chars().count() - skipped);
    let mut shown: String = head.chars().skip(skipped).chain(tail.chars().take(room)).collect();
    let (is_cut_before, is_cut_after) = (skipped > 0 || at > enough, tail.chars().nth(room).is_some());
    if is_cut_before {
        shown.insert(0, '…');
    }
    if is_cut_after {
        shown.push('…');
    }
    ClippedText { shown, is_cut: is_cut_before || is_cut_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_the_match() {
        let cases = [
            ("short", 2, 10, "short", false),
            ("0123456789", 0, 10, "0123456789", false),
            ("0123456789abc", 0, 10, "0123456789…", true),
            ("0123456789abc", 12, 10, "…9abc", true),
            ("0123456789abcdefghijk", 10, 10, "…789abcdefg…", true),
            ("ääääääääää", 18, 10, "ääääääääää", false),
            ("ääääääääääää", 8, 10, "…ääääääääää…", true),
        ];
        for (line, at, most, expected, is_cut) in cases {
            assert_eq!(cut(line.as_bytes(), at, most), ClippedText { shown: expected.into(), is_cut }, "{line} {at}");
        }
    }

    #[test]
    fn a_cut_never_shows_half_a_character() {
        let line = "é漢🦀".repeat(1_000);
        for (at, _) in line.char_indices().step_by(7) {
            let text = cut(line.as_bytes(), at, MAX_LINE);
            assert!(!text.shown.contains('\u{fffd}') && text.shown.chars().count() <= MAX_LINE + 2, "{at}");
        }
    }
}
