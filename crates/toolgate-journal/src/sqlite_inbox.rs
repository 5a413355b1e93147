//! The embedded inbox, in a SQLite file of its own. The index is a view that can be rebuilt, but the tasks in the inbox
//! are stored nowhere else. So every change is synced to disk before it counts, and an unreadable file is an error and
//! never replaced.

use parking_lot::Mutex;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::JournalError;
use crate::rows::{FromRow, SqlValue};
use crate::sqlite::{BUSY_TIMEOUT, parameters, store_error};
use crate::task_table::{TaskTable, take_statement};

/// The migrations from one schema version to the next, in order. Never change one; add another.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE inbox (
        id TEXT PRIMARY KEY, task TEXT NOT NULL, reply_to TEXT NOT NULL, created INTEGER NOT NULL,
        state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, runs TEXT NOT NULL,
        unwanted INTEGER NOT NULL DEFAULT 0,
        outcome TEXT, answer TEXT, finished INTEGER, lease TEXT, lease_until INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX inbox_by_time ON inbox (created, id);
    CREATE INDEX inbox_by_lease ON inbox (lease);
",
    "ALTER TABLE inbox ADD COLUMN queue TEXT NOT NULL DEFAULT ''",
    // Whoever takes a task reads only tasks that wait or are held, however many are finished.
    "
    DROP INDEX inbox_by_time;
    DROP INDEX inbox_by_lease;
    CREATE INDEX inbox_by_time ON inbox (queue, created, id);
    CREATE UNIQUE INDEX inbox_by_lease ON inbox (lease);
    CREATE INDEX inbox_waiting ON inbox (queue, created, id) WHERE state = 'waiting';
    CREATE INDEX inbox_held ON inbox (queue, lease_until) WHERE state IN ('working', 'answered');
",
];

/// The embedded inbox. Several processes may use it at once.
pub struct SqliteInbox(Mutex<Connection>);

impl SqliteInbox {
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection = Connection::open_with_flags(path, flags).map_err(store_error)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(store_error)?;
        connection.pragma_update(None, "journal_mode", "wal").map_err(store_error)?;
        connection.pragma_update(None, "synchronous", "full").map_err(store_error)?;
        // The local clock: every process that uses the file is on this machine.
        let now = |_: &Context<'_>| Ok(i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX));
        connection.create_scalar_function("now_ns", 0, FunctionFlags::SQLITE_UTF8, now).map_err(store_error)?;
        migrate(&mut connection)?;
        Ok(Self(Mutex::new(connection)))
    }
}

fn migrate(connection: &mut Connection) -> Result<(), JournalError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store_error)?;
    let version: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(store_error)?;
    let missing = MIGRATIONS.get(version..).ok_or_else(|| {
        let known = MIGRATIONS.len();
        JournalError::Store(
            format!("the inbox has schema version {version}, and this program supports versions up to {known}; update this program").into(),
        )
    })?;
    for migration in missing {
        transaction.execute_batch(migration).map_err(store_error)?;
    }
    if !missing.is_empty() {
        transaction.pragma_update(None, "user_version", MIGRATIONS.len()).map_err(store_error)?;
    }
    transaction.commit().map_err(store_error)
}

impl TaskTable for SqliteInbox {
    /// SQLite runs one writer at a time, so nothing has to be locked.
    const TAKE: &'static str = take_statement!("");

    /// The file belongs to one workspace, so it has one queue.
    fn queue(&self) -> &str {
        ""
    }

    fn query<R: FromRow + Send>(
        &self,
        statement: &'static str,
        values: &[SqlValue<'_>],
    ) -> Result<Vec<R>, JournalError> {
        let connection = self.0.lock();
        let mut statement = connection.prepare_cached(statement).map_err(store_error)?;
        let rows = statement.query_map(parameters(values), |row| R::from_row(row)).map_err(store_error)?;
        rows.collect::<Result<_, _>>().map_err(store_error)
    }

    fn change(&self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<bool, JournalError> {
        let connection = self.0.lock();
        let mut statement = connection.prepare_cached(statement).map_err(store_error)?;
        Ok(statement.execute(parameters(values)).map_err(store_error)? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finished tasks stay in the table, so each part of the statement has to find its row by an index without them.
    #[test]
    fn taking_a_task_walks_through_no_finished_ones() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let inbox = SqliteInbox::open(file.path()).unwrap();
        let connection = inbox.0.lock();
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", SqliteInbox::TAKE)).unwrap();
        let values = [SqlValue::text("token"), SqlValue::number(1), SqlValue::text("")];
        let plan: Vec<String> =
            plan.query_map(parameters(&values), |row| row.get("detail")).unwrap().map(Result::unwrap).collect();
        for index in ["inbox_by_lease", "inbox_held", "inbox_waiting"] {
            let reads = |step: &&String| step.starts_with("SEARCH inbox USING") && step.contains(index);
            assert_eq!(plan.iter().filter(reads).count(), 1, "{index}: {plan:#?}");
        }
        assert!(!plan.iter().any(|step| step.contains("SCAN inbox") || step.contains("TEMP B-TREE")), "{plan:#?}");
    }
}
