//! A circuit breaker: stops requests to a model that fails repeatedly, so that the agents of a task don't all keep
//! retrying.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// Counts failures in a row. At the limit it opens for a while, and no request is made. Then one attempt is allowed.
#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    most: u32,
    rest: Duration,
    state: Mutex<BreakerState>,
}

#[derive(Debug, Default)]
struct BreakerState {
    failures: u32,
    open_until: Option<Instant>,
}

impl CircuitBreaker {
    pub(crate) fn new(most: u32, rest: Duration) -> Self {
        Self { most, rest, state: Mutex::default() }
    }

    /// Whether a request may be made; if not, how long to wait.
    pub(crate) fn check(&self) -> Result<(), Duration> {
        let mut state = self.state();
        match state.open_until {
            Some(until) if until > Instant::now() => Err(until - Instant::now()),
            Some(_) => {
                // One attempt; if it fails too, the waiting time starts again.
                state.open_until = None;
                state.failures = self.most.saturating_sub(1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(crate) fn succeeded(&self) {
        *self.state() = BreakerState::default();
    }

    /// Counts a failure; returns whether that opens the breaker.
    pub(crate) fn failed(&self) -> bool {
        let mut state = self.state();
        state.failures += 1;
        let is_open = state.failures >= self.most;
        if is_open {
            state.open_until = Some(Instant::now() + self.rest);
        }
        is_open
    }

    fn state(&self) -> parking_lot::MutexGuard<'_, BreakerState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_then_lets_one_try() {
        let breaker = CircuitBreaker::new(2, Duration::from_secs(60));
        assert!(!breaker.failed());
        breaker.succeeded();
        assert!(!breaker.failed(), "a success resets the count");
        assert!(breaker.failed());
        assert_eq!(breaker.check(), Err(Duration::from_secs(60)));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(breaker.check(), Ok(()));
        assert!(breaker.failed(), "one more failure is enough now");
        assert!(breaker.check().is_err());
    }
}
