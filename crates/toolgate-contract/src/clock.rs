//! The source of time and fresh ids, so that tests can freeze both.

use jiff::Timestamp;
use uuid::Uuid;

/// The current time, and new ids. Ids contain the time (UUID v7), so one source provides both.
pub trait Clock: Send + Sync {
    /// The current moment.
    fn now(&self) -> Timestamp;
    /// A fresh, globally unique id that sorts by time.
    fn id(&self) -> Uuid;
}

/// The machine's own clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn id(&self) -> Uuid {
        Uuid::now_v7()
    }
}
