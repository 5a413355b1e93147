//! What a tool says to the person: redacted, then recorded, then shown.

use std::sync::Arc;

use serde_json::Value;
use toolgate_contract::{
    BoxFuture, Choice, Clock, EventOrigin, EventPayload, Message, MessageLevel, Person, Question, QuestionOutcome,
    ToolError,
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

    fn sample<'a>(&'a self, server: &'a str, mut request: Value) -> BoxFuture<'a, Result<Option<Value>, ToolError>> {
        self.redactor.json(&mut request);
        Box::pin(async move {
            self.record_sampling(format!("The MCP server `{server}` asks the client's model: {request}"))?;
            let Some(mut answer) = self.answerer.sample(&self.origin.tool_call_id, &request).await else {
                return Ok(None);
            };
            // What the model knows of secrets isn't for the server.
            self.redactor.json(&mut answer);
            self.record_sampling(format!("The client's model answers the MCP server `{server}`: {answer}"))?;
            Ok(Some(answer))
        })
    }
}

impl PersonChannel {
    /// Records a request to the client's model, or its answer. What isn't recorded isn't passed on.
    fn record_sampling(&self, content: String) -> Result<(), ToolError> {
        let (level, title) = (MessageLevel::Info, Some("Sampling".to_owned()));
        self.record(EventPayload::Display(Message { level, title, content, thought: None, evidence: Vec::new() }))
    }

    fn record(&self, payload: EventPayload) -> Result<(), ToolError> {
        let event = self.origin.event(self.clock.now(), payload);
        self.recorder.record(std::slice::from_ref(&event))?;
        self.sink.event(&event);
        Ok(())
    }
}
