//! An inbox in trouble: workers that die before and after each of its calls, and outages that are shorter or longer than a
//! lease. Time is virtual: it passes when nothing else is left to do.

use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;
use toolgate_contract::SystemClock;
use toolgate_journal::{HeldLease, NewTask, StateDirectory, TaskState};

use super::*;
use crate::work::RunRecords;

const LEASE: Duration = Duration::from_secs(60);

/// What happens to a call to the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallFate {
    Works,
    /// It fails before it had any effect.
    Fails,
    /// It takes effect, and the confirmation is lost.
    LosesItsAnswer,
}

/// An inbox whose calls can fail.
struct TroubledInbox {
    inbox: Arc<dyn Inbox>,
    fate: Box<dyn Fn() -> CallFate + Send + Sync>,
}

impl TroubledInbox {
    fn call<T>(&self, act: impl FnOnce(&dyn Inbox) -> Result<T, JournalError>) -> Result<T, JournalError> {
        let failure = || JournalError::Store("the cable is unplugged".into());
        match (self.fate)() {
            CallFate::Works => act(self.inbox.as_ref()),
            CallFate::Fails => Err(failure()),
            CallFate::LosesItsAnswer => act(self.inbox.as_ref()).and(Err(failure())),
        }
    }
}

impl Inbox for TroubledInbox {
    fn add(&self, task: &NewTask) -> Result<(), JournalError> {
        self.call(|inbox| inbox.add(task))
    }
    fn tasks(&self, all: bool, limit: usize) -> Result<Vec<Task>, JournalError> {
        self.call(|inbox| inbox.tasks(all, limit))
    }
    fn newest_tasks(&self, limit: usize) -> Result<Vec<Task>, JournalError> {
        self.call(|inbox| inbox.newest_tasks(limit))
    }

    fn task(&self, id: &str) -> Result<Option<Task>, JournalError> {
        self.call(|inbox| inbox.task(id))
    }
    fn take(&self, lease: &Lease) -> Result<Option<Task>, JournalError> {
        self.call(|inbox| inbox.take(lease))
    }
    fn leases(&self) -> Result<Vec<HeldLease>, JournalError> {
        self.call(|inbox| inbox.leases())
    }
    fn renew(&self, id: &str, lease: &Lease) -> Result<Option<Task>, JournalError> {
        self.call(|inbox| inbox.renew(id, lease))
    }
    fn begin(&self, id: &str, lease: &Lease, runs: &[String]) -> Result<bool, JournalError> {
        self.call(|inbox| inbox.begin(id, lease, runs))
    }
    fn answer(&self, id: &str, held: &Lease, how: &str, answer: &str) -> Result<bool, JournalError> {
        self.call(|inbox| inbox.answer(id, held, how, answer))
    }
    fn done(&self, id: &str, lease: &Lease) -> Result<bool, JournalError> {
        self.call(|inbox| inbox.done(id, lease))
    }
    fn cancel(&self, id: &str) -> Result<bool, JournalError> {
        self.call(|inbox| inbox.cancel(id))
    }
}

/// Works for a time, and answers with its own name unless it is cancelled.
struct TimedWorker {
    name: &'static str,
    takes: Duration,
    cancelled: Mutex<Option<Instant>>,
}

impl TimedWorker {
    fn new(name: &'static str, takes: Duration) -> Self {
        Self { name, takes, cancelled: Mutex::default() }
    }
}

impl TaskWorker for TimedWorker {
    fn work<'a>(&'a self, _job: TaskAttempt<'a>, cancel: CancellationToken) -> BoxFuture<'a, Result<TaskResult>> {
        Box::pin(async move {
            let outcome = tokio::select! {
                () = tokio::time::sleep(self.takes) => "answered",
                () = cancel.cancelled() => {
                    *self.cancelled.lock() = Some(Instant::now());
                    "cancelled"
                }
            };
            Ok(TaskResult { outcome: outcome.into(), answer: self.name.into() })
        })
    }
}

/// Remembers what was delivered.
#[derive(Default)]
struct HeardAnswers(Mutex<Vec<String>>);

impl ReplyChannel for HeardAnswers {
    fn deliver<'a>(&'a self, answer: &'a TaskAnswer<'a>) -> BoxFuture<'a, Result<()>> {
        self.0.lock().push(answer.answer.to_owned());
        Box::pin(std::future::ready(Ok(())))
    }
}

