//! Writes the events of a process, under the call that started it, also after that call has ended.

use std::sync::Arc;

use toolgate_contract::{Clock, EventPayload};

use crate::session::EventSink;
use toolgate_contract::EventOrigin;
use toolgate_journal::Recorder;

/// Writes the events of the processes that one call started.
#[derive(Clone)]
pub(crate) struct EventWriter {
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) followers: Option<Arc<dyn EventSink>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) origin: Arc<EventOrigin>,
}

impl EventWriter {
    /// Records an event, then sends it to the session's sink. A failure to record is ignored: it can't undo what happened, and
    /// the call that started the process is recorded.
    pub(crate) fn record(&self, payload: EventPayload) {
        let event = self.origin.event(self.clock.now(), payload);
        if self.recorder.record(std::slice::from_ref(&event)).is_ok() {
            self.sink.event(&event);
        }
    }

    /// Sends a live event, which is never recorded.
    pub(crate) fn pass(&self, payload: EventPayload) {
        let event = self.origin.event(self.clock.now(), payload);
        self.sink.live(&event);
        self.followers.iter().for_each(|followers| followers.live(&event));
    }

    /// Whether anyone receives live events.
    pub(crate) fn is_watched(&self) -> bool {
        self.sink.is_watched() || self.followers.as_ref().is_some_and(|followers| followers.is_watched())
    }
}
