//! What a rehearsed command would change, as diffs, and what of it a commit would quarantine.

use anyhow::Result;
use serde_json::{Value, json};
use toolgate_contract::{Change, Differ, FileContent, Files, QuarantinedPath, StagedChanges, counted};
use toolgate_tools::text::UnifiedDiffer;

use crate::commands::Invocation;
use crate::output::errln;
use crate::terminal::{BOLD, DIM, MOST_LINES, diff_line, how_to_commit, paint, plain, show_quarantined, would_change};
use crate::workspace::{open_workspace, typed_program};

/// A file larger than this is named and not shown.
const MOST: u64 = 1 << 20;

/// Staged changes, ready to be shown.
pub(in crate::commands) struct RehearsalPreview<'a> {
    changes: Vec<Change>,
    quarantined: Vec<QuarantinedPath>,
    staged: &'a dyn StagedChanges,
    files: &'a dyn Files,
    /// The handle of the rehearsal.
    handle: &'a str,
    /// The command line that starts the program for this workspace.
    toolgate: String,
}

impl<'a> RehearsalPreview<'a> {
    /// The staged changes with this handle.
    pub(in crate::commands) fn of(
        staged: &'a dyn StagedChanges,
        files: &'a dyn Files,
        handle: &'a str,
        invocation: &Invocation,
    ) -> Result<Self> {
        let changes = staged.differences(files)?.all.into_iter().map(|difference| difference.change).collect();
        let quarantined = open_workspace(&invocation.location)?.gate.changes().would_quarantine(staged)?;
        Ok(Self { changes, quarantined, staged, files, handle, toolgate: typed_program(&invocation.location) })
    }

    /// How many paths they change.
    pub(super) fn count(&self) -> usize {
        self.changes.len()
    }

    /// Everything, as JSON.
    pub(in crate::commands) fn json(&self) -> Result<Value> {
        let paths: Vec<&str> = self.changes.iter().map(|change| change.path.as_str()).collect();
        let diff = self.changes.iter().map(|change| self.diff_of(change)).collect::<Result<String>>()?;
        let handle = (!self.changes.is_empty()).then_some(self.handle);
        Ok(json!({ "rehearsal": handle, "paths": paths, "diff": diff, "kept_aside": self.quarantined }))
    }

    /// Shows what would change, what a commit would quarantine, and how to commit it: all of it, or as many lines as a person
    /// wants to see at once. It is printed to standard error, since standard output is the command's.
    pub(in crate::commands) fn show(&self, all: bool) -> Result<()> {
        errln!("{}", paint(BOLD, would_change(self.count())));
        self.show_diffs(if all { usize::MAX } else { MOST_LINES })?;
        show_quarantined("Of these, a commit would quarantine:", &self.quarantined, 0);
        if self.count() > 0 {
            let how = how_to_commit(self.handle, self.quarantined.is_empty(), &self.toolgate);
            errln!("{}", paint(DIM, how));
        }
        Ok(())
    }

    /// Shows the changes in a limited number of lines.
    pub(super) fn show_diffs(&self, mut room: usize) -> Result<()> {
        for (number, change) in self.changes.iter().enumerate() {
            if room == 0 {
                errln!("{}", paint(DIM, format!("… and {}", counted(self.count() - number, "more path"))));
                break;
            }
            room = self.show_one(change, room)?;
        }
        if room == 0 {
            let whole = format!("Complete diff: {} commit --show {}", self.toolgate, self.handle);
            errln!("{}", paint(DIM, whole));
        }
        Ok(())
    }

    /// Shows one change in a limited number of lines. Returns how many are left.
    fn show_one(&self, change: &Change, room: usize) -> Result<usize> {
        let verb = match (&change.before, &change.after) {
            (None, _) => "create",
            (Some(_), Some(_)) => "change",
            (Some(_), None) => "delete",
        };
        errln!("{} {}", paint(DIM, verb), plain(&change.path));
        let diff = self.diff_of(change)?;
        let lines = diff.lines().count();
        let most = room.saturating_sub(1);
        for line in diff.lines().take(most) {
            errln!("  {}", diff_line(line));
        }
        if lines > most {
            errln!("  {}", paint(DIM, format!("… and {}", counted(lines - most, "more line"))));
        }
        Ok(most.saturating_sub(lines))
    }

    fn diff_of(&self, change: &Change) -> Result<String> {
        let before: Option<FileContent> = self.files.content(&change.place, MOST).ok().flatten();
        let after = self.staged.content(&change.place, MOST)?;
        Ok(UnifiedDiffer.diff(change, before.as_ref(), after.as_ref()))
    }
}