/// One task in an inbox, whatever was warned of, and whatever was delivered.
struct World {
    _directory: TempDir,
    state: Arc<StateDirectory>,
    inbox: Arc<dyn Inbox>,
    heard: Arc<HeardAnswers>,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let state = Arc::new(StateDirectory::open(directory.path()).unwrap());
        let inbox: Arc<dyn Inbox> = Arc::new(state.inbox().unwrap());
        inbox
            .add(&NewTask {
                id: "task".into(),
                task: "do it".into(),
                reply_to: toolgate_journal::ReplyAddress::Terminal,
            })
            .unwrap();
        Self { _directory: directory, state, inbox, heard: Arc::default(), warnings: Arc::default() }
    }

    fn supervisor<'a>(
        &self,
        worker: &'a TimedWorker,
        fate: impl Fn() -> CallFate + Send + Sync + 'static,
    ) -> Supervisor<'a> {
        let (clock, warnings) = (Arc::new(SystemClock), Arc::clone(&self.warnings));
        let inbox = Arc::new(TroubledInbox { inbox: Arc::clone(&self.inbox), fate: Box::new(fate) });
        Supervisor {
            link: InboxLink::new(inbox, clock.clone(), move |text| warnings.lock().push(text.to_owned())),
            records: RunRecords { state: Arc::clone(&self.state), store: Arc::new(self.state.index().unwrap()) },
            worker,
            clock,
            lease: LEASE,
            unconfirmed: Mutex::default(),
        }
    }

    /// Takes a task and finishes it. False when there is none.
    async fn next(&self, supervisor: &Supervisor<'_>) -> Result<bool> {
        let channel: Arc<dyn ReplyChannel> = Arc::clone(&self.heard) as _;
        let Some(taken) = supervisor.take().await? else { return Ok(false) };
        supervisor.finish(&taken, &|_| Ok(Arc::clone(&channel)), &CancellationToken::new()).await?;
        Ok(true)
    }

    fn task(&self) -> Task {
        self.inbox.task("task").unwrap().unwrap()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }

    /// Stands in for the time that passes until a dead worker's lease has expired.
    fn expire_leases(&self) {
        let file = rusqlite::Connection::open(self.state.path().join("inbox.db")).unwrap();
        file.execute("UPDATE inbox SET lease_until = 0", []).unwrap();
    }
}

