//! Names the files with instructions among the changes of a command: agents or build servers follow them later, so
//! whoever reads the reply should know.

use std::collections::BTreeMap;

use toolgate_contract::Change;
use toolgate_policy::instruction_kind;

/// How many paths of a kind are named.
const MAX_NAMED: usize = 5;

/// A note for each kind of instructions that was written.
pub(super) fn instruction_notes<'c>(changes: impl Iterator<Item = &'c Change>) -> Vec<String> {
    let mut written: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let is_written = |change: &&Change| {
        change.after.as_ref().is_some_and(|after| !after.is_directory()) && !change.is_metadata_only()
    };
    for change in changes.filter(is_written) {
        if let Some(kind) = instruction_kind(&change.place.path) {
            written.entry(&kind.reason).or_default().push(format!("`{}`", change.path));
        }
    }
    let note = |(reason, paths): (&str, Vec<String>)| {
        let more = paths.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named: Vec<&str> = paths.iter().take(MAX_NAMED).map(String::as_str).collect();
        format!("It wrote {}{more}: {reason}. Check that this was meant.", named.join(", "))
    };
    written.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use toolgate_contract::{FileState, WorkspacePath};

    use super::*;

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> Change {
        let state = |text: &str| FileState::new(text, 1, 0o100_644);
        let place = WorkspacePath::in_workspace(path);
        Change { path: path.into(), place, before: before.map(state), after: after.map(state) }
    }

    #[test]
    fn files_with_instructions_are_named_by_kind() {
        let changes = [
            change("AGENTS.md", None, Some("x")),
            change("src/main.rs", None, Some("x")),
            change("sub/CLAUDE.md", Some("x"), Some("y")),
            change("GEMINI.md", Some("x"), None),
            change("QWEN.md", Some("x"), Some("x")),
        ];
        assert_eq!(
            instruction_notes(changes.iter()),
            ["It wrote `AGENTS.md`, `sub/CLAUDE.md`: agents follow these instructions. Check that this was meant."]
        );
        let many: Vec<Change> =
            (0..8).map(|number| change(&format!(".github/workflows/{number}.yml"), None, Some("x"))).collect();
        let notes = instruction_notes(many.iter().chain(&changes));
        assert_eq!(notes.len(), 2);
        assert!(notes[1].contains("`.github/workflows/4.yml` and 3 more: build servers run this"), "{notes:?}");
    }
}
