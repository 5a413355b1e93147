//! Writes down what the door turned away. A flood of bad requests must not fill the disk, so within a minute only the
//! first ones are written; the next one that is says how many there were in between.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolgate_contract::{Event, Happening, Refusal};
use toolgate_runtime::Session;

use crate::house::House;

/// How many are written down in a minute.
const IN_A_MINUTE: u32 = 60;

/// The record of refusals.
pub(crate) struct Refusals {
    house: Arc<dyn House>,
    flood: Mutex<Flood>,
}

struct Flood {
    since: Instant,
    written: u32,
    unrecorded: u64,
}

impl Refusals {
    pub(crate) fn new(house: Arc<dyn House>) -> Self {
        Self { house, flood: Mutex::new(Flood { since: Instant::now(), written: 0, unrecorded: 0 }) }
    }

    /// Writes a refusal into the run of this session. What can't be written was refused all the same.
    pub(crate) fn note(&self, session: &Session, code: &str, request: String, from: Option<String>) {
        let Some(unrecorded) = self.turn() else { return };
        let refusal = Refusal { door: "http".into(), code: code.to_owned(), request, from, unrecorded };
        let event = Event {
            time: self.house.clock().now(),
            run: session.run.clone(),
            turn: None,
            trace_id: None,
            tool_call_id: None,
            happening: Happening::RequestRefused(refusal),
        };
        let _ = session.recorder.record(&[event]);
    }

    /// Whether this one is written down; if so, how many before it weren't.
    fn turn(&self) -> Option<u64> {
        let mut flood = self.flood.lock().unwrap_or_else(PoisonError::into_inner);
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
