//! The live view (C-65): a few lines at the bottom of the terminal that say how things stand, drawn anew as they change.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use toolgate_agent::Controls;
use toolgate_contract::{Event, Happening, Tokens};

use super::{BOLD, DIM, level, paint, plain};

/// How many messages stay in sight.
const MESSAGES: usize = 5;
/// How many running calls are shown.
const RUNNING: usize = 6;

/// How things stand.
pub(crate) struct Board {
    turns: u64,
    tokens: u64,
    time: Duration,
    began: Instant,
    turn: u64,
    used: Tokens,
    agents: u64,
    messages: VecDeque<String>,
}

impl Board {
    /// A board for a task within these limits.
    pub(crate) fn new(controls: &Controls) -> Self {
        Self {
            turns: controls.turns,
            tokens: controls.tokens,
            time: controls.time,
            began: Instant::now(),
            turn: 0,
            used: Tokens::default(),
            agents: 0,
            messages: VecDeque::new(),
        }
    }

    /// Takes note of an event; says whether it goes on the board alone.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        match &event.happening {
            Happening::TurnStarted if self.agents <= 1 => self.turn = event.turn.unwrap_or_default(),
            Happening::TurnEnded { tokens, .. } => self.used += *tokens,
            Happening::AgentStarted { .. } => self.agents += 1,
            Happening::AgentEnded { .. } => self.agents = self.agents.saturating_sub(1),
            Happening::Display(message) => {
                let (mark, style) = level(message.level);
                let title = message.title.as_ref().map(|title| format!("{}: ", plain(title))).unwrap_or_default();
                let content = plain(&message.content).replace('\n', " ");
                self.messages.push_back(format!("{} {title}{content}", paint(style, mark)));
                if self.messages.len() > MESSAGES {
                    self.messages.pop_front();
                }
                return true;
            }
            _ => {}
        }
        false
    }

    /// The lines of the view.
    pub(super) fn lines<'a>(&self, running: impl Iterator<Item = &'a String>) -> Vec<String> {
        let gone = self.began.elapsed();
        let left = self.time.saturating_sub(gone);
        let head = format!(
            "turn {}/{} · {} of {} tokens · {}, {} left · {} at work",
            self.turn,
            self.turns,
            self.used.total(),
            self.tokens,
            clock(gone),
            clock(left),
            if self.agents == 1 { "1 agent".to_owned() } else { format!("{} agents", self.agents) },
        );
        let mut lines = vec![paint(DIM, "─".repeat(60)), paint(BOLD, head)];
        let mut running: Vec<&String> = running.collect();
        running.sort();
        let more = running.len().saturating_sub(RUNNING);
        lines.extend(running.into_iter().take(RUNNING).map(|call| format!("{} {call}", paint(DIM, "running"))));
        if more > 0 {
            lines.push(paint(DIM, format!("and {more} more")));
        }
        lines.extend(self.messages.iter().cloned());
        lines
    }
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// A line cut to the width of the terminal; what gives colour takes no room.
pub(super) fn cut(line: &str, width: usize) -> String {
    let (mut shown, mut room, mut in_code) = (String::new(), width, false);
    for character in line.chars() {
        if character == '\u{1b}' || in_code {
            in_code = character != 'm';
            shown.push(character);
        } else if room > 0 {
            room -= 1;
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_what_is_seen_of_it() {
        assert_eq!(cut("hello", 3), "hel");
        assert_eq!(cut("\u{1b}[1mhello\u{1b}[0m", 3), "\u{1b}[1mhel\u{1b}[0m");
        assert_eq!(cut("mm", 5), "mm");
    }

    #[test]
    fn time_reads_as_a_clock() {
        assert_eq!(clock(Duration::from_secs(3_725)), "62:05");
    }
}
