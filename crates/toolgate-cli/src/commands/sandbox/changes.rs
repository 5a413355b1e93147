//! What a rehearsed command would change, as diffs.

use anyhow::Result;
use serde_json::json;
use toolgate_contract::{Apart, Change, Content, Differ, Files};
use toolgate_tools::text::Diffs;

use crate::terminal::{BOLD, DIM, diff_line, paint, plain};

/// A file larger than this is named and not shown.
const MOST: u64 = 1 << 20;

/// Lines that are shown unless all of it is wanted.
const MOST_LINES: usize = 400;

/// How much of it is shown, and in what form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Shown {
    /// What a person wants to see at once.
    First,
    /// All of it.
    Whole,
    /// All of it, as one line of JSON.
    Json,
}

/// Shows every change, on standard error, since standard output is the command's. Gives the handle by which they can be had;
/// none if there are none.
pub(super) fn show(apart: &mut dyn Apart, files: &dyn Files, shown: Shown) -> Result<Option<String>> {
    let changes: Vec<Change> = apart.differences(files)?.all.into_iter().map(|difference| difference.change).collect();
    let handle = if changes.is_empty() { None } else { Some(apart.keep(None)?) };
    print(&changes, apart, files, shown, handle.as_deref())?;
    Ok(handle)
}

/// Prints changes that are kept apart.
pub(in crate::commands) fn print(
    changes: &[Change],
    apart: &dyn Apart,
    files: &dyn Files,
    shown: Shown,
    handle: Option<&str>,
) -> Result<()> {
    if shown == Shown::Json {
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        let diff = changes.iter().map(|change| diff_of(change, apart, files)).collect::<Result<String>>()?;
        anstream::eprintln!("{}", json!({ "rehearsal": handle, "paths": paths, "diff": diff }));
        return Ok(());
    }
    let paths = if changes.len() == 1 { "path" } else { "paths" };
    anstream::eprintln!("{}", paint(BOLD, format!("It would change {} {paths}; nothing has changed.", changes.len())));
    let mut room = if shown == Shown::Whole { usize::MAX } else { MOST_LINES };
    for (number, change) in changes.iter().enumerate() {
        if room == 0 {
            anstream::eprintln!("{}", paint(DIM, format!("… and {} more paths", changes.len() - number)));
            break;
        }
        room = print_one(change, apart, files, room)?;
    }
    if let (0, Some(handle)) = (room, handle) {
        anstream::eprintln!("{}", paint(DIM, format!("All of it: toolgate commit --show {handle}")));
    }
    Ok(())
}

/// Prints one change in at most so many lines. Gives how many are left.
fn print_one(change: &Change, apart: &dyn Apart, files: &dyn Files, room: usize) -> Result<usize> {
    let verb = match (&change.before, &change.after) {
        (None, _) => "create",
        (Some(_), Some(_)) => "change",
        (Some(_), None) => "delete",
    };
    anstream::eprintln!("{} {}", paint(DIM, verb), plain(&change.path));
    let diff = diff_of(change, apart, files)?;
    let lines = diff.lines().count();
    let most = room.saturating_sub(1);
    for line in diff.lines().take(most) {
        anstream::eprintln!("  {}", diff_line(line));
    }
    if lines > most {
        anstream::eprintln!("  {}", paint(DIM, format!("… and {} more lines", lines - most)));
    }
    Ok(most.saturating_sub(lines))
}

fn diff_of(change: &Change, apart: &dyn Apart, files: &dyn Files) -> Result<String> {
    let before: Option<Content> = files.content(&change.place, MOST).ok().flatten();
    let after = apart.content(&change.place, MOST)?;
    Ok(Diffs.diff(change, before.as_ref(), after.as_ref()))
}
