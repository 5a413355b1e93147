//! Replaces one text by another inside a file: matched exactly if possible, leniently if that is safe.
//!
//! Leniency only ever applies to a single match. When nothing matches, the error shows the nearest text.

mod blocks;
mod fault;
mod spans;

use super::indexed_text::IndexedText;
use super::lines::line_number;
use super::match_tier::MatchTier;
use super::nearest::nearest;
use super::reencode::Encoding;
use super::splice::Splice;
pub use fault::EditFault;
use spans::Normalization;

/// How many matches an ambiguity error lists.
const LISTED: usize = 10;

/// What is between the number of a line and its text, wherever models are shown both.
const LINE_NUMBER_MARKS: [&str; 3] = ["→", "\t", ": "];

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedText {
    /// The complete new content.
    pub content: Vec<u8>,
    /// How many places were changed.
    pub replacements: usize,
    /// Which differences the match ignored.
    pub tier: MatchTier,
    /// What the leniency did, for the reader.
    pub note: Option<String>,
    /// The line of the first match, from 1.
    pub first_line: usize,
}

/// The planned changes, on the text as UTF-8.
struct EditPlan {
    splices: Vec<Splice>,
    replacements: usize,
    tier: MatchTier,
    note: Option<String>,
    start: usize,
}

/// Replaces the only occurrence of `find`, or all of them. Both texts are UTF-8 with LF and taken literally.
pub fn edit(content: &[u8], find: &str, replace: &str, all: bool) -> Result<EditedText, EditFault> {
    edit_in(Encoding::Utf8, content, find, replace, all)
}

/// Like [`edit`], for a file in any encoding.
pub fn edit_in(
    encoding: Encoding,
    content: &[u8],
    find: &str,
    replace: &str,
    all: bool,
) -> Result<EditedText, EditFault> {
    if find.is_empty() {
        return Err(EditFault::EmptyFind);
    }
    if find == replace {
        return Err(EditFault::NothingChanges);
    }
    let view = encoding.view(content)?;
    let plan = plan(view.text(), find, replace, all)?;
    let first_line = line_number(view.text(), plan.start);
    let content = encoding.spliced(content, &view, plan.splices)?;
    Ok(EditedText { content, replacements: plan.replacements, tier: plan.tier, note: plan.note, first_line })
}

/// Tries the text as written; then, if it contains CRLF, once more with any line endings.
fn plan(text: &[u8], find: &str, replace: &str, all: bool) -> Result<EditPlan, EditFault> {
    if !find.contains('\r') {
        return plan_by_tiers(text, find, replace, all);
    }
    if let Some(plan) = spans::plan(text, Normalization::Raw, find, replace, all)? {
        return Ok(plan);
    }
    let (find, replace) = (find.replace("\r\n", "\n"), replace.replace("\r\n", "\n"));
    if find == replace {
        return Err(no_match(text, &find));
    }
    let mut plan = plan_by_tiers(text, &find, &replace, all)?;
    if plan.tier == MatchTier::Exact {
        (plan.tier, plan.note) = (MatchTier::LineEndings, spans::note(MatchTier::LineEndings));
    }
    Ok(plan)
}

/// Tries the tiers in order. The first tier with a match decides.
fn plan_by_tiers(text: &[u8], find: &str, replace: &str, all: bool) -> Result<EditPlan, EditFault> {
    if let Some(plan) = spans::plan(text, Normalization::Endings, find, replace, all)? {
        return Ok(plan);
    }
    for tier in [MatchTier::TrailingWhitespace, MatchTier::Indentation] {
        if let Some(plan) = blocks::plan(text, tier, find, replace)? {
            return Ok(plan);
        }
    }
    if let Some(plan) = spans::plan(text, Normalization::Punctuation, find, replace, false)? {
        return Ok(plan);
    }
    Err(no_match(text, find))
}

fn no_match(text: &[u8], find: &str) -> EditFault {
    let wanted: Vec<_> = find.strip_suffix('\n').unwrap_or(find).split('\n').map(str::as_bytes).collect();
    let occurs = |plain: String| matches!(spans::plan(text, Normalization::Endings, &plain, "", true), Ok(Some(_)));
    let is_numbered = without_line_numbers(find).is_some_and(occurs);
    EditFault::NoMatch { nearest: nearest(&IndexedText::new(text, false), &wanted), is_numbered }
}

/// The text without the line numbers that its lines begin with, if all of them do: readers copy them from what they were shown.
fn without_line_numbers(find: &str) -> Option<String> {
    let text = |line: &str| {
        let numbered = line.trim_start().trim_start_matches('L');
        let rest = numbered.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let marked = (rest.len() < numbered.len()).then_some(rest)?;
        LINE_NUMBER_MARKS.iter().find_map(|mark| marked.strip_prefix(mark)).map(str::to_owned)
    };
    let lines: Option<Vec<String>> = find.strip_suffix('\n').unwrap_or(find).split('\n').map(text).collect();
    lines.map(|lines| lines.join("\n")).filter(|plain| !plain.is_empty())
}

#[cfg(test)]
mod tests;
