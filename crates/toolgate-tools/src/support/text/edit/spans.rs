//! Matches a text anywhere inside the file's text: the tiers for exact text, line endings, and punctuation.
//!
//! Only the part in which `find` and `replace` differ is replaced. The common part keeps the file's bytes, including
//! odd line endings and curly quotes.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr3, memmem, memrchr};

use super::{EditFault, EditPlan, LISTED};
use crate::support::text::indexed_text::ascii_lookalike;
use crate::support::text::lines::line_number;
use crate::support::text::match_tier::MatchTier;
use crate::support::text::nearest::{NumberedLine, clipped};
use crate::support::text::normalized_view::{NormalizedView, NormalizedViewBuilder};
use crate::support::text::splice::Splice;

/// Which differences a match ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Normalization {
    /// None; line endings must match.
    Raw,
    /// CR before LF.
    Endings,
    /// CR before LF, and special quotes, dashes and spaces.
    Punctuation,
}

/// The changes, if the text is found: one match, or all.
pub(super) fn plan(
    text: &[u8],
    lens: Normalization,
    find: &str,
    replace: &str,
    all: bool,
) -> Result<Option<EditPlan>, EditFault> {
    if lens == Normalization::Endings && find.contains('\n') && is_all_crlf(text) {
        return plan_crlf(text, find, replace, all);
    }
    let (view, needle) = (lens.view(text, find), lens.view(find.as_bytes(), find));
    let spans = spans(&view, needle.text(), all);
    let Some(first) = spans.first() else { return Ok(None) };
    let exact = spans.iter().all(|span| text[span.clone()] == *find.as_bytes());
    let tier = match lens {
        _ if exact => MatchTier::Exact,
        Normalization::Punctuation => MatchTier::Punctuation,
        Normalization::Raw | Normalization::Endings => MatchTier::LineEndings,
    };
    if spans.len() > 1 && !all {
        return Err(ambiguous(text, tier, &spans));
    }
    let splices = if exact && !replace.contains('\n') {
        spans.iter().map(|span| Splice { range: span.clone(), bytes: replace.into() }).collect()
    } else {
        let common = CommonAffixes::of(find, replace);
        spans.iter().map(|span| common.splice(text, lens, span)).collect()
    };
    Ok(Some(EditPlan { splices, replacements: spans.len(), tier, note: note(tier), start: first.start }))
}

/// In a file where every line ends in CRLF no view is needed: both texts are converted to CRLF.
fn plan_crlf(text: &[u8], find: &str, replace: &str, all: bool) -> Result<Option<EditPlan>, EditFault> {
    let replace = if replace.contains('\r') { replace.to_owned() } else { replace.replace('\n', "\r\n") };
    let plan = plan(text, Normalization::Raw, &find.replace('\n', "\r\n"), &replace, all)?;
    Ok(plan.map(|plan| EditPlan { tier: MatchTier::LineEndings, note: note(MatchTier::LineEndings), ..plan }))
}

fn is_all_crlf(text: &[u8]) -> bool {
    let mut newlines = memchr_iter(b'\n', text);
    let is_crlf = |at: usize| at > 0 && text[at - 1] == b'\r';
    newlines.next().is_some_and(is_crlf) && newlines.all(is_crlf)
}

/// The note for a tier.
pub(super) fn note(tier: MatchTier) -> Option<String> {
    match tier {
        MatchTier::LineEndings => {
            Some("Matched with other line endings; new lines use the endings of the lines around them.".into())
        }
        MatchTier::Punctuation => Some(
            "Matched although quotes, dashes or spaces differ in the file; the new text is inserted as given.".into(),
        ),
        _ => None,
    }
}

fn ambiguous(text: &[u8], tier: MatchTier, spans: &[Range<usize>]) -> EditFault {
    let numbered = |span: &Range<usize>| {
        let start = memrchr(b'\n', &text[..span.start]).map_or(0, |at| at + 1);
        let end = memchr(b'\n', &text[span.start..]).map_or(text.len(), |at| span.start + at);
        NumberedLine { line: line_number(text, span.start), text: clipped(&text[start..end]) }
    };
    EditFault::Ambiguous {
        tier,
        matches: spans.iter().take(LISTED).map(numbered).collect(),
        more: spans.len() > LISTED,
    }
}

/// The matches of the needle, as offsets into the text. For a single replacement, overlapping matches count too.
fn spans(view: &NormalizedView<'_>, needle: &[u8], all: bool) -> Vec<Range<usize>> {
    let finder = memmem::Finder::new(needle);
    let (mut spans, mut at) = (Vec::new(), 0);
    while let Some(hit) = finder.find(&view.text()[at..]).map(|hit| hit + at) {
        let (start, end) = (view.source_offset(hit), view.source_offset(hit + needle.len()));
        let found = start.zip(end).map(|(start, end)| spans.push(start..end)).is_some();
        if !all && spans.len() > LISTED {
            break;
        }
        at = if all && found { hit + needle.len() } else { hit + 1 };
    }
    spans
}

