//! Formats a run's events as lines for a person: turns, the model's text, calls and their results.

use std::collections::HashMap;

use serde_json::Value;
use toolgate_contract::{Event, EventPayload, FinishReason, MessageOrigin, ToolError, counted};

use super::checklist::checklist;
use super::running_calls::{RunningCalls, headed};
use super::screen::shortened;
use super::{BLUE, BOLD, DIM, GREEN, RED, YELLOW, diff_line, level, paint, plain};

/// Maximum characters of a call's arguments on its line.
const BRIEF: usize = 90;
/// Maximum lines shown of a call's result.
const GLIMPSE: usize = 4;

/// Turns events into lines. It remembers what later events refer to.
#[derive(Default)]
pub(crate) struct Transcript {
    /// Nesting depth of each agent, by its trace.
    depths: HashMap<String, usize>,
    /// Nesting depth of the agent that made a call.
    callers: HashMap<String, usize>,
    /// Running calls, each by its tool and its main argument.
    calls: RunningCalls,
}

impl Transcript {
    /// The lines for an event. Text of the first agent is left out if it was already shown as it arrived. Lines about calls
    /// are at most this wide.
    pub(crate) fn lines(&mut self, event: &Event, text_was_shown: bool, width: usize) -> Vec<String> {
        let depth = event.trace_id.as_ref().and_then(|trace| self.depths.get(trace)).copied().unwrap_or_default();
        let indent = "  ".repeat(depth);
        let lines = match &event.payload {
            EventPayload::AgentStarted { agent, objective, parent, .. } => {
                let above = parent.as_ref().and_then(|call| self.callers.get(call)).copied().unwrap_or_default();
                let depth = if parent.is_some() { above + 1 } else { 0 };
                self.depths.extend(event.trace_id.iter().map(|trace| (trace.clone(), depth)));
                let started = format!("{} {}", paint(BLUE, format!("▸ {agent}")), short(objective));
                if parent.is_some() { vec![started] } else { Vec::new() }
            }
            EventPayload::AgentEnded { finish, summary, .. } if depth > 0 => vec![ending(*finish, summary)],
            EventPayload::TurnStarted => {
                vec![paint(DIM, format!("── turn {} ──", event.turn.unwrap_or_default()))]
            }
            EventPayload::ModelSaid { text, .. } if depth > 0 || !text_was_shown => {
                plain(text.trim()).lines().map(str::to_owned).collect()
            }
            EventPayload::ModelTold { text, by: MessageOrigin::Person } => vec![message(text)],
            EventPayload::ModelFailed { reason, retry_in_ms, .. } => vec![failure(reason, *retry_in_ms)],
            EventPayload::ModelMisunderstood { reason } => vec![paint(YELLOW, format!("! {}", plain(reason)))],
            EventPayload::ContextMasked { results, bytes, .. } => {
                vec![paint(
                    DIM,
                    format!(
                        "dropped to make room: {} ({}), stored as artifacts",
                        counted(*results, "old result"),
                        counted(*bytes, "byte")
                    ),
                )]
            }
            EventPayload::ContextSummarized { .. } => {
                vec![paint(
                    DIM,
                    "the model summarized the older turns to make room; their results are stored as artifacts",
                )]
            }
            EventPayload::Display(message) => {
                let (mark, style) = level(message.level);
                let title = message.title.as_ref().map(|title| format!("{}  ", paint(BOLD, plain(title))));
                vec![format!("{} {}{}", paint(style, mark), title.unwrap_or_default(), plain(&message.content))]
            }
            _ => self.of_call(event, depth, width.saturating_sub(indent.len())),
        };
        lines.into_iter().map(|line| format!("{indent}{line}")).collect()
    }

    /// The calls that run.
    pub(crate) fn running(&self) -> &RunningCalls {
        &self.calls
    }

    /// Takes note of a running command's output.
    pub(crate) fn live(&mut self, event: &Event) {
        if let (EventPayload::ProcessOutput(output), Some(call)) = (&event.payload, &event.tool_call_id) {
            self.calls.output(call, &output.text);
        }
    }

