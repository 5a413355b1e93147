//! What a rehearsed command would change, as diffs.

use anyhow::Result;
use toolgate_contract::{Apart, Change, Content, Differ, Files};
use toolgate_tools::text::Diffs;

use crate::terminal::{BOLD, DIM, diff_line, paint, plain};

/// A file larger than this is named and not shown.
const MOST: u64 = 1 << 20;

/// Shows every change, on standard error, since standard output is the command's. Gives the handle by which they can be had;
/// none if there are none.
pub(super) fn show(apart: &mut dyn Apart, files: &dyn Files) -> Result<Option<String>> {
    let changes = apart.differences(files)?.all;
    anstream::eprintln!("{}", paint(BOLD, format!("It would change {} paths; nothing has changed.", changes.len())));
    for change in changes.iter().map(|difference| &difference.change) {
        let verb = match (&change.before, &change.after) {
            (None, _) => "create",
            (Some(_), Some(_)) => "change",
            (Some(_), None) => "delete",
        };
        anstream::eprintln!("{} {}", paint(DIM, verb), plain(&change.path));
        show_diff(change, apart, files)?;
    }
    Ok(if changes.is_empty() { None } else { Some(apart.keep(None)?) })
}

fn show_diff(change: &Change, apart: &dyn Apart, files: &dyn Files) -> Result<()> {
    let before: Option<Content> = files.content(&change.place, MOST).ok().flatten();
    let after = apart.content(&change.place, MOST)?;
    for line in Diffs.diff(change, before.as_ref(), after.as_ref()).lines() {
        anstream::eprintln!("  {}", diff_line(line));
    }
    Ok(())
}
