//! What a tool says to the person: redacted, then recorded, then shown.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_contract::{Answered, BoxFuture, Choice, Clock, Event, Happening, Inquiry, Message, Person, ToolError};

use crate::inquiry::Respondent;
use crate::redact::Redactor;
use crate::session::{EventSink, Recorder};

/// Carries one call's messages to whoever watches its session.
pub(super) struct Speaker {
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) respondent: Arc<dyn Respondent>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) origin: Arc<Origin>,
}

/// Where the events of one call belong.
pub(super) struct Origin {
    pub(super) run: String,
    pub(super) turn: Option<u64>,
    pub(super) trace_id: String,
    pub(super) tool_call_id: String,
}

impl Origin {
    pub(super) fn event(&self, time: Timestamp, happening: Happening) -> Event {
        Event {
            time,
            run: self.run.clone(),
            turn: self.turn,
            trace_id: Some(self.trace_id.clone()),
            tool_call_id: Some(self.tool_call_id.clone()),
            happening,
        }
    }
}

impl Person for Speaker {
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
        self.record(Happening::Display(message)).is_ok() && self.sink.is_watched()
    }

    fn ask<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Result<Option<Answered>, ToolError>> {
        let clean = |text: &String| self.redactor.text(text).into_owned();
        let choice = |choice: &Choice| Choice {
            label: clean(&choice.label),
            description: choice.description.as_ref().map(clean),
        };
        let inquiry = Inquiry {
            question: clean(&inquiry.question),
            choices: inquiry.choices.iter().map(choice).collect(),
            free_text: inquiry.free_text,
        };
        Box::pin(async move {
            self.record(Happening::QuestionAsked(inquiry.clone()))?;
            let answered = self.respondent.answer(&self.origin.tool_call_id, &inquiry).await;
            if let Some(Answered { by, .. }) = &answered {
                self.record(Happening::QuestionAnswered { by: by.clone() })?;
            }
            Ok(answered)
        })
    }
}

impl Speaker {
    fn record(&self, happening: Happening) -> Result<(), ToolError> {
        let event = self.origin.event(self.clock.now(), happening);
        self.recorder.record(std::slice::from_ref(&event))?;
        self.sink.event(&event);
        Ok(())
    }
}
