//! Leaves a model alone that fails again and again, so that the agents of a task don't all go on knocking.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// Counts failures in a row. After so many it is open for a while: nobody asks. Then one may try.
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

    /// Whether the model may be asked; if not, for how long.
    pub(crate) fn check(&self) -> Result<(), Duration> {
        let mut state = self.state();
        match state.open_until {
            Some(until) if until > Instant::now() => Err(until - Instant::now()),
            Some(_) => {
                // One try; if it fails too, the rest begins anew.
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

    /// Counts a failure; says whether that was one too many.
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
        assert!(!breaker.failed(), "a success starts the count anew");
        assert!(breaker.failed());
        assert_eq!(breaker.check(), Err(Duration::from_secs(60)));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(breaker.check(), Ok(()));
        assert!(breaker.failed(), "one more failure is enough now");
        assert!(breaker.check().is_err());
    }
}
