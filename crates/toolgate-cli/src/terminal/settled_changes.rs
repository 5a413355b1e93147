//! Shows what happened to a command's changes: what a rehearsal would change and how to commit it, what is quarantined,
//! and further notes. All of it goes to standard error, since standard output is the command's.

use toolgate_contract::{QuarantinedPath, SettledChanges, counted};

use crate::output::errln;

use super::{BOLD, DIM, YELLOW, diff_line, paint, plain};

/// Maximum lines of a diff that are shown by default.
pub(crate) const MOST_LINES: usize = 400;

/// Maximum number of quarantined paths that are listed.
const MAX_LISTED: usize = 200;

/// Shows what happened to a call's changes; `toolgate` is how the program is invoked here.
pub(super) fn show_settled_changes(settled: &SettledChanges, toolgate: &str) {
    let quarantined = &settled.kept_aside;
    match &settled.rehearsal {
        Some(handle) => {
            let count = settled.created + settled.changed + settled.deleted;
            errln!("{}", paint(BOLD, would_change(count)));
            show_diff(settled.diff.as_deref().unwrap_or_default(), handle, toolgate);
            show_quarantined("Of these, a commit would quarantine:", quarantined, settled.more_kept_aside);
            if count > 0 {
                errln!("{}", paint(DIM, how_to_commit(handle, quarantined.is_empty(), toolgate)));
            }
        }
        None => {
            show_quarantined("Quarantined, not written to the workspace:", quarantined, settled.more_kept_aside);
            if !quarantined.is_empty() {
                let how = "quarantine list` shows all quarantined changes; `show` prints one, `release` applies it.";
                errln!("{}", paint(DIM, format!("`{toolgate} {how}")));
            }
        }
    }
    for note in &settled.notes {
        errln!("{} {}", paint(YELLOW.bold(), "note:"), plain(note));
    }
}

/// How many paths a rehearsed command would change.
pub(crate) fn would_change(count: usize) -> String {
    match count {
        0 => "It would change nothing.".into(),
        count => format!("It would change {}; nothing has changed.", counted(count, "path")),
    }
}

/// How to commit a rehearsal.
pub(crate) fn how_to_commit(handle: &str, all_of_it: bool, toolgate: &str) -> String {
    let what = if all_of_it { "exactly this" } else { "the rest" };
    format!("To apply {what} within a day: {toolgate} commit {handle}")
}

/// Lists quarantined paths, with the reasons.
pub(crate) fn show_quarantined(heading: &str, quarantined: &[QuarantinedPath], more: usize) {
    if quarantined.is_empty() {
        return;
    }
    errln!("{}", paint(YELLOW.bold(), heading));
    for QuarantinedPath { path, reason } in quarantined.iter().take(MAX_LISTED) {
        errln!("  {} {}", plain(path), paint(DIM, format!("({})", plain(reason))));
    }
    let more = more + quarantined.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        errln!("  {}", paint(DIM, format!("… and {more} more")));
    }
}

fn show_diff(diff: &str, handle: &str, toolgate: &str) {
    let lines = diff.lines().count();
    diff.lines().take(MOST_LINES).for_each(|line| errln!("  {}", diff_line(line)));
    if lines > MOST_LINES {
        errln!("  {}", paint(DIM, format!("… and {}", counted(lines - MOST_LINES, "more line"))));
        errln!("{}", paint(DIM, format!("Complete diff: {toolgate} commit --show {handle}")));
    }
}
