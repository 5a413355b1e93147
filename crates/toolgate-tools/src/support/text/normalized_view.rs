//! A normalised view of a text for matching, with a mapping back to the source offsets.
//!
//! Most of a view is a copy of its source, so the mapping is stored as runs: stretches in which every step takes the
//! same number of source bytes to the same number of view bytes.

use std::borrow::Cow;

/// The normalised text, and the source offset of each part.
#[derive(Debug)]
pub(crate) struct NormalizedView<'a> {
    text: Cow<'a, [u8]>,
    /// Empty when the view is the source itself.
    runs: Vec<OffsetRun>,
}

/// A stretch of equal steps. It ends where the next one begins.
#[derive(Debug, Clone, Copy)]
struct OffsetRun {
    source: usize,
    seen: usize,
    source_step: usize,
    seen_step: usize,
}

impl<'a> NormalizedView<'a> {
    /// The source unchanged.
    pub(crate) fn plain(source: &'a [u8]) -> Self {
        Self { text: Cow::Borrowed(source), runs: Vec::new() }
    }

    /// The normalised text.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The source offset of a view offset, as far left as possible; `None` inside a character.
    pub(crate) fn source_offset(&self, seen: usize) -> Option<usize> {
        if self.runs.is_empty() {
            return Some(seen);
        }
        // The first run that ends at or after the offset: its predecessor is the last one that begins before it.
        let index = self.runs.partition_point(|run| run.seen < seen).saturating_sub(1);
        let run = &self.runs[index];
        if run.seen_step == 0 {
            return Some(run.source);
        }
        let into = seen - run.seen;
        into.is_multiple_of(run.seen_step).then_some(run.source + into / run.seen_step * run.source_step)
    }
}

/// Builds a view from left to right.
#[derive(Debug, Default)]
pub(crate) struct NormalizedViewBuilder {
    text: Vec<u8>,
    runs: Vec<OffsetRun>,
    source: usize,
}

impl NormalizedViewBuilder {
    /// Copies the next bytes unchanged.
    pub(crate) fn copy(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.begin(1, 1);
            self.text.extend_from_slice(bytes);
            self.source += bytes.len();
        }
    }

    /// Maps the next `length` source bytes, as one step, to `seen`.
    pub(crate) fn step(&mut self, length: usize, seen: &[u8]) {
        self.begin(length, seen.len());
        self.text.extend_from_slice(seen);
        self.source += length;
    }

    /// The finished view.
    pub(crate) fn finish(self) -> NormalizedView<'static> {
        NormalizedView { text: Cow::Owned(self.text), runs: self.runs }
    }

    fn begin(&mut self, source_step: usize, seen_step: usize) {
        let continues =
            self.runs.last().is_some_and(|run| (run.source_step, run.seen_step) == (source_step, seen_step));
        if !continues {
            self.runs.push(OffsetRun { source: self.source, seen: self.text.len(), source_step, seen_step });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_back_to_the_source() {
        let mut builder = NormalizedViewBuilder::default();
        builder.copy(b"ab");
        builder.step(1, b""); // dropped
        builder.copy(b"\n");
        builder.step(3, b"'"); // folded
        builder.step(2, b"xyz"); // one character of three bytes
        let view = builder.finish();
        assert_eq!(view.text(), b"ab\n'xyz");
        let offsets: Vec<_> = (0..=7).map(|seen| view.source_offset(seen)).collect();
        assert_eq!(offsets, [Some(0), Some(1), Some(2), Some(4), Some(7), None, None, Some(9)]);
        assert_eq!(NormalizedView::plain(b"abc").source_offset(2), Some(2));
    }
}
