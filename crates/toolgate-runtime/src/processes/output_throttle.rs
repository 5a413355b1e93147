//! Live output of a process: batched for a moment, and limited to what a person could follow.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_contract::{EventPayload, ProcessOutput, Stream};

use crate::gate::EventWriter;

/// How often a batch is sent.
const EVERY: Duration = Duration::from_millis(50);

/// Bytes of each stream in a batch. Of more, the last ones are sent, and the others are only counted.
const MOST: usize = 16 * 1024;

/// Sends the live output of one process.
pub(crate) struct OutputThrottle {
    event_writer: EventWriter,
    process: String,
    waiting: [PendingOutput; 2],
    last: Option<Instant>,
}

#[derive(Default)]
struct PendingOutput {
    bytes: Vec<u8>,
    skipped: u64,
}

impl OutputThrottle {
    pub(crate) fn new(event_writer: EventWriter, process: String) -> Self {
        Self { event_writer, process, waiting: Default::default(), last: None }
    }

    /// Adds output; it is sent when the batch is due.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() || !self.event_writer.is_watched() {
            return;
        }
        let PendingOutput { bytes: waiting, skipped } = &mut self.waiting[stream as usize];
        waiting.extend_from_slice(bytes);
        let over = waiting.len().saturating_sub(MOST);
        waiting.drain(..over);
        *skipped += over as u64;
    }

    /// When the batch is due; none while it is empty.
    pub(super) fn due(&self) -> Option<Instant> {
        let waits = self.waiting.iter().any(|waiting| !waiting.bytes.is_empty());
        waits.then(|| self.last.map_or_else(Instant::now, |last| last + EVERY))
    }

    /// Sends the batch.
    pub(super) fn flush(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let PendingOutput { bytes, skipped } = std::mem::take(&mut self.waiting[stream as usize]);
            if bytes.is_empty() {
                continue;
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let output = ProcessOutput { process: self.process.clone(), stream, text, skipped };
            self.event_writer.pass(EventPayload::ProcessOutput(output));
        }
        self.last = Some(Instant::now());
    }
}
