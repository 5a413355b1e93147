//! The store for many hosts, in a PostgreSQL database that they share. It runs the same statements on the same tables
//! as the embedded store, and reconnects when the server was unavailable.

mod address;
mod connection;
mod schema;
mod tls;

use parking_lot::Mutex;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Row};

use self::connection::{PostgresConnection, SilentServer};
use self::tls::TlsSettings;
use crate::rows::{self, FromRow, SqlRow, SqlValue};
use crate::task_table::{TaskTable, take_statement};
use crate::{CallFilter, CallRow, EventStore, IndexedPart, JournalError, RecordedEvent, RunFilter, RunRow, statements};

/// The advisory lock class of our locks, to keep them apart from other locks in the same database. Any number works.
const LOCKS: i32 = 0x746f_6f6c;

/// How long to wait for a server that doesn't respond, unless the URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An error of the server or the client, or one of our own.
type BoxError = Box<dyn Error + Send + Sync>;

/// The store for many hosts, and the inbox that they share.
///
/// `sslmode` and `sslrootcert` in the URL say whether the connection is encrypted and how the server proves who it is, as
/// for PostgreSQL's own clients: `sslmode=verify-full&sslrootcert=/etc/ssl/database-ca.pem`. `sslcert` and `sslkey` name
/// the certificate and the key by which this client proves who it is.
pub struct PostgresStore {
    config: Config,
    tls: TlsSettings,
    /// Opened when it is first needed, so that a caller that only records never waits for the server.
    connection: Mutex<Option<PostgresConnection>>,
    queue: String,
}

impl PostgresStore {
    /// The database at `url`, such as `postgres://user:password@host/database`. It should be used by nothing else.
    /// Missing tables are created on first use.
    pub fn new(url: &str) -> Result<Self, JournalError> {
        let (mut config, tls) = address::parse(url).map_err(|reason| JournalError::Store(reason.into()))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("toolgate");
        }
        Ok(Self { config, tls, connection: Mutex::default(), queue: String::new() })
    }

    /// A store for the database at `url`, connected right away.
    pub fn connect(url: &str) -> Result<Self, JournalError> {
        let store = Self::new(url)?;
        store.with(|_| Ok(()))?;
        Ok(store)
    }

    /// Sets the queue of the inbox: workers of one queue take no tasks of another.
    #[must_use]
    pub fn with_queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// Where the database is, without the password.
    pub fn place(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(directory) => directory.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        format!("{} at {}", self.config.get_dbname().unwrap_or("the user's database"), hosts.join(", "))
    }

    /// The password, for redaction.
    pub fn password(&self) -> Option<String> {
        self.config.get_password().map(|password| String::from_utf8_lossy(password).into_owned())
    }

    /// Runs `work` on the database. If the connection is lost, a new one is opened and `work` runs once more: the
    /// statements change nothing if they were applied already.
    fn with<T: Send>(
        &self,
        work: impl Fn(&mut PostgresConnection) -> Result<T, BoxError> + Send + Sync,
    ) -> Result<T, JournalError> {
        let attempt = || {
            let mut held = self.connection.lock();
            let connection = match &mut *held {
                Some(connection) => connection,
                none => none.insert(self.open()?),
            };
            match work(connection) {
                // A new connection wouldn't be answered either, and would be waited for as long.
                Err(failure) if failure.is::<SilentServer>() => {
                    *held = None;
                    Err(self.failed(failure))
                }
                Err(failure) if is_lost(&failure) => {
                    *held = None;
                    work(held.insert(self.open()?)).map_err(|failure| self.failed(failure))
                }
                other => other.map_err(|failure| self.failed(failure)),
            }
        };
        on_own_thread(attempt)
    }

    fn open(&self) -> Result<PostgresConnection, JournalError> {
        PostgresConnection::open(&self.config, &self.tls).map_err(|failure| self.unavailable(failure))
    }

    fn unavailable(&self, failure: BoxError) -> JournalError {
        JournalError::Unavailable { database: self.place(), source: in_one_line(failure) }
    }

    fn failed(&self, failure: BoxError) -> JournalError {
        match is_lost(&failure) {
            true => self.unavailable(failure),
            false => JournalError::Store(in_one_line(failure)),
        }
    }

    /// Runs a query and reads each row of the result.
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
            connection.change(run, |execute| {
                statements::CLEAR.iter().try_for_each(|statement| execute(statement, &[SqlValue::text(run)]).map(drop))
            })
        })
    }
}

impl TaskTable for PostgresStore {
    /// Passes over rows that other workers are taking at this moment, so that nobody waits for them.
    const TAKE: &'static str = take_statement!("FOR UPDATE SKIP LOCKED");

    fn queue(&self) -> &str {
        &self.queue
    }

    fn query<R: FromRow + Send>(
        &self,
        statement: &'static str,
        values: &[SqlValue<'_>],
    ) -> Result<Vec<R>, JournalError> {
        self.query(statement, values)
    }

    fn change(&self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<bool, JournalError> {
        self.with(|connection| connection.execute(statement, values))
    }
}

/// The client has a Tokio runtime of its own, which can neither run nor shut down inside another one.
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

/// Shows only the database's name: the rest of the URL may contain a password.
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

/// Whether the connection is lost or the server doesn't answer, as opposed to a refused statement.
fn is_lost(failure: &BoxError) -> bool {
    let Some(error) = failure.downcast_ref::<tokio_postgres::Error>() else { return failure.is::<SilentServer>() };
    let ended = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_SESSION_TIMEOUT];
    error.is_closed()
        || error.code().is_some_and(|code| ended.contains(code))
        || error.source().is_some_and(|source| source.is::<io::Error>())
}

/// Describes the error in one line. Of the server's answer it uses only the message: details may show the contents of
/// rows.
fn in_one_line(failure: BoxError) -> BoxError {
    let Some(error) = failure.downcast_ref::<tokio_postgres::Error>() else { return failure };
    match (error.as_db_error(), error.source()) {
        (Some(answer), _) => format!("PostgreSQL says: {}", answer.message()).into(),
        (None, Some(source)) => format!("{error}: {source}").into(),
        (None, None) => failure,
    }
}
