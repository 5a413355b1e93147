//! Parses the `*** Begin Patch` format of OpenAI's `apply_patch`, with the leniency that models rely on: a missing
//! first `@@`, whitespace around the markers, a shell here-document around the patch.

use super::header_paths::name;
use super::{FileOperation, FilePatch, Hunk, ModeChange, PatchFault, PatchFormat, PatchLines, row};
use crate::support::text::line_block::DiffLine;

pub(super) const BEGIN: &[u8] = b"*** Begin Patch";
const END: &[u8] = b"*** End Patch";
const END_OF_FILE: &[u8] = b"*** End of File";

/// Parses all files of the patch that begins at a line.
pub(super) fn parse<'a>(lines: &PatchLines<'a>, start: usize) -> Result<Vec<FilePatch<'a>>, PatchFault> {
    let mut files = Vec::new();
    let mut at = start + 1;
    let end = (at..lines.len()).rfind(|&at| lines.trimmed(at) == END);
    loop {
        let line = lines.trimmed(at);
        if at >= lines.len() {
            return Err(PatchFault::malformed(at - 1, "`*** End Patch` is missing: the patch may have been cut off."));
        } else if line.is_empty() {
            at += 1;
        } else if line == END {
            return nothing_after(lines, at + 1).map(|()| files);
        } else {
            files.push(file(lines, &mut at, end)?);
        }
    }
}

