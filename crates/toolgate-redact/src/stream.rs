//! Redacts text that comes in chunks, with the same result as if it had come whole. Held back is only what could still
//! belong to a secret: the beginning of a keyword, or a keyword whose line isn't complete.

use std::mem;

use crate::rules::BEFORE;
use crate::scan::{KeywordHit, SecretSpan, TextView};
use crate::{REDACTED, Redactor};

/// Large chunks are taken in pieces of this size, so that memory stays bounded.
const PIECE: usize = 64 * 1024;

/// A text in the course of being redacted. A clone goes on by itself from where it was made.
#[derive(Clone)]
pub struct StreamRedactor {
    redactor: Redactor,
    /// Text not yet written, and what precedes it as far as rules look back.
    held: Vec<u8>,
    /// The position of the first held byte in the whole text.
    base: usize,
    /// Everything before this position was written or replaced.
    written: usize,
    /// Keywords are found up to here.
    scanned: usize,
    /// Where a keyword may have begun that isn't complete.
    resume: usize,
    /// Keywords whose window isn't complete.
    pending: Vec<KeywordHit>,
    /// Secrets not yet written over, or whose end isn't settled.
    spans: Vec<SecretSpan>,
    /// The end of the last secret that was written over.
    replaced_to: Option<usize>,
    redacted: bool,
}

impl StreamRedactor {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            held: Vec::new(),
            base: 0,
            written: 0,
            scanned: 0,
            resume: 0,
            pending: Vec::new(),
            spans: Vec::new(),
            replaced_to: None,
            redacted: false,
        }
    }

    /// Takes the next chunk and returns what is now certain.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut output = Vec::with_capacity(chunk.len());
        for piece in chunk.chunks(PIECE) {
            self.held.extend_from_slice(piece);
            self.advance(false, &mut output);
        }
        output
    }

    /// The text has ended: returns what was held back. What is pushed afterwards is a new text.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut output = Vec::new();
        self.advance(true, &mut output);
        *self = Self { redacted: self.redacted, ..Self::new(self.redactor.clone()) };
        output
    }

    /// Whether anything was replaced so far.
    pub fn redacted(&self) -> bool {
        self.redacted
    }

    fn advance(&mut self, complete: bool, output: &mut Vec<u8>) {
        let held = mem::take(&mut self.held);
        let view = TextView { bytes: &held, base: self.base, complete };
        let undecided = self.find(view);
        let growing = self.spans.iter_mut().filter_map(|span| (!span.grow(view)).then_some(span.end));
        let certain = growing.fold(undecided, usize::min);
        self.write(view, undecided, certain, output);
        let needed = undecided.min(self.written).min(certain).saturating_sub(BEFORE).max(self.base);
        self.held = held;
        self.held.drain(..needed - self.base);
        self.base = needed;
    }

    /// Finds the secrets in what is new. Returns the position before which no other will begin.
    fn find(&mut self, view: TextView<'_>) -> usize {
        let scanner = &self.redactor.scanner;
        let hits = scanner.hits(view.slice(self.resume..view.end()), self.resume);
        self.pending.extend(hits.filter(|hit| hit.end > self.scanned));
        self.scanned = view.end();
        self.resume = view.end() - if view.complete { 0 } else { scanner.unfinished(view.bytes) };
        let spans = &mut self.spans;
        self.pending.retain(|hit| {
            let ready = scanner.is_ready(hit, view);
            if ready {
                spans.extend(scanner.spans(*hit, view));
            }
            !ready
        });
        self.pending.iter().map(|hit| hit.start).fold(self.resume, usize::min)
    }

    /// Writes text up to `certain`, and the mark for every secret in it. No secret begins before `undecided` any more,
    /// but one that still grows may reach from `certain` up to there.
    fn write(&mut self, view: TextView<'_>, undecided: usize, certain: usize, output: &mut Vec<u8>) {
        self.spans.sort_by_key(|span| span.start);
        let decided = |span: &SecretSpan| span.start < undecided && span.start <= certain;
        for span in self.spans.iter().take_while(|span| decided(span)) {
            if self.replaced_to.is_none_or(|end| span.start > end) {
                if span.start > self.written {
                    output.extend_from_slice(view.slice(self.written..span.start));
                }
                output.extend_from_slice(REDACTED.as_bytes());
                self.redacted = true;
            }
            let end = self.replaced_to.map_or(span.end, |end| end.max(span.end));
            self.replaced_to = Some(end);
            self.written = self.written.max(end);
        }
        if certain > self.written {
            output.extend_from_slice(view.slice(self.written..certain));
            self.written = certain;
        }
        self.spans.retain(|span| !decided(span) || !span.is_settled());
    }
}

#[cfg(test)]
impl StreamRedactor {
    /// How many things are in memory.
    pub(crate) fn held(&self) -> usize {
        self.held.len() + self.pending.len() + self.spans.len()
    }
}
