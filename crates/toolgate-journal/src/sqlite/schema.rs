//! The tables of the embedded store. Times are nanoseconds since 1970.

use rusqlite::{Connection, TransactionBehavior};

use super::damage;

/// The migrations from one schema version to the next, in order. Never change one; add another.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, started INTEGER, ended INTEGER,
        workspace TEXT, session TEXT, preset TEXT, front_end TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX runs_by_time ON runs (started);
    CREATE TABLE events (
        run TEXT NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL, kind TEXT NOT NULL, tool_call_id TEXT,
        json TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT;
    CREATE TABLE calls (
        run TEXT NOT NULL, tool_call_id TEXT NOT NULL, tool TEXT, version TEXT, risk TEXT,
        decision TEXT, rule TEXT, layer TEXT, approval TEXT,
        started INTEGER, ended INTEGER, ok INTEGER, error_code TEXT, error_class TEXT, exit_code INTEGER,
        truncated INTEGER NOT NULL DEFAULT 0, redacted INTEGER NOT NULL DEFAULT 0, duration_ms INTEGER,
        files_changed TEXT NOT NULL DEFAULT '[]', commands_run TEXT NOT NULL DEFAULT '[]', args TEXT,
        started_seq INTEGER, ended_seq INTEGER,
        PRIMARY KEY (run, tool_call_id)
    ) STRICT;
"];

/// Migrates the tables to the latest version.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let Some(missing) = MIGRATIONS.get(version..) else {
        // Unusable for this version, and easily rebuilt.
        return Err(damage(rusqlite::ffi::SQLITE_NOTADB, format!("it has a newer schema version, {version}")));
    };
    for migration in missing {
        transaction.execute_batch(migration)?;
    }
    if !missing.is_empty() {
        transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    }
    transaction.commit()
}
