//! The tables of the embedded store. Times are nanoseconds since 1970.

use rusqlite::{Connection, TransactionBehavior};

use super::damage;

/// The migrations from one schema version to the next, in order. Never change one; add another.
const MIGRATIONS: &[&str] = &[
    "
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
",
    "
    -- Counted while events are added, so that a list of runs doesn't read them all.
    ALTER TABLE runs ADD COLUMN event_count INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN call_count INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN indexed_seq INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN indexed_bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE runs SET event_count = (SELECT count(*) FROM events WHERE run = id),
        call_count = (SELECT count(*) FROM calls WHERE run = id);
    UPDATE runs SET (indexed_seq, indexed_bytes) = (
        SELECT coalesce(max(seq), 0), coalesce(sum(bytes), 0) FROM (
            SELECT seq, octet_length(json) + 1 AS bytes, row_number() OVER (ORDER BY seq) AS place
            FROM events WHERE run = runs.id) AS all_events
        WHERE seq = place);
    CREATE INDEX failed_calls ON calls (run) WHERE ok = 0;
    CREATE INDEX agent_events ON events (run, seq) WHERE kind IN ('agent.started', 'agent.ended');
",
];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_program_stored_is_counted() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let rows = "INSERT INTO runs (id) VALUES ('a'), ('b');
            INSERT INTO events (run, seq, time, kind, json) VALUES
                ('a', 1, 0, 'x', '{}'), ('a', 2, 0, 'x', '{\"ü\":1}'), ('a', 4, 0, 'x', '{}');
            INSERT INTO calls (run, tool_call_id) VALUES ('a', 'one'), ('a', 'two');";
        connection.execute_batch(rows).unwrap();
        migrate(&mut connection).unwrap();
        let counts = |run: &str| -> [i64; 4] {
            let query = "SELECT event_count, call_count, indexed_seq, indexed_bytes FROM runs WHERE id = ?1";
            connection.query_row(query, [run], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])).unwrap()
        };
        assert_eq!(counts("a"), [3, 2, 2, 3 + 9], "the third event is missing");
        assert_eq!(counts("b"), [0; 4]);
    }
}
