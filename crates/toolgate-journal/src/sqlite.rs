//! The embedded store, in one SQLite file. Several processes may use it at once. A file that turns out to be damaged is
//! renamed and replaced by an empty one, because everything in it can be rebuilt from the journals.

mod schema;

use parking_lot::Mutex;
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, ToSql, TransactionBehavior};

use crate::directory::FileLock;
use crate::rows::{self, FromRow, SqlRow, SqlValue};
use crate::{CallFilter, CallRow, EventStore, IndexedPart, JournalError, RecordedEvent, RunFilter, RunRow, statements};

/// How long one process waits for another one's write.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The SQLite `application_id` once the store was filled from the journals. Any number but SQLite's default of 0 works.
const FILLED: i32 = 0x746f_6f6c;

/// The embedded store.
pub struct SqliteStore {
    path: PathBuf,
    /// Held while the file is opened or replaced, so that two processes don't replace each other's new file.
    lock: File,
    connection: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens the file at `path`; a damaged one is renamed and replaced by an empty one.
    pub(crate) fn open(path: &Path, lock: File) -> Result<Self, JournalError> {
        let connection = open_or_replace(path, &lock, IntegrityCheck::Quick)?;
        Ok(Self { path: path.to_owned(), lock, connection: Mutex::new(connection) })
    }

    /// Whether it was filled from the journals since it was created or replaced.
    pub(crate) fn is_filled(&self) -> Result<bool, JournalError> {
        let mark: i32 =
            self.with(|connection| connection.pragma_query_value(None, "application_id", |row| row.get(0)))?;
        Ok(mark == FILLED)
    }

    /// Records that it was filled.
    pub(crate) fn mark_filled(&self) -> Result<(), JournalError> {
        self.with(|connection| connection.pragma_update(None, "application_id", FILLED))
    }

    /// Runs `work` on the database. If the database turns out to be damaged, it is replaced by an empty one and `work`
    /// runs once more.
    fn with<T>(&self, work: impl Fn(&mut Connection) -> rusqlite::Result<T>) -> Result<T, JournalError> {
        let mut connection = self.connection.lock();
        match work(&mut connection) {
            Err(error) if is_damage(&error) => {
                *connection = open_or_replace(&self.path, &self.lock, IntegrityCheck::Thorough)?;
                work(&mut connection).map_err(store_error)
            }
            other => other.map_err(store_error),
        }
    }

    /// Runs a query and reads each row of the result.
    fn query<T: FromRow>(&self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<Vec<T>, JournalError> {
        self.with(|connection| {
            connection.prepare_cached(statement)?.query_map(parameters(values), |row| T::from_row(row))?.collect()
        })
    }
}

impl EventStore for SqliteStore {
    fn apply(&self, run: &str, events: &[RecordedEvent]) -> Result<(), JournalError> {
        self.with(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            rows::apply(run, events, |statement, values| {
                transaction.prepare_cached(statement)?.execute(parameters(values)).map(|changed| changed > 0)
            })?;
            transaction.commit()
        })
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, JournalError> {
        self.query(statements::RUNS, &rows::filter(filter))
    }

    fn run(&self, id: &str) -> Result<Option<RunRow>, JournalError> {
        Ok(self.query(statements::RUN, &[SqlValue::text(id)])?.pop())
    }

    fn calls(&self, run: &str) -> Result<Vec<CallRow>, JournalError> {
        self.query(statements::CALLS, &[SqlValue::text(run)])
    }

    fn search_calls(&self, filter: &CallFilter) -> Result<Vec<CallRow>, JournalError> {
        self.query(statements::SEARCH_CALLS, &rows::call_filter(filter))
    }

    fn events(&self, run: &str, after: u64, limit: usize) -> Result<Vec<RecordedEvent>, JournalError> {
        self.query(statements::EVENTS, &[SqlValue::text(run), SqlValue::number(after), SqlValue::number(limit)])
    }

    fn events_of_kind(
        &self,
        kind: &str,
        workspace: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecordedEvent>, JournalError> {
        let values = [SqlValue::text(kind), SqlValue::optional_text(workspace), SqlValue::number(limit)];
        self.query(statements::EVENTS_OF_KIND, &values)
    }

    fn indexed_up_to(&self, run: &str) -> Result<IndexedPart, JournalError> {
        Ok(self.query(statements::INDEXED_PART, &[SqlValue::text(run)])?.pop().unwrap_or_default())
    }

    fn clear(&self, run: &str) -> Result<(), JournalError> {
        self.with(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for statement in statements::CLEAR {
                transaction.execute(statement, [run])?;
            }
            transaction.commit()
        })
    }
}

pub(crate) fn parameters<'a>(values: &'a [SqlValue<'_>]) -> impl rusqlite::Params + 'a {
    rusqlite::params_from_iter(values.iter().map(|cell| -> &dyn ToSql {
        match cell {
            SqlValue::Text(text) => text,
            SqlValue::Number(number) => number,
        }
    }))
}

impl SqlRow for Row<'_> {
    type Error = rusqlite::Error;

    fn text(&self, column: usize) -> rusqlite::Result<Option<String>> {
        self.get(column)
    }

    fn number(&self, column: usize) -> rusqlite::Result<Option<i64>> {
        self.get(column)
    }

    fn unreadable(column: usize, error: impl Error + Send + Sync + 'static) -> rusqlite::Error {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    }
}

/// How thoroughly a file is checked before use.
#[derive(Clone, Copy, PartialEq)]
enum IntegrityCheck {
    /// It opens and has the expected tables.
    Quick,
    /// Every page passes SQLite's check.
    Thorough,
}

/// Opens the database, or replaces a damaged one by an empty one.
fn open_or_replace(path: &Path, lock: &File, check: IntegrityCheck) -> Result<Connection, JournalError> {
    let _lock = FileLock::exclusive(lock).map_err(JournalError::io("The store couldn't be locked"))?;
    match open(path, check) {
        Err(error) if is_damage(&error) => {
            replace_damaged(path).map_err(JournalError::io(format!("`{}` couldn't be renamed", path.display())))?;
            open(path, IntegrityCheck::Quick).map_err(store_error)
        }
        other => other.map_err(store_error),
    }
}

fn open(path: &Path, check: IntegrityCheck) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    // In KiB. Rows are mostly appended, so a larger cache than this would only take memory.
    connection.pragma_update(None, "cache_size", -256)?;
    if check == IntegrityCheck::Thorough {
        let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if answer != "ok" {
            return Err(damage(rusqlite::ffi::SQLITE_CORRUPT, answer));
        }
    }
    schema::migrate(&mut connection)?;
    Ok(connection)
}

fn damage(code: i32, why: String) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), Some(why))
}

/// Whether an error means that the file is damaged, rather than busy or unreachable.
fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

pub(crate) fn store_error(error: rusqlite::Error) -> JournalError {
    JournalError::Store(Box::new(error))
}

/// Renames the file and its companions to the first free `index.db.bad-1`, `-2`, …, and leaves an empty file that only
/// its owner can access.
pub(crate) fn replace_damaged(path: &Path) -> std::io::Result<()> {
    let with = |suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
    let free = (1_u64..).map(|number| format!(".bad-{number}")).find(|bad| with(bad).symlink_metadata().is_err());
    let bad = free.expect("there are more numbers than files");
    std::fs::rename(path, with(&bad))?;
    for companion in ["-wal", "-shm"] {
        match std::fs::rename(with(companion), with(&format!("{bad}{companion}"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path).map(|_| ())
}
