//! Locks, so that conflicting calls wait for each other. Readers run concurrently; a change excludes only calls that touch the
//! same paths. Conflicting calls are served in order of arrival, so readers never starve a writer.
//!
//! A command works on a layer of its own, or next to others in place, so nobody waits while it runs but its own session's
//! changes and commands, which keep their order. Its changes are applied in one piece: while they are settled, nobody reads
//! or changes the workspace.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

use tokio::sync::Notify;
use toolgate_contract::{Access, Effect, LocatedEffect, WorkspacePath};

/// What running and waiting calls touch.
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
    is_held: bool,
    on: Claimed,
}

/// What a claim is on.
enum Claimed {
    /// Paths that a call of this session touches itself.
    Paths { session: String, paths: Vec<LockedPath> },
    /// The place of a command in the order of this session's changes.
    Command { session: String },
    /// The workspace, while changes of a command that has ended are applied.
    Settling,
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

impl Claimed {
    /// What a call of this session claims. A command or another server may touch anything, so its call claims no path, unless
    /// its tool says that it can run in parallel.
    fn by_call(session: &str, effects: &[LocatedEffect], parallel: bool) -> Self {
        let session = session.to_owned();
        let is_command = |effect: &Effect| matches!(effect, Effect::Run { .. } | Effect::UseServer { .. });
        match effects.iter().any(|located| is_command(&located.effect)) && !parallel {
            true => Self::Command { session },
            false => Self::Paths { session, paths: paths(effects) },
        }
    }

    /// Whether two calls can't run at the same time.
    fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Paths { paths: mine, .. }, Self::Paths { paths: theirs, .. }) => {
                mine.iter().any(|path| theirs.iter().any(|their| path.conflicts(their)))
            }
            (Self::Command { session: mine }, Self::Command { session: theirs }) => mine == theirs,
            (Self::Command { session: mine }, Self::Paths { session: theirs, paths })
            | (Self::Paths { session: theirs, paths }, Self::Command { session: mine }) => {
                mine == theirs && paths.iter().any(|path| path.exclusive)
            }
            (Self::Settling, _) | (_, Self::Settling) => false,
        }
    }

    fn touches_paths(&self) -> bool {
        matches!(self, Self::Paths { paths, .. } if !paths.is_empty())
    }
}

/// A lock that is held until dropped. Dropped while still waiting, it leaves the queue.
pub(crate) struct PathLockGuard<'a> {
    locks: &'a PathLocks,
    ticket: u64,
}

impl PathLocks {
    /// Waits until no earlier call conflicts with one of this session that has these effects.
    pub(crate) async fn acquire(&self, session: &str, effects: &[LocatedEffect], parallel: bool) -> PathLockGuard<'_> {
        self.wait_for(Claimed::by_call(session, effects, parallel)).await
    }

    /// Waits until no call reads or changes the workspace, to apply what a command changed. Calls that wait themselves
    /// are passed, since one of them may wait for this very command.
    pub(crate) async fn acquire_for_settling(&self) -> PathLockGuard<'_> {
        self.wait_for(Claimed::Settling).await
    }

    async fn wait_for(&self, on: Claimed) -> PathLockGuard<'_> {
        let lock = self.enqueue(on);
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.table().take(lock.ticket) {
                return lock;
            }
            changed.await;
        }
    }

    fn enqueue(&self, on: Claimed) -> PathLockGuard<'_> {
        let mut table = self.table();
        let ticket = table.next_ticket;
        table.next_ticket += 1;
        table.claims.push(LockClaim { ticket, is_held: false, on });
        PathLockGuard { locks: self, ticket }
    }

    fn table(&self) -> MutexGuard<'_, LockTable> {
        self.table.lock()
    }
}

impl LockTable {
    /// Holds a claim from now on, if it needn't wait any longer.
    fn take(&mut self, ticket: u64) -> bool {
        let Some(mine) = self.claims.iter().position(|claim| claim.ticket == ticket) else { return true };
        let waits = match &self.claims[mine].on {
            Claimed::Settling => self.claims.iter().any(|claim| claim.is_held && claim.on.touches_paths()),
            on => {
                let is_settling = self.claims.iter().any(|claim| matches!(claim.on, Claimed::Settling));
                is_settling || self.claims[..mine].iter().any(|earlier| on.conflicts(&earlier.on))
            }
        };
        self.claims[mine].is_held = !waits;
        !waits
    }
}

impl Drop for PathLockGuard<'_> {
    fn drop(&mut self) {
        self.locks.table().claims.retain(|claim| claim.ticket != self.ticket);
        self.locks.changed.notify_waiters();
    }
}

