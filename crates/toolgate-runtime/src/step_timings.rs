//! Where a call's time goes, step by step, for benchmarks and telemetry.

use std::time::{Duration, Instant};

/// The steps of the path, in order, each with how long it took.
#[derive(Debug, Clone)]
pub struct StepTimings {
    begun: Instant,
    last: Instant,
    taken: Vec<(&'static str, Duration)>,
}

impl StepTimings {
    pub(crate) fn begin() -> Self {
        let begun = Instant::now();
        Self { begun, last: begun, taken: Vec::with_capacity(12) }
    }

    /// Closes a step: what passed since the last one was spent on `name`.
    pub(crate) fn done(&mut self, name: &'static str) {
        let now = Instant::now();
        self.taken.push((name, now - self.last));
        self.last = now;
    }

    /// Every step with how long it took.
    pub fn taken(&self) -> &[(&'static str, Duration)] {
        &self.taken
    }

    /// How long it has taken so far, with the step that goes on: one that is given up is never closed.
    pub(crate) fn total(&self) -> Duration {
        self.begun.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_never_closed_counts() {
        let mut steps = StepTimings::begin();
        steps.done("lock");
        let before = Instant::now();
        std::thread::sleep(Duration::from_millis(5));
        let waited = before.elapsed();
        assert!(steps.total() >= waited, "{steps:?}");
    }
}
