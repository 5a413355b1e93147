//! Writes down what the door turned away. A flood of bad requests must not fill the disk, so within a minute only the
//! first ones are written; the next one that is says how many there were in between.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_contract::{Event, EventPayload, RefusedRequest};
use toolgate_runtime::Session;

use crate::backend::ConsoleBackend;

/// How many are written down in a minute.
const IN_A_MINUTE: u32 = 60;

/// The record of refusals.
pub(crate) struct RefusalLog {
    backend: Arc<dyn ConsoleBackend>,
    flood: Mutex<RefusalWindow>,
}

struct RefusalWindow {
    since: Instant,
    written: u32,
    unrecorded: u64,
}

impl RefusalLog {
    pub(crate) fn new(backend: Arc<dyn ConsoleBackend>) -> Self {
        Self { backend, flood: Mutex::new(RefusalWindow { since: Instant::now(), written: 0, unrecorded: 0 }) }
    }

    /// Writes a refusal into the run of this session. What can't be written was refused all the same.
    pub(crate) fn note(&self, session: &Session, code: &str, request: String, from: Option<String>) {
        let Some(unrecorded) = self.turn() else { return };
        let refusal = RefusedRequest { door: "http".into(), code: code.to_owned(), request, from, unrecorded };
        let event = Event {
            time: self.backend.clock().now(),
            run: session.run.clone(),
            turn: None,
            trace_id: None,
            tool_call_id: None,
            payload: EventPayload::RequestRefused(refusal),
        };
        let _ = session.recorder.record(&[event]);
    }

    /// Whether this one is written down; if so, how many before it weren't.
    fn turn(&self) -> Option<u64> {
        let mut flood = self.flood.lock();
        if flood.since.elapsed() > Duration::from_secs(60) {
            (flood.since, flood.written) = (Instant::now(), 0);
        }
        if flood.written == IN_A_MINUTE {
            flood.unrecorded += 1;
            return None;
        }
        flood.written += 1;
        Some(std::mem::take(&mut flood.unrecorded))
    }
}
