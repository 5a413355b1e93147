//! One connection to the server, with its prepared statements. Every answer is waited for within a limit: a server that is
//! connected and silent, because its host is frozen or a firewall drops its packets, would be waited for for ever.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::runtime::{self, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, GenericClient, NoTls, Row, Socket, Statement};
use toolgate_contract::counted;

use super::tls::{TlsSettings, is_handshake_failure};
use super::{BoxError, CONNECT_TIMEOUT, LOCKS, schema};
use crate::rows::SqlValue;

/// How long to wait for locks held by other hosts. A caller that waits in vain tries again later.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Locks a run against every other writer until the transaction ends. Without it, two writers that bring the same
/// events in a different order would deadlock.
const LOCK_RUN: &str = "SELECT pg_advisory_xact_lock(?1, hashtext(?2))";

/// How long the end of a connection may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// The server is connected and doesn't answer.
#[derive(Debug)]
pub(super) struct SilentServer(Duration);

impl fmt::Display for SilentServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the server is connected and didn't answer within {}", counted(self.0.as_secs(), "second"))
    }
}

impl std::error::Error for SilentServer {}

/// Waits for what the server answers, for as long as a lock may take and a connection besides.
pub(super) struct ServerAnswers {
    runtime: Runtime,
    limit: Duration,
}

impl ServerAnswers {
    fn new(config: &Config) -> Result<Self, BoxError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let limit = LOCK_TIMEOUT + config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        Ok(Self { runtime, limit })
    }

    pub(super) fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, BoxError> {
        let answer = self.runtime.block_on(async { tokio::time::timeout(self.limit, answer).await });
        Ok(answer.map_err(|_| SilentServer(self.limit))??)
    }
}

pub(super) struct PostgresConnection {
    /// None only while it is dropped.
    client: Option<Client>,
    /// Carries messages to the server and back, whenever an answer is waited for.
    messages: JoinHandle<Result<(), tokio_postgres::Error>>,
    prepared: HashMap<&'static str, Statement>,
    answers: ServerAnswers,
}

impl PostgresConnection {
    /// Connects, and migrates the tables.
    pub(super) fn open(config: &Config, tls: &TlsSettings) -> Result<Self, BoxError> {
        let answers = ServerAnswers::new(config)?;
        let (mut client, messages) = match connect(config, tls.connector()?, &answers) {
            // As PostgreSQL's own clients do: encryption is preferred, not needed.
            Err(error) if tls.mode == SslMode::Prefer && is_handshake_failure(&error) => {
                connect(config.clone().ssl_mode(SslMode::Disable), NoTls, &answers)?
            }
            other => other?,
        };
        let set_lock_timeout = format!("SET lock_timeout = '{}s'", LOCK_TIMEOUT.as_secs());
        answers.wait(client.batch_execute(&set_lock_timeout))?;
        schema::migrate(&mut client, &answers)?;
        Ok(Self { client: Some(client), messages, prepared: HashMap::new(), answers })
    }

    /// Runs a query.
    pub(super) fn query(&mut self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<Vec<Row>, BoxError> {
        let (client, prepared, answers) = self.parts()?;
        let statement = prepare(answers, client, prepared, statement)?;
        answers.wait(client.query(&statement, &parameters(values)))
    }

    /// Runs one statement, and says whether it changed anything.
    pub(super) fn execute(&mut self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<bool, BoxError> {
        let (client, prepared, answers) = self.parts()?;
        let statement = prepare(answers, client, prepared, statement)?;
        Ok(answers.wait(client.execute(&statement, &parameters(values)))? > 0)
    }

    /// Changes a run, all or nothing. `work` gets a function that runs a statement and says whether it changed
    /// anything.
    pub(super) fn change(
        &mut self,
        run: &str,
        work: impl FnOnce(&mut dyn FnMut(&'static str, &[SqlValue<'_>]) -> Result<bool, BoxError>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let (client, prepared, answers) = self.parts()?;
        let transaction = answers.wait(client.transaction())?;
        let lock = prepare(answers, &transaction, prepared, LOCK_RUN)?;
        answers.wait(transaction.query(&lock, &[&LOCKS, &run]))?;
        work(&mut |statement, values| {
            let statement = prepare(answers, &transaction, prepared, statement)?;
            Ok(answers.wait(transaction.execute(&statement, &parameters(values)))? > 0)
        })?;
        answers.wait(transaction.commit())
    }

    fn parts(&mut self) -> Result<(&mut Client, &mut HashMap<&'static str, Statement>, &ServerAnswers), BoxError> {
        let client = self.client.as_mut().ok_or("the connection is closed")?;
        Ok((client, &mut self.prepared, &self.answers))
    }
}

impl Drop for PostgresConnection {
    /// Tells the server, which would otherwise log a lost connection.
    fn drop(&mut self) {
        self.client = None;
        let (messages, runtime) = (&mut self.messages, &self.answers.runtime);
        let _ = runtime.block_on(async { tokio::time::timeout(GOODBYE, messages).await });
    }
}

fn connect<T>(
    config: &Config,
    tls: T,
    answers: &ServerAnswers,
) -> Result<(Client, JoinHandle<Result<(), tokio_postgres::Error>>), BoxError>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = answers.wait(config.connect(tls))?;
    Ok((client, answers.runtime.spawn(connection)))
}

/// The server's time when it received the statement, in nanoseconds since 1970. It is the same for the whole statement,
/// so it can be looked up in an index.
const NOW: &str = "(extract(epoch FROM statement_timestamp()) * 1000000000)::bigint";

/// Prepares a statement once. PostgreSQL writes parameters as `$1` where SQLite has `?1`, and `now_ns()` as `NOW`.
fn prepare(
    answers: &ServerAnswers,
    client: &impl GenericClient,
    prepared: &mut HashMap<&'static str, Statement>,
    statement: &'static str,
) -> Result<Statement, BoxError> {
    if let Some(known) = prepared.get(statement) {
        return Ok(known.clone());
    }
    let new = answers.wait(client.prepare(&statement.replace('?', "$").replace("now_ns()", NOW)))?;
    prepared.insert(statement, new.clone());
    Ok(new)
}

fn parameters<'a>(values: &'a [SqlValue<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    let parameter = |cell: &'a SqlValue<'_>| -> &'a (dyn ToSql + Sync) {
        match cell {
            SqlValue::Text(text) => text,
            SqlValue::Number(number) => number,
        }
    };
    values.iter().map(parameter).collect()
}
