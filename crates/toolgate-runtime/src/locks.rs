//! Locks on paths, so that conflicting calls wait for each other. Readers run concurrently; a change excludes only
//! calls that touch the same paths. Conflicting calls are served in order of arrival, so readers never starve a writer.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

use tokio::sync::Notify;
use toolgate_contract::{Access, LocatedEffect, WorkspacePath};

/// The paths that running and waiting calls touch.
#[derive(Default)]
pub(crate) struct PathLocks {
    table: Mutex<LockTable>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct LockTable {
    next_ticket: u64,
    /// Held and waiting claims, in order of arrival.
    claims: Vec<LockClaim>,
}

struct LockClaim {
    ticket: u64,
    paths: Vec<LockedPath>,
}

/// A path, and whether it is locked for changing.
#[derive(Clone)]
struct LockedPath {
    place: WorkspacePath,
    exclusive: bool,
}

impl LockedPath {
    fn conflicts(&self, other: &Self) -> bool {
        (self.exclusive || other.exclusive) && (self.place.covers(&other.place) || other.place.covers(&self.place))
    }
}

/// A lock that is held until dropped. Dropped while still waiting, it leaves the queue.
pub(crate) struct PathLockGuard<'a> {
    locks: &'a PathLocks,
    ticket: u64,
}

impl PathLocks {
    /// Waits until no earlier call touches the paths of these effects.
    pub(crate) async fn acquire(&self, effects: &[LocatedEffect], parallel: bool) -> PathLockGuard<'_> {
        let lock = self.enqueue(paths(effects, parallel));
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.table().is_first(lock.ticket) {
                return lock;
            }
            changed.await;
        }
    }

    fn enqueue(&self, paths: Vec<LockedPath>) -> PathLockGuard<'_> {
        let mut table = self.table();
        let ticket = table.next_ticket;
        table.next_ticket += 1;
        table.claims.push(LockClaim { ticket, paths });
        PathLockGuard { locks: self, ticket }
    }

    fn table(&self) -> MutexGuard<'_, LockTable> {
        self.table.lock()
    }
}

impl LockTable {
    /// Whether no earlier claim conflicts with this one.
    fn is_first(&self, ticket: u64) -> bool {
        let earlier = self.claims.iter().take_while(|claim| claim.ticket < ticket);
        let Some(mine) = self.claims.iter().find(|claim| claim.ticket == ticket) else { return true };
        let mut paths = earlier.flat_map(|claim| &claim.paths);
        !paths.any(|theirs| mine.paths.iter().any(|spot| spot.conflicts(theirs)))
    }
}

impl Drop for PathLockGuard<'_> {
    fn drop(&mut self) {
        self.locks.table().claims.retain(|claim| claim.ticket != self.ticket);
        self.locks.changed.notify_waiters();
    }
}

/// The paths to lock for these effects. A command may touch anything, so it locks the entire workspace unless its tool
/// says that it can run in parallel.
fn paths(effects: &[LocatedEffect], parallel: bool) -> Vec<LockedPath> {
    let workspace = || LockedPath { place: WorkspacePath::in_workspace(""), exclusive: true };
    effects
        .iter()
        .filter_map(|located| match (located.effect.path(), &located.real) {
            (Some((access, _)), Some(place)) => {
                Some(LockedPath { place: place.clone(), exclusive: access > Access::Read })
            }
            _ if matches!(located.effect, toolgate_contract::Effect::Run { .. }) && !parallel => Some(workspace()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolgate_contract::Effect;

    use super::*;

    fn at(effect: Effect) -> Vec<LocatedEffect> {
        let place = effect.path().map(|(_, path)| WorkspacePath::in_workspace(path));
        vec![LocatedEffect { effect, written: place.clone(), real: place }]
    }

    /// Whether `second` gets its lock while `first` is held.
    async fn can_run_concurrently(first: Effect, second: Effect) -> bool {
        let locks = PathLocks::default();
        let _held = locks.acquire(&at(first), false).await;
        tokio::time::timeout(Duration::from_millis(20), locks.acquire(&at(second), false)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn which_calls_run_concurrently() {
        let run = Effect::Run { command: "make".into(), workdir: ".".into() };
        let table = [
            (Effect::read("a"), Effect::read("a"), true),
            (Effect::read("a"), Effect::write("a"), false),
            (Effect::write("a"), Effect::read("a"), false),
            (Effect::write("a"), Effect::write("b"), true),
            (Effect::write("src/a"), Effect::read("src"), false),
            (Effect::delete("src"), Effect::read("src/a"), false),
            (Effect::write("src"), Effect::read("src-more"), true),
            (run.clone(), Effect::read("a"), false),
            (run.clone(), run, false),
            (Effect::Speak, Effect::Speak, true),
        ];
        for (first, second, expected) in table {
            assert_eq!(can_run_concurrently(first.clone(), second.clone()).await, expected, "{first} then {second}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_writer_goes_before_later_readers_and_leaves_when_cancelled() {
        let locks = PathLocks::default();
        let reader = locks.acquire(&at(Effect::read("a")), true).await;
        let short = Duration::from_millis(20);
        {
            let write = at(Effect::write("a"));
            let mut writer = std::pin::pin!(locks.acquire(&write, true));
            assert!(tokio::time::timeout(short, writer.as_mut()).await.is_err(), "the writer waits for the reader");
            let later = at(Effect::read("a"));
            assert!(tokio::time::timeout(short, locks.acquire(&later, true)).await.is_err(), "later readers wait too");
            drop(reader);
            assert!(tokio::time::timeout(short, writer).await.is_ok(), "then it is the writer's turn");
        }
        let after = at(Effect::write("a"));
        assert!(tokio::time::timeout(short, locks.acquire(&after, true)).await.is_ok(), "nothing was left behind");
    }
}
