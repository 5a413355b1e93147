//! Shows a recorded change as a diff.

use toolgate_contract::{Change, Differ, FileContent, FileState, LINK_MODE, counted};

use super::{DiffSide, between};

/// Shows changes as unified diffs.
pub struct UnifiedDiffer;

impl Differ for UnifiedDiffer {
    fn diff(&self, change: &Change, before: Option<&FileContent>, after: Option<&FileContent>) -> String {
        let is_whole = |state: &Option<FileState>, content: Option<&FileContent>| match state {
            Some(state) => (state.is_file() || state.is_link()) && content.is_some(),
            None => true,
        };
        if !is_whole(&change.before, before) || !is_whole(&change.after, after) {
            return in_words(change);
        }
        let path = change.path.as_str();
        let mode = |state: &FileState| if state.is_link() { LINK_MODE } else { 0o100_000 | state.mode };
        fn side<'a>(path: &'a str, mode: Option<u32>, content: Option<&'a FileContent>) -> Option<DiffSide<'a>> {
            mode.zip(content).map(|(mode, content)| DiffSide { path, mode, content: &content.bytes })
        }
        let (old, new) = (change.before.as_ref().map(mode), change.after.as_ref().map(mode));
        between(side(path, old, before), side(path, new, after)).text
    }
}

/// Describes a change without a text diff: directories, pipes, large files.
fn in_words(change: &Change) -> String {
    let words = |state: &FileState| match state {
        state if state.is_directory() => format!("directory ({:o})", state.permissions()),
        state if state.is_file() || state.is_link() => format!("file of {}", counted(state.bytes, "byte")),
        _ => "pipe or socket".to_owned(),
    };
    let description = match (&change.before, &change.after) {
        (None, None) => "nothing".to_owned(),
        (None, Some(after)) => format!("new {}", words(after)),
        (Some(before), None) => format!("{} removed", words(before)),
        (Some(before), Some(after)) => format!("{} becomes {}", words(before), words(after)),
    };
    format!("{}: {description}\n", change.path)
}
