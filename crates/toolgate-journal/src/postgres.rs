//! The store for many hosts, in a PostgreSQL database that they share. It asks the same statements of the same tables
//! as the embedded store does, and survives a server that goes away and comes back.

mod connection;
mod schema;

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use postgres::error::SqlState;
use postgres::{Config, Row};

use self::connection::Connection;
use crate::rows::{self, Cell, Columns, FromRow};
use crate::{
    CallRow, Inbox, JournalError, Lease, NewTask, Recorded, RunFilter, RunRow, Store, Task, inbox_rows, statements,
};

/// The family that our locks belong to, apart from those of others in the same database. Any number would do.
const LOCKS: i32 = 0x746f_6f6c;

/// How long to wait for a server that doesn't answer at all, unless the address says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the inbox is locked by, beside runs; no run has an id like it.
const INBOX: &str = "the inbox";

/// What went wrong below: the server's word, or our own.
type Failure = Box<dyn Error + Send + Sync>;

/// The store for many hosts.
///
/// Every function waits for the server, on a small runtime of its own. So it must be used, and dropped, on an ordinary
/// thread such as that of the [`Indexer`](crate::Indexer): on a worker of an asynchronous runtime it panics.
///
/// The connection isn't encrypted. Reach a server on another host through a tunnel or a private network.
pub struct PostgresStore {
    config: Config,
    connection: Mutex<Connection>,
}

impl PostgresStore {
    /// Connects to the database at `url`, such as `postgres://user:password@host/database`, and makes the tables in it
    /// if they aren't there. The database should be the store's own.
    pub fn connect(url: &str) -> Result<Self, JournalError> {
        // The parser's own words may repeat a part of the address, and that may be a part of the password.
        let unreadable = "the database's address can't be read; write it as `postgres://user:password@host/database`";
        let mut config: Config = url.parse().map_err(|_| JournalError::Store(unreadable.into()))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(PATIENCE);
        }
        if config.get_application_name().is_none() {
            config.application_name("toolgate");
        }
        let connection = Connection::open(&config).map_err(store_error)?;
        Ok(Self { config, connection: Mutex::new(connection) })
    }

    /// Does something with the database. If the connection turns out to be lost, a new one takes its place, and the
    /// work is done once more: whatever the server may have taken in already changes nothing the second time.
    fn with<T>(&self, work: impl Fn(&mut Connection) -> Result<T, Failure>) -> Result<T, JournalError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        match work(&mut connection) {
            Err(failure) if is_lost(&failure) => {
                *connection = Connection::open(&self.config).map_err(store_error)?;
                work(&mut connection).map_err(store_error)
            }
            other => other.map_err(store_error),
        }
    }

    /// Asks a question, and reads each row of the answer.
    fn query<T: FromRow>(&self, statement: &'static str, values: &[Cell<'_>]) -> Result<Vec<T>, JournalError> {
        self.with(|connection| connection.query(statement, values)?.iter().map(T::from_row).collect())
    }
}

impl Store for PostgresStore {
    fn apply(&self, run: &str, events: &[Recorded]) -> Result<(), JournalError> {
        self.with(|connection| connection.change(run, |execute| rows::apply(run, events, execute)))
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, JournalError> {
        self.query(statements::RUNS, &rows::filter(filter))
    }

    fn run(&self, id: &str) -> Result<Option<RunRow>, JournalError> {
        Ok(self.query(statements::RUN, &[Cell::text(id)])?.pop())
    }

    fn calls(&self, run: &str) -> Result<Vec<CallRow>, JournalError> {
        self.query(statements::CALLS, &[Cell::text(run)])
    }

    fn events(&self, run: &str, after: u64, limit: usize) -> Result<Vec<Recorded>, JournalError> {
        self.query(statements::EVENTS, &[Cell::text(run), Cell::number(after), Cell::number(limit)])
    }

    fn indexed_up_to(&self, run: &str) -> Result<u64, JournalError> {
        Ok(self.query(statements::INDEXED_UP_TO, &[Cell::text(run)])?.pop().unwrap_or_default())
    }

    fn clear(&self, run: &str) -> Result<(), JournalError> {
        self.with(|connection| {
            connection.change(run, |execute| {
                statements::CLEAR.iter().try_for_each(|statement| execute(statement, &[Cell::text(run)]).map(drop))
            })
        })
    }
}

impl Inbox for PostgresStore {
    fn add(&self, task: &NewTask) -> Result<(), JournalError> {
        self.change_inbox(inbox_rows::ADD, &inbox_rows::new_task(task)).map(drop)
    }

