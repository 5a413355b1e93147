//! What became of a command's changes, in words: what a rehearsal would change and how to put it in place, what is kept aside,
//! and what else there is to know. All of it is on standard error, since standard output is the command's.

use toolgate_contract::{QuarantinedPath, SettledChanges};

use super::{BOLD, DIM, YELLOW, diff_line, paint, plain};

/// Lines of a diff that are shown unless all of it is wanted.
pub(crate) const MOST_LINES: usize = 400;

/// Things kept aside that are named at the most.
const MOST_ASIDE: usize = 200;

/// Shows what became of the changes of a call; `toolgate` is how the program is typed here.
pub(super) fn show_settled_changes(settled: &SettledChanges, toolgate: &str) {
    let aside = &settled.kept_aside;
    match &settled.rehearsal {
        Some(handle) => {
            let count = settled.created + settled.changed + settled.deleted;
            anstream::eprintln!("{}", paint(BOLD, would_change(count)));
            show_diff(settled.diff.as_deref().unwrap_or_default(), handle, toolgate);
            show_quarantined("Of that, a commit would keep aside:", aside, settled.more_kept_aside);
            if count > 0 {
                anstream::eprintln!("{}", paint(DIM, how_to_commit(handle, aside.is_empty(), toolgate)));
            }
        }
        None => {
            show_quarantined("Kept aside, so the workspace doesn't have it:", aside, settled.more_kept_aside);
            if !aside.is_empty() {
                let how = "quarantine list` names all that is kept aside; `show` and `release` are for each.";
                anstream::eprintln!("{}", paint(DIM, format!("`{toolgate} {how}")));
            }
        }
    }
    for note in &settled.notes {
        anstream::eprintln!("{} {}", paint(YELLOW.bold(), "note:"), plain(note));
    }
}

/// How much a rehearsed command would change.
pub(crate) fn would_change(count: usize) -> String {
    match count {
        0 => "It would change nothing.".into(),
        count => format!("It would change {}; nothing has changed.", paths(count)),
    }
}

/// So many paths.
pub(crate) fn paths(count: usize) -> String {
    if count == 1 { "1 path".into() } else { format!("{count} paths") }
}

/// How what was rehearsed is put in place.
pub(crate) fn how_to_commit(handle: &str, all_of_it: bool, toolgate: &str) -> String {
    let what = if all_of_it { "exactly this" } else { "the rest" };
    format!("To put {what} in place within a day: {toolgate} commit {handle}")
}

/// Names what is kept aside, with the reasons.
pub(crate) fn show_quarantined(heading: &str, aside: &[QuarantinedPath], more: usize) {
    if aside.is_empty() {
        return;
    }
    anstream::eprintln!("{}", paint(YELLOW.bold(), heading));
    for QuarantinedPath { path, reason } in aside.iter().take(MOST_ASIDE) {
        anstream::eprintln!("  {} {}", plain(path), paint(DIM, format!("({})", plain(reason))));
    }
    let more = more + aside.len().saturating_sub(MOST_ASIDE);
    if more > 0 {
        anstream::eprintln!("  {}", paint(DIM, format!("… and {more} more")));
    }
}

fn show_diff(diff: &str, handle: &str, toolgate: &str) {
    let lines = diff.lines().count();
    diff.lines().take(MOST_LINES).for_each(|line| anstream::eprintln!("  {}", diff_line(line)));
    if lines > MOST_LINES {
        anstream::eprintln!("  {}", paint(DIM, format!("… and {} more lines", lines - MOST_LINES)));
        anstream::eprintln!("{}", paint(DIM, format!("All of it: {toolgate} commit --show {handle}")));
    }
}
