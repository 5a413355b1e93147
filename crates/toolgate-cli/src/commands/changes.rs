//! `toolgate changes`: shows what calls changed, as diffs.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use toolgate_changes::{FoldedChanges, fold_build_output};
use toolgate_contract::{Change, Durability, EventPayload, FoldedDirectory};
use toolgate_journal::{BlobStore, StateDirectory, list_runs, read_events};
use toolgate_sandbox::Roots;
use toolgate_workspace::ChangeDiff;

use super::{Invocation, runs};
use crate::exit::Exit;
use crate::output::outln;
use crate::terminal::{BOLD, DIM, GREEN, RED, YELLOW, diff_line, grouped, paint, plain};

/// Show what calls changed, newest run first.
///
/// Each call is named, so that `toolgate undo CALL` can undo it. Build output (`target/`, `node_modules/`, caches,
/// `.git/objects/`) is one line for each directory, with how many paths were created, changed and deleted.
#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// Only this run: its id, its beginning, or `last`.
    run: Option<String>,
    /// Only paths and line counts, no diffs.
    #[arg(long)]
    stat: bool,
    /// List build output path by path, too.
    #[arg(long)]
    all: bool,
}

impl ChangesArgs {
    /// The changes of one run.
    pub(crate) fn of_run(run: String) -> Self {
        Self { run: Some(run), stat: false, all: false }
    }

    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let state = invocation.location.state()?;
        let shown = ShownChanges::of(&state, self.stat, self.all)?;
        let mut runs = match &self.run {
            Some(run) => vec![runs::find(&state, run)?],
            None => list_runs(state.path())?,
        };
        runs.sort();
        for run in runs.iter().rev() {
            shown.show_run(&state, run, invocation.json)?;
        }
        Ok(Exit::Ok)
    }
}

/// How changes are shown, and what that needs.
struct ShownChanges {
    stat: bool,
    all: bool,
    contents: BlobStore,
    /// Says what git ignores.
    files: Roots,
}

impl ShownChanges {
    fn of(state: &StateDirectory, stat: bool, all: bool) -> Result<Self> {
        let workspace = state.path().parent().context("a state directory is in a workspace")?;
        Ok(Self { stat, all, contents: state.contents(Durability::Os)?, files: Roots::open(workspace)? })
    }

    fn fold<'a>(&self, changes: &'a [Change]) -> FoldedChanges<'a> {
        match self.all {
            true => FoldedChanges { listed: changes.iter().collect(), folded: Vec::new() },
            false => fold_build_output(changes, &self.files),
        }
    }

    fn show_run(&self, state: &StateDirectory, run: &str, as_json: bool) -> Result<()> {
        for recorded in read_events(&state.run_dir(run)?)? {
            let event = recorded?.event;
            let EventPayload::FilesChanging { changes, .. } = &event.payload else { continue };
            let call = event.tool_call_id.as_deref().unwrap_or_default();
            let FoldedChanges { listed, folded } = self.fold(changes);
            if as_json {
                let (time, count) = (event.time, changes.len());
                let line = json!({ "run": run, "call": call, "time": time, "count": count, "changes": listed, "folded": folded });
                outln!("{line}");
                continue;
            }
            outln!("{} {}", paint(BOLD, call), paint(DIM, format!("({run}, {:.0})", event.time)));
            listed.into_iter().try_for_each(|change| self.show_change(change))?;
            folded.iter().for_each(show_folded);
        }
        Ok(())
    }

    fn show_change(&self, change: &Change) -> Result<()> {
        let path = plain(&change.path);
        let note = match ChangeDiff::of(change, &self.contents)? {
            ChangeDiff::Shown(diff) => {
                let (more, less) = (format!("+{}", diff.additions), format!("-{}", diff.deletions));
                outln!("  {path} {} {}", paint(GREEN, more), paint(RED, less));
                if !self.stat {
                    diff.text.lines().for_each(|line| outln!("    {}", diff_line(line)));
                }
                return Ok(());
            }
            ChangeDiff::OldEvicted => "(its old content was evicted; it can't be undone)",
            ChangeDiff::NewMissing => "(its new content isn't stored; it can be undone)",
        };
        outln!("  {path} {}", paint(DIM, note));
        Ok(())
    }
}

/// Prints a directory of build output as one line.
fn show_folded(directory: &FoldedDirectory) {
    let FoldedDirectory { path, created, changed, deleted } = directory;
    let count = |sign, count: &usize, style| {
        (*count > 0).then(|| paint(style, format!(" {sign}{}", grouped(*count))).to_string())
    };
    let counts = [count('+', created, GREEN), count('~', changed, YELLOW), count('-', deleted, RED)];
    let counts: String = counts.into_iter().flatten().collect();
    outln!("  {}{counts} {}", plain(path), paint(DIM, "(build output; `toolgate changes --all` lists it)"));
}

/// What one call changed.
#[derive(Default)]
pub(super) struct CallChangeList(Vec<Change>);

impl CallChangeList {
    /// Reads the changes of a call from its run.
    pub(super) fn of(call: &str, run: &str, state: &StateDirectory) -> Result<Self> {
        let mut changes = Vec::new();
        for recorded in read_events(&state.run_dir(run)?)? {
            let event = recorded?.event;
            if let (EventPayload::FilesChanging { changes: more, .. }, Some(by)) = (event.payload, event.tool_call_id)
                && by == call
            {
                changes.extend(more);
            }
        }
        Ok(Self(changes))
    }

    /// Whether it changed nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lists the changes with line counts, up to `most` files; build output is folded.
    pub(super) fn print(&self, state: &StateDirectory, most: usize) -> Result<()> {
        let shown = ShownChanges::of(state, true, false)?;
        let FoldedChanges { listed, folded } = shown.fold(&self.0);
        listed.iter().take(most).try_for_each(|change| shown.show_change(change))?;
        if listed.len() > most {
            outln!("  {}", paint(DIM, format!("… and {} more", listed.len() - most)));
        }
        folded.iter().for_each(show_folded);
        Ok(())
    }
}
