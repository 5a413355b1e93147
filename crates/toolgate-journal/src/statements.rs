//! Every SQL statement, in the dialect that SQLite and PostgreSQL share, so that both give the same results. Parameters
//! are `?1`, `?2`, …; flags are 0 or 1, and times are nanoseconds since 1970.

pub(crate) const INSERT_EVENT: &str = "
    INSERT INTO events (run, seq, time, kind, tool_call_id, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO NOTHING";

pub(crate) const INSERT_RUN: &str = "INSERT INTO runs (id) VALUES (?1) ON CONFLICT DO NOTHING";

pub(crate) const START_RUN: &str = "
    UPDATE runs SET started = ?2, workspace = ?3, session = ?4, preset = ?5, front_end = ?6 WHERE id = ?1";

pub(crate) const END_RUN: &str = "UPDATE runs SET ended = ?2 WHERE id = ?1 AND (ended IS NULL OR ended < ?2)";

/// Events may arrive out of order when a gap is filled: of two starts of a call, the later one counts.
pub(crate) const START_CALL: &str = "
    INSERT INTO calls (run, tool_call_id, started_seq, started, tool, version, risk, decision, rule, layer, approval, args)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
    ON CONFLICT (run, tool_call_id) DO UPDATE SET
        started_seq = excluded.started_seq, started = excluded.started, tool = excluded.tool,
        version = excluded.version, risk = excluded.risk, decision = excluded.decision, rule = excluded.rule,
        layer = excluded.layer, approval = excluded.approval, args = excluded.args
    WHERE calls.started_seq IS NULL OR calls.started_seq < excluded.started_seq";

pub(crate) const END_CALL: &str = "
    INSERT INTO calls (run, tool_call_id, ended_seq, ended, ok, error_code, error_class, exit_code, truncated, redacted,
        duration_ms, files_changed, commands_run)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT (run, tool_call_id) DO UPDATE SET
        ended_seq = excluded.ended_seq, ended = excluded.ended, ok = excluded.ok, error_code = excluded.error_code,
        error_class = excluded.error_class, exit_code = excluded.exit_code, truncated = excluded.truncated,
        redacted = excluded.redacted, duration_ms = excluded.duration_ms, files_changed = excluded.files_changed,
        commands_run = excluded.commands_run
    WHERE calls.ended_seq IS NULL OR calls.ended_seq < excluded.ended_seq";

/// The start of every query for runs; the columns are those that `RunRow` reads.
macro_rules! select_runs {
    ($rest:literal) => {
        concat!(
            "SELECT id, started, ended, workspace, session, preset, front_end,
                (SELECT count(*) FROM events WHERE run = id),
                (SELECT count(*) FROM calls WHERE run = id),
                (SELECT count(*) FROM calls WHERE run = id AND ok = 0),
                (SELECT json FROM events WHERE run = id AND kind = 'agent.started' ORDER BY seq LIMIT 1),
                (SELECT json FROM events WHERE run = id AND kind = 'agent.ended' ORDER BY seq DESC LIMIT 1),
                (SELECT string_agg(json, ',') FROM events WHERE run = id AND kind IN ('agent.started', 'agent.ended'))
             FROM runs ",
            $rest
        )
    };
}

pub(crate) const RUN: &str = select_runs!("WHERE id = ?1");

/// PostgreSQL infers a parameter's type from its first use, so the comparison comes before `IS NULL`.
pub(crate) const RUNS: &str = select_runs!(
    "WHERE (session = ?1 OR ?1 IS NULL) AND (workspace = ?2 OR ?2 IS NULL)
        AND (lower(id) LIKE ?3 ESCAPE '\\' OR lower(coalesce(session, '')) LIKE ?3 ESCAPE '\\'
            OR EXISTS (SELECT 1 FROM events
                WHERE run = runs.id AND kind = 'agent.started' AND lower(json) LIKE ?3 ESCAPE '\\')
            OR ?3 IS NULL)
        AND (started < ?4 OR ?4 IS NULL)
     ORDER BY started DESC NULLS LAST, id DESC LIMIT ?5"
);

/// The start of every query for calls; the columns are those that `CallRow` reads.
macro_rules! select_calls {
    ($rest:literal) => {
        concat!(
            "SELECT run, tool_call_id, tool, version, risk, decision, rule, layer, approval, started, ended, ok,
                error_code, error_class, exit_code, truncated, redacted, duration_ms, files_changed, commands_run, args
             FROM calls ",
            $rest
        )
    };
}

pub(crate) const CALLS: &str = select_calls!("WHERE run = ?1 ORDER BY coalesce(started_seq, ended_seq)");

pub(crate) const SEARCH_CALLS: &str = select_calls!(
    "WHERE run IN (SELECT id FROM runs WHERE (workspace = ?1 OR ?1 IS NULL) AND (session = ?2 OR ?2 IS NULL))
        AND (lower(coalesce(tool, '')) LIKE ?3 ESCAPE '\\' OR lower(coalesce(args, '')) LIKE ?3 ESCAPE '\\'
            OR lower(files_changed) LIKE ?3 ESCAPE '\\' OR lower(commands_run) LIKE ?3 ESCAPE '\\'
            OR lower(tool_call_id) LIKE ?3 ESCAPE '\\')
     ORDER BY started DESC NULLS LAST, run, coalesce(started_seq, ended_seq) DESC LIMIT ?4"
);

pub(crate) const EVENTS: &str = "SELECT json FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

/// PostgreSQL infers a parameter's type from its first use, so the comparison comes before `IS NULL`.
pub(crate) const EVENTS_OF_KIND: &str = "
    SELECT json FROM events JOIN runs ON runs.id = events.run
    WHERE kind = ?1 AND (workspace = ?2 OR ?2 IS NULL) ORDER BY time DESC, run, seq DESC LIMIT ?3";

/// The last number before the first gap, provided that the sequence begins with 1.
pub(crate) const INDEXED_UP_TO: &str = "
    SELECT CASE WHEN EXISTS (SELECT 1 FROM events WHERE run = ?1 AND seq = 1) THEN (
        SELECT seq FROM events AS here
        WHERE run = ?1 AND NOT EXISTS (SELECT 1 FROM events WHERE run = ?1 AND seq = here.seq + 1)
        ORDER BY seq LIMIT 1
    ) ELSE 0 END";

pub(crate) const CLEAR: [&str; 3] =
    ["DELETE FROM events WHERE run = ?1", "DELETE FROM calls WHERE run = ?1", "DELETE FROM runs WHERE id = ?1"];
