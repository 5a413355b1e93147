//! The live view: a few status lines at the bottom of the terminal, redrawn as they change.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use toolgate_agent::AgentLimits;
use toolgate_contract::{Event, EventPayload, TokenUsage, counted, noun};

use super::{BOLD, DIM, grouped, level, paint, plain};

/// How many messages are shown.
const MESSAGES: usize = 5;
/// How many processes are shown.
const RUNNING: usize = 6;

/// The state of the live view.
pub(crate) struct LiveView {
    turns: u64,
    tokens: u64,
    time: Duration,
    began: Instant,
    turn: u64,
    used: TokenUsage,
    agents: u64,
    messages: VecDeque<String>,
    /// Commands of running calls, by call id.
    commands: HashMap<String, String>,
    /// Processes that outlive their calls, by handle.
    processes: BTreeMap<String, String>,
}

impl LiveView {
    /// A live view for a task with these limits.
    pub(crate) fn new(controls: &AgentLimits) -> Self {
        Self {
            turns: controls.turns,
            tokens: controls.tokens,
            time: controls.time,
            began: Instant::now(),
            turn: 0,
            used: TokenUsage::default(),
            agents: 0,
            messages: VecDeque::new(),
            commands: HashMap::new(),
            processes: BTreeMap::new(),
        }
    }

    /// Updates the view with an event; returns whether the event is shown only here.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        match &event.payload {
            EventPayload::TurnStarted if self.agents <= 1 => self.turn = event.turn.unwrap_or_default(),
            EventPayload::TurnEnded { tokens, .. } => self.used += *tokens,
            EventPayload::AgentStarted { .. } => self.agents += 1,
            EventPayload::AgentEnded { .. } => self.agents = self.agents.saturating_sub(1),
            EventPayload::Display(message) => {
                let (mark, style) = level(message.level);
                let title = message.title.as_ref().map(|title| format!("{}: ", plain(title))).unwrap_or_default();
                let content = plain(&message.content).replace('\n', " ");
                self.messages.push_back(format!("{} {title}{content}", paint(style, mark)));
                if self.messages.len() > MESSAGES {
                    self.messages.pop_front();
                }
                return true;
            }
            EventPayload::ProcessEnded { process, .. } => drop(self.processes.remove(process)),
            _ => self.follow_processes(event),
        }
        false
    }

    /// A command that keeps running when its call has ended is shown as a process from then on.
    fn follow_processes(&mut self, event: &Event) {
        let Some(call) = &event.tool_call_id else { return };
        match &event.payload {
            EventPayload::CallStarted { args, .. } => {
                let command = args.get("command").and_then(|command| command.as_str());
                self.commands.extend(command.map(|command| (call.clone(), plain(command).replace('\n', " "))));
            }
            EventPayload::CallCompleted(ending) => {
                let command = self.commands.remove(call);
                let process = ending.payload.as_ref().and_then(|payload| payload.get("process")?.as_str());
                let (Some(command), Some(process)) = (command, process) else { return };
                self.processes.insert(process.to_owned(), command);
            }
            EventPayload::CallFailed { .. } => drop(self.commands.remove(call)),
            _ => {}
        }
    }

    /// The lines of the view.
    pub(super) fn lines(&self) -> Vec<String> {
        let gone = self.began.elapsed();
        let left = self.time.saturating_sub(gone);
        let head = format!(
            "turn {}/{} · {} of {} {} · {}, {} left · {} at work",
            self.turn,
            self.turns,
            grouped(self.used.total()),
            grouped(self.tokens),
            noun(self.tokens, "token"),
            clock(gone),
            clock(left),
            counted(self.agents, "agent"),
        );
        let mut lines = vec![paint(DIM, "─".repeat(60)), paint(BOLD, head)];
        let processes = self.processes.iter().take(RUNNING);
        lines.extend(processes.map(|(handle, command)| {
            let (word, handle) = (paint(DIM, "process"), paint(DIM, handle));
            format!("{word} {command}  {handle}")
        }));
        lines.extend(self.messages.iter().cloned());
        lines
    }
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_goes_on_is_shown_until_it_ends() {
        let event = |kind: &str, more: serde_json::Value| -> Event {
            let mut event = serde_json::json!({ "time": "2026-01-01T00:00:00Z", "run": "run_1", "tool_call_id": "c",
                "kind": kind });
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(event).unwrap()
        };
        let started = event(
            "tool_call.started",
            serde_json::json!({ "tool": "shell", "effects": [],
            "args": { "command": "npm run dev", "background": true } }),
        );
        let completed = event(
            "tool_call.completed",
            serde_json::json!({ "duration_ms": 1, "redacted": false,
            "payload": { "running": true, "process": "proc_1" } }),
        );
        let ended =
            event("process.ended", serde_json::json!({ "process": "proc_1", "exit_code": 0, "duration_ms": 5 }));
        let mut view = LiveView::new(&AgentLimits::default());
        let shown = |view: &LiveView| anstream::adapter::strip_str(&view.lines().join("\n")).to_string();
        view.take(&started);
        assert!(!shown(&view).contains("npm"), "its call still runs, and is shown as that");
        view.take(&completed);
        assert!(shown(&view).contains("process npm run dev  proc_1"), "{}", shown(&view));
        view.take(&ended);
        assert!(!shown(&view).contains("npm"), "{}", shown(&view));
    }

    #[test]
    fn time_reads_as_a_clock() {
        assert_eq!(clock(Duration::from_secs(3_725)), "62:05");
    }
}
