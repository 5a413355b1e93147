//! `toolgate runs tail`: prints a run's events, line by line, and follows new ones.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use toolgate_contract::EventPayload;
use toolgate_journal::{Follower, RecordedEvent};

use crate::output::{is_closed, outln};
use crate::terminal::event_line;

/// Polling interval while following: fast enough for the eye, cheap for the disk.
const PAUSE: Duration = Duration::from_millis(100);

/// Prints the last events of a run; if `following`, until the run ends.
pub(super) fn tail(run_dir: &Path, lines: usize, following: bool, as_json: bool) -> Result<()> {
    let mut follower = Follower::open(run_dir, 0)?;
    let events = all(&mut follower)?;
    let mut has_ended = print(&events[events.len().saturating_sub(lines)..], as_json);
    while following && !has_ended && !is_closed() {
        std::thread::sleep(PAUSE);
        has_ended = print(&all(&mut follower)?, as_json);
    }
    Ok(())
}

/// All new events.
fn all(follower: &mut Follower) -> Result<Vec<RecordedEvent>> {
    let mut events = Vec::new();
    loop {
        let more = follower.more()?;
        if more.is_empty() {
            return Ok(events);
        }
        events.extend(more);
    }
}

/// Prints events, and returns whether the last one ends the run. It may not, since another process can continue a run.
fn print(events: &[RecordedEvent], as_json: bool) -> bool {
    for RecordedEvent { event, line, .. } in events {
        match as_json {
            true => outln!("{line}"),
            false => outln!("{}", event_line(event)),
        }
    }
    events.last().is_some_and(|last| matches!(last.event.payload, EventPayload::RunEnded))
}
