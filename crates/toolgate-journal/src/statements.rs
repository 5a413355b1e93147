//! Every SQL statement, in the dialect that SQLite and PostgreSQL share, so that both give the same results. Parameters
//! are `?1`, `?2`, …; flags are 0 or 1, and times are nanoseconds since 1970.

pub(crate) const INSERT_EVENT: &str = "
    INSERT INTO events (run, seq, time, kind, tool_call_id, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO NOTHING";

pub(crate) const INSERT_RUN: &str = "INSERT INTO runs (id) VALUES (?1) ON CONFLICT DO NOTHING";

pub(crate) const START_RUN: &str = "
    UPDATE runs SET started = ?2, workspace = ?3, session = ?4, preset = ?5, front_end = ?6 WHERE id = ?1";

pub(crate) const END_RUN: &str = "UPDATE runs SET ended = ?2 WHERE id = ?1 AND (ended IS NULL OR ended < ?2)";

/// What a list shows of a run is counted while it grows: a list that counted itself would read every run that it shows.
pub(crate) const COUNT: &str =
    "UPDATE runs SET event_count = event_count + ?2, call_count = call_count + ?3 WHERE id = ?1";

/// After events `?2` to `?3` of a run were added, moves the end of its indexed part to the first gap. Events without a gap
/// are numbered like their places behind the part. Lines are added up as the journal has them, each with its line feed.
pub(crate) const ADVANCE: &str = "
    UPDATE runs SET (indexed_seq, indexed_bytes) = (
        SELECT coalesce(max(seq), runs.indexed_seq), runs.indexed_bytes + coalesce(sum(bytes), 0) FROM (
            SELECT seq, octet_length(json) + 1 AS bytes, row_number() OVER (ORDER BY seq) AS place
            FROM events WHERE run = ?1 AND seq > runs.indexed_seq) AS behind
        WHERE seq = runs.indexed_seq + place)
    WHERE id = ?1 AND indexed_seq + 1 BETWEEN ?2 AND ?3";

pub(crate) const INSERT_CALL: &str = "INSERT INTO calls (run, tool_call_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";

/// Events may arrive out of order when a gap is filled: of two starts of a call, the later one counts.
pub(crate) const START_CALL: &str = "
    UPDATE calls SET started_seq = ?3, started = ?4, tool = ?5, version = ?6, risk = ?7, decision = ?8, rule = ?9,
        layer = ?10, approval = ?11, args = ?12
    WHERE run = ?1 AND tool_call_id = ?2 AND (started_seq IS NULL OR started_seq < ?3)";

pub(crate) const END_CALL: &str = "
    UPDATE calls SET ended_seq = ?3, ended = ?4, ok = ?5, error_code = ?6, error_class = ?7, exit_code = ?8,
        truncated = ?9, redacted = ?10, duration_ms = ?11, files_changed = ?12, commands_run = ?13
    WHERE run = ?1 AND tool_call_id = ?2 AND (ended_seq IS NULL OR ended_seq < ?3)";

/// The start of every query for runs; the columns are those that `RunRow` reads.
macro_rules! select_runs {
    ($rest:literal) => {
        concat!(
            "SELECT id, started, ended, workspace, session, preset, front_end, event_count, call_count,
                (SELECT count(*) FROM calls WHERE run = id AND ok = 0),
                (SELECT string_agg(json, ',' ORDER BY seq) FROM events
                    WHERE run = id AND kind IN ('agent.started', 'agent.ended'))
             FROM runs ",
            $rest
        )
    };
}

pub(crate) const RUN: &str = select_runs!("WHERE id = ?1");

/// PostgreSQL infers a parameter's type from its first use, so the comparison comes before `IS NULL`. SQLite takes the index
/// of agents' events only where its condition is repeated word by word.
pub(crate) const RUNS: &str = select_runs!(
    "WHERE (session = ?1 OR ?1 IS NULL) AND (workspace = ?2 OR ?2 IS NULL)
        AND (lower(id) LIKE ?3 ESCAPE '\\' OR lower(coalesce(session, '')) LIKE ?3 ESCAPE '\\'
            OR EXISTS (SELECT 1 FROM events
                WHERE run = runs.id AND kind IN ('agent.started', 'agent.ended') AND kind = 'agent.started'
                    AND lower(json) LIKE ?3 ESCAPE '\\')
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

pub(crate) const INDEXED_PART: &str = "SELECT indexed_seq, indexed_bytes FROM runs WHERE id = ?1";

pub(crate) const CLEAR: [&str; 3] =
    ["DELETE FROM events WHERE run = ?1", "DELETE FROM calls WHERE run = ?1", "DELETE FROM runs WHERE id = ?1"];
