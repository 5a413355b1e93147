//! The tables of the embedded store and every statement that is asked of them. Times are nanoseconds since 1970.

use rusqlite::{Connection, TransactionBehavior};

use super::damage;

/// What brings a database from one version to the next, in order. Never change one; add another.
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

/// Brings the tables up to date.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let Some(missing) = MIGRATIONS.get(version..) else {
        // Of no use to us, and easily rebuilt.
        return Err(damage(rusqlite::ffi::SQLITE_NOTADB, format!("it is of a newer version, {version}")));
    };
    for migration in missing {
        transaction.execute_batch(migration)?;
    }
    if !missing.is_empty() {
        transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    }
    transaction.commit()
}

pub(super) const INSERT_EVENT: &str = "
    INSERT INTO events (run, seq, time, kind, tool_call_id, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO NOTHING";

pub(super) const INSERT_RUN: &str = "INSERT INTO runs (id) VALUES (?1) ON CONFLICT DO NOTHING";

pub(super) const START_RUN: &str = "
    UPDATE runs SET started = ?2, workspace = ?3, session = ?4, preset = ?5, front_end = ?6 WHERE id = ?1";

pub(super) const END_RUN: &str = "UPDATE runs SET ended = max(coalesce(ended, ?2), ?2) WHERE id = ?1";

/// Events may come out of order, after a gap was filled: of two beginnings of a call, the later one counts.
pub(super) const START_CALL: &str = "
    INSERT INTO calls (run, tool_call_id, started_seq, started, tool, version, risk, decision, rule, layer, approval, args)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
    ON CONFLICT DO UPDATE SET
        started_seq = excluded.started_seq, started = excluded.started, tool = excluded.tool,
        version = excluded.version, risk = excluded.risk, decision = excluded.decision, rule = excluded.rule,
        layer = excluded.layer, approval = excluded.approval, args = excluded.args
    WHERE started_seq IS NULL OR started_seq < excluded.started_seq";

pub(super) const END_CALL: &str = "
    INSERT INTO calls (run, tool_call_id, ended_seq, ended, ok, error_code, error_class, exit_code, truncated, redacted,
        duration_ms, files_changed, commands_run)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT DO UPDATE SET
        ended_seq = excluded.ended_seq, ended = excluded.ended, ok = excluded.ok, error_code = excluded.error_code,
        error_class = excluded.error_class, exit_code = excluded.exit_code, truncated = excluded.truncated,
        redacted = excluded.redacted, duration_ms = excluded.duration_ms, files_changed = excluded.files_changed,
        commands_run = excluded.commands_run
    WHERE ended_seq IS NULL OR ended_seq < excluded.ended_seq";

/// Begins every question about runs; the columns are those of `rows::run`.
macro_rules! select_runs {
    ($rest:literal) => {
        concat!(
            "SELECT id, started, ended, workspace, session, preset, front_end,
                (SELECT count(*) FROM events WHERE run = id),
                (SELECT count(*) FROM calls WHERE run = id),
                (SELECT count(*) FROM calls WHERE run = id AND ok = 0)
             FROM runs ",
            $rest
        )
    };
}

pub(super) const RUN: &str = select_runs!("WHERE id = ?1");

pub(super) const RUNS: &str = select_runs!(
    "WHERE (?1 IS NULL OR session = ?1) AND (?2 IS NULL OR workspace = ?2) ORDER BY started DESC, id DESC LIMIT ?3"
);

pub(super) const CALLS: &str = "
    SELECT run, tool_call_id, tool, version, risk, decision, rule, layer, approval, started, ended, ok, error_code,
        error_class, exit_code, truncated, redacted, duration_ms, files_changed, commands_run, args
    FROM calls WHERE run = ?1 ORDER BY coalesce(started_seq, ended_seq)";

pub(super) const EVENTS: &str = "SELECT json FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

/// The end of the first unbroken row of numbers, provided that it begins with 1.
pub(super) const INDEXED_UP_TO: &str = "
    SELECT CASE WHEN EXISTS (SELECT 1 FROM events WHERE run = ?1 AND seq = 1) THEN (
        SELECT seq FROM events AS here
        WHERE run = ?1 AND NOT EXISTS (SELECT 1 FROM events WHERE run = ?1 AND seq = here.seq + 1)
        ORDER BY seq LIMIT 1
    ) ELSE 0 END";

pub(super) const CLEAR: [&str; 3] =
    ["DELETE FROM events WHERE run = ?1", "DELETE FROM calls WHERE run = ?1", "DELETE FROM runs WHERE id = ?1"];