/// The paths that these effects touch.
fn paths(effects: &[LocatedEffect]) -> Vec<LockedPath> {
    let locked = effects.iter().filter_map(|located| {
        let ((access, _), place) = (located.effect.path()?, located.real.as_ref()?);
        Some(LockedPath { place: place.clone(), exclusive: access > Access::Read })
    });
    locked.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Long enough for whoever needn't wait: the clock of these tests stands still while anybody can go on.
    const SHORT: Duration = Duration::from_millis(20);

    fn at(effect: Effect) -> Vec<LocatedEffect> {
        let place = effect.path().map(|(_, path)| WorkspacePath::in_workspace(path));
        vec![LocatedEffect { effect, written: place.clone(), real: place }]
    }

    fn command() -> Effect {
        Effect::Run { command: "make".into(), workdir: ".".into() }
    }

    /// Whether `second` gets its lock while `first` is held.
    async fn can_run_concurrently(first: (&str, Effect), second: (&str, Effect)) -> bool {
        let locks = PathLocks::default();
        let _held = locks.acquire(first.0, &at(first.1), false).await;
        tokio::time::timeout(SHORT, locks.acquire(second.0, &at(second.1), false)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn which_calls_run_concurrently() {
        let table = [
            (Effect::read("a"), Effect::read("a"), true),
            (Effect::read("a"), Effect::write("a"), false),
            (Effect::write("a"), Effect::read("a"), false),
            (Effect::write("a"), Effect::write("b"), true),
            (Effect::write("src/a"), Effect::read("src"), false),
            (Effect::delete("src"), Effect::read("src/a"), false),
            (Effect::write("src"), Effect::read("src-more"), true),
            (Effect::Speak, Effect::Speak, true),
        ];
        for (first, second, expected) in table {
            let concurrent = can_run_concurrently(("one", first.clone()), ("other", second.clone())).await;
            assert_eq!(concurrent, expected, "{first} then {second}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_keeps_only_its_own_sessions_changes_waiting() {
        let table = [
            ("one", Effect::read("a"), true),
            ("one", Effect::write("a"), false),
            ("one", command(), false),
            ("other", Effect::read("a"), true),
            ("other", Effect::write("a"), true),
            ("other", command(), true),
        ];
        for (session, second, expected) in table {
            let concurrent = can_run_concurrently(("one", command()), (session, second.clone())).await;
            assert_eq!(concurrent, expected, "a command, then {second} of session {session}");
        }
        assert!(
            !can_run_concurrently(("one", Effect::write("a")), ("one", command())).await,
            "it sees what was written"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn settling_waits_for_those_who_read_and_everybody_else_for_settling() {
        let locks = PathLocks::default();
        let read = at(Effect::read("a"));
        let reader = locks.acquire("other", &read, true).await;
        let mut settling = std::pin::pin!(locks.acquire_for_settling());
        assert!(tokio::time::timeout(SHORT, settling.as_mut()).await.is_err(), "somebody reads");
        assert!(tokio::time::timeout(SHORT, locks.acquire("third", &read, true)).await.is_err(), "a later one waits");
        drop(reader);
        let settled = tokio::time::timeout(SHORT, settling).await.expect("nobody reads any more");
        let run = at(command());
        assert!(tokio::time::timeout(SHORT, locks.acquire("other", &run, false)).await.is_err(), "half is applied");
        drop(settled);
        assert!(tokio::time::timeout(SHORT, locks.acquire("other", &run, false)).await.is_ok(), "all is applied");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_waits_for_a_command_does_not_keep_it_from_settling() {
        let locks = PathLocks::default();
        let (run, write) = (at(command()), at(Effect::write("a")));
        let running = locks.acquire("one", &run, false).await;
        let mut writer = std::pin::pin!(locks.acquire("one", &write, true));
        assert!(tokio::time::timeout(SHORT, writer.as_mut()).await.is_err(), "the command came first");
        drop(tokio::time::timeout(SHORT, locks.acquire_for_settling()).await.expect("it passes the one that waits"));
        drop(running);
        assert!(tokio::time::timeout(SHORT, writer).await.is_ok(), "then it is the writer's turn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_writer_goes_before_later_readers_and_leaves_when_cancelled() {
        let locks = PathLocks::default();
        let reader = locks.acquire("one", &at(Effect::read("a")), true).await;
        {
            let write = at(Effect::write("a"));
            let mut writer = std::pin::pin!(locks.acquire("one", &write, true));
            assert!(tokio::time::timeout(SHORT, writer.as_mut()).await.is_err(), "the writer waits for the reader");
            let later = at(Effect::read("a"));
            assert!(
                tokio::time::timeout(SHORT, locks.acquire("one", &later, true)).await.is_err(),
                "later readers too"
            );
            drop(reader);
            assert!(tokio::time::timeout(SHORT, writer).await.is_ok(), "then it is the writer's turn");
        }
        let after = at(Effect::write("a"));
        assert!(
            tokio::time::timeout(SHORT, locks.acquire("one", &after, true)).await.is_ok(),
            "nothing was left behind"
        );
    }
}
