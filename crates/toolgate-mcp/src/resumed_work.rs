//! Work that one thread begins and the runtime resumes, once what it waits for has happened. Handed to the runtime at once, it would wake
//! another thread only to find out that it has to wait.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use toolgate_contract::BoxFuture;

/// Work that may have to wait.
struct ResumedWork {
    state: Mutex<WorkState>,
    runtime: Handle,
}

enum WorkState {
    /// The thread that began it is at it.
    Begun,
    /// The same, and what it waited for has happened meanwhile.
    Woken,
    /// It waits.
    Waiting(BoxFuture<'static, ()>),
    /// The runtime has it.
    Resumed,
}

/// Does as much of the work as needs no waiting. The rest goes on in the runtime.
pub(crate) fn begin(mut work: BoxFuture<'static, ()>, runtime: &Handle) {
    let resumed = Arc::new(ResumedWork { state: Mutex::new(WorkState::Begun), runtime: runtime.clone() });
    let waker = Waker::from(Arc::clone(&resumed));
    if work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
        return;
    }
    let mut state = resumed.state.lock();
    if matches!(*state, WorkState::Woken) {
        *state = WorkState::Resumed;
        runtime.spawn(work);
    } else {
        *state = WorkState::Waiting(work);
    }
}

impl Wake for ResumedWork {
    fn wake(self: Arc<Self>) {
        let mut state = self.state.lock();
        let (next, work) = match std::mem::replace(&mut *state, WorkState::Resumed) {
            WorkState::Begun | WorkState::Woken => (WorkState::Woken, None),
            WorkState::Waiting(work) => (WorkState::Resumed, Some(work)),
            WorkState::Resumed => (WorkState::Resumed, None),
        };
        *state = next;
        drop(state);
        if let Some(work) = work {
            self.runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    use tokio::sync::{Notify, oneshot};

    use super::*;

    #[tokio::test]
    async fn work_without_waiting_is_done_at_once() {
        let done = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&done);
        let work = async move {
            counted.fetch_add(1, Ordering::SeqCst);
        };
        begin(Box::pin(work), &Handle::current());
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn work_that_waits_goes_on_when_it_can() {
        let (go_on, (done, is_done)) = (Arc::new(Notify::new()), oneshot::channel());
        let waited_for = Arc::clone(&go_on);
        let work = async move {
            waited_for.notified().await;
            waited_for.notified().await;
            let _ = done.send(());
        };
        begin(Box::pin(work), &Handle::current());
        go_on.notify_one();
        tokio::task::yield_now().await;
        go_on.notify_one();
        is_done.await.unwrap();
    }

    #[tokio::test]
    async fn what_happens_while_the_work_begins_isnt_missed() {
        let (done, is_done) = oneshot::channel();
        let mut is_first = true;
        let work = async move {
            std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            let _ = done.send(());
        };
        begin(Box::pin(work), &Handle::current());
        is_done.await.unwrap();
    }
}
