//! Kills a worker before and after each call to the inbox: the second worker always finishes the task, with one answer
//! that is stored and delivered.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use toolgate_contract::SystemClock;
use toolgate_journal::{JournalError, NewTask, StateDirectory, TaskState};

use super::*;
use crate::work::RunRecords;

/// When a worker dies: at which call to the inbox, and whether that call still takes effect.
#[derive(Debug, Clone, Copy)]
struct Death {
    call: i64,
    arrives: bool,
}

/// An inbox whose worker dies during a call.
struct DyingInbox {
    inbox: Arc<dyn Inbox>,
    death: Death,
    calls: AtomicI64,
}

impl DyingInbox {
    fn call<T>(&self, act: impl FnOnce(&dyn Inbox) -> Result<T, JournalError>) -> Result<T, JournalError> {
        let dead = || JournalError::Store("the worker is dead".into());
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            number if number < self.death.call => act(self.inbox.as_ref()),
            number if number == self.death.call && self.death.arrives => act(self.inbox.as_ref()).and(Err(dead())),
            _ => Err(dead()),
        }
    }

    fn has_died(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > self.death.call
    }
}

impl Inbox for DyingInbox {
    fn add(&self, task: &NewTask) -> Result<(), JournalError> {
        self.call(|inbox| inbox.add(task))
    }
    fn tasks(&self, all: bool, limit: usize) -> Result<Vec<Task>, JournalError> {
        self.call(|inbox| inbox.tasks(all, limit))
    }
    fn task(&self, id: &str) -> Result<Option<Task>, JournalError> {
        self.call(|inbox| inbox.task(id))
    }
    fn take(&self, lease: &Lease, now: Timestamp) -> Result<Option<Task>, JournalError> {
        self.call(|inbox| inbox.take(lease, now))
    }
    fn renew(&self, id: &str, lease: &Lease) -> Result<Option<Task>, JournalError> {
        self.call(|inbox| inbox.renew(id, lease))
    }
    fn begin(&self, id: &str, lease: &Lease, runs: &[String]) -> Result<bool, JournalError> {
        self.call(|inbox| inbox.begin(id, lease, runs))
    }
    fn answer(&self, id: &str, held: &Lease, how: &str, answer: &str, now: Timestamp) -> Result<bool, JournalError> {
        self.call(|inbox| inbox.answer(id, held, how, answer, now))
    }
    fn done(&self, id: &str, lease: &Lease) -> Result<bool, JournalError> {
        self.call(|inbox| inbox.done(id, lease))
    }
    fn cancel(&self, id: &str) -> Result<bool, JournalError> {
        self.call(|inbox| inbox.cancel(id))
    }
}

/// A clock that is ahead of the others.
struct Ahead(jiff::SignedDuration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now() + self.0
    }
    fn id(&self) -> uuid::Uuid {
        SystemClock.id()
    }
}

/// Answers with its own name.
struct Named(&'static str);

impl TaskWorker for Named {
    fn work<'a>(&'a self, _job: TaskAttempt<'a>, _cancel: CancellationToken) -> BoxFuture<'a, Result<TaskResult>> {
        Box::pin(std::future::ready(Ok(TaskResult { outcome: "answered".into(), answer: self.0.into() })))
    }
}

/// Remembers what was delivered.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl ReplyChannel for Heard {
    fn deliver<'a>(&'a self, answer: &'a TaskAnswer<'a>) -> BoxFuture<'a, Result<()>> {
        self.0.lock().push(answer.answer.to_owned());
        Box::pin(std::future::ready(Ok(())))
    }
}

/// One task and two workers, of which the first dies. Returns false when the first made no further calls.
async fn two_workers(death: Death) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(directory.path()).unwrap();
    let inbox: Arc<dyn Inbox> = Arc::new(state.inbox().unwrap());
    let created = SystemClock.now();
    let task = NewTask { id: "task".into(), task: "do it".into(), reply_to: "terminal".into(), created };
    inbox.add(&task).unwrap();
    let heard = Arc::new(Heard::default());
    let reply_channel = Arc::clone(&heard) as Arc<dyn ReplyChannel>;
    let channel_of = |_: &Task| Ok(Arc::clone(&reply_channel));
    let records = RunRecords { state: &state, store: Arc::new(state.index().unwrap()) };
    let dying = Arc::new(DyingInbox { inbox: Arc::clone(&inbox), death, calls: AtomicI64::new(0) });
    let supervisor = |inbox: Arc<dyn Inbox>, worker, hours| Supervisor {
        inbox,
        records: records.clone(),
        worker,
        clock: Arc::new(Ahead(jiff::SignedDuration::from_hours(hours))),
        lease: Duration::from_secs(3600),
    };
    let (first, second) = (Named("first"), Named("second"));
    let cancel = CancellationToken::new();
    let _ = supervisor(Arc::clone(&dying) as _, &first, 0).next(&channel_of, &cancel).await;
    // By now the first worker's lease has expired.
    let is_left = supervisor(Arc::clone(&inbox), &second, 2).next(&channel_of, &cancel).await.unwrap();
    let task = inbox.task("task").unwrap().unwrap();
    assert_eq!(task.state, TaskState::Done, "{death:?}");
    let heard = heard.0.lock().clone();
    assert_eq!(heard.last(), task.answer.as_ref(), "{death:?}: {heard:?}");
    let is_one = heard.iter().all(|answer| Some(answer) == task.answer.as_ref());
    assert!(is_one && heard.len() <= 2, "{death:?}: there is one answer, at most delivered twice: {heard:?}");
    assert!(is_left || !dying.has_died() || death.arrives, "{death:?}: what wasn't said is said by the next");
    dying.has_died()
}

#[tokio::test]
async fn a_worker_that_dies_in_any_call_leaves_the_task_to_the_next() {
    for arrives in [false, true] {
        let mut call = 0;
        while two_workers(Death { call, arrives }).await {
            call += 1;
        }
        assert_eq!(call, 4, "it takes, begins, answers and is done");
    }
}
