//! Answers to the agent's own questions. Each front end has its own implementation, as for approvals.

use toolgate_contract::{BoxFuture, Question, QuestionOutcome};

/// Answers questions of the agent.
pub trait QuestionAnswerer: Send + Sync {
    /// Asks on behalf of this call, and waits for the answer. The future is dropped when the call is cancelled.
    fn answer<'a>(&'a self, call: &'a str, question: &'a Question) -> BoxFuture<'a, QuestionOutcome>;
}

/// An answerer for programs and pipelines, where no person can be asked.
pub struct NobodyAnswers;

impl QuestionAnswerer for NobodyAnswers {
    fn answer<'a>(&'a self, _call: &'a str, _question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(std::future::ready(QuestionOutcome::Nobody))
    }
}
