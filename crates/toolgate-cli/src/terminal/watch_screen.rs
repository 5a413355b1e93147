//! What `toolgate watch` and `run --live` show: calls at work, what waits for an answer, to-do lists, what the model says,
//! messages, processes, output and what happened last, as lines that fit the terminal.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use jiff::Timestamp;
use serde_json::Value;
use toolgate_contract::{Event, EventPayload, Message, counted};

use super::screen::{cut, rows, shortened, visible_width};
use super::transcript::brief;
use super::{BOLD, DIM, GREEN, RED, TaskProgress, YELLOW, checklist, elapsed, event_line_of, level, paint, plain};

/// How many events are remembered.
const EVENTS: usize = 200;

/// How many lines of output are remembered.
const OUTPUT: usize = 200;

/// How many messages are remembered.
const MESSAGES: usize = 5;

/// How much of a line of output without an end is remembered, in bytes.
const UNFINISHED: usize = 2_000;

/// A call that hasn't ended.
struct WatchedCall {
    run: String,
    tool: String,
    title: String,
    since: Timestamp,
    is_waiting: bool,
    /// Its output so far has been shown as it came.
    was_heard: bool,
    /// The end of its output, without a line's end.
    unfinished: String,
    /// Its command, if it runs one.
    command: Option<String>,
}

/// What is known of the workspace, or of one task in it.
#[derive(Default)]
pub(crate) struct WatchScreen {
    /// The workspace, where more than one task is followed.
    workspace: String,
    progress: Option<TaskProgress>,
    calls: BTreeMap<String, WatchedCall>,
    todos: Vec<String>,
    /// The run whose to-do list is shown.
    todos_of: String,
    /// The last words of the model.
    said: String,
    /// What the model is saying.
    saying: String,
    messages: VecDeque<String>,
    /// Commands that go on after their calls, by their handles.
    processes: HashMap<String, String>,
    output: VecDeque<String>,
    events: VecDeque<String>,
}

impl WatchScreen {
    /// The screen of everything in a workspace.
    pub(crate) fn of_workspace(workspace: String) -> Self {
        Self { workspace, ..Self::default() }
    }

    /// The screen of one task.
    pub(crate) fn of_task(progress: TaskProgress) -> Self {
        Self { progress: Some(progress), ..Self::default() }
    }

    /// What the model is saying, before it is on record.
    pub(crate) fn set_saying(&mut self, text: &str) {
        text.clone_into(&mut self.saying);
    }

    /// Takes in what happens.
    pub(crate) fn take(&mut self, event: &Event) {
        self.note(event);
        self.take_earlier(event);
    }

    /// Takes in what happened before anybody looked: what it led to is shown, not that it happened.
    pub(crate) fn take_earlier(&mut self, event: &Event) {
        self.progress.iter_mut().for_each(|progress| progress.take(event));
        match &event.payload {
            EventPayload::RunEnded => self.forget_run(&event.run),
            EventPayload::ModelSaid { text, .. } if !text.trim().is_empty() => text.trim().clone_into(&mut self.said),
            EventPayload::Display(message) => remember(&mut self.messages, message_line(message), MESSAGES),
            EventPayload::ProcessEnded { process, .. } => drop(self.processes.remove(process)),
            _ => {}
        }
        if let Some(call) = &event.tool_call_id {
            self.take_call(call, event);
        }
    }

    /// From now on output is what comes.
    pub(crate) fn clear_output(&mut self) {
        self.output.clear();
    }

    /// A run has ended, or its program has died: none of its calls is at work, and nobody works on its to-do list.
    pub(crate) fn forget_run(&mut self, run: &str) {
        self.calls.retain(|_, call| call.run != run);
        if self.todos_of == run {
            self.todos.clear();
        }
    }

    /// The runs of which calls are at work.
    pub(crate) fn runs_at_work(&self) -> BTreeSet<String> {
        self.calls.values().map(|call| call.run.clone()).collect()
    }

