//! Tells what happens to a process, in the name of the call that started it, also long after that call.

use std::sync::Arc;

use toolgate_contract::{Clock, EventPayload};

use crate::session::EventSink;
use toolgate_contract::EventOrigin;
use toolgate_journal::Recorder;

/// Tells what happens to what one call started.
#[derive(Clone)]
pub(crate) struct EventWriter {
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) origin: Arc<EventOrigin>,
}

impl EventWriter {
    /// Puts it on record, then shows it. What can't be recorded any more has happened all the same; the call that led to it
    /// is on record.
    pub(crate) fn record(&self, payload: EventPayload) {
        let event = self.origin.event(self.clock.now(), payload);
        if self.recorder.record(std::slice::from_ref(&event)).is_ok() {
            self.sink.event(&event);
        }
    }

    /// Shows what is never on record.
    pub(crate) fn pass(&self, payload: EventPayload) {
        self.sink.live(&self.origin.event(self.clock.now(), payload));
    }

    /// Whether anyone sees it.
    pub(crate) fn is_watched(&self) -> bool {
        self.sink.is_watched()
    }
}
