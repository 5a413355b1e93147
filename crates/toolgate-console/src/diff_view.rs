//! A unified diff as data, so that a page shows it as text without reading diffs itself.

use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::schemars;

/// How many lines of one diff are sent at most.
const MAX_LINES: usize = 5000;

/// The lines of a diff.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct DiffView {
    /// Lines added.
    pub(crate) additions: usize,
    /// Lines removed.
    pub(crate) deletions: usize,
    /// The lines, those between hunks left out.
    lines: Vec<ShownDiffLine>,
    /// How many more lines there are than are listed.
    more_lines: usize,
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct ShownDiffLine {
    kind: DiffLineKind,
    /// Its number in the old file.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<usize>,
    /// Its number in the new file.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<usize>,
    text: String,
}

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DiffLineKind {
    /// The names and modes of a file.
    File,
    /// The beginning of a hunk.
    Hunk,
    /// A line that is in both.
    Same,
    /// A line that was added.
    Added,
    /// A line that was removed.
    Removed,
    /// A remark, such as a missing newline at the end.
    Note,
}

impl DiffView {
    /// Reads a unified diff, of one file or many.
    pub(crate) fn of(text: &str) -> Self {
        let mut view = Self::default();
        let (mut old, mut new, mut is_in_hunk) = (0, 0, false);
        for line in text.lines() {
            let parsed = match line.as_bytes().first() {
                _ if line.starts_with("@@") => {
                    (old, new) = hunk_start(line).unwrap_or((old, new));
                    is_in_hunk = true;
                    ShownDiffLine { kind: DiffLineKind::Hunk, old: None, new: None, text: line.to_owned() }
                }
                _ if line.starts_with("diff --git ") => {
                    is_in_hunk = false;
                    ShownDiffLine { kind: DiffLineKind::File, old: None, new: None, text: line.to_owned() }
                }
                Some(b'+') if is_in_hunk => {
                    view.additions += 1;
                    new += 1;
                    ShownDiffLine {
                        kind: DiffLineKind::Added,
                        old: None,
                        new: Some(new - 1),
                        text: line[1..].to_owned(),
                    }
                }
                Some(b'-') if is_in_hunk => {
                    view.deletions += 1;
                    old += 1;
                    ShownDiffLine {
                        kind: DiffLineKind::Removed,
                        old: Some(old - 1),
                        new: None,
                        text: line[1..].to_owned(),
                    }
                }
                Some(b' ') if is_in_hunk => {
                    (old, new) = (old + 1, new + 1);
                    let text = line[1..].to_owned();
                    ShownDiffLine { kind: DiffLineKind::Same, old: Some(old - 1), new: Some(new - 1), text }
                }
                _ if is_in_hunk => {
                    ShownDiffLine { kind: DiffLineKind::Note, old: None, new: None, text: line.to_owned() }
                }
                _ => ShownDiffLine { kind: DiffLineKind::File, old: None, new: None, text: line.to_owned() },
            };
            match view.lines.len() < MAX_LINES {
                true => view.lines.push(parsed),
                false => view.more_lines += 1,
            }
        }
        view
    }
}

/// The first line numbers of `@@ -1,3 +1,4 @@`.
fn hunk_start(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split(' ').skip(1);
    let mut number = |sign| words.next()?.strip_prefix(sign)?.split(',').next()?.parse().ok();
    Some((number('-')?, number('+')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_numbers_on_both_sides() {
        let diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -4,3 +4,3 @@\n one\n-two\n+TWO\n three\n\\ No newline\n";
        let view = DiffView::of(diff);
        assert_eq!((view.additions, view.deletions, view.lines.len()), (1, 1, 9));
        let shown: Vec<_> =
            view.lines[3..].iter().map(|line| (line.kind, line.old, line.new, &line.text[..])).collect();
        assert_eq!(shown[1], (DiffLineKind::Same, Some(4), Some(4), "one"));
        assert_eq!(shown[2], (DiffLineKind::Removed, Some(5), None, "two"));
        assert_eq!(shown[3], (DiffLineKind::Added, None, Some(5), "TWO"));
        assert_eq!(shown[4], (DiffLineKind::Same, Some(6), Some(6), "three"));
        assert_eq!(shown[5].0, DiffLineKind::Note);
    }
}
