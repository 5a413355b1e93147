//! Whoever answers the agent's own questions, beside whoever approves its calls: each front end brings its own.

use toolgate_contract::{BoxFuture, Question, QuestionAnswer};

/// Whoever answers questions.
pub trait QuestionAnswerer: Send + Sync {
    /// Asks on behalf of this call, and waits for the answer; none when nobody is there. Dropped when the call is
    /// cancelled.
    fn answer<'a>(&'a self, call: &'a str, question: &'a Question) -> BoxFuture<'a, Option<QuestionAnswer>>;
}

/// For programs and pipelines: nobody is there.
pub struct NobodyAnswers;

impl QuestionAnswerer for NobodyAnswers {
    fn answer<'a>(&'a self, _call: &'a str, _inquiry: &'a Question) -> BoxFuture<'a, Option<QuestionAnswer>> {
        Box::pin(std::future::ready(None))
    }
}
