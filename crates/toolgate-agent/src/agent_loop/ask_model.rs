//! Asks the model: within the remaining time, with retries, and not while the circuit breaker is open.

use tokio::time::{Instant, sleep, sleep_until};
use toolgate_contract::{EventPayload, FinishReason};

use super::{AgentLoop, cancelled, milliseconds};
use crate::limits::EarlyStop;
use crate::model::{ModelAnswer, ModelError, ModelErrorKind, ModelRequest};
use crate::text_sink::RedactingTextStream;

impl AgentLoop {
    /// The model's answer, after retries where they may help.
    pub(super) async fn ask(&mut self) -> Result<ModelAnswer, EarlyStop> {
        for attempt in 1.. {
            self.context.breaker.check().map_err(|left| {
                EarlyStop::new(
                    FinishReason::CircuitOpen,
                    format!("The model failed too often. It is not asked again for {left:?}."),
                )
            })?;
            match self.try_once().await? {
                Ok(answer) => {
                    self.context.breaker.succeeded();
                    let shown = self.system.len() + self.conversation.bytes();
                    self.conversation.counted(shown, answer.tokens.input);
                    return Ok(answer);
                }
                // A model that doesn't accept images refuses the entire request; without images it may answer.
                Err(failure) if failure.kind == ModelErrorKind::Refused && self.conversation.stop_showing_images() => {
                    let reason = self.redacted(&failure.message);
                    self.record(EventPayload::ModelFailed { attempt, reason, retry_in_ms: Some(0) })?;
                }
                Err(failure) if failure.kind == ModelErrorKind::TooLong => {
                    let reason = self.redacted(&failure.message);
                    self.record(EventPayload::ModelFailed { attempt, reason, retry_in_ms: Some(0) })?;
                    self.make_room_after_refusal().await?;
                }
                Err(failure) => self.back_off(attempt, &failure).await?,
            }
        }
        unreachable!("the number of attempts is limited")
    }

    async fn try_once(&self) -> Result<Result<ModelAnswer, ModelError>, EarlyStop> {
        let request = ModelRequest {
            agent: &self.role.kind.name,
            system: &self.system,
            entries: self.conversation.entries(),
            tools: &self.tools,
            answers: self.conversation.answers(),
        };
        let mut stream =
            RedactingTextStream::new(self.context.listener.as_ref(), self.identity(), self.context.gate.redactor());
        let mut on_text = |words: &str| stream.push(words);
        let answer = self.within_limits(self.context.model.answer(&request, &mut on_text)).await?;
        stream.finish();
        Ok(answer)
    }

    /// Waits for the model, until the task is cancelled or its time is up.
    pub(super) async fn within_limits<T>(&self, asked: impl Future<Output = T>) -> Result<T, EarlyStop> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(cancelled()),
            () = sleep_until(self.context.budget.deadline) => Err(self.context.budget.out_of_time()),
            answer = asked => Ok(answer),
        }
    }

    /// Records a failure, and waits if a retry may help; otherwise returns the reason to stop.
    async fn back_off(&self, attempt: u32, failure: &ModelError) -> Result<(), EarlyStop> {
        let may_help = failure.kind.is_retryable();
        let is_open = may_help && self.context.breaker.failed();
        // The clock's ids are partly random, which is enough for jitter.
        let chance = self.context.gate.clock().id().as_u128() as u64;
        let wait = self.context.controls.retries.wait(attempt, failure.retry_after, chance);
        let wait = wait.filter(|_| may_help && !is_open);
        let reason = self.redacted(&failure.message);
        let retry_in_ms = wait.map(milliseconds);
        self.record(EventPayload::ModelFailed { attempt, reason: reason.clone(), retry_in_ms })?;
        let Some(wait) = wait else {
            return Err(match is_open {
                true => {
                    EarlyStop::new(FinishReason::CircuitOpen, format!("The model failed too often. The last: {reason}"))
                }
                false => EarlyStop::new(FinishReason::ModelFailed, reason),
            });
        };
        if Instant::now() + wait >= self.context.budget.deadline {
            let why = format!("The model can be asked again in {wait:?}, which is more time than is left: {reason}");
            return Err(EarlyStop::new(FinishReason::TimeLimit, why));
        }
        tokio::select! {
            () = self.cancel.cancelled() => Err(cancelled()),
            () = sleep(wait) => Ok(()),
        }
    }
}