    fn take_call(&mut self, id: &str, event: &Event) {
        match &event.payload {
            EventPayload::CallStarted { tool, args, .. } => {
                let command = args.get("command").and_then(Value::as_str).map(|line| plain(line).replace('\n', " "));
                let title = format!("{} {}", paint(BOLD, plain(tool)), brief(args));
                self.calls.insert(id.to_owned(), WatchedCall { command, ..WatchedCall::new(event, tool, title) });
            }
            EventPayload::ApprovalRequired { tool, .. } => {
                let call = WatchedCall { is_waiting: true, ..WatchedCall::new(event, tool, paint(BOLD, plain(tool))) };
                self.calls.insert(id.to_owned(), call);
            }
            EventPayload::QuestionAsked(_) => self.set_waiting(id, true),
            EventPayload::ApprovalGranted { .. } | EventPayload::QuestionAnswered { .. } => self.set_waiting(id, false),
            EventPayload::CallCompleted(ending) | EventPayload::CallFailed { ending, .. } => {
                let call = self.calls.remove(id);
                let payload = ending.payload.as_ref();
                let process = payload.and_then(|payload| payload.get("process")?.as_str());
                let command = call.as_ref().and_then(|call| call.command.clone());
                let is_running = payload.is_some_and(|payload| payload.get("running") == Some(&Value::Bool(true)));
                if let (Some(process), Some(command), true) = (process, command, is_running) {
                    self.processes.insert(process.to_owned(), command);
                }
                self.read(&event.run, payload, call.is_some_and(|call| call.was_heard));
            }
            _ => {}
        }
    }

    fn set_waiting(&mut self, id: &str, is_waiting: bool) {
        if let Some(call) = self.calls.get_mut(id) {
            call.is_waiting = is_waiting;
        }
    }

    /// Takes in what a command has written.
    pub(crate) fn take_live(&mut self, event: &Event) {
        let EventPayload::ProcessOutput(output) = &event.payload else { return };
        let call = event.tool_call_id.as_ref().and_then(|call| self.calls.get_mut(call));
        let text = match call {
            Some(call) => call.finished_lines(&output.text),
            // A command that goes on after its call.
            None => output.text.clone(),
        };
        text.lines().for_each(|line| remember(&mut self.output, plain(line), OUTPUT));
    }

    /// Remembers an event as a line, apart from those that say nothing to a person or have a place of their own.
    fn note(&mut self, event: &Event) {
        use EventPayload::{ModelSaid, TurnEnded, TurnStarted};
        if matches!(event.payload, TurnStarted | TurnEnded { .. } | ModelSaid { .. }) {
            return;
        }
        let id = event.tool_call_id.as_deref().unwrap_or_default();
        let name = self.calls.get(id).map_or(id, |call| call.tool.as_str());
        let line = event_line_of(event, name).replace('\n', " ");
        remember(&mut self.events, line, EVENTS);
    }

    /// Takes to-do lists from what a call gave back, and output that wasn't shown as it came.
    fn read(&mut self, run: &str, payload: Option<&Value>, was_heard: bool) {
        let Some(payload) = payload else { return };
        let todos = checklist(payload);
        if !todos.is_empty() {
            self.todos = todos;
            run.clone_into(&mut self.todos_of);
        }
        if !was_heard {
            let texts = ["stdout", "stderr", "output"].iter().filter_map(|field| payload.get(*field)?.as_str());
            texts.flat_map(str::lines).for_each(|line| remember(&mut self.output, plain(line), OUTPUT));
        }
    }

    /// The lines of the screen: exactly as many as it is high.
    pub(crate) fn lines(
        &self,
        waiting: &[String],
        footer: &str,
        (width, height): (usize, usize),
        now: Timestamp,
    ) -> Vec<String> {
        let (room, inside) = (height.saturating_sub(2), width.saturating_sub(2));
        let mut lines = vec![self.head()];
        let waiting = request_rows(waiting, width, room.saturating_sub(1));
        if !waiting.is_empty() {
            lines.push(paint(YELLOW, "Waits for you"));
            lines.extend(waiting);
        }
        let calls = self.calls.values().filter(|call| !call.is_waiting).map(|call| call.line(inside, now)).collect();
        lines.extend(section("At work", GREEN, calls, room / 4));
        lines.extend(section("To do", BOLD, self.todos.clone(), room / 4));
        lines.extend(section("Messages", BOLD, last(&self.messages, room / 5), room / 5));
        lines.extend(section("Processes", GREEN, self.process_lines(), room / 5));
        let words = if self.saying.trim().is_empty() { &self.said } else { &self.saying };
        let words: VecDeque<String> = plain(words.trim()).lines().flat_map(|line| rows(line, inside)).collect();
        lines.extend(section("The model says", BOLD, last(&words, room / 4), room / 4));
        let left = room.saturating_sub(lines.len());
        lines.extend(section("Output", DIM, last(&self.output_lines(), left / 2), left / 2));
        let left = room.saturating_sub(lines.len() + 1);
        lines.extend(section("Happened", DIM, last(&self.events, left + 1), left + 1));
        lines.truncate(room + 1);
        lines.resize(room + 1, String::new());
        lines.push(footer.to_owned());
        lines.iter().map(|line| cut(line, width)).collect()
    }

