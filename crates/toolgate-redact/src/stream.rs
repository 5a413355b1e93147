//! Redacts text that comes in chunks, with the same result as if it had come whole. Held back is only what could still
//! belong to a secret: the beginning of a keyword, or a keyword whose line isn't complete.

use std::mem;

use crate::colour_escapes::{ColourEscapes, first_escape};
use crate::rules::BEFORE;
use crate::scan::{KeywordHit, Scanner, SecretSpan, TextView};
use crate::{REDACTED, Redactor};

/// Large chunks are taken in pieces of this size, so that memory stays bounded.
const PIECE: usize = 64 * 1024;

/// Fewer bytes of a known secret occur in any text.
const TELLING: usize = 4;

/// A text in the course of being redacted. A clone goes on by itself from where it was made.
#[derive(Clone)]
pub struct StreamRedactor {
    redactor: Redactor,
    /// The text as it came.
    original: ScannedText,
    /// The text as a terminal shows it, from the first colour escape on.
    shown: Option<(ColourEscapes, ScannedText)>,
    /// Everything before this position was written or replaced.
    written: usize,
    /// The end of the last secret that was written over.
    replaced_to: Option<usize>,
    redacted: bool,
}

/// A text in which secrets are looked for, as far as it is needed.
#[derive(Clone, Default)]
struct ScannedText {
    /// Text that isn't decided, and what precedes it as far as rules look back.
    held: Vec<u8>,
    /// The position of the first held byte in the whole text.
    base: usize,
    /// Keywords are found up to here.
    scanned: usize,
    /// Where a keyword may have begun that isn't complete.
    resume: usize,
    /// Keywords whose window isn't complete.
    pending: Vec<KeywordHit>,
    /// Secrets not yet written over, or whose end isn't settled.
    spans: Vec<SecretSpan>,
}

/// How far a text is decided.
#[derive(Clone, Copy)]
struct Decided {
    /// No secret begins before this position any more.
    undecided: usize,
    /// The end, so far, of the first secret that still grows.
    growing: Option<usize>,
}

impl Decided {
    /// Before this position everything is certain.
    fn certain(&self) -> usize {
        self.growing.map_or(self.undecided, |end| end.min(self.undecided))
    }

    /// Whether everything is known about a secret that begins here, except perhaps its end.
    fn holds(&self, start: usize) -> bool {
        start < self.undecided && start <= self.certain()
    }
}

impl StreamRedactor {
    pub(crate) fn new(redactor: Redactor) -> Self {
        let original = ScannedText::default();
        Self { redactor, original, shown: None, written: 0, replaced_to: None, redacted: false }
    }

    /// Takes the next chunk and returns what is now certain.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut output = Vec::with_capacity(chunk.len());
        for mut piece in chunk.chunks(PIECE) {
            if self.shown.is_none()
                && let Some(plain) = first_escape(piece)
            {
                self.take(&piece[..plain], &mut output);
                let escapes = ColourEscapes::after(self.original.end());
                self.shown = Some((escapes, self.original.clone()));
                piece = &piece[plain..];
            }
            self.take(piece, &mut output);
        }
        output
    }

    /// The text has ended: returns what was held back. What is pushed afterwards is a new text.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut output = Vec::new();
        if let Some((escapes, shown)) = &mut self.shown {
            escapes.finish(&mut shown.held);
        }
        self.advance(true, &mut output);
        *self = Self { redacted: self.redacted, ..Self::new(self.redactor.clone()) };
        output
    }

    /// What is held back, as it can be shown before it is certain: where a secret may be in the course of being
    /// written, the mark stands.
    pub fn preview(&self) -> Vec<u8> {
        let scanner = &self.redactor.scanner;
        let shown = self.shown.as_ref();
        let shown = shown.and_then(|(escapes, shown)| Some(escapes.original(shown.unsure(scanner)?)));
        let mut ended = self.clone();
        if let Some(start) = self.original.unsure(scanner).into_iter().chain(shown).min() {
            ended.original.spans.push(SecretSpan::settled(start, self.original.end()));
        }
        ended.finish()
    }

    /// Whether anything was replaced so far.
    pub fn redacted(&self) -> bool {
        self.redacted
    }

    fn take(&mut self, bytes: &[u8], output: &mut Vec<u8>) {
        self.original.held.extend_from_slice(bytes);
        if let Some((escapes, shown)) = &mut self.shown {
            escapes.push(bytes, &mut shown.held);
        }
        self.advance(false, output);
    }

    fn advance(&mut self, complete: bool, output: &mut Vec<u8>) {
        let scanner = &self.redactor.scanner;
        let mut decided = self.original.advance(scanner, complete);
        let mut secrets = self.original.secrets(|position| position, |end| end);
        if let Some((escapes, shown)) = &mut self.shown {
            let also = shown.advance(scanner, complete);
            decided.undecided = decided.undecided.min(escapes.original(also.undecided));
            let growing = also.growing.map(|end| escapes.original_end(end));
            decided.growing = decided.growing.into_iter().chain(growing).min();
            secrets.extend(shown.secrets(|position| escapes.original(position), |end| escapes.original_end(end)));
            shown.forget(|span| decided.holds(escapes.original(span.start)), also.certain());
            escapes.forget_before(shown.base);
        }
        self.write(secrets, decided, output);
        self.original.forget(|span| decided.holds(span.start), decided.certain().min(self.written));
    }

    /// Writes text up to what is certain, and the mark for every secret in it.
    fn write(&mut self, mut secrets: Vec<(usize, usize)>, decided: Decided, output: &mut Vec<u8>) {
        let view = self.original.view(false);
        secrets.sort_unstable();
        for (start, end) in secrets.into_iter().take_while(|(start, _)| decided.holds(*start)) {
            if self.replaced_to.is_none_or(|end| start > end) {
                if start > self.written {
                    output.extend_from_slice(view.slice(self.written..start));
                }
                output.extend_from_slice(REDACTED.as_bytes());
                self.redacted = true;
            }
            let end = self.replaced_to.map_or(end, |before| before.max(end));
            self.replaced_to = Some(end);
            self.written = self.written.max(end);
        }
        let certain = decided.certain();
        if certain > self.written {
            output.extend_from_slice(view.slice(self.written..certain));
            self.written = certain;
        }
    }
}

