//! Performs a model's calls, each through the gate: calls that only read run concurrently, the others in order.

use futures_util::future::join_all;
use tokio::time::sleep_until;
use toolgate_contract::{Call, CancellationToken};
use toolgate_dialects::ToolCall;
use toolgate_workspace::DialectReply;

use super::AgentLoop;
use crate::model::ModelAnswer;

/// How much of the model's text a person is shown as the reason for a call.
const JUSTIFICATION: usize = 500;

impl AgentLoop {
    /// The calls that an answer asks for, with the ids under which they are performed.
    pub(super) fn prepare(&self, answer: &ModelAnswer) -> Vec<Call> {
        answer.calls.iter().map(|asked| self.prepare_one(asked, &answer.text)).collect()
    }

    fn prepare_one(&self, asked: &ToolCall, words: &str) -> Call {
        let mut call = Call::new(&asked.name, asked.arguments_or_empty(), self.context.gate.clock().as_ref());
        call.trace_id.clone_from(&self.id);
        let words: String = words.trim().chars().take(JUSTIFICATION).collect();
        call.justification = Some(words).filter(|words| !words.is_empty());
        call
    }

    /// The replies to an answer's calls, in order. When the time is up, calls that still run are cancelled.
    pub(super) async fn perform(&self, answer: &ModelAnswer, calls: Vec<Call>) -> Vec<DialectReply> {
        let stop = self.cancel.child_token();
        let mut all = std::pin::pin!(self.perform_all(answer, calls, &stop));
        tokio::select! {
            replies = &mut all => return replies,
            () = sleep_until(self.context.budget.deadline) => stop.cancel(),
        }
        all.await
    }

    async fn perform_all(&self, answer: &ModelAnswer, calls: Vec<Call>, stop: &CancellationToken) -> Vec<DialectReply> {
        let mut replies = Vec::with_capacity(calls.len());
        let mut calls = calls.into_iter();
        for group in answer.calls.chunk_by(|one, next| self.is_parallel(one) && self.is_parallel(next)) {
            let concurrent = group.iter().zip(calls.by_ref()).map(|(asked, call)| self.perform_one(asked, call, stop));
            replies.extend(join_all(concurrent).await);
        }
        replies
    }

    /// One call. The gate also refuses calls with invalid arguments, so that they are recorded.
    async fn perform_one(&self, asked: &ToolCall, call: Call, stop: &CancellationToken) -> DialectReply {
        let (gate, session) = (&self.context.gate, &self.session);
        match &asked.args {
            Err(unreadable) => self.dialects.refuse(call, gate, session, unreadable.clone()),
            Ok(_) => self.dialects.perform(call, gate, session, stop.clone()).await,
        }
    }

    fn is_parallel(&self, asked: &ToolCall) -> bool {
        self.tools.iter().any(|tool| tool.name == asked.name && tool.parallel)
    }
}
