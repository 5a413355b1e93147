//! Events into rows, and rows back into values.

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row, Transaction, params};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use toolgate_contract::{Ending, ErrorClass, ErrorCode, Event, Happening, Verdict};

use super::schema;
use crate::{CallRow, Recorded, RunRow};

/// Takes in one event, unless it is there already.
pub(super) fn insert(transaction: &Transaction<'_>, run: &str, recorded: &Recorded) -> Result<()> {
    let Recorded { seq, event, line } = recorded;
    let (seq, time) = (i64::try_from(*seq).unwrap_or(i64::MAX), nanoseconds(event.time));
    let inserted = transaction.prepare_cached(schema::INSERT_EVENT)?.execute(params![
        run,
        seq,
        time,
        kind(line),
        event.tool_call_id,
        line
    ])?;
    if inserted == 0 {
        return Ok(());
    }
    transaction.prepare_cached(schema::INSERT_RUN)?.execute([run])?;
    match &event.happening {
        Happening::RunStarted(facts) => {
            let values = params![run, time, facts.workspace, facts.session, facts.preset, facts.front_end];
            transaction.prepare_cached(schema::START_RUN)?.execute(values)?;
        }
        Happening::RunEnded => {
            transaction.prepare_cached(schema::END_RUN)?.execute(params![run, time])?;
        }
        Happening::CallStarted { .. } => start_call(transaction, run, seq, event)?,
        Happening::CallCompleted(ending) => end_call(transaction, run, seq, event, ending, None)?,
        Happening::CallFailed { error, class, ending } => {
            end_call(transaction, run, seq, event, ending, Some((error.code, *class)))?;
        }
        Happening::ApprovalRequired { .. }
        | Happening::ApprovalGranted { .. }
        | Happening::ApprovalDenied { .. }
        | Happening::FilesChanging { .. }
        | Happening::Display(_)
        | Happening::JournalRecovered { .. } => {}
    }
    Ok(())
}

fn start_call(transaction: &Transaction<'_>, run: &str, seq: i64, event: &Event) -> Result<()> {
    let (Some(call), Happening::CallStarted { tool, version, args, verdict, approval, risk, .. }) =
        (&event.tool_call_id, &event.happening)
    else {
        return Ok(());
    };
    let decided_by = verdict.as_ref().map(|Verdict { decided_by, .. }| &decided_by.name);
    transaction.prepare_cached(schema::START_CALL)?.execute(params![
        run,
        call,
        seq,
        nanoseconds(event.time),
        tool,
        version,
        risk.map(word),
        verdict.as_ref().map(|verdict| word(verdict.decision)),
        decided_by.map(|name| &name.rule),
        decided_by.map(|name| word(name.layer)),
        approval.map(word),
        args.to_string(),
    ])?;
    Ok(())
}

fn end_call(
    transaction: &Transaction<'_>,
    run: &str,
    seq: i64,
    event: &Event,
    ending: &Ending,
    failure: Option<(ErrorCode, ErrorClass)>,
) -> Result<()> {
    let Some(call) = &event.tool_call_id else { return Ok(()) };
    transaction.prepare_cached(schema::END_CALL)?.execute(params![
        run,
        call,
        seq,
        nanoseconds(event.time),
        failure.is_none(),
        failure.map(|(code, _)| code.as_str()),
        failure.map(|(_, class)| word(class)),
        ending.exit_code,
        ending.truncated.is_some(),
        ending.redacted,
        i64::try_from(ending.duration_ms).unwrap_or(i64::MAX),
        Value::from(ending.files_changed.clone()).to_string(),
        Value::from(ending.commands_run.clone()).to_string(),
    ])?;
    Ok(())
}

/// A run, by the columns of `schema::RUN`.
pub(super) fn run(row: &Row<'_>) -> Result<RunRow> {
    Ok(RunRow {
        id: row.get(0)?,
        started: timestamp(row, 1)?,
        ended: timestamp(row, 2)?,
        workspace: row.get(3)?,
        session: row.get(4)?,
        preset: row.get(5)?,
        front_end: row.get(6)?,
        events: row.get(7)?,
        calls: row.get(8)?,
        failed: row.get(9)?,
    })
}

/// A call, by the columns of `schema::CALLS`.
pub(super) fn call(row: &Row<'_>) -> Result<CallRow> {
    Ok(CallRow {
        run: row.get(0)?,
        tool_call_id: row.get(1)?,
        tool: row.get(2)?,
        version: row.get(3)?,
        risk: from_word(row, 4)?,
        decision: from_word(row, 5)?,
        rule: row.get(6)?,
        layer: from_word(row, 7)?,
        approval: from_word(row, 8)?,
        started: timestamp(row, 9)?,
        ended: timestamp(row, 10)?,
        ok: row.get(11)?,
        error_code: from_word(row, 12)?,
        error_class: from_word(row, 13)?,
        exit_code: row.get(14)?,
        truncated: row.get(15)?,
        redacted: row.get(16)?,
        duration_ms: row.get(17)?,
        files_changed: json(row, 18)?.unwrap_or_default(),
        commands_run: json(row, 19)?.unwrap_or_default(),
        args: json(row, 20)?,
    })
}

/// An event, from the line it was.
pub(super) fn event(row: &Row<'_>) -> Result<Recorded> {
    let line: String = row.get(0)?;
    Recorded::parse(line.as_bytes()).map_err(|error| Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

/// The event's kind, as the line says it.
fn kind(line: &str) -> String {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    serde_json::from_str(line).map(|Kind { kind }| kind).unwrap_or_default()
}

/// The one word that a plain enum is in JSON.
fn word(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

fn from_word<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    let word: Option<String> = row.get(column)?;
    word.map(|word| serde_json::from_value(Value::String(word)).map_err(|error| unreadable(column, error))).transpose()
}

fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| unreadable(column, error))).transpose()
}

fn unreadable(column: usize, error: serde_json::Error) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}

fn timestamp(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    let time: Option<i64> = row.get(column)?;
    time.map(|time| {
        Timestamp::from_nanosecond(time.into())
            .map_err(|error| Error::FromSqlConversionFailure(column, Type::Integer, Box::new(error)))
    })
    .transpose()
}
