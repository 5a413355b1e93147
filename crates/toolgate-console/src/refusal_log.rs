//! Records refused requests. A flood of them must not fill the disk, so within a minute only the first ones are recorded;
//! the next recorded one says how many were left out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolgate_contract::{Event, EventPayload, RefusedRequest};
use toolgate_runtime::Session;
use toolgate_workspace::Workspace;

/// How many refusals are recorded in a minute.
const MAX_PER_MINUTE: u32 = 60;

/// The record of refusals.
pub(crate) struct RefusalLog {
    workspace: Arc<Workspace>,
    window: Mutex<RefusalWindow>,
}

struct RefusalWindow {
    since: Instant,
    written: u32,
    unrecorded: u64,
}

impl RefusalLog {
    pub(crate) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, window: Mutex::new(RefusalWindow { since: Instant::now(), written: 0, unrecorded: 0 }) }
    }

    /// Records a refusal in the run of this session. If that fails, the request is refused all the same.
    pub(crate) fn record(&self, session: &Session, code: &str, request: String, from: Option<String>) {
        let refusal = RefusedRequest { door: "http".into(), code: code.to_owned(), request, from, unrecorded: 0 };
        self.keep(session, refusal);
    }

    /// Records what an endpoint behind this server refused.
    pub(crate) fn keep(&self, session: &Session, refusal: RefusedRequest) {
        let Some(unrecorded) = self.count() else { return };
        let refusal = RefusedRequest { unrecorded, ..refusal };
        let event = Event {
            time: self.workspace.clock.now(),
            run: session.run.clone(),
            turn: None,
            trace_id: None,
            tool_call_id: None,
            payload: EventPayload::RequestRefused(refusal),
        };
        let _ = session.recorder.record(&[event]);
    }

    /// Whether this refusal is recorded; if so, how many before it weren't.
    fn count(&self) -> Option<u64> {
        let mut window = self.window.lock();
        if window.since.elapsed() > Duration::from_secs(60) {
            (window.since, window.written) = (Instant::now(), 0);
        }
        if window.written == MAX_PER_MINUTE {
            window.unrecorded += 1;
            return None;
        }
        window.written += 1;
        Some(std::mem::take(&mut window.unrecorded))
    }
}
