//! How a worker reaches the inbox: on blocking threads, with one warning when the inbox fails and one when it works again,
//! whichever of the worker's requests notices.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_agent::RetryPolicy;
use toolgate_contract::Clock;
use toolgate_journal::{Inbox, JournalError};

/// Pauses between two attempts: they double up to the longest.
const RETRIES: RetryPolicy =
    RetryPolicy { most: u32::MAX, first: Duration::from_millis(250), longest: Duration::from_secs(15) };

/// The way to the inbox.
pub(crate) struct InboxLink {
    inbox: Arc<dyn Inbox>,
    /// Makes ids, and with them the jitter of pauses.
    clock: Arc<dyn Clock>,
    warn: Box<dyn Fn(&str) + Send + Sync>,
    failing_since: Mutex<Option<Instant>>,
}

impl InboxLink {
    /// A link that reports failures with `warn`.
    pub(crate) fn new(
        inbox: Arc<dyn Inbox>,
        clock: Arc<dyn Clock>,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self { inbox, clock, warn: Box::new(warn), failing_since: Mutex::default() }
    }

    /// Asks once.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Inbox) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let inbox = Arc::clone(&self.inbox);
        let asked = tokio::task::spawn_blocking(move || question(inbox.as_ref())).await;
        let answer = asked.unwrap_or_else(|ended| Err(JournalError::Store(Box::new(ended))));
        self.note(answer.as_ref().err());
        answer
    }

    fn note(&self, failure: Option<&JournalError>) {
        let mut failing_since = self.failing_since.lock();
        match (failure, *failing_since) {
            (Some(failure), None) => {
                *failing_since = Some(Instant::now());
                let longest = RETRIES.longest.as_secs();
                (self.warn)(&format!("The inbox can't be used. {failure} Trying again, at least every {longest} s."));
            }
            (None, Some(since)) => {
                *failing_since = None;
                (self.warn)(&format!("The inbox can be used again, after {} s.", since.elapsed().as_secs()));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    /// How long every request has failed; none while the inbox works.
    pub(crate) fn failing_for(&self) -> Option<Duration> {
        self.failing_since.lock().map(|since| since.elapsed())
    }

    /// How long to wait after this many failures in a row. Workers that failed together don't try again together.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let chance = self.clock.id().as_u128() as u64;
        RETRIES.wait(failures.max(1), None, chance).unwrap_or(RETRIES.longest)
    }
}
