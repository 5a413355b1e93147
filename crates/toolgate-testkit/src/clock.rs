//! A clock that stands still until advanced, and ids that count.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::Timestamp;
use toolgate_contract::Clock;
use uuid::Uuid;

/// Always the same moment, unless advanced; ids count up from 1.
#[derive(Debug, Default)]
pub struct FrozenClock {
    ids: AtomicU64,
    passed: AtomicI64,
}

impl FrozenClock {
    /// Advances the clock.
    pub fn pass(&self, seconds: i64) {
        self.passed.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for FrozenClock {
    fn now(&self) -> Timestamp {
        let second = 1_700_000_000 + self.passed.load(Ordering::Relaxed);
        Timestamp::from_second(second).expect("a moment in 2023, or soon after")
    }

    fn id(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.ids.fetch_add(1, Ordering::Relaxed) + 1))
    }
}
