//! What a tool says to the person: redacted, then recorded, then shown.

use std::sync::Arc;

use toolgate_contract::{
    BoxFuture, Choice, Clock, EventOrigin, EventPayload, Message, Person, Question, QuestionOutcome, ToolError,
};
use toolgate_journal::Recorder;
use toolgate_redact::Redactor;

use crate::question::QuestionAnswerer;
use crate::session::EventSink;

/// Carries one call's messages to whoever watches its session.
pub(super) struct PersonChannel {
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) answerer: Arc<dyn QuestionAnswerer>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) origin: Arc<EventOrigin>,
}

impl Person for PersonChannel {
    fn say(&self, message: &Message) -> bool {
        let clean = |text: &String| self.redactor.text(text).into_owned();
        let message = Message {
            level: message.level,
            title: message.title.as_ref().map(clean),
            content: clean(&message.content),
            thought: message.thought.as_ref().map(clean),
            evidence: message.evidence.iter().map(clean).collect(),
        };
        // A message that can't be recorded isn't shown either: the screen never knows more than the record.
        self.record(EventPayload::Display(message)).is_ok() && self.sink.is_watched()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<QuestionOutcome, ToolError>> {
        let clean = |text: &String| self.redactor.text(text).into_owned();
        let choice = |choice: &Choice| Choice {
            label: clean(&choice.label),
            description: choice.description.as_ref().map(clean),
        };
        let question = Question {
            question: clean(&question.question),
            choices: question.choices.iter().map(choice).collect(),
            free_text: question.free_text,
        };
        Box::pin(async move {
            self.record(EventPayload::QuestionAsked(question.clone()))?;
            let answered = self.answerer.answer(&self.origin.tool_call_id, &question).await;
            if let QuestionOutcome::Answered(answer) = &answered {
                self.record(EventPayload::QuestionAnswered { by: answer.by.clone() })?;
            }
            Ok(answered)
        })
    }
}

impl PersonChannel {
    fn record(&self, payload: EventPayload) -> Result<(), ToolError> {
        let event = self.origin.event(self.clock.now(), payload);
        self.recorder.record(std::slice::from_ref(&event))?;
        self.sink.event(&event);
        Ok(())
    }
}
