//! Takes tasks from the inbox one at a time, renews each task's lease until the answer is delivered, and stores the answer
//! before that. If this process dies at any point, the next one continues the task from there. If the inbox fails for a
//! while, the work goes on: whatever has to be stored is tried again until the lease has ended.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_contract::{BoxFuture, CancellationToken, Clock};
use toolgate_journal::{Inbox, JournalError, Lease, Task};

use super::earlier_attempts::{EarlierAttempts, RunRecords};
use super::idle_once::IdleOnce;
use super::inbox_link::InboxLink;
use super::own_lease::OwnLease;
use super::reply_channel::{ReplyChannel, TaskAnswer};

/// Maximum attempts at one task: a task that killed this many workers would kill the next one too.
const MAX_ATTEMPTS: u64 = 5;

/// The longest time between two renewals of a lease. A worker learns from a renewal that its task was cancelled.
const RENEW_AT_LEAST_EVERY: Duration = Duration::from_secs(5);

/// A task for a worker.
pub(crate) struct TaskAttempt<'a> {
    /// The task, and what is known of earlier attempts.
    pub(crate) objective: String,
    /// The id of the run to begin for this attempt.
    pub(crate) run: String,
    /// Where the answer goes.
    pub(crate) reply_channel: &'a dyn ReplyChannel,
}

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskResult {
    /// The outcome, in one word.
    pub(crate) outcome: String,
    /// The answer, or why there is none.
    pub(crate) answer: String,
}

/// Does the work.
pub(crate) trait TaskWorker {
    /// Works on a task until there is an answer or it is cancelled.
    fn work<'a>(&'a self, job: TaskAttempt<'a>, cancel: CancellationToken) -> BoxFuture<'a, Result<TaskResult>>;
}

/// A task that this process holds.
pub(crate) struct TakenTask {
    task: Task,
    own: OwnLease,
}

impl TakenTask {
    /// The token of its lease.
    pub(crate) fn token(&self) -> &str {
        &self.own.lease().token
    }
}

/// Works through the inbox.
pub(crate) struct Supervisor<'a> {
    pub(crate) link: InboxLink,
    pub(crate) records: RunRecords,
    pub(crate) worker: &'a dyn TaskWorker,
    pub(crate) clock: Arc<dyn Clock>,
    /// How long a lease lasts without renewal.
    pub(crate) lease: Duration,
    /// The token of a take that failed. The inbox may have granted it all the same, so it is used again.
    pub(crate) unconfirmed: Mutex<Option<String>>,
}

