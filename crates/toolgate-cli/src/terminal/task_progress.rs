//! How far a task is, in one line: turns, tokens, time and agents.

use std::time::{Duration, Instant};

use toolgate_agent::AgentLimits;
use toolgate_contract::{Event, EventPayload, TokenUsage, counted, noun};

use super::grouped;

/// How far a task is.
pub(crate) struct TaskProgress {
    turns: u64,
    tokens: u64,
    time: Duration,
    began: Instant,
    turn: u64,
    used: TokenUsage,
    agents: u64,
}

impl TaskProgress {
    /// A task with these limits, which begins now.
    pub(crate) fn new(limits: &AgentLimits) -> Self {
        let (turns, tokens, time) = (limits.turns, limits.tokens, limits.time);
        Self { turns, tokens, time, began: Instant::now(), turn: 0, used: TokenUsage::default(), agents: 0 }
    }

    /// Takes in what happened.
    pub(super) fn take(&mut self, event: &Event) {
        match &event.payload {
            EventPayload::TurnStarted if self.agents <= 1 => self.turn = event.turn.unwrap_or_default(),
            EventPayload::TurnEnded { tokens, .. } => self.used += *tokens,
            EventPayload::AgentStarted { .. } => self.agents += 1,
            EventPayload::AgentEnded { .. } => self.agents = self.agents.saturating_sub(1),
            _ => {}
        }
    }

    /// The line.
    pub(super) fn line(&self) -> String {
        format!(
            "turn {}/{} · {}/{} {} · {}/{} · {}",
            self.turn,
            self.turns,
            grouped(self.used.total()),
            grouped(self.tokens),
            noun(self.tokens, "token"),
            clock(self.began.elapsed()),
            clock(self.time),
            counted(self.agents, "agent"),
        )
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
    fn the_line_fits_a_terminal_of_80_columns() {
        let used = TokenUsage { input: 4_123_456, ..TokenUsage::default() };
        let limits =
            AgentLimits { turns: 100, tokens: 5_000_000, time: Duration::from_secs(3600), ..AgentLimits::default() };
        let progress = TaskProgress { turn: 99, used, agents: 12, ..TaskProgress::new(&limits) };
        let line = progress.line();
        assert_eq!(line, "turn 99/100 · 4,123,456/5,000,000 tokens · 0:00/60:00 · 12 agents");
        assert!("Toolgate  ".len() + line.chars().count() <= 80, "{line}");
    }

    #[test]
    fn time_reads_as_a_clock() {
        assert_eq!(clock(Duration::from_secs(3_725)), "62:05");
    }
}
