//! The tables of the shared store: those of the embedded store, in PostgreSQL's dialect. Hosts may start at the same
//! moment and run different versions, so the tables are migrated under a lock, and never by a program older than they
//! are.

use tokio_postgres::Client;

use super::connection::ServerAnswers;
use super::{BoxError, LOCKS};

/// The migrations from one schema version to the next, in order. Never change one; add another. Ids are compared byte
/// by byte, as SQLite does, whatever the database's collation.
const MIGRATIONS: &[&str] = &[
    r#"
    CREATE TABLE runs (
        id TEXT COLLATE "C" PRIMARY KEY, started BIGINT, ended BIGINT,
        workspace TEXT, session TEXT, preset TEXT, front_end TEXT
    );
    CREATE INDEX runs_by_time ON runs (started DESC NULLS LAST, id DESC);
    CREATE TABLE events (
        run TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, time BIGINT NOT NULL, kind TEXT NOT NULL,
        tool_call_id TEXT, json TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    );
    CREATE TABLE calls (
        run TEXT COLLATE "C" NOT NULL, tool_call_id TEXT COLLATE "C" NOT NULL, tool TEXT, version TEXT, risk TEXT,
        decision TEXT, rule TEXT, layer TEXT, approval TEXT,
        started BIGINT, ended BIGINT, ok BIGINT, error_code TEXT, error_class TEXT, exit_code BIGINT,
        truncated BIGINT NOT NULL DEFAULT 0, redacted BIGINT NOT NULL DEFAULT 0, duration_ms BIGINT,
        files_changed TEXT NOT NULL DEFAULT '[]', commands_run TEXT NOT NULL DEFAULT '[]', args TEXT,
        started_seq BIGINT, ended_seq BIGINT,
        PRIMARY KEY (run, tool_call_id)
    );
"#,
    r#"
    CREATE TABLE inbox (
        id TEXT COLLATE "C" PRIMARY KEY, task TEXT NOT NULL, reply_to TEXT NOT NULL, created BIGINT NOT NULL,
        state TEXT NOT NULL, attempts BIGINT NOT NULL DEFAULT 0, runs TEXT NOT NULL, unwanted BIGINT NOT NULL DEFAULT 0,
        outcome TEXT, answer TEXT, finished BIGINT, lease TEXT COLLATE "C", lease_until BIGINT
    );
    CREATE INDEX inbox_by_time ON inbox (created, id);
    CREATE INDEX inbox_by_lease ON inbox (lease);
"#,
    r#"ALTER TABLE inbox ADD COLUMN queue TEXT COLLATE "C" NOT NULL DEFAULT ''"#,
    // Whoever takes a task reads only tasks that wait or are held, however many are finished.
    "
    DROP INDEX inbox_by_time;
    DROP INDEX inbox_by_lease;
    CREATE INDEX inbox_by_time ON inbox (queue, created, id);
    CREATE UNIQUE INDEX inbox_by_lease ON inbox (lease);
    CREATE INDEX inbox_waiting ON inbox (queue, created, id) WHERE state = 'waiting';
    CREATE INDEX inbox_held ON inbox (queue, lease_until) WHERE state IN ('working', 'answered');
",
    // Counted while events are added, so that a list of runs doesn't read them all.
    "
    ALTER TABLE runs ADD COLUMN event_count BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN call_count BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN indexed_seq BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN indexed_bytes BIGINT NOT NULL DEFAULT 0;
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
pub(super) fn migrate(client: &mut Client, answers: &ServerAnswers) -> Result<(), BoxError> {
    let transaction = answers.wait(client.transaction())?;
    answers.wait(transaction.query("SELECT pg_advisory_xact_lock($1, 0)", &[&LOCKS]))?;
    // Checked first, because even `IF NOT EXISTS` needs the right to create tables, which some hosts may lack.
    let exists = answers.wait(transaction.query_one("SELECT to_regclass('store_version') IS NOT NULL", &[]))?;
    if !exists.get::<_, bool>(0) {
        answers.wait(transaction.batch_execute(
            "CREATE TABLE store_version (version BIGINT NOT NULL); INSERT INTO store_version VALUES (0)",
        ))?;
    }
    let version: i64 = answers.wait(transaction.query_one("SELECT version FROM store_version", &[]))?.get(0);
    let missing = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version..)).ok_or_else(|| {
        let known = MIGRATIONS.len();
        format!(
            "its tables have version {version}, and this program supports versions up to {known}: update this program"
        )
    })?;
    for migration in missing {
        answers.wait(transaction.batch_execute(migration))?;
    }
    if !missing.is_empty() {
        let version = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        answers.wait(transaction.execute("UPDATE store_version SET version = $1", &[&version]))?;
    }
    answers.wait(transaction.commit())
}
