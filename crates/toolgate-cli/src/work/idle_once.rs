//! When a worker that works once is finished. A task that another worker holds comes back if that worker has died, so the
//! worker waits until each such lease has expired, was renewed by a living worker, or is gone with its task.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use toolgate_journal::HeldLease;

/// What a worker that works once remembers.
#[derive(Default)]
pub(crate) struct IdleOnce {
    /// The leases that it had itself. A task that it failed to finish is left to the next worker.
    own: HashSet<String>,
    /// The leases of others, with their end when each was first seen.
    first_seen: HashMap<String, Timestamp>,
}

impl IdleOnce {
    /// A task was taken under this lease.
    pub(crate) fn took(&mut self, token: &str) {
        self.own.insert(token.to_owned());
    }

    /// Whether one of these leases may belong to a worker that has died.
    pub(crate) fn must_wait(&mut self, leases: Vec<HeldLease>) -> bool {
        let others = leases.into_iter().filter(|lease| !self.own.contains(&lease.token));
        // Each lease has to be noted, so this looks at all of them.
        others.filter(|lease| *self.first_seen.entry(lease.token.clone()).or_insert(lease.until) == lease.until).count()
            > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(token: &str, second: i64) -> HeldLease {
        HeldLease { token: token.into(), until: Timestamp::from_second(second).unwrap() }
    }

    #[test]
    fn it_waits_for_leases_that_nobody_renews() {
        let mut idle = IdleOnce::default();
        assert!(!idle.must_wait(vec![]));
        idle.took("own");
        assert!(!idle.must_wait(vec![lease("own", 60)]), "it waits for no task that it failed to finish");
        assert!(idle.must_wait(vec![lease("living", 60), lease("dead", 61)]));
        assert!(idle.must_wait(vec![lease("living", 65), lease("dead", 61)]));
        assert!(!idle.must_wait(vec![lease("living", 65)]), "a living worker finishes its own task");
        assert!(!idle.must_wait(vec![lease("living", 70)]));
    }
}