    fn head(&self) -> String {
        let facts = self.progress.as_ref().map_or_else(|| self.counts(), TaskProgress::line);
        format!("{}  {}  {}", paint(BOLD, "Toolgate"), paint(DIM, facts), paint(DIM, plain(&self.workspace)))
    }

    fn counts(&self) -> String {
        let waiting = self.calls.values().filter(|call| call.is_waiting).count();
        let at_work = format!("{} at work", self.calls.len() - waiting);
        if waiting > 0 { format!("{at_work} · {waiting} waiting for you") } else { at_work }
    }

    fn process_lines(&self) -> Vec<String> {
        let mut processes: Vec<_> = self.processes.iter().collect();
        processes.sort();
        processes.iter().map(|(handle, command)| format!("{command}  {}", paint(DIM, handle))).collect()
    }

    /// The output so far, with the lines that have no end yet.
    fn output_lines(&self) -> VecDeque<String> {
        let unfinished = self.calls.values().map(|call| plain(&call.unfinished)).filter(|line| !line.trim().is_empty());
        self.output.iter().cloned().chain(unfinished).collect()
    }
}

impl WatchedCall {
    fn new(event: &Event, tool: &str, title: String) -> Self {
        Self {
            run: event.run.clone(),
            tool: tool.to_owned(),
            title,
            since: event.time,
            is_waiting: false,
            was_heard: false,
            unfinished: String::new(),
            command: None,
        }
    }

    /// The call in so many columns: a long title is cut, the time is always shown.
    fn line(&self, width: usize, now: Timestamp) -> String {
        let gone = elapsed(now.duration_since(self.since).unsigned_abs());
        let title = shortened(&self.title, width.saturating_sub(visible_width(&gone) + "● ".chars().count() + 2));
        format!("{} {title}  {}", paint(GREEN, "●"), paint(DIM, gone))
    }

    /// Takes in more output, and gives the lines that have their end now.
    fn finished_lines(&mut self, text: &str) -> String {
        self.was_heard = true;
        self.unfinished.push_str(text);
        let end = self.unfinished.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let finished = self.unfinished.drain(..end).collect::<String>().replace('\r', "\n");
        if self.unfinished.len() > UNFINISHED {
            let start = self.unfinished.ceil_char_boundary(self.unfinished.len() - UNFINISHED);
            self.unfinished.drain(..start);
        }
        finished.lines().filter(|line| !line.is_empty()).fold(String::new(), |all, line| all + line + "\n")
    }
}

fn message_line(message: &Message) -> String {
    let (mark, style) = level(message.level);
    let title = message.title.as_ref().map(|title| format!("{}: ", plain(title))).unwrap_or_default();
    format!("{} {title}{}", paint(style, mark), plain(&message.content).replace('\n', " "))
}

fn remember(lines: &mut VecDeque<String>, line: String, most: usize) {
    lines.push_back(line);
    if lines.len() > most {
        lines.pop_front();
    }
}

