//! Tasks as rows, for every store alike.

use jiff::Timestamp;
use serde_json::Value;

use crate::rows::{Cell, Columns, FromRow, from_word, json, timestamp};
use crate::{Lease, NewTask, Task, TaskState};

/// The columns of a task, in the order in which they are read.
macro_rules! select_tasks {
    ($rest:literal) => {
        concat!(
            "SELECT id, task, reply_to, created, state, attempts, runs, unwanted, outcome, answer, finished FROM inbox ",
            $rest
        )
    };
}

pub(crate) const ADD: &str = "
    INSERT INTO inbox (id, task, reply_to, created, state, runs) VALUES (?1, ?2, ?3, ?4, 'waiting', '[]')
    ON CONFLICT DO NOTHING";

pub(crate) const TASK: &str = select_tasks!("WHERE id = ?1");
pub(crate) const TASKS: &str = select_tasks!("ORDER BY created, id LIMIT ?1");
pub(crate) const OPEN_TASKS: &str =
    select_tasks!("WHERE state NOT IN ('done', 'cancelled') ORDER BY created, id LIMIT ?1");

/// Done twice, because an answer got lost, it takes nothing more.
pub(crate) const TAKE: &str = "
    UPDATE inbox SET lease = ?1, lease_until = ?2, attempts = attempts + 1,
        state = CASE state WHEN 'waiting' THEN 'working' ELSE state END
    WHERE id = (
        SELECT id FROM inbox
        WHERE state = 'waiting' OR (state IN ('working', 'answered') AND lease_until < ?3)
        ORDER BY created, id LIMIT 1
    ) AND NOT EXISTS (SELECT 1 FROM inbox WHERE lease = ?1)";

pub(crate) const TAKEN: &str = select_tasks!("WHERE lease = ?1");

pub(crate) const RENEW: &str =
    "UPDATE inbox SET lease_until = ?3 WHERE id = ?1 AND lease = ?2 AND state IN ('working', 'answered')";

pub(crate) const BEGIN: &str = "UPDATE inbox SET runs = ?3 WHERE id = ?1 AND lease = ?2 AND state = 'working'";

pub(crate) const ANSWER: &str = "
    UPDATE inbox SET state = 'answered', outcome = ?3, answer = ?4, finished = ?5
    WHERE id = ?1 AND lease = ?2 AND state = 'working'";

pub(crate) const DONE: &str = "UPDATE inbox SET state = 'done' WHERE id = ?1 AND lease = ?2 AND state = 'answered'";

pub(crate) const CANCEL: &str = "
    UPDATE inbox SET unwanted = 1, state = CASE state WHEN 'waiting' THEN 'cancelled' ELSE state END
    WHERE id = ?1 AND state IN ('waiting', 'working')";

/// The values of `ADD`.
pub(crate) fn new_task(task: &NewTask) -> [Cell<'_>; 4] {
    [Cell::text(&task.id), Cell::text(&task.task), Cell::text(&task.reply_to), Cell::time(task.created)]
}

/// The values of `TAKE`.
pub(crate) fn taking(lease: &Lease, now: Timestamp) -> [Cell<'_>; 3] {
    [Cell::text(&lease.token), Cell::time(lease.until), Cell::time(now)]
}

/// The values of `RENEW`.
pub(crate) fn renewal<'a>(id: &'a str, lease: &'a Lease) -> [Cell<'a>; 3] {
    [Cell::text(id), Cell::text(&lease.token), Cell::time(lease.until)]
}

/// The values of `BEGIN`.
pub(crate) fn beginning<'a>(id: &'a str, lease: &'a Lease, runs: &[String]) -> [Cell<'a>; 3] {
    [Cell::text(id), Cell::text(&lease.token), Cell::text(Value::from(runs).to_string())]
}

/// The values of `ANSWER`.
pub(crate) fn answering<'a>(
    id: &'a str,
    lease: &'a Lease,
    outcome: &'a str,
    answer: &'a str,
    now: Timestamp,
) -> [Cell<'a>; 5] {
    [Cell::text(id), Cell::text(&lease.token), Cell::text(outcome), Cell::text(answer), Cell::time(now)]
}

/// By the columns of `TASK`.
impl FromRow for Task {
    fn from_row<C: Columns>(row: &C) -> Result<Self, C::Error> {
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
