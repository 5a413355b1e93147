//! Whoever listens to what a model says, word by word, with secrets already replaced.

use toolgate_redact::{Redactor, StreamRedactor};

/// Hears agents speak. The record has their words too, whole, once they are said.
pub trait TextSink: Send + Sync {
    /// An agent said something more.
    fn hear(&self, agent: &AgentIdentity<'_>, words: &str);
}

/// Who speaks.
#[derive(Debug, Clone, Copy)]
pub struct AgentIdentity<'a> {
    /// The agent's id.
    pub id: &'a str,
    /// Which kind of agent.
    pub agent: &'a str,
    /// Whether nobody else set it to work.
    pub is_first: bool,
}

/// Nobody listens.
pub struct DiscardText;

impl TextSink for DiscardText {
    fn hear(&self, _agent: &AgentIdentity<'_>, _words: &str) {}
}

/// One answer on its way to the listener.
pub(crate) struct RedactingTextStream<'a> {
    listener: &'a dyn TextSink,
    speaker: AgentIdentity<'a>,
    redacting: StreamRedactor,
    /// The bytes of a character that isn't complete.
    rest: Vec<u8>,
}

impl<'a> RedactingTextStream<'a> {
    pub(crate) fn new(listener: &'a dyn TextSink, speaker: AgentIdentity<'a>, redactor: &Redactor) -> Self {
        Self { listener, speaker, redacting: redactor.stream(), rest: Vec::new() }
    }

    pub(crate) fn say(&mut self, words: &str) {
        let certain = self.redacting.push(words.as_bytes());
        self.pass_on(&certain);
    }

    pub(crate) fn finish(mut self) {
        let last = self.redacting.finish();
        self.pass_on(&last);
    }

    fn pass_on(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            Err(fault) => fault.valid_up_to(),
        };
        let words: Vec<u8> = self.rest.drain(..whole).collect();
        if !words.is_empty() {
            self.listener.hear(&self.speaker, &String::from_utf8_lossy(&words));
        }
    }
}
