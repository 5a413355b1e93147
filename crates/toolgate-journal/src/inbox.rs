//! Tasks that wait for a worker. A worker holds a task by a lease that it has to renew. When the worker dies, the lease
//! expires and the next worker takes over, with what is known of the earlier attempts. A worker's updates count only
//! while no other worker has taken the task, so two workers never answer the same one.
//!
//! All times are the store's own: those of the database server, or of this machine for a file. A worker says how long
//! its lease lasts, never until when, so a wrong clock on its host neither takes a task from another worker nor loses
//! one.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::JournalError;

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// No worker has it.
    Waiting,
    /// A worker has it.
    Working,
    /// There is an answer, which isn't delivered yet.
    Answered,
    /// The answer was delivered.
    Done,
    /// It was cancelled.
    Cancelled,
}

/// A new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Its id; adding a task of a known id changes nothing.
    pub id: String,
    /// What is to be done.
    pub task: String,
    /// Where the answer goes.
    pub reply_to: ReplyAddress,
}

/// Where a task's answer goes. A task names it in one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyAddress {
    /// The terminal of the worker.
    Terminal,
    /// A URL that the answer is posted to.
    Url(String),
    /// A chat of Telegram.
    TelegramChat(i64),
}

/// A word that is no [`ReplyAddress`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a reply address. Use terminal, http://…, https://… or telegram:CHAT.")]
pub struct InvalidReplyAddress(String);

impl FromStr for ReplyAddress {
    type Err = InvalidReplyAddress;

    fn from_str(word: &str) -> Result<Self, InvalidReplyAddress> {
        let chat = || word.strip_prefix("telegram:")?.parse().ok();
        match (word, chat()) {
            ("terminal", _) => Ok(Self::Terminal),
            (_, Some(chat)) => Ok(Self::TelegramChat(chat)),
            _ if word.starts_with("http://") || word.starts_with("https://") => Ok(Self::Url(word.to_owned())),
            _ => Err(InvalidReplyAddress(word.to_owned())),
        }
    }
}

impl fmt::Display for ReplyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminal => f.write_str("terminal"),
            Self::Url(url) => f.write_str(url),
            Self::TelegramChat(chat) => write!(f, "telegram:{chat}"),
        }
    }
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
    /// Its state.
    pub state: TaskState,
    /// How often a worker has taken it.
    pub attempts: u64,
    /// The runs in which it was worked on, oldest first.
    pub runs: Vec<String>,
    /// Whether it was cancelled while a worker has it.
    pub is_unwanted: bool,
    /// How it ended, as one word.
    pub outcome: Option<String>,
    /// The answer, or why there is none.
    pub answer: Option<String>,
    /// When the answer came.
    pub finished: Option<Timestamp>,
}

/// A worker's temporary claim on a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Unique to this claim.
    pub token: String,
    /// How long it lasts from the moment at which it is granted or renewed.
    pub lasts: Duration,
}

/// A lease as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// The token of the lease.
    pub token: String,
    /// When it expires by the store's clock. A renewal moves this, so two looks show whether the holder is alive.
    pub until: Timestamp,
}

/// A queue of tasks.
pub trait Inbox: Send + Sync {
    /// Adds a task.
    fn add(&self, task: &NewTask) -> Result<(), JournalError>;
    /// Tasks, oldest first; without those that are done or cancelled unless `all`.
    fn tasks(&self, all: bool, limit: usize) -> Result<Vec<Task>, JournalError>;
    /// Tasks of every state, newest first.
    fn newest_tasks(&self, limit: usize) -> Result<Vec<Task>, JournalError>;
    /// One task of this queue.
    fn task(&self, id: &str) -> Result<Option<Task>, JournalError>;
    /// Takes a task that no worker holds: first one whose lease has expired, then the oldest that waits. Taking again
    /// with the same lease gives the same task, so a take whose result was lost on the way can be repeated.
    fn take(&self, lease: &Lease) -> Result<Option<Task>, JournalError>;
    /// The leases of tasks that workers hold, the next one to expire first.
    fn leases(&self) -> Result<Vec<HeldLease>, JournalError>;
    /// Renews the lease and returns the task as it is now; none when the lease is lost, and with it the right to
    /// continue.
    fn renew(&self, id: &str, lease: &Lease) -> Result<Option<Task>, JournalError>;
    /// Records the run in which the task is worked on, before that begins.
    fn begin(&self, id: &str, lease: &Lease, runs: &[String]) -> Result<bool, JournalError>;
    /// Stores the answer. False when the lease is lost: another worker answers.
    fn answer(&self, id: &str, lease: &Lease, outcome: &str, answer: &str) -> Result<bool, JournalError>;
    /// Records that the answer was delivered.
    fn done(&self, id: &str, lease: &Lease) -> Result<bool, JournalError>;
    /// Cancels a task of this queue: a waiting task at once; a worker is told when it next renews.
    fn cancel(&self, id: &str) -> Result<bool, JournalError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_address_is_written_as_it_is_read() {
        for word in ["terminal", "http://127.0.0.1:9000/answers", "https://example.com", "telegram:-100123"] {
            assert_eq!(word.parse::<ReplyAddress>().unwrap().to_string(), word);
        }
        for word in ["", "Terminal", "telegram:", "telegram:me", "ftp://example.com", "127.0.0.1:9000"] {
            let refused = word.parse::<ReplyAddress>().unwrap_err().to_string();
            assert!(refused.contains(&format!("`{word}`")), "{refused}");
        }
    }
}
