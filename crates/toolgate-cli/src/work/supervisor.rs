//! Takes tasks from the inbox one at a time, renews each task's lease while a worker does it, stores the answer, and
//! delivers it. If this process dies at any point, the next one continues the task from there.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use toolgate_contract::{BoxFuture, CancellationToken, Clock};
use toolgate_journal::{Inbox, Lease, Task};

use super::earlier_attempts::{EarlierAttempts, RunRecords};
use super::reply_channel::{ReplyChannel, TaskAnswer};

/// Maximum attempts at one task: a task that killed this many workers would kill the next one too.
const MAX_ATTEMPTS: u64 = 5;

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

/// Works through the inbox.
pub(crate) struct Supervisor<'a> {
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) records: RunRecords<'a>,
    pub(crate) worker: &'a dyn TaskWorker,
    pub(crate) clock: Arc<dyn Clock>,
    /// How long a lease lasts without renewal.
    pub(crate) lease: Duration,
}

impl Supervisor<'_> {
    /// Takes the next task and finishes it. False when there is none.
    pub(crate) async fn next(
        &self,
        channel_of: &(dyn Fn(&Task) -> Result<Arc<dyn ReplyChannel>> + Sync),
        cancel: &CancellationToken,
    ) -> Result<bool> {
        let lease = self.fresh_lease()?;
        let now = self.clock.now();
        let Some(task) = self
            .ask({
                let lease = lease.clone();
                move |inbox| inbox.take(&lease, now)
            })
            .await?
        else {
            return Ok(false);
        };
        let reply_channel = channel_of(&task);
        let answered = match (task.answer.clone(), task.outcome.clone()) {
            (Some(answer), Some(outcome)) => Some(TaskResult { outcome, answer }),
            _ => {
                self.answer(&task, &lease, reply_channel.as_deref().map_err(|error| format!("{error:#}")), cancel)
                    .await?
            }
        };
        if let (Some(finished), Ok(reply_channel)) = (answered, &reply_channel) {
            self.deliver(&task, &lease, &finished, reply_channel.as_ref()).await?;
        }
        Ok(true)
    }

    /// Works out the answer and stores it. `None` when the lease was lost, or the work is to be continued later.
    async fn answer(
        &self,
        task: &Task,
        lease: &Lease,
        reply_channel: Result<&dyn ReplyChannel, String>,
        cancel: &CancellationToken,
    ) -> Result<Option<TaskResult>> {
        let earlier = EarlierAttempts::read(&self.records, &task.runs)?;
        let failed = |outcome: &str, answer: String| TaskResult { outcome: outcome.into(), answer };
        let finished = match (&earlier.answer, reply_channel) {
            _ if task.is_unwanted => failed("cancelled", "The task was cancelled.".into()),
            (Some(answer), _) => failed("answered", answer.clone()),
            _ if task.attempts > MAX_ATTEMPTS => {
                failed("failed", format!("The worker died {MAX_ATTEMPTS} times before there was an answer."))
            }
            (_, Err(error)) => failed("failed", error),
            (None, Ok(reply_channel)) => match self.work(task, lease, &earlier, reply_channel, cancel).await? {
                Some(finished) => finished,
                None => return Ok(None),
            },
        };
        let (id, held_lease, result, now) = (task.id.clone(), lease.clone(), finished.clone(), self.clock.now());
        let is_stored =
            self.ask(move |inbox| inbox.answer(&id, &held_lease, &result.outcome, &result.answer, now)).await?;
        Ok(is_stored.then_some(finished))
    }

    /// Runs the worker, and renews the lease concurrently.
    async fn work(
        &self,
        task: &Task,
        lease: &Lease,
        earlier: &EarlierAttempts,
        reply_channel: &dyn ReplyChannel,
        cancel: &CancellationToken,
    ) -> Result<Option<TaskResult>> {
        let run = format!("run_{}", self.clock.id().simple());
        let runs: Vec<String> = task.runs.iter().cloned().chain([run.clone()]).collect();
        let (id, held_lease) = (task.id.clone(), lease.clone());
        if !self.ask(move |inbox| inbox.begin(&id, &held_lease, &runs)).await? {
            return Ok(None);
        }
        let stop = cancel.child_token();
        let job = TaskAttempt { objective: earlier.with(&task.task), run, reply_channel };
        let working = self.worker.work(job, stop.clone());
        tokio::pin!(working);
        let mut is_held = true;
        loop {
            tokio::select! {
                finished = &mut working => {
                    // Stopping this worker doesn't cancel the task: the next worker continues it.
                    if cancel.is_cancelled() {
                        self.release_lease(task, lease).await?;
                    }
                    let is_given_up = !is_held || cancel.is_cancelled();
                    return Ok(Some(finished?).filter(|_| !is_given_up));
                }
                () = tokio::time::sleep(self.lease / 4), if !stop.is_cancelled() => {
                    match self.renewed(task, lease).await {
                        Ok(Some(task)) if !task.is_unwanted => {}
                        Ok(Some(_)) => stop.cancel(),
                        // Without the lease, or without the store, the work must stop.
                        Ok(None) | Err(_) => {
                            is_held = false;
                            stop.cancel();
                        }
                    }
                }
            }
        }
    }

    async fn renewed(&self, task: &Task, lease: &Lease) -> Result<Option<Task>> {
        let (id, lease) = (task.id.clone(), Lease { token: lease.token.clone(), until: self.fresh_lease()?.until });
        self.ask(move |inbox| inbox.renew(&id, &lease)).await
    }

    /// Releases the lease, so that another worker can take the task at once.
    async fn release_lease(&self, task: &Task, lease: &Lease) -> Result<()> {
        let (id, lease) = (task.id.clone(), Lease { token: lease.token.clone(), until: self.clock.now() });
        self.ask(move |inbox| inbox.renew(&id, &lease)).await.map(drop)
    }

    /// Delivers the answer. If that fails, the lease expires and delivery is tried again.
    async fn deliver(
        &self,
        task: &Task,
        lease: &Lease,
        finished: &TaskResult,
        reply_channel: &dyn ReplyChannel,
    ) -> Result<()> {
        let answer = TaskAnswer { task, outcome: &finished.outcome, answer: &finished.answer };
        reply_channel.deliver(&answer).await.with_context(|| format!("The answer of {} wasn't delivered", task.id))?;
        let (id, lease) = (task.id.clone(), lease.clone());
        self.ask(move |inbox| inbox.done(&id, &lease)).await?;
        Ok(())
    }

    fn fresh_lease(&self) -> Result<Lease> {
        let until = self.clock.now() + jiff::SignedDuration::try_from(self.lease)?;
        Ok(Lease { token: self.clock.id().simple().to_string(), until })
    }

    /// Calls the inbox on a blocking thread.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Inbox) -> Result<T, toolgate_journal::JournalError> + Send + 'static,
    ) -> Result<T> {
        let inbox = Arc::clone(&self.inbox);
        Ok(tokio::task::spawn_blocking(move || question(inbox.as_ref())).await??)
    }
}

#[cfg(test)]
mod tests;
