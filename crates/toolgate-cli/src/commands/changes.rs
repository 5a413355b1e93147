//! `toolgate changes`: shows what calls changed, as diffs.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolgate_contract::{Blob, Change, Durability, EventPayload, FileState, LINK_MODE};
use toolgate_journal::{BlobStore, StateDirectory, list_runs, read_events};
use toolgate_tools::text::{DiffSide, between};

use super::{Invocation, runs};
use crate::exit::Exit;
use crate::terminal::{BOLD, DIM, GREEN, RED, diff_line, paint, plain};

/// Show what calls changed, newest run first.
///
/// Each call is named, so that `toolgate undo CALL` can undo it.
#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// Only this run: its id, its beginning, or `last`.
    run: Option<String>,
    /// Only paths and line counts, no diffs.
    #[arg(long)]
    stat: bool,
}

impl ChangesArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let state = invocation.location.state()?;
        let contents = state.contents(Durability::Os)?;
        let mut runs = match &self.run {
            Some(run) => vec![runs::find(&state, run)?],
            None => list_runs(state.path())?,
        };
        runs.sort();
        for run in runs.iter().rev() {
            self.show_run(&state, run, &contents, invocation.json)?;
        }
        Ok(Exit::Ok)
    }

    fn show_run(&self, state: &StateDirectory, run: &str, contents: &BlobStore, as_json: bool) -> Result<()> {
        for recorded in read_events(&state.run_dir(run)?)? {
            let event = recorded?.event;
            let EventPayload::FilesChanging { changes } = &event.payload else { continue };
            let call = event.tool_call_id.as_deref().unwrap_or_default();
            if as_json {
                anstream::println!("{}", json!({ "run": run, "call": call, "time": event.time, "changes": changes }));
                continue;
            }
            anstream::println!("{} {}", paint(BOLD, call), paint(DIM, format!("({run}, {:.0})", event.time)));
            for change in changes {
                self.show_change(change, contents)?;
            }
        }
        Ok(())
    }

    /// Lists what one call changed, with line counts, up to `most` files.
    pub(super) fn print_call_changes(call: &str, run: &str, state: &StateDirectory, most: usize) -> Result<()> {
        let (contents, show) = (state.contents(Durability::Os)?, Self { run: None, stat: true });
        let mut changes = Vec::new();
        for recorded in read_events(&state.run_dir(run)?)? {
            let event = recorded?.event;
            if let (EventPayload::FilesChanging { changes: more }, Some(by)) = (event.payload, event.tool_call_id)
                && by == call
            {
                changes.extend(more);
            }
        }
        changes.iter().take(most).try_for_each(|change| show.show_change(change, &contents))?;
        if changes.len() > most {
            anstream::println!("  {}", paint(DIM, format!("… and {} more", changes.len() - most)));
        }
        Ok(())
    }

    fn show_change(&self, change: &Change, contents: &BlobStore) -> Result<()> {
        let sides = (FileVersion::of(&change.before, contents)?, FileVersion::of(&change.after, contents)?);
        let note = match sides {
            (Some(before), Some(after)) => return self.show_diff(&change.path, &before, &after),
            (None, _) => "(its old content was evicted; it can't be undone)",
            (Some(_), None) => "(its new content isn't stored; it can be undone)",
        };
        anstream::println!("  {} {}", plain(&change.path), paint(DIM, note));
        Ok(())
    }

    fn show_diff(&self, path: &str, before: &FileVersion, after: &FileVersion) -> Result<()> {
        let diff = between(before.side(path), after.side(path));
        let (more, less) = (format!("+{}", diff.additions), format!("-{}", diff.deletions));
        anstream::println!("  {} {} {}", plain(path), paint(GREEN, more), paint(RED, less));
        if !self.stat {
            diff.text.lines().for_each(|line| anstream::println!("    {}", diff_line(line)));
        }
        Ok(())
    }
}

/// A file before or after a change: its bytes and mode, or `None` if there is no file. Directories and pipes have no
/// bytes.
struct FileVersion(Option<(Blob, u32)>);

impl FileVersion {
    /// `None` when the content was evicted.
    fn of(state: &Option<FileState>, contents: &BlobStore) -> Result<Option<Self>> {
        let Some(state) = state else { return Ok(Some(Self(None))) };
        if !state.is_file() && !state.is_link() {
            return Ok(Some(Self(Some((Blob::from(Vec::new()), state.mode)))));
        }
        let mode = if state.mode == LINK_MODE { LINK_MODE } else { 0o100_000 | state.mode };
        Ok(contents.get(&state.sha256)?.map(|bytes| Self(Some((bytes, mode)))))
    }

    fn side<'a>(&'a self, path: &'a str) -> Option<DiffSide<'a>> {
        self.0.as_ref().map(|(content, mode)| DiffSide { path, mode: *mode, content })
    }
}
