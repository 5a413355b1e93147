//! Converts events into rows and rows back into values, for every store. A store only supplies its own way to run a
//! statement and to read a column.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolgate_contract::{CallEnding, ErrorClass, ErrorCode, Event, EventPayload, TokenUsage, Verdict};

use crate::{CallFilter, CallRow, IndexedPart, RecordedEvent, RunFilter, RunOutcome, RunRow, hex, statements};

/// The longest id that is used as a key unchanged. PostgreSQL refuses keys of some thousand bytes, and callers choose
/// their ids.
const LONGEST_KEY: usize = 200;

/// A value to put into a statement.
pub(crate) enum SqlValue<'a> {
    Text(Option<Cow<'a, str>>),
    Number(Option<i64>),
}

impl<'a> SqlValue<'a> {
    /// PostgreSQL's text can't hold a zero byte, so no store gets one.
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        Self::Text(Some(if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text }))
    }

    pub(crate) fn optional_text(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Self::Text(None), Self::text)
    }

    /// Numbers beyond the range of a column become its largest value.
    pub(crate) fn number(number: impl TryInto<i64>) -> Self {
        Self::Number(Some(number.try_into().unwrap_or(i64::MAX)))
    }

    fn flag(flag: bool) -> Self {
        Self::Number(Some(flag.into()))
    }

    pub(crate) fn time(time: Timestamp) -> Self {
        Self::number(time.as_nanosecond())
    }

    /// The id of a call, as the key of its row.
    fn key(id: &'a str) -> Self {
        if id.len() <= LONGEST_KEY {
            return Self::text(id);
        }
        let beginning = &id[..id.floor_char_boundary(LONGEST_KEY - hex::LENGTH)];
        Self::text(format!("{beginning}…{}", hex::string(&Sha256::digest(id).into())))
    }
}

/// Applies events of a run. `execute` runs a statement and says whether it changed anything.
pub(crate) fn apply<E>(
    run: &str,
    events: &[RecordedEvent],
    mut execute: impl FnMut(&'static str, &[SqlValue<'_>]) -> Result<bool, E>,
) -> Result<(), E> {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
    execute(statements::INSERT_RUN, &[SqlValue::text(run)])?;
    let (mut new_events, mut new_calls) = (0_u64, 0_u64);
    for RecordedEvent { seq, event, line } in events {
        let values = [
            SqlValue::text(run),
            SqlValue::number(*seq),
            SqlValue::time(event.time),
            SqlValue::text(kind(line)),
            SqlValue::optional_text(event.tool_call_id.as_deref()),
            SqlValue::text(line),
        ];
        if !execute(statements::INSERT_EVENT, &values)? {
            continue;
        }
        new_events += 1;
        let Some((statement, values)) = consequence(run, *seq, event) else { continue };
        // A call's end mostly finds its start there.
        let is_there = statement != statements::START_CALL && execute(statement, &values)?;
        let is_of_call = [statements::START_CALL, statements::END_CALL].contains(&statement);
        if is_of_call && !is_there {
            new_calls += u64::from(execute(statements::INSERT_CALL, &values[..2])?);
            execute(statement, &values)?;
        }
    }
    if new_events > 0 {
        execute(statements::COUNT, &[SqlValue::text(run), SqlValue::number(new_events), SqlValue::number(new_calls)])?;
        execute(statements::ADVANCE, &[SqlValue::text(run), SqlValue::number(first.seq), SqlValue::number(last.seq)])?;
    }
    Ok(())
}

/// What an event changes in the row of its run or its call, as a statement and its values.
fn consequence<'a>(run: &'a str, seq: u64, event: &'a Event) -> Option<(&'static str, Vec<SqlValue<'a>>)> {
    match &event.payload {
        EventPayload::RunStarted(facts) => {
            let mut values = vec![SqlValue::text(run), SqlValue::time(event.time)];
            values.extend([&facts.workspace, &facts.session, &facts.preset, &facts.front_end].map(SqlValue::text));
            Some((statements::START_RUN, values))
        }
        EventPayload::RunEnded => Some((statements::END_RUN, vec![SqlValue::text(run), SqlValue::time(event.time)])),
        EventPayload::CallStarted { .. } => Some((statements::START_CALL, call_started(run, seq, event)?)),
        EventPayload::CallCompleted(ending) => Some((statements::END_CALL, call_ended(run, seq, event, ending, None)?)),
        EventPayload::CallFailed { error, class, ending } => {
            let failure = Some((error.code, *class));
            Some((statements::END_CALL, call_ended(run, seq, event, ending, failure)?))
        }
        EventPayload::CallWidened { .. }
        | EventPayload::ApprovalRequired { .. }
        | EventPayload::ApprovalGranted { .. }
        | EventPayload::ApprovalDenied { .. }
        | EventPayload::RunAborted { .. }
        | EventPayload::FilesChanging { .. }
        | EventPayload::RequestRefused(_)
        | EventPayload::Display(_)
        | EventPayload::ProcessOutput(_)
        | EventPayload::ProcessEnded { .. }
        | EventPayload::ProcessAttached { .. }
        | EventPayload::ClientCallRequested { .. }
        | EventPayload::CommandMisread(_)
        | EventPayload::QuestionAsked(_)
        | EventPayload::QuestionAnswered { .. }
        | EventPayload::AgentStarted { .. }
        | EventPayload::AgentEnded { .. }
        | EventPayload::TurnStarted
        | EventPayload::TurnEnded { .. }
        | EventPayload::ModelTold { .. }
        | EventPayload::ModelSaid { .. }
        | EventPayload::ModelFailed { .. }
        | EventPayload::ModelMisunderstood { .. }
        | EventPayload::ContextMasked { .. }
        | EventPayload::ContextSummarized { .. }
        | EventPayload::JournalRecovered { .. } => None,
    }
}

