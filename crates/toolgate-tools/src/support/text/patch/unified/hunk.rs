//! Parses one hunk. Models and people often miscount the lines in a hunk's header: when the counts are wrong but the
//! lines alone are unambiguous, the lines decide and the hunk carries a note.

use super::{Hunk, PatchFault, PatchLines, begins_names};
use crate::support::text::line_block::{DiffLine, RawLine};
use crate::support::text::patch::row;

/// The ranges in a hunk header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HunkRange {
    old_start: usize,
    old_count: usize,
    new_start: usize,
    new_count: usize,
}

/// Parses the hunk that begins at a line, and moves `at` past it.
pub(super) fn read<'a>(lines: &PatchLines<'a>, at: &mut usize) -> Result<Hunk<'a>, PatchFault> {
    let start = *at;
    let header = lines.header(start);
    let range = range(header);
    if range.is_none() && header.starts_with(b"@@ -") {
        return Err(PatchFault::malformed(start, "the hunk's header isn't like `@@ -1,3 +1,4 @@`."));
    }
    let mut hunk = Hunk::new(start + 1);
    hunk.start = range.map(|range| range.old_start);
    let counted = range.and_then(|range| body_by_counts(lines, start + 1, range));
    let (steps, end) = match counted {
        Some(body) => body,
        None => {
            hunk.trusted = false;
            body_by_prefixes(lines, start + 1)?
        }
    };
    hunk.steps = steps;
    check_ends(start, &hunk)?;
    if let (Some(range), false) = (range, hunk.trusted) {
        hunk.note = Some(format!(
            "The header counts {} before and {} after, the hunk has {} and {}; it was applied by its lines.",
            toolgate_contract::counted(range.old_count, "line"),
            range.new_count,
            hunk.old_count(),
            hunk.new_count()
        ));
    }
    *at = end;
    Ok(hunk)
}

/// Parses `@@ -1,3 +1,4 @@`; a missing count is 1.
fn range(header: &[u8]) -> Option<HunkRange> {
    let text = std::str::from_utf8(header).unwrap_or_else(|fault| {
        // The text after the second `@@` is a line of the file, in any encoding.
        std::str::from_utf8(&header[..fault.valid_up_to()]).unwrap_or_default()
    });
    let (ranges, _) = text.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let numbers = |side: &str| match side.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((side.parse().ok()?, 1)),
    };
    let ((old_start, old_count), (new_start, new_count)) = (numbers(old)?, numbers(new)?);
    Some(HunkRange { old_start, old_count, new_start, new_count })
}

/// A line of a hunk's body.
enum HunkLine<'a> {
    Line(DiffLine<'a>),
    NoNewline,
    Other,
}

fn mark(line: &[u8]) -> HunkLine<'_> {
    match line.split_first() {
        // Some tools drop the space of an empty context line.
        None | Some((b'\r', [])) => HunkLine::Line(DiffLine::Keep(row(line))),
        Some((b' ', rest)) => HunkLine::Line(DiffLine::Keep(row(rest))),
        Some((b'-', rest)) => HunkLine::Line(DiffLine::Drop(row(rest))),
        Some((b'+', rest)) => HunkLine::Line(DiffLine::Add(row(rest))),
        Some((b'\\', _)) => HunkLine::NoNewline,
        Some(_) => HunkLine::Other,
    }
}

/// The body as the header counts it; `None` when the counts are wrong.
fn body_by_counts<'a>(lines: &PatchLines<'a>, mut at: usize, range: HunkRange) -> Option<(Vec<DiffLine<'a>>, usize)> {
    let (mut old, mut new) = (range.old_count, range.new_count);
    let mut steps = Vec::with_capacity(old.max(new).min(lines.len()));
    while old > 0 || new > 0 {
        match mark(lines.raw(at)?) {
            HunkLine::Line(step) => {
                old = old.checked_sub(usize::from(!matches!(step, DiffLine::Add(_))))?;
                new = new.checked_sub(usize::from(!matches!(step, DiffLine::Drop(_))))?;
                steps.push(step);
            }
            HunkLine::NoNewline => end_without_newline(&mut steps)?,
            HunkLine::Other => return None,
        }
        at += 1;
    }
    if let Some(HunkLine::NoNewline) = lines.raw(at).map(mark) {
        end_without_newline(&mut steps)?;
        at += 1;
    }
    (range.old_start < usize::MAX && range.new_start < usize::MAX && !goes_on(lines, at)).then_some((steps, at))
}

