//! The queue that the threads of a walk share. It is last in, first out: a walk goes deep first, so the queue stays short. It
//! ends when it is empty and no thread can add more.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, Ordering};

/// Left-out entries that are remembered for the end.
const MOST_LATER: usize = 10_000;

pub(super) struct WorkQueue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
    is_over: AtomicBool,
}

struct QueueState<T> {
    stack: Vec<T>,
    /// Done when all other work is done.
    later: Vec<T>,
    /// Threads that are at work and may add more.
    busy: usize,
}

/// A piece of work, and the guard that marks it as being done.
pub(super) struct TakenWork<'a, T> {
    pub(super) taken: T,
    pub(super) busy: BusyGuard<'a, T>,
}

/// While this guard lives, the queue waits for more work.
pub(super) struct BusyGuard<'a, T>(&'a WorkQueue<T>);

impl<T> Default for WorkQueue<T> {
    fn default() -> Self {
        let state = QueueState { stack: Vec::new(), later: Vec::new(), busy: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new(), is_over: AtomicBool::new(false) }
    }
}

impl<T> WorkQueue<T> {
    /// Adds work; its first piece is done first.
    pub(super) fn add(&self, work: impl DoubleEndedIterator<Item = T>) {
        let mut state = self.lock();
        let before = state.stack.len();
        state.stack.extend(work.rev());
        if state.stack.len() > before {
            self.changed.notify_all();
        }
    }

    /// Adds work that is done when all other work is done.
    pub(super) fn add_later(&self, work: Vec<T>) {
        if !work.is_empty() {
            let mut state = self.lock();
            let room = MOST_LATER.saturating_sub(state.later.len());
            state.later.extend(work.into_iter().take(room));
        }
    }

    /// How many pieces of work are waiting.
    pub(super) fn len(&self) -> usize {
        self.lock().stack.len()
    }

    /// The next piece of work. Waits while another thread may still add some; `None` when the queue has ended.
    pub(super) fn next(&self) -> Option<TakenWork<'_, T>> {
        let mut state = self.lock();
        loop {
            if self.is_over() {
                return None;
            }
            if state.stack.is_empty() && state.busy == 0 {
                let later = std::mem::take(&mut state.later);
                state.stack.extend(later.into_iter().rev());
            }
            if let Some(taken) = state.stack.pop() {
                state.busy += 1;
                return Some(TakenWork { taken, busy: BusyGuard(self) });
            }
            if state.busy == 0 {
                drop(state);
                self.end();
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Ends the queue, whatever is left in it.
    pub(super) fn end(&self) {
        // Under the lock, so that no thread starts to wait between its check and this notification.
        let _state = self.lock();
        self.is_over.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock()
    }
}

impl<T> Drop for BusyGuard<'_, T> {
    fn drop(&mut self) {
        // A thread that panics ends the walk, so that the others don't wait for it.
        if std::thread::panicking() {
            self.0.end();
        }
        let mut state = self.0.lock();
        state.busy -= 1;
        if state.busy == 0 {
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all work, and adds what `more` returns for each piece.
    fn drain(queue: &WorkQueue<u32>, more: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
        std::iter::from_fn(|| {
            let work = queue.next()?;
            queue.add(more(work.taken).into_iter());
            Some(work.taken)
        })
        .collect()
    }

    #[test]
    fn goes_deep_first_and_to_what_was_put_off_last() {
        let queue = WorkQueue::default();
        queue.add_later(vec![7, 8]);
        queue.add([1, 2].into_iter());
        let order = drain(&queue, |work| if work < 3 { vec![work * 10, work * 10 + 1] } else { vec![] });
        assert_eq!(order, [1, 10, 11, 2, 20, 21, 7, 8]);
        assert!(queue.is_over());
    }

    #[test]
    fn many_threads_do_each_work_once_and_all_come_home() {
        let queue = WorkQueue::default();
        queue.add(std::iter::once(1));
        let grow = |work| if work < 5_000 { vec![work * 2, work * 2 + 1] } else { vec![] };
        let done = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| drain(&queue, grow))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let each: std::collections::BTreeSet<_> = done.iter().copied().collect();
        assert_eq!((done.len(), each), (9_999, (1..10_000).collect()));
    }

    #[test]
    fn a_panic_ends_it_for_all() {
        let queue = WorkQueue::default();
        queue.add(0..1_000u32);
        let left = std::thread::scope(|scope| {
            let fails = scope.spawn(|| {
                let _work = queue.next();
                panic!("on purpose")
            });
            assert!(fails.join().is_err());
            scope.spawn(|| queue.next().is_none()).join()
        });
        assert!(left.unwrap());
    }
}
