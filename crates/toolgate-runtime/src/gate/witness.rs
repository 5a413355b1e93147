//! Tells what happens to a process, in the name of the call that started it, also long after that call.

use std::sync::Arc;

use toolgate_contract::{Clock, Happening};

use super::speaker::Origin;
use crate::session::{EventSink, Recorder};

/// Tells what happens to what one call started.
#[derive(Clone)]
pub(crate) struct Witness {
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) origin: Arc<Origin>,
}

impl Witness {
    /// Puts it on record, then shows it. What can't be recorded any more has happened all the same; the call that led to it
    /// is on record.
    pub(crate) fn record(&self, happening: Happening) {
        let event = self.origin.event(self.clock.now(), happening);
        if self.recorder.record(std::slice::from_ref(&event)).is_ok() {
            self.sink.event(&event);
        }
    }

    /// Shows what is never on record.
    pub(crate) fn pass(&self, happening: Happening) {
        self.sink.passing(&self.origin.event(self.clock.now(), happening));
    }

    /// Whether anyone sees it.
    pub(crate) fn is_watched(&self) -> bool {
        self.sink.is_watched()
    }
}