/// Whether the hunk continues after the lines that its header counts.
fn goes_on(lines: &PatchLines<'_>, at: usize) -> bool {
    let next = (at..lines.len()).find(|&next| !lines.trimmed(next).is_empty()).unwrap_or(lines.len());
    if begins_names(lines, next) || is_signature(lines, next) {
        return false;
    }
    match lines.raw(next).unwrap_or_default().first() {
        Some(b'+' | b'-') => true,
        Some(b' ') => next == at,
        _ => false,
    }
}

/// The body up to the first line that isn't part of a hunk.
fn body_by_prefixes<'a>(lines: &PatchLines<'a>, start: usize) -> Result<(Vec<DiffLine<'a>>, usize), PatchFault> {
    let (mut steps, mut blanks, mut at) = (Vec::new(), 0, start);
    while let Some(line) = lines.raw(at) {
        if begins_names(lines, at) && !lines.header(at + 2).starts_with(b"@@") {
            let message = "the hunk's counts are wrong, and this line may be part of it or begin another file.";
            return Err(PatchFault::malformed(at, message));
        }
        if begins_names(lines, at) || ends_hunk(line) || is_signature(lines, at) {
            break;
        }
        match mark(line) {
            // Empty lines at the end only separate the hunk from what follows.
            HunkLine::Line(_) if lines.header(at).is_empty() => blanks += 1,
            HunkLine::Line(step) => {
                steps.extend(std::iter::repeat_n(DiffLine::Keep(row(b"")), std::mem::take(&mut blanks)));
                steps.push(step);
            }
            HunkLine::NoNewline if end_without_newline(&mut steps).is_some() => {}
            _ => {
                let message = "the hunk isn't complete, and this line begins with neither a space, `+` nor `-`.";
                return Err(PatchFault::malformed(at, message));
            }
        }
        at += 1;
    }
    match steps.iter().all(|step| matches!(step, DiffLine::Keep(_))) {
        true => Err(PatchFault::malformed(start - 1, "the hunk changes nothing.")),
        false => Ok((steps, at)),
    }
}

/// Whether a line can follow the last line of a hunk.
fn ends_hunk(line: &[u8]) -> bool {
    const FOLLOWERS: [&[u8]; 11] = [
        b"@@",
        b"diff ",
        b"Index: ",
        b"====",
        b"***",
        b"```",
        b"commit ",
        b"From ",
        b"Only in ",
        b"Binary files ",
        b"EOF",
    ];
    FOLLOWERS.iter().any(|follower| line.starts_with(follower))
}

/// Whether these are the two lines that end a patch sent by mail: dashes and a version.
fn is_signature(lines: &PatchLines<'_>, at: usize) -> bool {
    lines.trimmed(at) == b"--" && lines.header(at + 1).first().is_some_and(u8::is_ascii_digit)
}

/// Removes the newline from the last line read.
fn end_without_newline(steps: &mut [DiffLine<'_>]) -> Option<()> {
    let (DiffLine::Keep(row) | DiffLine::Drop(row) | DiffLine::Add(row)) = steps.last_mut()?;
    row.newline = false;
    Some(())
}

/// Only the last line of each side can be without a newline.
fn check_ends(at: usize, hunk: &Hunk<'_>) -> Result<(), PatchFault> {
    let block = hunk.block(super::PatchFormat::Unified);
    let early = |rows: Vec<RawLine<'_>>| rows.split_last().is_some_and(|(_, rest)| rest.iter().any(|row| !row.newline));
    match early(block.before().collect()) || early(block.after().collect()) {
        true => Err(PatchFault::malformed(at, "a line follows one that ends the file without a newline.")),
        false => Ok(()),
    }
}
