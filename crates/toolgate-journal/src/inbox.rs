//! Tasks that wait for a worker (C-40). A worker holds a task by a lease that it has to renew; when it dies, the lease runs
//! out and the next one takes the task over, with what is known of the earlier attempts. Everything that a worker says
//! about its task counts only while its lease holds, so two workers never answer for one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::JournalError;

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Nobody has it.
    Waiting,
    /// A worker has it.
    Working,
    /// There is an answer, which wasn't delivered yet.
    Answered,
    /// The answer was delivered.
    Done,
    /// Somebody took it back.
    Cancelled,
}

/// A new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Its id; adding a task of a known id changes nothing.
    pub id: String,
    /// What is to be done.
    pub task: String,
    /// Where the answer goes, in the words of whoever delivers it.
    pub reply_to: String,
    /// When it was added.
    pub created: Timestamp,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// What is to be done.
    pub task: String,
    /// Where the answer goes.
    pub reply_to: String,
    /// When it was added.
    pub created: Timestamp,
    /// How far it is.
    pub state: TaskState,
    /// How often a worker has taken it.
    pub attempts: u64,
    /// The runs in which it was worked on, oldest first.
    pub runs: Vec<String>,
    /// Whether somebody wants it stopped.
    pub is_unwanted: bool,
    /// How it ended, in one word.
    pub outcome: Option<String>,
    /// The answer, or why there is none.
    pub answer: Option<String>,
    /// When the answer came.
    pub finished: Option<Timestamp>,
}

/// A worker's hold on a task, for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Unique to this hold.
    pub token: String,
    /// Until when it holds, unless it is renewed.
    pub until: Timestamp,
}

/// Where tasks wait.
pub trait Inbox: Send + Sync {
    /// Adds a task.
    fn add(&self, task: &NewTask) -> Result<(), JournalError>;
    /// Tasks, oldest first; without those that are done or cancelled unless `all`.
    fn tasks(&self, all: bool, limit: usize) -> Result<Vec<Task>, JournalError>;
    /// One task.
    fn task(&self, id: &str) -> Result<Option<Task>, JournalError>;
    /// Takes the oldest task that nobody holds: one that waits, or one whose worker or answer got lost on the way.
    fn take(&self, lease: &Lease, now: Timestamp) -> Result<Option<Task>, JournalError>;
    /// Holds on to a task. The task as it is now; none when the lease is lost, and with it the right to go on.
    fn renew(&self, id: &str, lease: &Lease) -> Result<Option<Task>, JournalError>;
    /// Notes the run in which the task is worked on, before that begins.
    fn begin(&self, id: &str, lease: &Lease, runs: &[String]) -> Result<bool, JournalError>;
    /// Keeps the answer. False when the lease is lost: somebody else answers.
    fn answer(
        &self,
        id: &str,
        lease: &Lease,
        outcome: &str,
        answer: &str,
        now: Timestamp,
    ) -> Result<bool, JournalError>;
    /// The answer was delivered.
    fn done(&self, id: &str, lease: &Lease) -> Result<bool, JournalError>;
    /// Somebody no longer wants it: what waits is cancelled at once, and a worker is told when it next renews.
    fn cancel(&self, id: &str) -> Result<bool, JournalError>;
}
