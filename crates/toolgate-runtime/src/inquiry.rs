//! Whoever answers the agent's own questions, beside whoever approves its calls: each front end brings its own.

use toolgate_contract::{Answered, BoxFuture, Inquiry};

/// Whoever answers questions.
pub trait Respondent: Send + Sync {
    /// Asks on behalf of this call, and waits for the answer; none when nobody is there. Dropped when the call is
    /// cancelled.
    fn answer<'a>(&'a self, call: &'a str, inquiry: &'a Inquiry) -> BoxFuture<'a, Option<Answered>>;
}

/// For programs and pipelines: nobody is there.
pub struct NobodyAnswers;

impl Respondent for NobodyAnswers {
    fn answer<'a>(&'a self, _call: &'a str, _inquiry: &'a Inquiry) -> BoxFuture<'a, Option<Answered>> {
        Box::pin(std::future::ready(None))
    }
}
