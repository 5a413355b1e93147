//! The interface to a model: it is shown the conversation and the tools, and answers with text, calls, or both. Each
//! API has one small file; none of them depends on the gate.

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
pub(crate) use scripted::MAIN_AGENT;
pub use scripted::{ModelScript, ScriptedCall, ScriptedModel, ScriptedTurn};
pub use selection::{ModelAccess, ModelSelectionError, choose};

/// A language model.
pub trait Model: Send + Sync {
    /// Its name, for the record.
    fn name(&self) -> &str;
    /// Asks the model. Its text is passed to `on_text` while it arrives; the complete answer is returned at the end.
    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>>;
}

/// Receives a model's text while it arrives.
pub type OnText<'a> = &'a mut (dyn FnMut(&str) + Send);

/// A request to a model.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// Which kind of agent asks.
    pub agent: &'a str,
    /// The system prompt.
    pub system: &'a str,
    /// The conversation so far.
    pub entries: &'a [ConversationEntry],
    /// How many answers the model gave in this conversation, those that are no longer in it included.
    pub answers: u64,
    /// The tools it may call.
    pub tools: &'a [Declaration],
}

/// One step of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationEntry {
    /// A message to the model.
    Told(String),
    /// The model answered.
    Answered(ModelAnswer),
    /// The results of its calls.
    Observed(Vec<Observation>),
}

/// The result of one call, as shown to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The model's own id for the call.
    pub id: String,
    /// The kind of call.
    pub shape: ToolCallKind,
    /// The tool.
    pub name: String,
    /// The result as text.
    pub text: String,
    /// Whether the call succeeded.
    pub ok: bool,
    /// The artifact with the full text, once it was removed from the conversation.
    pub artifact: Option<String>,
    /// The images of the result.
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
    /// The image as a `data:` URL.
    pub fn url(&self) -> String {
        format!("data:{};base64,{}", self.mime, self.data)
    }
}

/// Prints the size instead of the bytes.
impl std::fmt::Debug for InlineImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}, {} bytes)", self.mime, self.data.len())
    }
}

/// A model's answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelAnswer {
    /// Its text.
    pub text: String,
    /// The calls that it asks for.
    pub calls: Vec<ToolCall>,
    /// Its token usage.
    pub tokens: TokenUsage,
    /// Whether it stopped at the output limit.
    pub cut: bool,
    /// Why it can't be parsed, in words for the model.
    pub fault: Option<String>,
    /// The provider's own form of it, where that has to be sent back unchanged.
    pub raw: Vec<Value>,
}

/// Bytes of text for one token, where a provider doesn't count them.
const BYTES_PER_TOKEN: usize = 4;

impl ModelAnswer {
    /// Estimates the tokens if the provider didn't report them, so that limits and costs are never zero by omission.
    pub(crate) fn with_estimated_tokens(mut self, request: &ModelRequest<'_>) -> Self {
        let tokens = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u64;
        if self.tokens.input == 0 {
            let tools =
                request.tools.iter().map(|tool| tool.description.len() + tool.args_schema.as_value().to_string().len());
            let entries = request.entries.iter().map(ConversationEntry::bytes);
            self.tokens.input = tokens(request.system.len() + tools.sum::<usize>() + entries.sum::<usize>());
        }
        if self.tokens.output == 0 {
            let calls = self.calls.iter().map(|call| call.name.len() + call.arguments_or_empty().to_string().len());
            self.tokens.output = tokens(self.text.len() + calls.sum::<usize>());
        }
        self
    }
}

/// The size of an image, in bytes of text: providers count some 1,500 tokens for one of the usual size.
const IMAGE_BYTES: usize = 6_000;

impl ConversationEntry {
    /// Its size as text.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Told(text) => text.len(),
            Self::Answered(answer) => {
                let calls =
                    answer.calls.iter().map(|call| call.name.len() + call.arguments_or_empty().to_string().len() + 20);
                answer.text.len() + calls.sum::<usize>()
            }
            Self::Observed(observations) => {
                observations.iter().map(|seen| seen.text.len() + seen.images.len() * IMAGE_BYTES + 20).sum()
            }
        }
    }
}

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure.
    pub kind: ModelErrorKind,
    /// What happened. Never contains a key.
    pub message: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// The request is invalid, or not authorized. Retrying won't help.
    Refused,
    /// The conversation is longer than the model's context window. A shorter one may be accepted.
    TooLong,
    /// The rate limit is reached, or the server is overloaded.
    Busy,
    /// An error of the server.
    Broken,
    /// The connection ended before the answer did.
    Cut,
    /// The server sent nothing for too long.
    Slow,
    /// The server can't be reached.
    Unreachable,
    /// The response can't be parsed.
    Garbled,
}

impl ModelErrorKind {
    /// Whether retrying may help.
    pub fn is_retryable(self) -> bool {
        !matches!(self, Self::Refused | Self::TooLong)
    }
}

impl ModelError {
    /// An error of this kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }
}