/// The values of `START_CALL`.
fn call_started<'a>(run: &'a str, seq: u64, event: &'a Event) -> Option<Vec<SqlValue<'a>>> {
    let (Some(call), EventPayload::CallStarted { tool, version, args, verdict, approval, risk, .. }) =
        (&event.tool_call_id, &event.payload)
    else {
        return None;
    };
    let decided_by = verdict.as_ref().map(|Verdict { decided_by, .. }| &decided_by.name);
    Some(vec![
        SqlValue::text(run),
        SqlValue::key(call),
        SqlValue::number(seq),
        SqlValue::time(event.time),
        SqlValue::text(tool),
        SqlValue::optional_text(version.as_deref()),
        SqlValue::optional_text(risk.and_then(word)),
        SqlValue::optional_text(verdict.as_ref().and_then(|verdict| word(verdict.decision))),
        SqlValue::optional_text(decided_by.map(|name| &name.rule)),
        SqlValue::optional_text(decided_by.and_then(|name| word(name.layer))),
        SqlValue::optional_text(approval.and_then(word)),
        SqlValue::text(args.to_string()),
    ])
}

/// The values of `END_CALL`.
fn call_ended<'a>(
    run: &'a str,
    seq: u64,
    event: &'a Event,
    ending: &CallEnding,
    failure: Option<(ErrorCode, ErrorClass)>,
) -> Option<Vec<SqlValue<'a>>> {
    Some(vec![
        SqlValue::text(run),
        SqlValue::key(event.tool_call_id.as_ref()?),
        SqlValue::number(seq),
        SqlValue::time(event.time),
        SqlValue::flag(failure.is_none()),
        SqlValue::optional_text(failure.map(|(code, _)| code.as_str())),
        SqlValue::optional_text(failure.and_then(|(_, class)| word(class))),
        SqlValue::Number(ending.exit_code),
        SqlValue::flag(ending.truncated.is_some()),
        SqlValue::flag(ending.redacted),
        SqlValue::number(ending.duration_ms),
        SqlValue::text(Value::from(ending.files_changed.clone()).to_string()),
        SqlValue::text(Value::from(ending.commands_run.clone()).to_string()),
    ])
}

/// The values of `RUNS`.
pub(crate) fn filter(filter: &RunFilter) -> [SqlValue<'_>; 5] {
    let RunFilter { session, workspace, text: contained, before, limit } = filter;
    let text = |text: &'_ Option<String>| SqlValue::optional_text(text.clone());
    let before = before.map_or(SqlValue::Number(None), SqlValue::time);
    let contained = SqlValue::optional_text(contained.as_deref().map(like_pattern));
    [text(session), text(workspace), contained, before, SqlValue::number(*limit)]
}

/// The values of `SEARCH_CALLS`.
pub(crate) fn call_filter(filter: &CallFilter) -> [SqlValue<'_>; 4] {
    let CallFilter { text, session, workspace, limit } = filter;
    let optional = |text: &'_ Option<String>| SqlValue::optional_text(text.clone());
    [optional(workspace), optional(session), SqlValue::text(like_pattern(text)), SqlValue::number(*limit)]
}

/// A pattern of `LIKE … ESCAPE '\'` for texts that contain this one, in lower case.
fn like_pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.to_lowercase().chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern + "%"
}

/// A row of a result, read column by column.
pub(crate) trait SqlRow {
    type Error;

