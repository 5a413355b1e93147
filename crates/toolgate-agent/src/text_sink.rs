//! Receives a model's text while it arrives, with secrets already redacted.

use toolgate_redact::{Redactor, StreamRedactor};

/// Receives the text of agents. The record contains the complete text too, at the end of each answer.
pub trait TextSink: Send + Sync {
    /// An agent wrote more text.
    fn on_text(&self, agent: &AgentIdentity<'_>, words: &str);
}

/// The agent that wrote a text.
#[derive(Debug, Clone, Copy)]
pub struct AgentIdentity<'a> {
    /// The agent's id.
    pub id: &'a str,
    /// Which kind of agent.
    pub agent: &'a str,
    /// Whether a person started it, and no other agent.
    pub is_first: bool,
}

/// A sink that discards the text.
pub struct DiscardText;

impl TextSink for DiscardText {
    fn on_text(&self, _agent: &AgentIdentity<'_>, _words: &str) {}
}

/// One answer on its way to the sink.
pub(crate) struct RedactingTextStream<'a> {
    listener: &'a dyn TextSink,
    agent: AgentIdentity<'a>,
    redacting: StreamRedactor,
    /// The bytes of an incomplete UTF-8 character.
    rest: Vec<u8>,
}

impl<'a> RedactingTextStream<'a> {
    pub(crate) fn new(listener: &'a dyn TextSink, agent: AgentIdentity<'a>, redactor: &Redactor) -> Self {
        Self { listener, agent, redacting: redactor.stream(), rest: Vec::new() }
    }

    pub(crate) fn push(&mut self, words: &str) {
        let certain = self.redacting.push(words.as_bytes());
        self.emit(&certain);
    }

    pub(crate) fn finish(mut self) {
        let last = self.redacting.finish();
        self.emit(&last);
    }

    fn emit(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let complete = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            Err(fault) => fault.valid_up_to(),
        };
        let words: Vec<u8> = self.rest.drain(..complete).collect();
        if !words.is_empty() {
            self.listener.on_text(&self.agent, &String::from_utf8_lossy(&words));
        }
    }
}
