//! A clock that stands still, and ids that count.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use toolgate_contract::Clock;
use uuid::Uuid;

/// Always the same moment; ids count up from 1.
#[derive(Debug, Default)]
pub struct FrozenClock {
    ids: AtomicU64,
}

impl Clock for FrozenClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).expect("a moment in 2023")
    }

    fn id(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.ids.fetch_add(1, Ordering::Relaxed) + 1))
    }
}
