//! The inbox in SQL, for every store: a store only supplies its own way to run a statement, its own time, and its own way
//! to pick a row that no other worker picks.
//!
//! The statements are in the dialect that SQLite and PostgreSQL share. `now_ns()` is the store's time in nanoseconds since
//! 1970: each store defines it.

use std::time::Duration;

use serde_json::Value;

use crate::rows::{FromRow, SqlRow, SqlValue, from_word, json, timestamp};
use crate::{HeldLease, Inbox, JournalError, Lease, NewTask, Task, TaskState};

/// A store with a table of tasks.
pub(crate) trait TaskTable: Send + Sync {
    /// Takes a task; `take_statement!` makes it.
    const TAKE: &'static str;
    /// The queue that the tasks belong to; one table can hold several queues.
    fn queue(&self) -> &str;
    /// Runs a statement, and reads each row of the result.
    fn query<R: FromRow + Send>(
        &self,
        statement: &'static str,
        values: &[SqlValue<'_>],
    ) -> Result<Vec<R>, JournalError>;
    /// Runs a statement, and says whether it changed anything.
    fn change(&self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<bool, JournalError>;
}

/// The columns of a task, in the order in which they are read.
macro_rules! task_columns {
    () => {
        "id, task, reply_to, created, state, attempts, runs, unwanted, outcome, answer, finished"
    };
}

macro_rules! select_tasks {
    ($rest:literal) => {
        concat!("SELECT ", task_columns!(), " FROM inbox ", $rest)
    };
}

/// The statement that takes a task. `$lock` locks the chosen row where several workers choose at the same moment. Each
/// choice reads an index of its own that holds no finished task. A lease that has a task already gets that one again.
macro_rules! take_statement {
    ($lock:literal) => {
        concat!(
            "UPDATE inbox SET lease = ?1, lease_until = now_ns() + ?2,
                attempts = attempts + CASE WHEN lease = ?1 THEN 0 ELSE 1 END,
                state = CASE state WHEN 'waiting' THEN 'working' ELSE state END
             WHERE id = coalesce(
                (SELECT id FROM inbox WHERE lease = ?1 AND state IN ('working', 'answered')),
                (SELECT id FROM inbox
                 WHERE queue = ?3 AND state IN ('working', 'answered') AND lease_until <= now_ns()
                 ORDER BY lease_until LIMIT 1 ",
            $lock,
            "),
                (SELECT id FROM inbox WHERE queue = ?3 AND state = 'waiting' ORDER BY created, id LIMIT 1 ",
            $lock,
            "))
             RETURNING ",
            $crate::task_table::task_columns!()
        )
    };
}
pub(crate) use {take_statement, task_columns};

const ADD: &str = "
    INSERT INTO inbox (id, task, reply_to, created, queue, state, runs)
    VALUES (?1, ?2, ?3, now_ns(), ?4, 'waiting', '[]')
    ON CONFLICT DO NOTHING";

const TASK: &str = select_tasks!("WHERE id = ?1 AND queue = ?2");
const TASKS: &str = select_tasks!("WHERE queue = ?1 ORDER BY created, id LIMIT ?2");
const NEWEST_TASKS: &str = select_tasks!("WHERE queue = ?1 ORDER BY created DESC, id DESC LIMIT ?2");
const OPEN_TASKS: &str =
    select_tasks!("WHERE queue = ?1 AND state NOT IN ('done', 'cancelled') ORDER BY created, id LIMIT ?2");

const LEASES: &str = "
    SELECT lease, lease_until FROM inbox WHERE queue = ?1 AND state IN ('working', 'answered') ORDER BY lease_until";

const RENEW: &str = concat!(
    "UPDATE inbox SET lease_until = now_ns() + ?3 WHERE id = ?1 AND lease = ?2 AND state IN ('working', 'answered')
     RETURNING ",
    task_columns!()
);

const BEGIN: &str = "UPDATE inbox SET runs = ?3 WHERE id = ?1 AND lease = ?2 AND state = 'working'";

/// An answer whose confirmation was lost is stored again: the same words from the same lease change nothing.
const ANSWER: &str = "
    UPDATE inbox SET state = 'answered', outcome = ?3, answer = ?4, finished = now_ns()
    WHERE id = ?1 AND lease = ?2
        AND (state = 'working' OR (state = 'answered' AND outcome = ?3 AND answer = ?4))";

const DONE: &str = "UPDATE inbox SET state = 'done' WHERE id = ?1 AND lease = ?2 AND state IN ('answered', 'done')";

const CANCEL: &str = "
    UPDATE inbox SET unwanted = 1, state = CASE state WHEN 'waiting' THEN 'cancelled' ELSE state END
    WHERE id = ?1 AND queue = ?2 AND state IN ('waiting', 'working')";

impl<T: TaskTable> Inbox for T {
    fn add(&self, task: &NewTask) -> Result<(), JournalError> {
        let NewTask { id, task, reply_to } = task;
        let reply_to = reply_to.to_string();
        let values = [id, task, &reply_to, self.queue()].map(SqlValue::text);
        self.change(ADD, &values).map(drop)
    }

    fn tasks(&self, all: bool, limit: usize) -> Result<Vec<Task>, JournalError> {
        self.query(if all { TASKS } else { OPEN_TASKS }, &[SqlValue::text(self.queue()), SqlValue::number(limit)])
    }

    fn newest_tasks(&self, limit: usize) -> Result<Vec<Task>, JournalError> {
        self.query(NEWEST_TASKS, &[SqlValue::text(self.queue()), SqlValue::number(limit)])
    }

    fn task(&self, id: &str) -> Result<Option<Task>, JournalError> {
        Ok(self.query(TASK, &[id, self.queue()].map(SqlValue::text))?.pop())
    }

    fn take(&self, lease: &Lease) -> Result<Option<Task>, JournalError> {
        let values = [SqlValue::text(&lease.token), nanoseconds(lease.lasts), SqlValue::text(self.queue())];
        Ok(self.query(T::TAKE, &values)?.pop())
    }

    fn leases(&self) -> Result<Vec<HeldLease>, JournalError> {
        self.query(LEASES, &[SqlValue::text(self.queue())])
    }

    fn renew(&self, id: &str, lease: &Lease) -> Result<Option<Task>, JournalError> {
        let values = [SqlValue::text(id), SqlValue::text(&lease.token), nanoseconds(lease.lasts)];
        Ok(self.query(RENEW, &values)?.pop())
    }

    fn begin(&self, id: &str, lease: &Lease, runs: &[String]) -> Result<bool, JournalError> {
        self.change(
            BEGIN,
            &[SqlValue::text(id), SqlValue::text(&lease.token), SqlValue::text(Value::from(runs).to_string())],
        )
    }

    fn answer(&self, id: &str, lease: &Lease, outcome: &str, answer: &str) -> Result<bool, JournalError> {
        self.change(ANSWER, &[id, &lease.token, outcome, answer].map(SqlValue::text))
    }

    fn done(&self, id: &str, lease: &Lease) -> Result<bool, JournalError> {
        self.change(DONE, &[SqlValue::text(id), SqlValue::text(&lease.token)])
    }

    fn cancel(&self, id: &str) -> Result<bool, JournalError> {
        self.change(CANCEL, &[id, self.queue()].map(SqlValue::text))
    }
}

/// A length of time. It is added to the time of day, so it stays far below what a column holds.
fn nanoseconds(time: Duration) -> SqlValue<'static> {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    SqlValue::number(time.min(LONGEST).as_nanos())
}

/// Reads the columns of `LEASES`.
impl FromRow for HeldLease {
    fn from_row<C: SqlRow>(row: &C) -> Result<Self, C::Error> {
        Ok(Self { token: row.text(0)?.unwrap_or_default(), until: timestamp(row, 1)?.unwrap_or_default() })
    }
}

/// Reads the columns of a task.
impl FromRow for Task {
    fn from_row<C: SqlRow>(row: &C) -> Result<Self, C::Error> {
        Ok(Self {
            id: row.text(0)?.unwrap_or_default(),
            task: row.text(1)?.unwrap_or_default(),
            reply_to: row.text(2)?.unwrap_or_default(),
            created: timestamp(row, 3)?.unwrap_or_default(),
            state: from_word(row, 4)?.unwrap_or(TaskState::Waiting),
            attempts: row.number(5)?.and_then(|count| u64::try_from(count).ok()).unwrap_or_default(),
            runs: json(row, 6)?.unwrap_or_default(),
            is_unwanted: row.number(7)? == Some(1),
            outcome: row.text(8)?,
            answer: row.text(9)?,
            finished: timestamp(row, 10)?,
        })
    }
}
