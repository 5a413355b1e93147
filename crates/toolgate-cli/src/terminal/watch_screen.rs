//! What `toolgate watch` shows: calls at work, what waits for an answer, to-do lists, output and what happened last, as lines
//! that fit the terminal.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde_json::Value;
use toolgate_contract::{Event, EventPayload};

use super::screen::{cut, rows};
use super::{BOLD, DIM, GREEN, RED, YELLOW, checklist, elapsed, event_line, paint, plain};

/// How many events are remembered.
const EVENTS: usize = 200;

/// How many lines of output are remembered.
const OUTPUT: usize = 200;

/// A call that hasn't ended.
struct WatchedCall {
    run: String,
    title: String,
    since: Timestamp,
    is_waiting: bool,
}

/// What is known of the workspace.
#[derive(Default)]
pub(crate) struct WatchScreen {
    calls: BTreeMap<String, WatchedCall>,
    todos: Vec<String>,
    output: VecDeque<String>,
    events: VecDeque<String>,
}

impl WatchScreen {
    /// Takes in what happened.
    pub(crate) fn take(&mut self, event: &Event) {
        self.note(event);
        let Some(call) = event.tool_call_id.clone() else {
            if matches!(event.payload, EventPayload::RunEnded) {
                self.calls.retain(|_, call| call.run != event.run);
            }
            return;
        };
        match &event.payload {
            EventPayload::CallStarted { tool, args, .. } => {
                let title = format!("{} {}", paint(BOLD, plain(tool)), subject(args));
                let entry = WatchedCall { run: event.run.clone(), title, since: event.time, is_waiting: false };
                self.calls.insert(call, entry);
            }
            EventPayload::ApprovalRequired { tool, .. } => {
                let title = paint(BOLD, plain(tool));
                let entry = WatchedCall { run: event.run.clone(), title, since: event.time, is_waiting: true };
                self.calls.insert(call, entry);
            }
            EventPayload::ApprovalGranted { .. } | EventPayload::QuestionAnswered { .. } => {
                if let Some(call) = self.calls.get_mut(&call) {
                    call.is_waiting = false;
                }
            }
            EventPayload::CallCompleted(ending) => {
                self.calls.remove(&call);
                self.read(ending.payload.as_ref());
            }
            EventPayload::CallFailed { ending, .. } => {
                self.calls.remove(&call);
                self.read(ending.payload.as_ref());
            }
            _ => {}
        }
    }

    /// Remembers an event as a line, apart from those that say nothing to a person.
    fn note(&mut self, event: &Event) {
        if matches!(event.payload, EventPayload::TurnStarted | EventPayload::TurnEnded { .. }) {
            return;
        }
        self.events.push_back(event_line(event).replace('\n', " "));
        if self.events.len() > EVENTS {
            self.events.pop_front();
        }
    }

    /// Takes to-do lists and output from what a call gave back.
    fn read(&mut self, payload: Option<&Value>) {
        let Some(payload) = payload else { return };
        let todos = checklist(payload);
        if !todos.is_empty() {
            self.todos = todos;
        }
        let texts = ["stdout", "stderr", "output"].iter().filter_map(|field| payload.get(*field)?.as_str());
        for line in texts.flat_map(str::lines) {
            self.output.push_back(plain(line));
        }
        while self.output.len() > OUTPUT {
            self.output.pop_front();
        }
    }

    /// The lines of the screen: exactly as many as it is high.
    pub(crate) fn lines(
        &self,
        waiting: &[String],
        footer: &str,
        width: usize,
        height: usize,
        now: Timestamp,
    ) -> Vec<String> {
        let room = height.saturating_sub(2);
        let head = format!("{}  {}", paint(BOLD, "Toolgate"), paint(DIM, format!("{} at work", self.calls.len())));
        let mut lines = vec![head];
        lines.extend(section(
            "Waits for you",
            YELLOW,
            waiting.iter().flat_map(|line| rows(line, width)).collect(),
            room * 2 / 3,
        ));
        let calls = self.calls.values().filter(|call| !call.is_waiting).map(|call| call.line(now)).collect();
        lines.extend(section("At work", GREEN, calls, room / 4));
        lines.extend(section("To do", BOLD, self.todos.clone(), room / 4));
        let left = room.saturating_sub(lines.len());
        let output: Vec<String> = last(&self.output, left / 2);
        lines.extend(section("Output", DIM, output, left / 2));
        let left = room.saturating_sub(lines.len() + 1);
        lines.extend(section("Happened", DIM, last(&self.events, left), left + 1));
        lines.truncate(room + 1);
        lines.resize(room + 1, String::new());
        lines.push(footer.to_owned());
        lines.iter().map(|line| cut(line, width)).collect()
    }
}

