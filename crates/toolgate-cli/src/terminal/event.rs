//! Formats one event as one line, for following a run.

use jiff::Timestamp;
use toolgate_contract::{Effect, Event, EventPayload};

use super::{BLUE, BOLD, DIM, GREEN, RED, YELLOW, decision, level, paint, plain};

/// An event on one line: when, in which turn, what.
pub(crate) fn event_line(event: &Event) -> String {
    event_line_of(event, event.tool_call_id.as_deref().unwrap_or_default())
}

/// An event on one line, in which the call that ends has a name that says more than its id.
pub(crate) fn event_line_of(event: &Event, call: &str) -> String {
    let turn = event.turn.map(|turn| paint(DIM, format!("turn {turn} "))).unwrap_or_default();
    format!("{} {turn}{}", paint(DIM, time(event.time)), first_line(&what(event, call)))
}

fn time(time: Timestamp) -> String {
    time.strftime("%H:%M:%S%.3f").to_string()
}

fn what(event: &Event, call: &str) -> String {
    match &event.payload {
        EventPayload::RunStarted(facts) => {
            format!(
                "{} {}",
                paint(BOLD, "run began"),
                paint(DIM, format!("({}, preset {})", facts.front_end, facts.preset))
            )
        }
        EventPayload::RunEnded => paint(BOLD, "run ended"),
        EventPayload::CallStarted { tool, effects, verdict, .. } => {
            let decided =
                verdict.as_ref().map(|verdict| format!("{} ", decision(verdict.decision))).unwrap_or_default();
            let effects: Vec<String> = effects.iter().map(ToString::to_string).collect();
            format!("{} {decided}{}", paint(BOLD, plain(tool)), paint(DIM, plain(&effects.join(", "))))
        }
        EventPayload::CallWidened { effects, .. } => {
            let with: Vec<String> = effects.iter().map(|effect| plain(&what_is_new(effect))).collect();
            format!("{} {}", paint(YELLOW, "run once more with"), with.join(", "))
        }
        EventPayload::CallCompleted(ending) => format!("{} {}", paint(GREEN, "✓"), ended(call, ending.duration_ms)),
        EventPayload::CallFailed { error, ending, .. } => {
            let failure = paint(RED, format!("✗ {}", error.code));
            format!("{failure} {} {}", ended(call, ending.duration_ms), plain(&error.message))
        }
        EventPayload::FilesChanging { changes, .. } => {
            let paths: Vec<String> = changes.iter().map(|change| plain(&change.path)).collect();
            format!("{} {}", paint(BLUE, "changes"), paths.join(", "))
        }
        EventPayload::ApprovalRequired { tool, reason, .. } => {
            format!("{} {} {}", paint(YELLOW, "asks"), paint(BOLD, plain(tool)), plain(reason))
        }
        EventPayload::ApprovalGranted { by, .. } => format!("{} by {}", paint(GREEN, "approved"), plain(by)),
        EventPayload::ApprovalDenied { by, .. } => format!("{} by {}", paint(RED, "refused"), plain(by)),
        EventPayload::RunAborted { by, .. } => format!("{} by {}", paint(RED, "run aborted"), plain(by)),
        EventPayload::Display(message) => {
            let (mark, style) = level(message.level);
            format!("{} {}", paint(style, mark), plain(&message.content))
        }
        EventPayload::QuestionAsked(question) => format!("{} {}", paint(BLUE, "?"), plain(&question.question)),
        EventPayload::QuestionAnswered { by } => format!("{} by {}", paint(GREEN, "answered"), plain(by)),
        other => kind(other),
    }
}

/// What a call was given in addition.
fn what_is_new(effect: &Effect) -> String {
    match effect {
        Effect::Connect { host, port } => format!("{host}:{port}"),
        Effect::Unsandboxed { .. } => "no sandbox".into(),
        other => other.path().map_or_else(|| other.to_string(), |(_, path)| path.to_owned()),
    }
}

fn ended(call: &str, duration_ms: u64) -> String {
    paint(DIM, format!("{} {duration_ms} ms", plain(call)))
}

/// The event's kind, by its name in the journal.
fn kind(payload: &EventPayload) -> String {
    let json = serde_json::to_value(payload).unwrap_or_default();
    json.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

fn first_line(text: &str) -> String {
    text.replace('\n', " ")
}