impl ScannedText {
    fn view(&self, complete: bool) -> TextView<'_> {
        TextView { bytes: &self.held, base: self.base, complete }
    }

    fn end(&self) -> usize {
        self.base + self.held.len()
    }

    fn advance(&mut self, scanner: &Scanner, complete: bool) -> Decided {
        let held = mem::take(&mut self.held);
        let view = TextView { bytes: &held, base: self.base, complete };
        let undecided = self.find(scanner, view);
        let growing = self.spans.iter_mut().filter_map(|span| (!span.grow(view)).then_some(span.end));
        let growing = growing.min();
        self.held = held;
        Decided { undecided, growing }
    }

    /// Finds the secrets in what is new. Returns the position before which no other will begin.
    fn find(&mut self, scanner: &Scanner, view: TextView<'_>) -> usize {
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

    /// Where a secret may have begun that isn't complete: in the last word, if a keyword leads to it or it begins like a
    /// known secret. A prompt, such as `Password for me: `, has no such word.
    fn unsure(&self, scanner: &Scanner) -> Option<usize> {
        let (view, end) = (self.view(false), self.end());
        let word = self.held.iter().rposition(|byte| separates(*byte)).map_or(self.base, |at| self.base + at + 1);
        let led = self.pending.iter().filter_map(|hit| {
            let start = word.max(hit.end);
            let is_led = view.slice(start..end).iter().any(u8::is_ascii_alphanumeric)
                && leads(view.slice(hit.end..start))
                && scanner.may_lead(hit, view);
            is_led.then_some(start)
        });
        let begun = Some(scanner.begun_secret(view.bytes)).filter(|length| *length >= TELLING);
        led.chain(begun.map(|length| end - length)).min()
    }

    /// The secrets that aren't written over, by their positions in the original.
    fn secrets(&self, start: impl Fn(usize) -> usize, end: impl Fn(usize) -> usize) -> Vec<(usize, usize)> {
        self.spans.iter().map(|span| (start(span.start), end(span.end))).collect()
    }

    /// Forgets secrets that are written over, and the text before `position` that no rule looks back to.
    fn forget(&mut self, is_written: impl Fn(&SecretSpan) -> bool, position: usize) {
        self.spans.retain(|span| !is_written(span) || !span.is_settled());
        let needed = self.needed().min(position).saturating_sub(BEFORE).max(self.base);
        self.held.drain(..needed - self.base);
        self.base = needed;
    }

    /// The position before which nothing is undecided.
    fn needed(&self) -> usize {
        let pending = self.pending.iter().map(|hit| hit.start);
        let growing = self.spans.iter().map(|span| if span.is_settled() { self.end() } else { span.end });
        pending.chain(growing).fold(self.resume, usize::min)
    }
}

/// Whether a value may begin after this byte.
fn separates(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"=:\"'`<>(),;".contains(&byte)
}

/// Whether this, between a keyword and a word, lets the word be the keyword's value: other words don't, unless something
/// assigns or names an option.
fn leads(between: &[u8]) -> bool {
    let has_words = between.iter().any(u8::is_ascii_alphanumeric);
    !has_words || between.iter().any(|byte| b"=:\"'-".contains(byte))
}

#[cfg(test)]
impl StreamRedactor {
    /// How many things are in memory.
    pub(crate) fn held(&self) -> usize {
        let held = |text: &ScannedText| text.held.len() + text.pending.len() + text.spans.len();
        held(&self.original) + self.shown.as_ref().map_or(0, |(_, shown)| held(shown))
    }
}
