//! The inbox in SQL, for every store: a store only supplies its own way to query and to change rows.

use jiff::Timestamp;
use serde_json::Value;

use crate::rows::{FromRow, SqlRow, SqlValue, from_word, json, timestamp};
use crate::{Inbox, JournalError, Lease, NewTask, Task, TaskState};

/// A store with a table of tasks.
pub(crate) trait TaskTable: Send + Sync {
    /// The queue that the tasks belong to; one table can hold several queues.
    fn queue(&self) -> &str;
    /// Runs a query, and reads each row of the result as a task.
    fn query(&self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<Vec<Task>, JournalError>;
    /// Runs a statement, and says whether it changed anything.
    fn change(&self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<bool, JournalError>;
}

/// The columns of a task, in the order in which they are read.
macro_rules! select_tasks {
    ($rest:literal) => {
        concat!(
            "SELECT id, task, reply_to, created, state, attempts, runs, unwanted, outcome, answer, finished FROM inbox ",
            $rest
        )
    };
}

const ADD: &str = "
    INSERT INTO inbox (id, task, reply_to, created, queue, state, runs) VALUES (?1, ?2, ?3, ?4, ?5, 'waiting', '[]')
    ON CONFLICT DO NOTHING";

const TASK: &str = select_tasks!("WHERE id = ?1");
const TASKS: &str = select_tasks!("WHERE queue = ?1 ORDER BY created, id LIMIT ?2");
const OPEN_TASKS: &str =
    select_tasks!("WHERE queue = ?1 AND state NOT IN ('done', 'cancelled') ORDER BY created, id LIMIT ?2");

/// Repeating the statement with the same lease takes no second task.
const TAKE: &str = "
    UPDATE inbox SET lease = ?1, lease_until = ?2, attempts = attempts + 1,
        state = CASE state WHEN 'waiting' THEN 'working' ELSE state END
    WHERE id = (
        SELECT id FROM inbox
        WHERE queue = ?4 AND (state = 'waiting' OR (state IN ('working', 'answered') AND lease_until < ?3))
        ORDER BY created, id LIMIT 1
    ) AND NOT EXISTS (SELECT 1 FROM inbox WHERE lease = ?1)";

const TAKEN: &str = select_tasks!("WHERE lease = ?1");

const RENEW: &str =
    "UPDATE inbox SET lease_until = ?3 WHERE id = ?1 AND lease = ?2 AND state IN ('working', 'answered')";

const BEGIN: &str = "UPDATE inbox SET runs = ?3 WHERE id = ?1 AND lease = ?2 AND state = 'working'";

const ANSWER: &str = "
    UPDATE inbox SET state = 'answered', outcome = ?3, answer = ?4, finished = ?5
    WHERE id = ?1 AND lease = ?2 AND state = 'working'";

const DONE: &str = "UPDATE inbox SET state = 'done' WHERE id = ?1 AND lease = ?2 AND state = 'answered'";

const CANCEL: &str = "
    UPDATE inbox SET unwanted = 1, state = CASE state WHEN 'waiting' THEN 'cancelled' ELSE state END
    WHERE id = ?1 AND state IN ('waiting', 'working')";

impl<T: TaskTable> Inbox for T {
    fn add(&self, task: &NewTask) -> Result<(), JournalError> {
        let values = [
            SqlValue::text(&task.id),
            SqlValue::text(&task.task),
            SqlValue::text(&task.reply_to),
            SqlValue::time(task.created),
            SqlValue::text(self.queue()),
        ];
        self.change(ADD, &values).map(drop)
    }

    fn tasks(&self, all: bool, limit: usize) -> Result<Vec<Task>, JournalError> {
        self.query(if all { TASKS } else { OPEN_TASKS }, &[SqlValue::text(self.queue()), SqlValue::number(limit)])
    }

    fn task(&self, id: &str) -> Result<Option<Task>, JournalError> {
        Ok(self.query(TASK, &[SqlValue::text(id)])?.pop())
    }

    fn take(&self, lease: &Lease, now: Timestamp) -> Result<Option<Task>, JournalError> {
        let token = &lease.token;
        self.change(
            TAKE,
            &[SqlValue::text(token), SqlValue::time(lease.until), SqlValue::time(now), SqlValue::text(self.queue())],
        )?;
        Ok(self.query(TAKEN, &[SqlValue::text(token)])?.pop())
    }

    fn renew(&self, id: &str, lease: &Lease) -> Result<Option<Task>, JournalError> {
        match self.change(RENEW, &[SqlValue::text(id), SqlValue::text(&lease.token), SqlValue::time(lease.until)])? {
            true => self.task(id),
            false => Ok(None),
        }
    }

    fn begin(&self, id: &str, lease: &Lease, runs: &[String]) -> Result<bool, JournalError> {
        self.change(
            BEGIN,
            &[SqlValue::text(id), SqlValue::text(&lease.token), SqlValue::text(Value::from(runs).to_string())],
        )
    }

    fn answer(
        &self,
        id: &str,
        lease: &Lease,
        outcome: &str,
        answer: &str,
        now: Timestamp,
    ) -> Result<bool, JournalError> {
        let values = [
            SqlValue::text(id),
            SqlValue::text(&lease.token),
            SqlValue::text(outcome),
            SqlValue::text(answer),
            SqlValue::time(now),
        ];
        self.change(ANSWER, &values)
    }

    fn done(&self, id: &str, lease: &Lease) -> Result<bool, JournalError> {
        self.change(DONE, &[SqlValue::text(id), SqlValue::text(&lease.token)])
    }

    fn cancel(&self, id: &str) -> Result<bool, JournalError> {
        self.change(CANCEL, &[SqlValue::text(id)])
    }
}

/// Reads the columns of `TASK`.
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
