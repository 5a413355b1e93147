//! One connection to the server, with its prepared statements.

use std::collections::HashMap;

use postgres::config::SslMode;
use postgres::types::ToSql;
use postgres::{Client, Config, GenericClient, NoTls, Row, Statement};

use super::tls::{TlsSettings, is_handshake_failure};
use super::{BoxError, LOCKS, schema};
use crate::rows::SqlValue;

/// How long to wait for locks held by other hosts. A caller that waits in vain tries again later.
const SET_LOCK_TIMEOUT: &str = "SET lock_timeout = '10s'";

/// Locks a run against every other writer until the transaction ends. Without it, two writers that bring the same
/// events in a different order would deadlock.
const LOCK_RUN: &str = "SELECT pg_advisory_xact_lock(?1, hashtext(?2))";

pub(super) struct PostgresConnection {
    client: Client,
    prepared: HashMap<&'static str, Statement>,
}

impl PostgresConnection {
    /// Connects, and migrates the tables.
    pub(super) fn open(config: &Config, tls: &TlsSettings) -> Result<Self, BoxError> {
        let mut client = match config.connect(tls.connector()?) {
            // As PostgreSQL's own clients do: encryption is preferred, not needed.
            Err(error) if tls.mode == SslMode::Prefer && is_handshake_failure(&error) => {
                config.clone().ssl_mode(SslMode::Disable).connect(NoTls)?
            }
            other => other?,
        };
        client.batch_execute(SET_LOCK_TIMEOUT)?;
        schema::migrate(&mut client)?;
        Ok(Self { client, prepared: HashMap::new() })
    }

    /// Runs a query.
    pub(super) fn query(&mut self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<Vec<Row>, BoxError> {
        let Self { client, prepared } = self;
        let statement = prepare(client, prepared, statement)?;
        Ok(client.query(&statement, &parameters(values))?)
    }

    /// Runs one statement, and says whether it changed anything.
    pub(super) fn execute(&mut self, statement: &'static str, values: &[SqlValue<'_>]) -> Result<bool, BoxError> {
        let Self { client, prepared } = self;
        let statement = prepare(client, prepared, statement)?;
        Ok(client.execute(&statement, &parameters(values))? > 0)
    }

    /// Changes a run, all or nothing. `work` gets a function that runs a statement and says whether it changed
    /// anything.
    pub(super) fn change(
        &mut self,
        run: &str,
        work: impl FnOnce(&mut dyn FnMut(&'static str, &[SqlValue<'_>]) -> Result<bool, BoxError>) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let Self { client, prepared } = self;
        let mut transaction = client.transaction()?;
        let lock = prepare(&mut transaction, prepared, LOCK_RUN)?;
        transaction.query(&lock, &[&LOCKS, &run])?;
        work(&mut |statement, values| {
            let statement = prepare(&mut transaction, prepared, statement)?;
            Ok(transaction.execute(&statement, &parameters(values))? > 0)
        })?;
        Ok(transaction.commit()?)
    }
}

/// The server's time when it received the statement, in nanoseconds since 1970. It is the same for the whole statement,
/// so it can be looked up in an index.
const NOW: &str = "(extract(epoch FROM statement_timestamp()) * 1000000000)::bigint";

/// Prepares a statement once. PostgreSQL writes parameters as `$1` where SQLite has `?1`, and `now_ns()` as `NOW`.
fn prepare(
    client: &mut impl GenericClient,
    prepared: &mut HashMap<&'static str, Statement>,
    statement: &'static str,
) -> Result<Statement, BoxError> {
    if let Some(known) = prepared.get(statement) {
        return Ok(known.clone());
    }
    let new = client.prepare(&statement.replace('?', "$").replace("now_ns()", NOW))?;
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