impl Normalization {
    /// The text as matched for `find`.
    fn view<'a>(self, text: &'a [u8], find: &str) -> NormalizedView<'a> {
        let endings_matter = find.contains('\n') && memmem::find(text, b"\r\n").is_some();
        match self {
            Self::Raw => NormalizedView::plain(text),
            Self::Endings if !endings_matter => NormalizedView::plain(text),
            Self::Endings => view(text, |rest| memchr(b'\r', rest), dropped_return),
            Self::Punctuation => view(text, special, |rest| dropped_return(rest).or_else(|| ascii_lookalike(rest))),
        }
    }
}

/// The view of a text in which `fold` replaces characters, at the positions that `next` finds.
fn view(
    text: &[u8],
    next: impl Fn(&[u8]) -> Option<usize>,
    fold: impl Fn(&[u8]) -> Option<(usize, &'static [u8])>,
) -> NormalizedView<'static> {
    let mut builder = NormalizedViewBuilder::default();
    let mut rest = text;
    while let Some(at) = next(rest) {
        builder.copy(&rest[..at]);
        rest = &rest[at..];
        let length = match fold(rest) {
            Some((length, seen)) => {
                builder.step(length, seen);
                length
            }
            None => {
                builder.copy(&rest[..1]);
                1
            }
        };
        rest = &rest[length..];
    }
    builder.copy(rest);
    builder.finish()
}

fn dropped_return(rest: &[u8]) -> Option<(usize, &'static [u8])> {
    rest.starts_with(b"\r\n").then_some((1, b""))
}

/// Offset of the next possible CR or special character.
fn special(rest: &[u8]) -> Option<usize> {
    let found = memchr3(0xC2, 0xE2, 0xE3, rest);
    let before = found.map_or(rest, |at| &rest[..at]);
    memchr(b'\r', before).or(found)
}

/// The common prefix and suffix of `find` and `replace`, and the parts between.
struct CommonAffixes<'a> {
    prefix: &'a str,
    suffix: &'a str,
    new: &'a str,
}

impl<'a> CommonAffixes<'a> {
    fn of(find: &'a str, replace: &'a str) -> Self {
        let prefix: usize = find
            .chars()
            .zip(replace.chars())
            .take_while(|(old, new)| old == new)
            .map(|(character, _)| character.len_utf8())
            .sum();
        let (old, new) = (&find[prefix..], &replace[prefix..]);
        let suffix: usize = old
            .chars()
            .rev()
            .zip(new.chars().rev())
            .take_while(|(old, new)| old == new)
            .map(|(character, _)| character.len_utf8())
            .sum();
        Self { prefix: &find[..prefix], suffix: &old[old.len() - suffix..], new: &new[..new.len() - suffix] }
    }

    /// The change for one match: only the differing part, with the line endings used there.
    fn splice(&self, text: &[u8], lens: Normalization, span: &Range<usize>) -> Splice {
        let seen = lens.view(&text[span.clone()], "\n");
        let seen_length = |part: &str| lens.view(part.as_bytes(), "\n").text().len();
        let start = seen.source_offset(seen_length(self.prefix));
        let end = seen.source_offset(seen.text().len() - seen_length(self.suffix));
        let (Some(start), Some(end)) = (start, end) else {
            return Splice { range: span.clone(), bytes: [self.prefix, self.new, self.suffix].concat().into() };
        };
        let range = span.start + start..span.start + end;
        let bytes = match lens == Normalization::Raw || self.new.contains('\r') {
            true => self.new.into(),
            false => with_endings(text, &range, self.new),
        };
        Splice { range, bytes }
    }
}

/// The new text with the line endings of the lines it replaces, else of the neighbouring lines.
fn with_endings(text: &[u8], range: &Range<usize>, new: &str) -> Vec<u8> {
    let is_crlf = |newline: usize| newline > 0 && text[newline - 1] == b'\r';
    let replaced: Vec<bool> = memchr_iter(b'\n', &text[range.clone()]).map(|at| is_crlf(range.start + at)).collect();
    // A line beyond those replaced ends like the line that now follows it.
    let after = memchr(b'\n', &text[range.end..]).map(|at| is_crlf(range.end + at));
    let before = || memrchr(b'\n', &text[..range.start]).is_some_and(is_crlf);
    let further = after.or(replaced.last().copied()).unwrap_or_else(before);
    let mut bytes = Vec::with_capacity(new.len());
    for (index, line) in new.split_inclusive('\n').enumerate() {
        match line.strip_suffix('\n') {
            Some(body) if replaced.get(index).copied().unwrap_or(further) => {
                bytes.extend_from_slice(body.as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
            _ => bytes.extend_from_slice(line.as_bytes()),
        }
    }
    bytes
}
