//! Keeps the conversation within the context window: the model summarizes the oldest turns, and what it can't summarize is
//! replaced by the names of artifacts.

use toolgate_contract::{EventPayload, FinishReason, TokenUsage};

use super::AgentLoop;
use crate::limits::EarlyStop;
use crate::model::{ModelAnswer, ModelError, ModelErrorKind, ModelRequest};

/// The kind of agent that a request for a summary is made as.
const SUMMARIZER: &str = "summary";

impl AgentLoop {
    /// Makes room if the conversation exceeds the context window.
    pub(super) async fn make_room(&mut self) -> Result<(), EarlyStop> {
        if !self.conversation.is_too_long() {
            return Ok(());
        }
        self.summarize().await?;
        let masked = self.conversation.make_room(self.session.artifacts.as_ref());
        let masked = masked.map_err(|error| EarlyStop::new(FinishReason::Unrecorded, error.message))?;
        if !masked.parts.is_empty() {
            let (results, bytes) = (masked.parts.len() as u64, masked.bytes());
            self.record(EventPayload::ContextMasked { results, bytes, parts: masked.parts })?;
        }
        match self.conversation.is_too_long() {
            false => Ok(()),
            true => Err(context_limit()),
        }
    }

    /// Makes room after the provider refused the conversation as too long. An error if nothing could be removed.
    pub(super) async fn make_room_after_refusal(&mut self) -> Result<(), EarlyStop> {
        let before = self.conversation.bytes();
        self.conversation.was_refused_as_too_long();
        self.make_room().await?;
        match self.conversation.bytes() < before {
            true => Ok(()),
            false => Err(context_limit()),
        }
    }

    /// Replaces the oldest turns by the model's own summary. A model that can't give one is no reason to stop.
    async fn summarize(&mut self) -> Result<(), EarlyStop> {
        let Some(entries) = self.conversation.summarizable() else { return Ok(()) };
        let summary = match self.ask_for_summary(entries).await? {
            Ok(summary) => summary,
            Err(failure) => {
                let reason = self.redacted(&format!("No summary of the older turns: {}", failure.message));
                return self.record(EventPayload::ModelFailed { attempt: 1, reason, retry_in_ms: None });
            }
        };
        self.tokens += summary.tokens;
        self.context.budget.spend(summary.tokens);
        let text = self.redacted(summary.text.trim());
        let text = self.conversation.summary_text(entries, &text, self.session.artifacts.as_ref());
        let text = text.map_err(|error| EarlyStop::new(FinishReason::Unrecorded, error.message))?;
        let (count, tokens): (_, TokenUsage) = (entries as u64, summary.tokens);
        self.record(EventPayload::ContextSummarized { entries: count, text: text.clone(), tokens })?;
        self.conversation.replace_oldest(entries, text);
        Ok(())
    }

    async fn ask_for_summary(&self, entries: usize) -> Result<Result<ModelAnswer, ModelError>, EarlyStop> {
        let oldest = self.conversation.to_summarize(entries);
        let request = ModelRequest {
            agent: SUMMARIZER,
            system: &self.system,
            entries: &oldest,
            tools: &[],
            answers: self.conversation.answers(),
        };
        let mut on_text = |_: &str| {};
        let answer = self.within_limits(self.context.model.answer(&request, &mut on_text)).await?;
        Ok(answer.and_then(|answer| match answer.text.trim() {
            "" => Err(ModelError::new(ModelErrorKind::Garbled, "the answer was empty")),
            _ => Ok(answer),
        }))
    }
}

fn context_limit() -> EarlyStop {
    EarlyStop::new(
        FinishReason::ContextLimit,
        "The conversation no longer fits into the context window. Split the task, or raise --context-tokens.",
    )
}