    fn text(&self, column: usize) -> Result<Option<String>, Self::Error>;
    fn number(&self, column: usize) -> Result<Option<i64>, Self::Error>;
    /// The error for a column with an unexpected value.
    fn unreadable(column: usize, error: impl Error + Send + Sync + 'static) -> Self::Error;
}

/// A value that can be read from a row.
pub(crate) trait FromRow: Sized {
    fn from_row<C: SqlRow>(row: &C) -> Result<Self, C::Error>;
}

/// Reads the columns of `RUN`.
impl FromRow for RunRow {
    fn from_row<C: SqlRow>(row: &C) -> Result<Self, C::Error> {
        let agents: Vec<Event> = row.text(10)?.map_or_else(Vec::new, |lines| lines_of(&lines));
        Ok(Self {
            id: row.text(0)?.unwrap_or_default(),
            started: timestamp(row, 1)?,
            ended: timestamp(row, 2)?,
            workspace: row.text(3)?,
            session: row.text(4)?,
            preset: row.text(5)?,
            front_end: row.text(6)?,
            events: count(row, 7)?.unwrap_or_default(),
            calls: count(row, 8)?.unwrap_or_default(),
            failed: count(row, 9)?.unwrap_or_default(),
            task: agents.iter().find_map(task_of),
            outcome: agents.iter().rev().find_map(outcome_of),
            usage: usage_of(&agents),
        })
    }
}

/// The events of lines that a comma separates. A line that this version can't read leaves all of them out.
fn lines_of(lines: &str) -> Vec<Event> {
    serde_json::from_str(&format!("[{lines}]")).unwrap_or_default()
}

/// The task in an event that says that an agent started.
fn task_of(event: &Event) -> Option<String> {
    match &event.payload {
        EventPayload::AgentStarted { objective, .. } => Some(objective.clone()),
        _ => None,
    }
}

/// The outcome in an event that says that an agent's work ended.
fn outcome_of(event: &Event) -> Option<RunOutcome> {
    match event.payload {
        EventPayload::AgentEnded { finish, turns, tokens, .. } => Some(RunOutcome { finish, turns, tokens }),
        _ => None,
    }
}

/// The tokens by model, in the starts and ends of agents, in whatever order they are.
fn usage_of(events: &[Event]) -> BTreeMap<String, TokenUsage> {
    let model_of = |ended: &Event| {
        events.iter().find_map(|event| match &event.payload {
            EventPayload::AgentStarted { model, .. } if event.trace_id == ended.trace_id => Some(model.clone()),
            _ => None,
        })
    };
    let mut usage = BTreeMap::new();
    for event in events {
        if let EventPayload::AgentEnded { tokens, .. } = event.payload {
            *usage.entry(model_of(event).unwrap_or_default()).or_default() += tokens;
        }
    }
    usage
}

/// Reads the columns of `CALLS`.
impl FromRow for CallRow {
    fn from_row<C: SqlRow>(row: &C) -> Result<Self, C::Error> {
        Ok(Self {
            run: row.text(0)?.unwrap_or_default(),
            tool_call_id: row.text(1)?.unwrap_or_default(),
            tool: row.text(2)?,
            version: row.text(3)?,
            risk: from_word(row, 4)?,
            decision: from_word(row, 5)?,
            rule: row.text(6)?,
            layer: from_word(row, 7)?,
            approval: from_word(row, 8)?,
            started: timestamp(row, 9)?,
            ended: timestamp(row, 10)?,
            ok: row.number(11)?.map(|ok| ok != 0),
            error_code: from_word(row, 12)?,
            error_class: from_word(row, 13)?,
            exit_code: row.number(14)?,
            truncated: row.number(15)? == Some(1),
            redacted: row.number(16)? == Some(1),
            duration_ms: count(row, 17)?,
            files_changed: json(row, 18)?.unwrap_or_default(),
            commands_run: json(row, 19)?.unwrap_or_default(),
            args: json(row, 20)?,
        })
    }
}

/// Reads the event's line.
impl FromRow for RecordedEvent {
    fn from_row<C: SqlRow>(row: &C) -> Result<Self, C::Error> {
        let line = row.text(0)?.unwrap_or_default();
        Self::parse(line.as_bytes()).map_err(|error| C::unreadable(0, error))
    }
}

/// Reads the columns of `INDEXED_PART`.
impl FromRow for IndexedPart {
    fn from_row<C: SqlRow>(row: &C) -> Result<Self, C::Error> {
        Ok(Self { seq: count(row, 0)?.unwrap_or_default(), bytes: count(row, 1)?.unwrap_or_default() })
    }
}

/// A number that is never negative.
fn count<C: SqlRow>(row: &C, column: usize) -> Result<Option<u64>, C::Error> {
    row.number(column)?.map(|number| u64::try_from(number).map_err(|error| C::unreadable(column, error))).transpose()
}

/// The event's kind, as written in its line.
fn kind(line: &str) -> String {
    #[derive(Deserialize)]
    struct LineKind {
        kind: String,
    }
    serde_json::from_str(line).map(|LineKind { kind }| kind).unwrap_or_default()
}

/// The JSON string of a plain enum.
fn word(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

pub(crate) fn from_word<C: SqlRow, T: DeserializeOwned>(row: &C, column: usize) -> Result<Option<T>, C::Error> {
    let value = row.text(column)?.map(|word| serde_json::from_value(Value::String(word)));
    value.transpose().map_err(|error| C::unreadable(column, error))
}

pub(crate) fn json<C: SqlRow, T: DeserializeOwned>(row: &C, column: usize) -> Result<Option<T>, C::Error> {
    let value = row.text(column)?.map(|text| serde_json::from_str(&text));
    value.transpose().map_err(|error| C::unreadable(column, error))
}

pub(crate) fn timestamp<C: SqlRow>(row: &C, column: usize) -> Result<Option<Timestamp>, C::Error> {
    let time = row.number(column)?.map(|time| Timestamp::from_nanosecond(time.into()));
    time.transpose().map_err(|error| C::unreadable(column, error))
}
