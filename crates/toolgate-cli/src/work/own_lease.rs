//! A lease as its holder knows it. Its end is measured by the monotonic clock of this machine, from the moment before the
//! request that granted or renewed it was sent. The store begins to count later, so the holder stops before another worker
//! can take the task, whatever the clocks on either side say.

use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_journal::Lease;

/// A lease that this worker holds.
pub(super) struct OwnLease {
    lease: Lease,
    ends: Mutex<Instant>,
}

impl OwnLease {
    /// A lease that was granted on a request sent at `asked`.
    pub(super) fn new(lease: Lease, asked: Instant) -> Self {
        Self { ends: Mutex::new(asked + lease.lasts), lease }
    }

    /// What the inbox knows it by.
    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The lease was renewed on a request sent at `asked`.
    pub(super) fn renewed(&self, asked: Instant) {
        *self.ends.lock() = asked + self.lease.lasts;
    }

    /// The lease is lost, whatever time was left.
    pub(super) fn lost(&self) {
        *self.ends.lock() = Instant::now();
    }

    /// When it ends, unless it is renewed.
    pub(super) fn ends(&self) -> Instant {
        *self.ends.lock()
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.ends()
    }
}