/// The lines of a request, of which the middle is left out if there are too many: the answers that it offers are always
/// shown. They are below its last empty line.
fn request_rows(request: &[String], width: usize, most: usize) -> Vec<String> {
    let answers = request.iter().rposition(String::is_empty).map_or(request.len(), |at| at + 1);
    let rows_of = |lines: &[String]| -> Vec<String> {
        let lines = lines.iter().flat_map(|line| line.split('\n')).filter(|line| !line.is_empty());
        lines.flat_map(|line| rows(line, width)).collect()
    };
    let (mut facts, answers) = (rows_of(&request[..answers]), rows_of(&request[answers..]));
    let room = most.saturating_sub(answers.len()).max(2);
    if facts.len() > room {
        let more = facts.split_off(room - 1).len();
        facts.push(paint(YELLOW, format!("  … {} more: toolgate approvals show", counted(more, "line"))));
    }
    [facts, answers].concat()
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
        let lines = screen.lines(waiting, "q quits", (width, height), "2026-01-01T00:00:05Z".parse().unwrap());
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
        assert!(lines.iter().any(|line| line.ends_with("✓ shell 1 ms")), "{lines:?}");
        assert!(lines.contains(&"  ☐ test".to_owned()), "{lines:?}");
        screen.take(&event("run.ended", "a", json!({})));
        assert!(!shown(&screen, &[], 80, 24).iter().any(|line| line == "To do"), "the list of a run that is over");
    }

    #[test]
    fn the_head_tells_what_waits_and_where_and_a_long_call_shows_its_time() {
        let mut screen = WatchScreen::of_workspace("/home/ada/greeting".to_owned());
        let started = json!({ "tool": "shell", "effects": [], "args": { "command": "make ".repeat(40) } });
        screen.take(&event("tool_call.started", "a", started));
        let asked = json!({ "tool": "edit", "effects": [], "scopes": [], "reason": "", "risk": "high" });
        screen.take(&event("approval_required", "b", asked));
        let lines = shown(&screen, &[], 60, 24);
        assert_eq!(lines[0], "Toolgate  1 at work · 1 waiting for you  /home/ada/greeting");
        assert!(lines[2].ends_with("…  5 s") && lines[2].chars().count() == 60, "{:?}", lines[2]);
    }

    #[test]
    fn what_was_at_work_before_is_shown_until_it_ends_or_its_program_dies() {
        let mut screen = WatchScreen::default();
        let started = json!({ "tool": "shell", "effects": [], "args": { "command": "make" } });
        screen.take_earlier(&event("tool_call.started", "a", started));
        assert_eq!(shown(&screen, &[], 80, 24)[1..4], ["At work", "  ● shell make  5 s", ""]);
        assert!(screen.runs_at_work().contains("run_1"));
        screen.forget_run("run_1");
        assert!(screen.runs_at_work().is_empty() && shown(&screen, &[], 80, 24)[0].contains("0 at work"));
    }

    #[test]
    fn output_is_shown_as_it_comes_and_not_again_at_the_end() {
        let mut screen = WatchScreen::default();
        screen.take(&event(
            "tool_call.started",
            "a",
            json!({ "tool": "shell", "effects": [], "args": { "command": "x" } }),
        ));
        for text in ["one\ntw", "o\n50 %\r", "75 %"] {
            let output = json!({ "process": "p", "stream": "stdout", "text": text });
            screen.take_live(&event("process.output", "a", output));
        }
        let lines = shown(&screen, &[], 80, 24);
        let output = |lines: &[String]| -> Vec<String> {
            let after = lines.iter().skip_while(|line| *line != "Output").skip(1);
            after.take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
        };
        assert_eq!(output(&lines), ["one", "two", "50 %", "75 %"]);
        let ended = json!({ "duration_ms": 1, "redacted": false, "payload": { "stdout": "one\ntwo\n50 %\r75 %" } });
        screen.take(&event("tool_call.completed", "a", ended));
        assert_eq!(output(&shown(&screen, &[], 80, 24)), ["one", "two", "50 %"]);
    }

    #[test]
    fn a_command_that_goes_on_is_shown_until_it_ends() {
        let mut screen = WatchScreen::default();
        let args = json!({ "command": "npm run dev", "background": true });
        screen.take(&event("tool_call.started", "c", json!({ "tool": "shell", "effects": [], "args": args })));
        let running = json!({ "running": true, "process": "proc_1" });
        let completed = json!({ "duration_ms": 1, "redacted": false, "payload": running });
        screen.take(&event("tool_call.completed", "c", completed));
        assert!(shown(&screen, &[], 80, 24).contains(&"  npm run dev  proc_1".to_owned()));
        let ended = json!({ "process": "proc_1", "exit_code": 0, "duration_ms": 5 });
        screen.take(&event("process.ended", "c", ended));
        assert!(!shown(&screen, &[], 80, 24).iter().any(|line| line.ends_with("proc_1")));
    }

    #[test]
    fn the_answers_of_a_long_request_are_always_shown() {
        let facts = (0..90).map(|number| format!("fact {number}"));
        let answers = ["", "[y] yes", "[n] no"].map(str::to_owned);
        let request: Vec<String> = facts.chain(answers).collect();
        for height in [8, 24] {
            let lines = shown(&WatchScreen::default(), &request, 80, height);
            assert!(["[y] yes", "[n] no"].iter().all(|answer| lines.contains(&(*answer).to_owned())), "{lines:?}");
            assert!(lines.iter().any(|line| line.contains("more: toolgate")), "{lines:?}");
        }
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
