//! Where a call's time goes, step by step, for benchmarks and telemetry.

use std::time::{Duration, Instant};

/// The steps of the path, in order, each with how long it took.
#[derive(Debug, Clone)]
pub struct Steps {
    last: Instant,
    taken: Vec<(&'static str, Duration)>,
}

impl Steps {
    pub(crate) fn begin() -> Self {
        Self { last: Instant::now(), taken: Vec::with_capacity(12) }
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

    pub(crate) fn total(&self) -> Duration {
        self.taken.iter().map(|(_, time)| *time).sum()
    }
}