/// Says that calls fail from one second to another, counted from now.
fn outages(seconds: &'static [(u64, u64)]) -> impl Fn() -> CallFate + Send + Sync + 'static {
    let start = Instant::now();
    move || match seconds.iter().any(|(from, to)| (*from..*to).contains(&start.elapsed().as_secs())) {
        true => CallFate::Fails,
        false => CallFate::Works,
    }
}

/// One task and two workers, of which the first dies at a call. Returns false when the first made no further calls.
async fn two_workers(last_call: u32, fate: CallFate) -> bool {
    let world = World::new();
    let (calls, dead) = (AtomicU32::new(0), CancellationToken::new());
    let death = dead.clone();
    let (first, second) = (TimedWorker::new("first", Duration::ZERO), TimedWorker::new("second", Duration::ZERO));
    let dying = world.supervisor(&first, move || match calls.fetch_add(1, Ordering::Relaxed) {
        number if number < last_call => CallFate::Works,
        _ if death.is_cancelled() => CallFate::Fails,
        _ => {
            death.cancel();
            fate
        }
    });
    tokio::select! {
        biased;
        () = dead.cancelled() => {}
        finished = world.next(&dying) => drop(finished),
    }
    drop(dying);
    world.expire_leases();
    let is_left = world.next(&world.supervisor(&second, || CallFate::Works)).await.unwrap();
    let (task, heard) = (world.task(), world.heard.0.lock().clone());
    assert_eq!(task.state, TaskState::Done, "{last_call} {fate:?}");
    assert_eq!(heard.last(), task.answer.as_ref(), "{last_call} {fate:?}: {heard:?}");
    let is_one = heard.iter().all(|answer| Some(answer) == task.answer.as_ref());
    assert!(is_one && heard.len() <= 2, "{last_call} {fate:?}: one answer, at most delivered twice: {heard:?}");
    assert!(
        is_left || !dead.is_cancelled() || fate != CallFate::Fails,
        "{last_call}: the next one says what wasn't said"
    );
    dead.is_cancelled()
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_in_any_call_leaves_the_task_to_the_next() {
    for fate in [CallFate::Fails, CallFate::LosesItsAnswer] {
        let mut call = 0;
        while two_workers(call, fate).await {
            call += 1;
        }
        assert_eq!(call, 4, "it takes, begins, answers and is done");
    }
}

#[tokio::test(start_paused = true)]
async fn outages_shorter_than_the_lease_stop_nothing() {
    let (world, worker) = (World::new(), TimedWorker::new("patient", Duration::from_secs(200)));
    // The second one begins while the task is worked on, and lasts until the answer has to be stored.
    let supervisor = world.supervisor(&worker, outages(&[(20, 65), (195, 230)]));
    assert!(world.next(&supervisor).await.unwrap());
    let task = world.task();
    assert_eq!((task.state, task.attempts, task.answer.as_deref()), (TaskState::Done, 1, Some("patient")));
    assert_eq!(*worker.cancelled.lock(), None);
    let warnings = world.warnings();
    let is_told = |text: &String, words: &str| text.contains(words);
    assert_eq!(warnings.len(), 4, "one at the beginning and one at the end of each: {warnings:#?}");
    assert!(warnings.iter().step_by(2).all(|text| is_told(text, "can't be used") && is_told(text, "unplugged")));
    assert!(warnings.iter().skip(1).step_by(2).all(|text| is_told(text, "can be used again")), "{warnings:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_longer_than_the_lease_cancels_the_work_when_the_lease_has_ended() {
    let (world, worker) = (World::new(), TimedWorker::new("cut off", Duration::from_secs(3600)));
    let start = Instant::now();
    let supervisor = world.supervisor(&worker, outages(&[(18, u64::MAX)]));
    let error = world.next(&supervisor).await.unwrap_err().to_string();
    assert!(error.contains("task was stopped: its lease ended") && error.contains("unplugged"), "{error}");
    assert!(error.contains("for 60 s") && error.contains("continues it"), "{error}");
    // The last renewal that worked was the third one, after three times five seconds.
    assert_eq!((worker.cancelled.lock().unwrap() - start).as_secs(), 15 + LEASE.as_secs());
    assert_eq!((world.task().state, world.task().answer), (TaskState::Working, None), "it isn't answered");
}

#[tokio::test(start_paused = true)]
async fn work_on_a_task_that_another_worker_has_taken_is_cancelled() {
    let (world, worker) = (World::new(), TimedWorker::new("slow", Duration::from_secs(3600)));
    let supervisor = world.supervisor(&worker, || CallFate::Works);
    let other = Lease { token: "other".into(), lasts: LEASE };
    let steal = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        world.expire_leases();
        assert!(world.inbox.take(&other).unwrap().is_some());
        std::future::pending::<()>().await;
    };
    let error = tokio::select! {
        finished = world.next(&supervisor) => finished.unwrap_err().to_string(),
        () = steal => unreachable!("it waits forever"),
    };
    assert!(error.contains("lost to another worker"), "{error}");
    assert!(worker.cancelled.lock().is_some());
    assert!(world.inbox.answer("task", &other, "answered", "by the other").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_take_whose_answer_was_lost_is_repeated_and_takes_no_second_task() {
    let (world, worker) = (World::new(), TimedWorker::new("again", Duration::ZERO));
    world
        .inbox
        .add(&NewTask { id: "second".into(), task: "do".into(), reply_to: toolgate_journal::ReplyAddress::Terminal })
        .unwrap();
    let calls = AtomicU32::new(0);
    let supervisor = world.supervisor(&worker, move || match calls.fetch_add(1, Ordering::Relaxed) {
        0 => CallFate::LosesItsAnswer,
        _ => CallFate::Works,
    });
    assert!(supervisor.take().await.is_err());
    assert!(world.next(&supervisor).await.unwrap());
    assert_eq!((world.task().state, world.task().attempts), (TaskState::Done, 1));
    assert_eq!(world.inbox.task("second").unwrap().unwrap().state, TaskState::Waiting);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_stopped_and_stays_held_until_that_is_stored() {
    let (world, worker) = (World::new(), TimedWorker::new("stopped", Duration::from_secs(3600)));
    let supervisor = world.supervisor(&worker, || CallFate::Works);
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(world.inbox.cancel("task").unwrap());
    };
    let (finished, ()) = tokio::join!(world.next(&supervisor), cancel);
    assert!(finished.unwrap());
    let task = world.task();
    assert_eq!((task.state, task.outcome.as_deref()), (TaskState::Done, Some("cancelled")));
}
