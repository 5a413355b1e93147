//! What a session made in earlier programs: every `toolgate call` is a program of its own, and records what it changes.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use toolgate_contract::{Change, EventPayload, ToolError};
use toolgate_journal::{SigningKey, Verification, list_runs, read_events, verify};

/// Runs that began longer ago count no more: a session such as `cli` has no end.
const RECENT: SignedDuration = SignedDuration::from_hours(24);
/// How many runs, the latest first, and how many of their events are read at most.
const MAX_RUNS: usize = 500;
const MAX_EVENTS: usize = 50_000;

/// The changes that a session made itself, oldest first. Only runs count whose record is intact and signed with our key: one that
/// came with a repository isn't.
pub(crate) fn made_in_session(
    state_dir: &Path,
    key: &SigningKey,
    session: &str,
    now: Timestamp,
) -> Result<Vec<Vec<Change>>, ToolError> {
    let mut newest_first: Vec<Vec<Change>> = Vec::new();
    let mut events = 0;
    // The ids of runs sort by time.
    for run in list_runs(state_dir)?.iter().rev().take(MAX_RUNS) {
        let directory = state_dir.join("runs").join(run);
        let Some(made) = made_in_run(&directory, session, now - RECENT, MAX_EVENTS - events)? else { continue };
        events += made.events;
        if events >= MAX_EVENTS {
            break;
        }
        let is_proven = || matches!(verify(&directory, Some(key)), Ok(Verification::Ok { signed: true, .. }));
        if !made.changes.is_empty() && is_proven() {
            newest_first.extend(made.changes.into_iter().rev());
        }
    }
    newest_first.reverse();
    Ok(newest_first)
}

/// What one run made.
struct MadeInRun {
    changes: Vec<Vec<Change>>,
    /// How many events were read.
    events: usize,
}

/// The changes of a run, oldest first; none if it is another session's or began earlier than `since`.
fn made_in_run(
    directory: &Path,
    session: &str,
    since: Timestamp,
    max_events: usize,
) -> Result<Option<MadeInRun>, ToolError> {
    let mut made = MadeInRun { changes: Vec::new(), events: 0 };
    // A line that another program is just writing ends what is known.
    for recorded in read_events(directory)?.map_while(Result::ok).take(max_events) {
        made.events += 1;
        match recorded.event.payload {
            EventPayload::RunStarted(facts) if facts.session != session || recorded.event.time < since => {
                return Ok(None);
            }
            EventPayload::FilesChanging { changes, made: true } => made.changes.push(changes),
            _ => {}
        }
    }
    Ok(Some(made))
}