    fn of_call(&mut self, event: &Event, depth: usize, width: usize) -> Vec<String> {
        let Some(id) = &event.tool_call_id else { return Vec::new() };
        match &event.payload {
            EventPayload::CallStarted { tool, args, .. } => {
                self.callers.insert(id.clone(), depth);
                self.calls.begin(id, format!("{} {}", paint(BOLD, plain(tool)), brief(args)));
                Vec::new()
            }
            EventPayload::CallCompleted(ending) => {
                let call = self.calls.end(id).unwrap_or_default();
                let code = ending.exit_code.filter(|code| *code != 0).map(|code| format!(" exit code {code}"));
                let mark = if code.is_some() { paint(YELLOW, "✓") } else { paint(GREEN, "✓") };
                let time = paint(DIM, format!("{}{}", duration(ending.duration_ms), code.unwrap_or_default()));
                let head = headed(&mark, &call, &time, width);
                let glimpses = ending.payload.iter().flat_map(glimpse).map(|line| shortened(&line, width));
                [head].into_iter().chain(glimpses).collect()
            }
            EventPayload::CallFailed { error, .. } => {
                let call = self.calls.end(id).unwrap_or_default();
                vec![format!("{} {call}  {}", paint(RED, "✗"), refusal(error))]
            }
            EventPayload::ApprovalGranted { by, .. } => vec![format!("{} {}", paint(GREEN, "approved by"), plain(by))],
            EventPayload::ApprovalDenied { by, .. } => vec![format!("{} {}", paint(RED, "refused by"), plain(by))],
            _ => Vec::new(),
        }
    }
}

/// What the person said to the model.
pub(crate) fn message(text: &str) -> String {
    format!("{} {}", paint(BLUE.bold(), "›"), paint(BOLD, plain(text).replace('\n', "\n  ")))
}

/// A few lines of a call's result: the end of a command's output, or the changed lines.
fn glimpse(payload: &Value) -> Vec<String> {
    let text = |field: &str| payload.get(field).and_then(Value::as_str).unwrap_or_default();
    let changed = text("diff").lines().filter(|line| line.starts_with(['+', '-']) && !is_heading(line));
    let changed = changed.take(GLIMPSE).map(diff_line);
    let output: Vec<&str> = text("stdout").lines().chain(text("stderr").lines()).collect();
    let output = output[output.len().saturating_sub(GLIMPSE)..].iter().map(|line| paint(DIM, short(line)));
    changed.chain(output).chain(checklist(payload)).map(|line| format!("  {line}")).collect()
}

fn is_heading(line: &str) -> bool {
    line.starts_with("+++ ") || line.starts_with("--- ")
}

fn refusal(error: &ToolError) -> String {
    format!("{} {}", paint(RED, error.code), paint(DIM, short(&error.message)))
}

fn failure(reason: &str, retry_in_ms: Option<u64>) -> String {
    let next = match retry_in_ms {
        Some(wait) => format!("; again in {wait} ms"),
        None => String::new(),
    };
    format!("{} {}{}", paint(YELLOW, "model:"), short(reason), paint(DIM, next))
}

/// A duration, in seconds where milliseconds are too fine.
fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", milliseconds as f64 / 1_000.0),
    }
}

/// How an agent ended, in one line. Its answer was its last message.
fn ending(finish: FinishReason, summary: &str) -> String {
    match finish {
        FinishReason::Answered => paint(GREEN, "◂ answered"),
        other => format!("{} {}", paint(RED, format!("◂ {other}:")), short(summary)),
    }
}

/// A call's main argument, shortened.
pub(super) fn brief(args: &Value) -> String {
    let telling = [
        "command",
        "path",
        "pattern",
        "query",
        "from",
        "objective",
        "action",
        "url",
        "title",
        "content",
        "id",
        "question",
    ];
    let said = telling.iter().find_map(|name| args.get(*name)?.as_str()).map(str::to_owned);
    // A plan is drawn below its line.
    let count = |name: &str| args.get(name)?.as_array().map(|items| format!("{} {name}", items.len()));
    let said = said.or_else(|| count("steps")).or_else(|| count("todos"));
    let fields = || args.as_object().into_iter().flatten().map(|(name, value)| format!("{name}={value}"));
    short(&said.unwrap_or_else(|| fields().collect::<Vec<_>>().join(" ")))
}

fn short(text: &str) -> String {
    let line = plain(text).replace('\n', " ");
    match line.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