impl Supervisor<'_> {
    /// Takes the next task. None when there is none.
    pub(crate) async fn take(&self) -> Result<Option<TakenTask>, JournalError> {
        let unconfirmed = self.unconfirmed.lock().take();
        let token = unconfirmed.unwrap_or_else(|| self.clock.id().simple().to_string());
        let (lease, asked) = (Lease { token, lasts: self.lease }, Instant::now());
        let question = lease.clone();
        match self.link.ask(move |inbox| inbox.take(&question)).await {
            Ok(task) => Ok(task.map(|task| TakenTask { task, own: OwnLease::new(lease, asked) })),
            Err(error) => {
                *self.unconfirmed.lock() = Some(lease.token);
                Err(error)
            }
        }
    }

    /// Whether a worker that works once has to wait for tasks that others hold. If that can't be known, it has to.
    pub(crate) async fn must_wait(&self, idle: &mut IdleOnce) -> bool {
        self.link.ask(|inbox| inbox.leases()).await.map_or(true, |leases| idle.must_wait(leases))
    }

    /// Finishes a task, and renews its lease meanwhile.
    pub(crate) async fn finish(
        &self,
        taken: &TakenTask,
        channel_of: &(dyn Fn(&Task) -> Result<Arc<dyn ReplyChannel>> + Sync),
        cancel: &CancellationToken,
    ) -> Result<()> {
        let stop = cancel.child_token();
        let finishing = self.answer_and_deliver(taken, channel_of(&taken.task), &stop, cancel);
        tokio::pin!(finishing);
        let why = tokio::select! {
            finished = &mut finishing => return finished.map(drop),
            why = self.keep(taken, &stop) => why,
        };
        taken.own.lost();
        stop.cancel();
        match finishing.await? {
            true => Ok(()),
            false => bail!("{} was stopped: {why}. Whoever takes it next continues it.", taken.task.id),
        }
    }

    /// Renews the lease until it is over, and returns the reason. A renewal that fails is tried again.
    async fn keep(&self, taken: &TakenTask, stop: &CancellationToken) -> String {
        let interval = (self.lease / 4).min(RENEW_AT_LEAST_EVERY);
        let (mut failures, mut last_failure) = (0, String::new());
        loop {
            let pause = match failures {
                0 => interval,
                failures => self.link.pause(failures).min(interval),
            };
            let renewal = async {
                tokio::time::sleep(pause).await;
                (Instant::now(), self.renew(taken, self.lease).await)
            };
            match tokio::time::timeout_at(taken.own.ends(), renewal).await {
                Ok((asked, Ok(Some(task)))) => {
                    taken.own.renewed(asked);
                    failures = 0;
                    if task.is_unwanted {
                        stop.cancel();
                    }
                }
                Ok((_, Ok(None))) => return "its lease was lost to another worker".into(),
                Ok((_, Err(failure))) => {
                    failures += 1;
                    last_failure = failure.to_string();
                }
                Err(_) => {
                    let seconds = self.lease.as_secs();
                    return format!(
                        "its lease ended, as it couldn't be renewed for {seconds} s. {}",
                        last_failure.trim_end_matches('.')
                    );
                }
            }
        }
    }

    async fn renew(&self, taken: &TakenTask, lasts: Duration) -> Result<Option<Task>, JournalError> {
        let (id, lease) = (taken.task.id.clone(), Lease { lasts, ..taken.own.lease().clone() });
        self.link.ask(move |inbox| inbox.renew(&id, &lease)).await
    }

    /// Works out the answer if there is none yet, and delivers it. False when the task is left to another worker.
    async fn answer_and_deliver(
        &self,
        taken: &TakenTask,
        reply_channel: Result<Arc<dyn ReplyChannel>>,
        stop: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<bool> {
        let task = &taken.task;
        let answered = match (task.answer.clone(), task.outcome.clone()) {
            (Some(answer), Some(outcome)) => Some(TaskResult { outcome, answer }),
            _ => {
                let reply_channel = reply_channel.as_deref().map_err(|error| format!("{error:#}"));
                self.answer(taken, reply_channel, stop, cancel).await?
            }
        };
        let Some(finished) = answered else { return Ok(false) };
        if let Ok(reply_channel) = &reply_channel {
            self.deliver(taken, &finished, reply_channel.as_ref()).await?;
        }
        Ok(true)
    }

    /// Works out the answer and stores it. `None` when the lease was lost, or the work is to be continued later.
    async fn answer(
        &self,
        taken: &TakenTask,
        reply_channel: Result<&dyn ReplyChannel, String>,
        stop: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<Option<TaskResult>> {
        let task = &taken.task;
        let (records, runs) = (self.records.clone(), task.runs.clone());
        let earlier = self.insist(taken, move |_| EarlierAttempts::read(&records, &runs)).await?;
        let failed = |outcome: &str, answer: String| TaskResult { outcome: outcome.into(), answer };
        let finished = match (&earlier.answer, reply_channel) {
            _ if task.is_unwanted => failed("cancelled", "The task was cancelled.".into()),
            (Some(answer), _) => failed("answered", answer.clone()),
            _ if task.attempts > MAX_ATTEMPTS => {
                failed("failed", format!("The worker died {MAX_ATTEMPTS} times before there was an answer."))
            }
            (_, Err(error)) => failed("failed", error),
            (None, Ok(reply_channel)) => match self.work(taken, &earlier, reply_channel, stop, cancel).await? {
                Some(finished) => finished,
                None => return Ok(None),
            },
        };
        let (id, lease, result) = (task.id.clone(), taken.own.lease().clone(), finished.clone());
        let is_stored =
            self.insist(taken, move |inbox| inbox.answer(&id, &lease, &result.outcome, &result.answer)).await?;
        Ok(is_stored.then_some(finished))
    }

    /// Runs the worker. `None` when it was stopped before the task was done.
    async fn work(
        &self,
        taken: &TakenTask,
        earlier: &EarlierAttempts,
        reply_channel: &dyn ReplyChannel,
        stop: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<Option<TaskResult>> {
        let task = &taken.task;
        let run = format!("run_{}", self.clock.id().simple());
        let runs: Vec<String> = task.runs.iter().cloned().chain([run.clone()]).collect();
        let (id, lease) = (task.id.clone(), taken.own.lease().clone());
        if !self.insist(taken, move |inbox| inbox.begin(&id, &lease, &runs)).await? {
            return Ok(None);
        }
        let job = TaskAttempt { objective: earlier.with(&task.task), run, reply_channel };
        let finished = self.worker.work(job, stop.clone()).await;
        // Stopping this worker doesn't cancel the task: the next worker continues it, at once.
        if cancel.is_cancelled() {
            self.renew(taken, Duration::ZERO).await?;
            return Ok(None);
        }
        Ok(Some(finished?).filter(|_| !taken.own.is_over()))
    }

    /// Delivers the answer. If that fails, the lease expires and delivery is tried again.
    async fn deliver(&self, taken: &TakenTask, finished: &TaskResult, reply_channel: &dyn ReplyChannel) -> Result<()> {
        let task = &taken.task;
        let answer = TaskAnswer { task, outcome: &finished.outcome, answer: &finished.answer };
        reply_channel.deliver(&answer).await.with_context(|| format!("The answer of {} wasn't delivered", task.id))?;
        let (id, lease) = (task.id.clone(), taken.own.lease().clone());
        self.insist(taken, move |inbox| inbox.done(&id, &lease)).await?;
        Ok(())
    }

    /// Asks the inbox until it answers. Gives up when the lease is over, or after as long as a lease lasts.
    async fn insist<T: Send + 'static>(
        &self,
        taken: &TakenTask,
        question: impl Fn(&dyn Inbox) -> Result<T, JournalError> + Clone + Send + 'static,
    ) -> Result<T> {
        let (mut failures, give_up) = (0, Instant::now() + self.lease);
        loop {
            match self.link.ask(question.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) if taken.own.is_over() || Instant::now() >= give_up => return Err(error.into()),
                Err(_) => failures += 1,
            }
            let next = Instant::now() + self.link.pause(failures);
            tokio::time::sleep_until(next.min(taken.own.ends())).await;
        }
    }
}

#[cfg(test)]
mod tests;
