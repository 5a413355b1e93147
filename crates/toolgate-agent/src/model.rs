//! What a model is to an agent: it is shown the conversation and the tools, and answers with words, calls, or both. One
//! small file per API; none of them knows the gate.

mod anthropic;
mod api_key;
mod chat_completions;
mod http;
mod json_protocol;
mod partial_call;
mod responses;
mod scripted;
mod selection;
mod sse;

use std::time::Duration;

use serde_json::Value;
use toolgate_contract::{BoxFuture, Declaration, TokenUsage};
use toolgate_dialects::{ToolCall, ToolCallKind};

pub use anthropic::Anthropic;
pub use api_key::ApiKey;
pub use chat_completions::ChatCompletions;
pub use http::ModelEndpoint;
pub use json_protocol::JsonProtocol;
pub use responses::Responses;
pub(crate) use scripted::FIRST;
pub use scripted::{ModelScript, ScriptedCall, ScriptedModel, ScriptedTurn};
pub use selection::{ModelAccess, ModelSelectionError, choose};

/// A model that can be asked.
pub trait Model: Send + Sync {
    /// Its name, for the record.
    fn name(&self) -> &str;
    /// Asks it. Its words are passed to `hear` as they come; the answer is a value at the end.
    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        hear: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>>;
}

/// Takes a model's words as they come.
pub type OnText<'a> = &'a mut (dyn FnMut(&str) + Send);

/// What a model is shown.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// Which kind of agent asks.
    pub agent: &'a str,
    /// What the model should always keep in mind.
    pub system: &'a str,
    /// The conversation so far.
    pub entries: &'a [ConversationEntry],
    /// The tools it may call.
    pub tools: &'a [Declaration],
}

/// One step of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationEntry {
    /// Somebody told the model something.
    Told(String),
    /// The model answered.
    Answered(ModelAnswer),
    /// Its calls brought these results.
    Observed(Vec<Observation>),
}

/// What one call brought, as the model is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The model's own id for the call.
    pub id: String,
    /// The form in which the call came.
    pub shape: ToolCallKind,
    /// The tool.
    pub name: String,
    /// The result in words.
    pub text: String,
    /// Whether the call worked.
    pub ok: bool,
    /// Where all of it is kept, once it was taken out of the conversation.
    pub artifact: Option<String>,
    /// What there is to see.
    pub images: Vec<InlineImage>,
}

/// An image that a model is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct InlineImage {
    /// Its media type.
    pub mime: String,
    /// Its bytes, in base64.
    pub data: String,
}

impl InlineImage {
    /// The image as an address that holds it.
    pub fn url(&self) -> String {
        format!("data:{};base64,{}", self.mime, self.data)
    }
}

/// Without the bytes, which nobody can read.
impl std::fmt::Debug for InlineImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}, {} bytes)", self.mime, self.data.len())
    }
}

/// A model's answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelAnswer {
    /// Its words.
    pub text: String,
    /// The calls that it asks for.
    pub calls: Vec<ToolCall>,
    /// What it used.
    pub tokens: TokenUsage,
    /// Whether it stopped because it had written as much as it may.
    pub cut: bool,
    /// Why it can't be understood, in words for the model.
    pub fault: Option<String>,
    /// The provider's own form of it, where that has to go back as it came.
    pub raw: Vec<Value>,
}

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure.
    pub kind: ModelErrorKind,
    /// What happened. Never holds a key.
    pub message: String,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// The request is wrong, or we may not ask. Asking again won't help.
    Refused,
    /// Too many ask.
    Busy,
    /// A fault on the other side.
    Broken,
    /// The connection ended before the answer did.
    Cut,
    /// Nothing came for too long.
    Slow,
    /// Nobody is there.
    Unreachable,
    /// What came makes no sense.
    Garbled,
}

impl ModelErrorKind {
    /// Whether asking again may help.
    pub fn is_retryable(self) -> bool {
        self != Self::Refused
    }
}

impl ModelError {
    /// A failure of this kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }
}