/// After the end, only the end of a here-document or of a code block may follow.
fn nothing_after(lines: &PatchLines<'_>, end: usize) -> Result<(), PatchFault> {
    let is_closing = |line: &[u8]| line.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_`'\")".contains(byte));
    match (end..lines.len()).find(|&at| !is_closing(lines.trimmed(at))) {
        Some(at) => {
            Err(PatchFault::malformed(at, "text after `*** End Patch`. Put all files between one pair of markers."))
        }
        None => Ok(()),
    }
}

/// Parses one file's part. `end` is the last line that may be the end marker.
fn file<'a>(lines: &PatchLines<'a>, at: &mut usize, end: Option<usize>) -> Result<FilePatch<'a>, PatchFault> {
    let start = *at;
    let line = lines.trimmed(start);
    let path = |marker: &str| line.strip_prefix(marker.as_bytes()).map(|path| file_name(start, path));
    *at += 1;
    let (path, operation, hunks) = if let Some(path) = path("*** Add File:") {
        (path?, FileOperation::Create, vec![added(lines, at)?])
    } else if let Some(path) = path("*** Delete File:") {
        (path?, FileOperation::Delete, Vec::new())
    } else if let Some(path) = path("*** Update File:") {
        let operation = match lines.trimmed(*at).strip_prefix(b"*** Move to:") {
            Some(to) => {
                *at += 1;
                FileOperation::Move { to: file_name(*at - 1, to)? }
            }
            None => FileOperation::Update,
        };
        let hunks = hunks(lines, at, end)?;
        if hunks.is_empty() && operation == FileOperation::Update {
            return Err(PatchFault::malformed(start, "the update has no lines to change."));
        }
        (path?, operation, hunks)
    } else {
        let message = "expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or `*** End Patch`.";
        return Err(PatchFault::malformed(start, message));
    };
    let mode = ModeChange::default();
    Ok(FilePatch { path, operation, mode, format: PatchFormat::Envelope, patch_line: start + 1, hunks })
}

fn file_name(at: usize, text: &[u8]) -> Result<String, PatchFault> {
    // Paths in this format are never quoted, so a quote is part of the path; a tab can't be.
    let text = text.trim_ascii();
    match text.starts_with(b"\"") {
        true => String::from_utf8(text.to_vec()).map_err(|_| PatchFault::malformed(at, "the path isn't valid UTF-8.")),
        false => name(at, text).map(|(path, _)| path),
    }
}

/// Parses the lines of a new file.
fn added<'a>(lines: &PatchLines<'a>, at: &mut usize) -> Result<Hunk<'a>, PatchFault> {
    let mut hunk = Hunk::new(*at);
    while let Some(line) = lines.raw(*at).and_then(|line| line.strip_prefix(b"+")) {
        hunk.steps.push(DiffLine::Add(row(line)));
        *at += 1;
    }
    let next = (*at..lines.len()).find(|&next| !lines.trimmed(next).is_empty()).unwrap_or(lines.len());
    match next == lines.len() || lines.trimmed(next).starts_with(b"***") {
        true => Ok(hunk),
        false => Err(PatchFault::malformed(*at, "every line of a new file begins with `+`.")),
    }
}

/// Parses the hunks of an update, up to the next file. A line of context may be `*** End Patch` itself; the last such
/// line is the marker, also if it is indented.
fn hunks<'a>(lines: &PatchLines<'a>, at: &mut usize, end: Option<usize>) -> Result<Vec<Hunk<'a>>, PatchFault> {
    let mut hunks = HunkCollector::default();
    while let Some(line) = lines.raw(*at) {
        let marker = lines.trimmed(*at);
        if marker == END_OF_FILE {
            let hunk = hunks.done.last_mut().ok_or_else(|| PatchFault::malformed(*at, "no hunk comes before it."))?;
            hunk.at_end = true;
        } else if line.starts_with(b"*** ") || end == Some(*at) {
            break;
        } else if line.starts_with(b"@@") {
            hunks.head(*at, heading(line));
        } else if line.is_empty() || line == b"\r" {
            hunks.blanks += 1;
        } else {
            hunks.step(*at, step(*at, line)?);
        }
        *at += 1;
    }
    match hunks.done.iter().find(|hunk| hunk.steps.iter().all(|step| matches!(step, DiffLine::Keep(_)))) {
        Some(hunk) => Err(PatchFault::malformed(hunk.patch_line - 1, "the hunk changes nothing.")),
        None => Ok(hunks.done),
    }
}

/// The hunks parsed so far, and the empty lines since the last diff line. Between two diff lines these are empty
/// context lines; elsewhere they only separate hunks.
#[derive(Default)]
struct HunkCollector<'a> {
    done: Vec<Hunk<'a>>,
    blanks: usize,
}

impl<'a> HunkCollector<'a> {
    fn head(&mut self, at: usize, heading: Option<&'a [u8]>) {
        self.blanks = 0;
        if self.done.last().is_none_or(|hunk| !hunk.steps.is_empty() || hunk.at_end) {
            self.done.push(Hunk::new(at + 1));
        }
        self.done.last_mut().into_iter().for_each(|hunk| hunk.headings.extend(heading));
    }

    fn step(&mut self, at: usize, step: DiffLine<'a>) {
        let blanks = std::mem::take(&mut self.blanks);
        match self.done.last_mut().filter(|hunk| !hunk.at_end) {
            Some(hunk) => {
                let inside = if hunk.steps.is_empty() { 0 } else { blanks };
                hunk.steps.extend(std::iter::repeat_n(DiffLine::Keep(row(b"")), inside));
                hunk.steps.push(step);
            }
            None => self.done.push(Hunk { steps: vec![step], ..Hunk::new(at + 1) }),
        }
    }
}

/// The text after a `@@`. A line number is ignored: it doesn't belong in this format, and a guessed one would mislead.
fn heading(line: &[u8]) -> Option<&[u8]> {
    let text = line[2..].trim_ascii();
    let has_numbers = text.starts_with(b"-") && text.get(1).is_some_and(u8::is_ascii_digit);
    (!text.is_empty() && text != b"@@" && !has_numbers).then_some(text)
}

fn step(at: usize, line: &[u8]) -> Result<DiffLine<'_>, PatchFault> {
    match line.split_first() {
        Some((b' ', rest)) => Ok(DiffLine::Keep(row(rest))),
        Some((b'-', rest)) => Ok(DiffLine::Drop(row(rest))),
        Some((b'+', rest)) => Ok(DiffLine::Add(row(rest))),
        _ => Err(PatchFault::malformed(at, "expected a line that begins with a space, `+`, `-` or `@@`.")),
    }
}
