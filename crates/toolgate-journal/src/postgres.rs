//! The store for many hosts, in a PostgreSQL database that they share. It asks the same statements of the same tables
//! as the embedded store does, and survives a server that goes away and comes back.

mod connection;
mod schema;

use parking_lot::Mutex;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use postgres::config::Host;
use postgres::error::SqlState;
use postgres::{Config, Row};

use self::connection::PostgresConnection;
use crate::rows::{self, FromRow, SqlRow, SqlValue};
use crate::task_table::TaskTable;
use crate::{CallRow, EventStore, JournalError, RecordedEvent, RunFilter, RunRow, Task, statements};

/// The family that our locks belong to, apart from those of others in the same database. Any number would do.
const LOCKS: i32 = 0x746f_6f6c;

/// How long to wait for a server that doesn't answer at all, unless the address says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the inbox is locked by, beside runs; no run has an id like it.
const INBOX: &str = "the inbox";

/// What went wrong below: the server's word, or our own.
type BoxError = Box<dyn Error + Send + Sync>;

/// The store for many hosts, and the inbox that they share.
///
/// The connection isn't encrypted. Reach a server on another host through a tunnel or a private network.
pub struct PostgresStore {
    config: Config,
    /// Made when it is first needed, so that whoever only records never waits for the server.
    connection: Mutex<Option<PostgresConnection>>,
    queue: String,
}

impl PostgresStore {
    /// The database at `url`, such as `postgres://user:password@host/database`. It should be the store's own; the tables
    /// are made in it if they aren't there, once it is needed.
    pub fn new(url: &str) -> Result<Self, JournalError> {
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
        Ok(Self { config, connection: Mutex::default(), queue: String::new() })
    }

    /// The same, connected right away.
    pub fn connect(url: &str) -> Result<Self, JournalError> {
        let store = Self::new(url)?;
        store.with(|_| Ok(()))?;
        Ok(store)
    }

    /// The same, with the inbox of this name: workers of one queue take no tasks of another.
    #[must_use]
    pub fn with_queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// Where the database is, in words that hold no password.
    pub fn place(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(directory) => directory.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        format!("{} at {}", self.config.get_dbname().unwrap_or("the user's database"), hosts.join(", "))
    }

    /// The password, for whoever has to keep it out of sight.
    pub fn password(&self) -> Option<String> {
        self.config.get_password().map(|password| String::from_utf8_lossy(password).into_owned())
    }

    /// Does something with the database. If the connection turns out to be lost, a new one takes its place, and the
    /// work is done once more: whatever the server may have taken in already changes nothing the second time.
    fn with<T: Send>(
        &self,
        work: impl Fn(&mut PostgresConnection) -> Result<T, BoxError> + Send + Sync,
    ) -> Result<T, JournalError> {
        let attempt = || {
            let mut held = self.connection.lock();
            let connection = match &mut *held {
                Some(connection) => connection,
                none => none.insert(PostgresConnection::open(&self.config)?),
            };
            match work(connection) {
                Err(failure) if is_lost(&failure) => {
                    *held = None;
                    work(held.insert(PostgresConnection::open(&self.config)?))
                }
                other => other,
            }
        };
        on_own_thread(attempt).map_err(store_error)
    }

    /// Asks a question, and reads each row of the answer.
    fn query<T: FromRow + Send>(
        &self,
        statement: &'static str,
        values: &[SqlValue<'_>],
    ) -> Result<Vec<T>, JournalError> {
        self.with(|connection| connection.query(statement, values)?.iter().map(T::from_row).collect())
    }
}

impl EventStore for PostgresStore {
    fn apply(&self, run: &str, events: &[RecordedEvent]) -> Result<(), JournalError> {
        self.with(|connection| connection.change(run, |execute| rows::apply(run, events, execute)))
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

    fn events(&self, run: &str, after: u64, limit: usize) -> Result<Vec<RecordedEvent>, JournalError> {
        self.query(statements::EVENTS, &[SqlValue::text(run), SqlValue::number(after), SqlValue::number(limit)])
    }

    fn indexed_up_to(&self, run: &str) -> Result<u64, JournalError> {
        Ok(self.query(statements::INDEXED_UP_TO, &[SqlValue::text(run)])?.pop().unwrap_or_default())
    }

    fn clear(&self, run: &str) -> Result<(), JournalError> {
        self.with(|connection| {
            connection.change(run, |execute| {
                statements::CLEAR.iter().try_for_each(|statement| execute(statement, &[SqlValue::text(run)]).map(drop))
            })
        })
    }
}

impl TaskTable for PostgresStore {
    fn queue(&self) -> &str {
        &self.queue
    }

    fn ask(&self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<Vec<Task>, JournalError> {
        self.query(statement, values)
    }

    /// One host at a time.
    fn change(&self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<bool, JournalError> {
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

/// The client brings a small runtime of its own, which can neither work nor end inside another one.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let ended = std::thread::scope(|scope| scope.spawn(work).join());
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        let connection = self.connection.get_mut().take();
        if connection.is_some() {
            on_own_thread(move || drop(connection));
        }
    }
}

/// Shows nothing of the address but the database's name: the rest may hold a password.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PostgresStore").field("database", &self.config.get_dbname()).finish_non_exhaustive()
    }
}

impl SqlRow for Row {
    type Error = BoxError;

    fn text(&self, column: usize) -> Result<Option<String>, BoxError> {
        Ok(self.try_get(column)?)
    }

    fn number(&self, column: usize) -> Result<Option<i64>, BoxError> {
        Ok(self.try_get(column)?)
    }

    fn unreadable(column: usize, error: impl Error + Send + Sync + 'static) -> BoxError {
        format!("column {column} of a row can't be read: {error}").into()
    }
}

/// Whether the connection is gone, rather than the work refused.
fn is_lost(failure: &BoxError) -> bool {
    let Some(error) = failure.downcast_ref::<postgres::Error>() else { return false };
    let ended = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_SESSION_TIMEOUT];
    error.is_closed()
        || error.code().is_some_and(|code| ended.contains(code))
        || error.source().is_some_and(|source| source.is::<io::Error>())
}

/// Says what happened in one line. Of the server's answer it takes the message alone: details may show what is in rows.
fn store_error(failure: BoxError) -> JournalError {
    let Some(error) = failure.downcast_ref::<postgres::Error>() else { return JournalError::Store(failure) };
    JournalError::Store(match (error.as_db_error(), error.source()) {
        (Some(answer), _) => format!("PostgreSQL says: {}", answer.message()).into(),
        (None, Some(source)) => format!("{error}: {source}").into(),
        (None, None) => failure,
    })
}
