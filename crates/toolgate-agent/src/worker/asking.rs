//! Asking the model: within the time that is left, again where that may help, and not at all while it is left alone.

use tokio::time::{Instant, sleep, sleep_until};
use toolgate_contract::{Finish, Happening};

use super::{Worker, cancelled, milliseconds};
use crate::controls::Stopped;
use crate::listener::Voice;
use crate::model::{Answer, Failure, ModelError, Request};

impl Worker {
    /// The model's answer, after as many tries as it deserves.
    pub(super) async fn ask(&mut self) -> Result<Answer, Stopped> {
        for attempt in 1.. {
            self.house.breaker.check().map_err(|left| {
                Stopped::new(Finish::CircuitOpen, format!("The model failed too often and is left alone for {left:?}."))
            })?;
            match self.try_once().await? {
                Ok(answer) => {
                    self.house.breaker.succeeded();
                    let shown = self.system.len() + self.conversation.bytes();
                    self.conversation.counted(shown, answer.tokens.input);
                    return Ok(answer);
                }
                // A model that takes no images refuses the whole request; without them it may answer.
                Err(failure) if failure.kind == Failure::Refused && self.conversation.stop_showing_images() => {
                    let reason = self.clean(&failure.message);
                    self.record(Happening::ModelFailed { attempt, reason, retry_in_ms: Some(0) })?;
                }
                Err(failure) => self.wait_for_another_try(attempt, &failure).await?,
            }
        }
        unreachable!("tries are counted and end")
    }

    async fn try_once(&self) -> Result<Result<Answer, ModelError>, Stopped> {
        let request = Request {
            agent: &self.post.kind.name,
            system: &self.system,
            entries: self.conversation.entries(),
            tools: &self.tools,
        };
        let mut voice = Voice::new(self.house.listener.as_ref(), self.speaker(), self.house.gate.redactor());
        let mut hear = |words: &str| voice.say(words);
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(cancelled()),
            () = sleep_until(self.house.budget.deadline) => return Err(self.house.budget.out_of_time()),
            answer = self.house.model.answer(&request, &mut hear) => answer,
        };
        voice.finish();
        Ok(answer)
    }

    /// Records a failure, and waits if it deserves another try; otherwise that was it.
    async fn wait_for_another_try(&self, attempt: u32, failure: &ModelError) -> Result<(), Stopped> {
        let may_help = failure.kind.deserves_another_try();
        let is_open = may_help && self.house.breaker.failed();
        // The ids of the clock are partly random, which is all that is needed here.
        let chance = self.house.gate.clock().id().as_u128() as u64;
        let wait = self.house.controls.retries.wait(attempt, failure.retry_after, chance);
        let wait = wait.filter(|_| may_help && !is_open);
        let reason = self.clean(&failure.message);
        let retry_in_ms = wait.map(milliseconds);
        self.record(Happening::ModelFailed { attempt, reason: reason.clone(), retry_in_ms })?;
        let Some(wait) = wait else {
            return Err(match is_open {
                true => Stopped::new(Finish::CircuitOpen, format!("The model failed too often. The last: {reason}")),
                false => Stopped::new(Finish::ModelFailed, reason),
            });
        };
        if Instant::now() + wait >= self.house.budget.deadline {
            let why = format!("The model can be asked again in {wait:?}, which is more time than is left: {reason}");
            return Err(Stopped::new(Finish::TimeLimit, why));
        }
        tokio::select! {
            () = self.cancel.cancelled() => Err(cancelled()),
            () = sleep(wait) => Ok(()),
        }
    }
}
