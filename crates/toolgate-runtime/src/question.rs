//! Answers to the agent's own questions. Each front end has its own implementation, as for approvals.

use serde_json::Value;
use toolgate_contract::{BoxFuture, Question, QuestionOutcome};

/// Answers questions of the agent.
pub trait QuestionAnswerer: Send + Sync {
    /// Asks on behalf of this call, and waits for the answer. The future is dropped when the call is cancelled.
    fn answer<'a>(&'a self, call: &'a str, question: &'a Question) -> BoxFuture<'a, QuestionOutcome>;

    /// Passes the parameters of a `sampling/createMessage` on to the client that made this call; none where that isn't possible.
    fn sample<'a>(&'a self, _call: &'a str, _request: &'a Value) -> BoxFuture<'a, Option<Value>> {
        Box::pin(std::future::ready(None))
    }
}

/// An answerer for programs and pipelines, where no person can be asked.
pub struct NobodyAnswers;

impl QuestionAnswerer for NobodyAnswers {
    fn answer<'a>(&'a self, _call: &'a str, _question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(std::future::ready(QuestionOutcome::Nobody))
    }
}