impl WatchedCall {
    fn line(&self, now: Timestamp) -> String {
        let gone = now.duration_since(self.since).unsigned_abs();
        format!("{} {}  {}", paint(GREEN, "●"), self.title, paint(DIM, elapsed(gone)))
    }
}

/// A heading with at most so many lines; nothing where there are none.
fn section(title: &str, style: anstyle::Style, lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.is_empty() || most < 2 {
        return Vec::new();
    }
    let more = lines.len().saturating_sub(most - 1);
    let mut shown = vec![paint(style, title)];
    shown.extend(lines.into_iter().take(most - 1).map(|line| format!("  {line}")));
    if more > 0
        && let Some(last) = shown.last_mut()
    {
        *last = paint(DIM, format!("  and {} more", more + 1));
    }
    shown
}

fn last(lines: &VecDeque<String>, most: usize) -> Vec<String> {
    lines.iter().skip(lines.len().saturating_sub(most.saturating_sub(1))).cloned().collect()
}

/// What a call is about: its command, its path, or its arguments.
fn subject(args: &Value) -> String {
    let named = ["command", "path", "pattern", "url", "question"].iter().find_map(|name| args.get(*name)?.as_str());
    let text = named.map_or_else(|| args.to_string(), str::to_owned);
    plain(&text).replace('\n', " ")
}

/// How a denial is marked in the footer.
pub(crate) fn prompt_line(label: &str, typed: &str) -> String {
    format!("{} {}{}", paint(RED, label), plain(typed), paint(BOLD, "▏"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, call: &str, more: Value) -> Event {
        let mut event = json!({ "time": "2026-01-01T00:00:00Z", "run": "run_1", "tool_call_id": call, "kind": kind });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    fn shown(screen: &WatchScreen, waiting: &[String], width: usize, height: usize) -> Vec<String> {
        let lines = screen.lines(waiting, "q quits", width, height, "2026-01-01T00:00:05Z".parse().unwrap());
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_call_is_at_work_until_it_ends_and_its_output_and_todos_stay() {
        let mut screen = WatchScreen::default();
        let started = json!({ "tool": "shell", "effects": [], "args": { "command": "make\nall" } });
        screen.take(&event("tool_call.started", "a", started));
        assert!(shown(&screen, &[], 80, 24).contains(&"  ● shell make all  5 s".to_owned()));
        let ended = json!({ "duration_ms": 1, "redacted": false,
            "payload": { "stdout": "built\n", "todos": [{ "content": "test", "status": "pending" }] } });
        screen.take(&event("tool_call.completed", "a", ended));
        let lines = shown(&screen, &[], 80, 24);
        assert!(lines[0].contains("0 at work") && lines.contains(&"  built".to_owned()), "{lines:?}");
        assert!(lines.contains(&"  ☐ test".to_owned()), "{lines:?}");
    }

    #[test]
    fn it_fits_every_size_and_keeps_the_footer() {
        let mut screen = WatchScreen::default();
        for number in 0..60 {
            let started = json!({ "tool": "read", "effects": [], "args": { "path": "x".repeat(200) } });
            screen.take(&event("tool_call.started", &number.to_string(), started));
        }
        let waiting: Vec<String> = (0..50).map(|number| format!("line {number} {}", "word ".repeat(40))).collect();
        for (width, height) in [(20, 8), (80, 24), (200, 60)] {
            let lines = shown(&screen, &waiting, width, height);
            assert_eq!((lines.len(), lines.last().unwrap().as_str()), (height, "q quits"));
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:?}");
        }
    }
}
