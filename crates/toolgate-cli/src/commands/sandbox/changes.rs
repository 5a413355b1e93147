//! What a rehearsed command would change, as diffs.
#![allow(clippy::disallowed_methods, reason = "reads the two sides of a change that a sandbox kept apart")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Result;
use toolgate_sandbox::process::{ChangeKind, PathChange};
use toolgate_tools::text::unified;

use crate::terminal::{BOLD, DIM, diff_line, paint, plain};

/// A file larger than this is named and not shown.
const MOST: u64 = 1 << 20;

/// Shows every change; on standard error, since standard output is the command's.
pub(super) fn show(changes: &[PathChange], workspace: &Path) -> Result<()> {
    anstream::eprintln!("{}", paint(BOLD, format!("It would change {} paths; nothing has changed.", changes.len())));
    for change in changes {
        let name = change.path.strip_prefix(workspace).unwrap_or(&change.path).display().to_string();
        let verb = match change.kind {
            ChangeKind::Created => "create",
            ChangeKind::Changed => "change",
            ChangeKind::Deleted => "delete",
        };
        anstream::eprintln!("{} {}", paint(DIM, verb), plain(&name));
        if let Some(diff) = diff(change, &name) {
            diff.lines().for_each(|line| anstream::eprintln!("  {}", diff_line(line)));
        }
    }
    Ok(())
}

/// The difference of two texts; none for folders, links, large files and what isn't text.
fn diff(change: &PathChange, name: &str) -> Option<String> {
    let before = text(&change.path).filter(|_| change.kind != ChangeKind::Created);
    let after = change.content.as_deref().and_then(text);
    if before.is_none() && after.is_none() {
        return None;
    }
    let (old, new) = (before.as_ref().map(|_| name), after.as_ref().map(|_| name));
    Some(unified(old, new, before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default()).text)
}

fn text(path: &Path) -> Option<Vec<u8>> {
    let found = std::fs::symlink_metadata(path).ok()?;
    let is_readable = found.is_file() && found.len() <= MOST && found.permissions().mode() & 0o444 != 0;
    let bytes = is_readable.then(|| std::fs::read(path).ok()).flatten()?;
    std::str::from_utf8(&bytes).is_ok().then_some(bytes)
}
