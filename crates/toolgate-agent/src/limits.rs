//! The limits of an agent: turns, time, tokens, retries, context size and subagents. All agents of one task share its
//! time and its tokens.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_contract::{FinishReason, TokenUsage, counted};

/// The limits of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentLimits {
    /// Turns of each agent.
    pub turns: u64,
    /// How long the task may take.
    pub time: Duration,
    /// Tokens of the task, input and output, all agents together.
    pub tokens: u64,
    /// The size of the context window, in tokens. Old results are replaced when the conversation exceeds it.
    pub context: u64,
    /// Invalid answers in a row.
    pub invalid_answers: u32,
    /// How a failed request to the model is retried.
    pub retries: RetryPolicy,
    /// Failures of the model in a row until the circuit breaker opens.
    pub failures: u32,
    /// How long the circuit breaker stays open.
    pub rest: Duration,
    /// How often the same calls may return the same results.
    pub repetitions: u32,
    /// How deep agents may be nested; 0 for no subagents.
    pub depth: u32,
    /// How many agents one task may start.
    pub agents: u32,
    /// How many of them may run at a time.
    pub agents_at_once: u32,
}

/// How often, and after how long, a failed request is retried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Retries after the first attempt.
    pub most: u32,
    /// The wait before the first retry; it doubles from there.
    pub first: Duration,
    /// The longest wait that we choose. A provider may ask for more.
    pub longest: Duration,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            turns: 100,
            time: Duration::from_secs(60 * 60),
            tokens: 5_000_000,
            context: 120_000,
            invalid_answers: 3,
            retries: RetryPolicy::default(),
            failures: 8,
            rest: Duration::from_secs(60),
            repetitions: 5,
            depth: 2,
            agents: 32,
            agents_at_once: 6,
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { most: 5, first: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }
}

impl RetryPolicy {
    /// How long to wait before the next attempt: twice as long each time, with random jitter in the upper half, so that
    /// clients that failed together don't retry together. None after the last attempt.
    pub fn wait(&self, attempt: u32, asked_for: Option<Duration>, chance: u64) -> Option<Duration> {
        if attempt > self.most {
            return None;
        }
        let doubled = self.first.saturating_mul(1 << (attempt - 1).min(16)).min(self.longest);
        let part = (chance % 1_000) as u32;
        let chosen = doubled / 2 + doubled / 2 * part / 1_000;
        Some(chosen.max(asked_for.unwrap_or_default()))
    }
}

/// Why an agent stops before it has an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlyStop {
    pub(crate) finish: FinishReason,
    /// The reason, with what to do next.
    pub(crate) why: String,
}

impl EarlyStop {
    pub(crate) fn new(finish: FinishReason, why: impl Into<String>) -> Self {
        Self { finish, why: why.into() }
    }
}

/// What a task has used of its time and tokens. Shared by all its agents.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) began: Instant,
    pub(crate) deadline: Instant,
    tokens: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) fn begin(controls: &AgentLimits) -> Self {
        let began = Instant::now();
        Self { began, deadline: began + controls.time, tokens: controls.tokens, used: AtomicU64::new(0) }
    }

    pub(crate) fn spend(&self, tokens: TokenUsage) {
        self.used.fetch_add(tokens.total(), Ordering::Relaxed);
    }

    /// Whether time and tokens are left.
    pub(crate) fn check(&self) -> Result<(), EarlyStop> {
        if Instant::now() >= self.deadline {
            return Err(self.out_of_time());
        }
        let used = self.used.load(Ordering::Relaxed);
        if used >= self.tokens {
            let why = format!("{used} of {} used. Raise --max-tokens to continue.", counted(self.tokens, "token"));
            return Err(EarlyStop::new(FinishReason::TokenLimit, why));
        }
        Ok(())
    }

    pub(crate) fn out_of_time(&self) -> EarlyStop {
        let time = self.deadline - self.began;
        EarlyStop::new(FinishReason::TimeLimit, format!("The time of {time:?} is up. Raise --max-minutes to continue."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_a_provider_may_ask_for_more() {
        let retries = RetryPolicy { most: 4, first: Duration::from_millis(100), longest: Duration::from_millis(300) };
        let waits = |chance: u64| -> Vec<u128> {
            (1..=5).filter_map(|attempt| retries.wait(attempt, None, chance)).map(|wait| wait.as_millis()).collect()
        };
        assert_eq!(waits(0), [50, 100, 150, 150], "at the least half, and no fifth");
        assert_eq!(waits(999), [99, 199, 299, 299]);
        let minute = Duration::from_secs(60);
        assert_eq!(retries.wait(1, Some(minute), 0), Some(minute));
    }
}