    fn tasks(&self, all: bool, limit: usize) -> Result<Vec<Task>, JournalError> {
        self.query(if all { inbox_rows::TASKS } else { inbox_rows::OPEN_TASKS }, &[Cell::number(limit)])
    }

    fn task(&self, id: &str) -> Result<Option<Task>, JournalError> {
        Ok(self.query(inbox_rows::TASK, &[Cell::text(id)])?.pop())
    }

    fn take(&self, lease: &Lease, now: Timestamp) -> Result<Option<Task>, JournalError> {
        self.change_inbox(inbox_rows::TAKE, &inbox_rows::taking(lease, now))?;
        Ok(self.query(inbox_rows::TAKEN, &[Cell::text(&lease.token)])?.pop())
    }

    fn renew(&self, id: &str, lease: &Lease) -> Result<Option<Task>, JournalError> {
        match self.change_inbox(inbox_rows::RENEW, &inbox_rows::renewal(id, lease))? {
            true => self.task(id),
            false => Ok(None),
        }
    }

    fn begin(&self, id: &str, lease: &Lease, runs: &[String]) -> Result<bool, JournalError> {
        self.change_inbox(inbox_rows::BEGIN, &inbox_rows::beginning(id, lease, runs))
    }

    fn answer(
        &self,
        id: &str,
        lease: &Lease,
        outcome: &str,
        answer: &str,
        now: Timestamp,
    ) -> Result<bool, JournalError> {
        self.change_inbox(inbox_rows::ANSWER, &inbox_rows::answering(id, lease, outcome, answer, now))
    }

    fn done(&self, id: &str, lease: &Lease) -> Result<bool, JournalError> {
        self.change_inbox(inbox_rows::DONE, &[Cell::text(id), Cell::text(&lease.token)])
    }

    fn cancel(&self, id: &str) -> Result<bool, JournalError> {
        self.change_inbox(inbox_rows::CANCEL, &[Cell::text(id)])
    }
}

impl PostgresStore {
    /// Changes the inbox, one host at a time; says whether anything changed.
    fn change_inbox(&self, statement: &'static str, values: &[Cell<'_>]) -> Result<bool, JournalError> {
        self.with(|connection| {
            let mut changed = false;
            connection.change(INBOX, |execute| {
                changed = execute(statement, values)?;
                Ok(())
            })?;
            Ok(changed)
        })
    }
}

/// Shows nothing of the address but the database's name: the rest may hold a password.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PostgresStore").field("database", &self.config.get_dbname()).finish_non_exhaustive()
    }
}

impl Columns for Row {
    type Error = Failure;

    fn text(&self, column: usize) -> Result<Option<String>, Failure> {
        Ok(self.try_get(column)?)
    }

    fn number(&self, column: usize) -> Result<Option<i64>, Failure> {
        Ok(self.try_get(column)?)
    }

    fn unreadable(column: usize, error: impl Error + Send + Sync + 'static) -> Failure {
        format!("column {column} of a row can't be read: {error}").into()
    }
}

/// Whether the connection is gone, rather than the work refused.
fn is_lost(failure: &Failure) -> bool {
    let Some(error) = failure.downcast_ref::<postgres::Error>() else { return false };
    let ended = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_SESSION_TIMEOUT];
    error.is_closed()
        || error.code().is_some_and(|code| ended.contains(code))
        || error.source().is_some_and(|source| source.is::<io::Error>())
}

/// Says what happened in one line. Of the server's answer it takes the message alone: details may show what is in rows.
fn store_error(failure: Failure) -> JournalError {
    let Some(error) = failure.downcast_ref::<postgres::Error>() else { return JournalError::Store(failure) };
    JournalError::Store(match (error.as_db_error(), error.source()) {
        (Some(answer), _) => format!("PostgreSQL says: {}", answer.message()).into(),
        (None, Some(source)) => format!("{error}: {source}").into(),
        (None, None) => failure,
    })
}
