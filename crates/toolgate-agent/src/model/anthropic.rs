//! Anthropic's messages API: text and tool use arrive as blocks, and results go back as blocks of the next user
//! message.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_contract::{BoxFuture, TokenUsage};
use toolgate_dialects::{DefinitionFormat, ToolCall, definition};

use super::http::{cut_off, understood};
use super::partial_call::PartialCall;
use super::{
    ConversationEntry, InlineImage, Model, ModelAnswer, ModelEndpoint, ModelError, ModelRequest, Observation, OnText,
};

/// The output limit of one answer, in tokens; this API requires it.
const MAX_OUTPUT_TOKENS: u32 = 16_384;

/// A model behind `POST /v1/messages`.
#[derive(Debug)]
pub struct Anthropic {
    name: String,
    wire: ModelEndpoint,
    effort: Option<String>,
}

impl Anthropic {
    /// The version of the API.
    pub const VERSION: &'static str = "2023-06-01";

    /// The model of this name.
    pub fn new(name: impl Into<String>, wire: ModelEndpoint) -> Self {
        Self { name: name.into(), wire: wire.with_header("anthropic-version", Self::VERSION), effort: None }
    }

    /// Sets how much effort the model puts into its answers, in the provider's own word.
    #[must_use]
    pub fn with_effort(mut self, effort: Option<String>) -> Self {
        self.effort = effort;
        self
    }

    async fn ask(&self, request: &ModelRequest<'_>, on_text: OnText<'_>) -> Result<ModelAnswer, ModelError> {
        let mut body = body(&self.name, request);
        if let Some(effort) = &self.effort {
            body["output_config"] = json!({ "effort": effort });
        }
        let mut events = self.wire.post("v1/messages", &body).await?;
        let mut answer = MessageBuilder::default();
        while let Some(event) = events.next().await? {
            for event in understood(&event, as_stream)? {
                answer.apply(&event, on_text);
            }
            if answer.is_done {
                return Ok(answer.finish().with_estimated_tokens(request));
            }
        }
        Err(cut_off())
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.name
    }

    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest<'a>,
        on_text: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(self.ask(request, on_text))
    }
}

/// The request body of the API.
pub(super) fn body(model: &str, request: &ModelRequest<'_>) -> Value {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for (role, blocks) in request.entries.iter().map(blocks).filter(|(_, blocks)| !blocks.is_empty()) {
        match messages.last_mut() {
            // Roles have to alternate, so consecutive entries of one role become one message.
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    // The beginning is the same in every request, so it is marked for the provider's cache.
    let system = json!([{ "type": "text", "text": request.system, "cache_control": { "type": "ephemeral" } }]);
    let mut body = json!({
        "model": model,
        "max_tokens": MAX_OUTPUT_TOKENS,
        "system": system,
        "messages": messages
            .into_iter()
            .map(|(role, content)| json!({ "role": role, "content": content }))
            .collect::<Vec<_>>(),
        "stream": true,
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(|tool| definition(tool, DefinitionFormat::Anthropic)).collect();
    }
    body
}

fn blocks(entry: &ConversationEntry) -> (&'static str, Vec<Value>) {
    let text = |text: &str| json!({ "type": "text", "text": text });
    match entry {
        ConversationEntry::Told(words) => ("user", vec![text(words)]),
        ConversationEntry::Answered(answer) => {
            // The API refuses an empty text block.
            let words = (!answer.text.trim().is_empty()).then(|| text(&answer.text));
            ("assistant", words.into_iter().chain(answer.calls.iter().map(tool_use)).collect())
        }
        ConversationEntry::Observed(observations) => ("user", observations.iter().map(tool_result).collect()),
    }
}

fn tool_use(asked: &ToolCall) -> Value {
    let input = match asked.arguments_or_empty() {
        object @ Value::Object(_) => object,
        other => json!({ "input": other }),
    };
    json!({ "type": "tool_use", "id": asked.id, "name": asked.name, "input": input })
}

fn tool_result(observation: &Observation) -> Value {
    let (id, text) = (&observation.id, &observation.text);
    let content = match observation.images.as_slice() {
        [] => json!(text),
        images => [json!({ "type": "text", "text": text })].into_iter().chain(images.iter().map(image)).collect(),
    };
    json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": !observation.ok })
}

fn image(image: &InlineImage) -> Value {
    let source = json!({ "type": "base64", "media_type": image.mime, "data": image.data });
    json!({ "type": "image", "source": source })
}

/// A response that wasn't streamed, as the events that would have streamed it.
fn as_stream(message: Value) -> Vec<Value> {
    let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let mut events = vec![json!({ "type": "message_start", "message": { "usage": message["usage"] } })];
    for (index, block) in blocks.enumerate() {
        let delta = match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() }),
            _ => json!({ "type": "text_delta", "text": block["text"] }),
        };
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    }
    let stop = json!({ "stop_reason": message["stop_reason"] });
    events.push(json!({ "type": "message_delta", "delta": stop, "usage": message["usage"] }));
    // A response that isn't a message has no end event.
    events.extend((message["type"] == "message").then(|| json!({ "type": "message_stop" })));
    events
}

/// An answer under construction: its blocks arrive by index.
#[derive(Default)]
struct MessageBuilder {
    text: String,
    calls: BTreeMap<u64, PartialCall>,
    tokens: TokenUsage,
    stop: String,
    is_done: bool,
}

impl MessageBuilder {
    fn apply(&mut self, event: &Value, on_text: OnText<'_>) {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let index = event.get("index").and_then(Value::as_u64).unwrap_or_default();
        match text("/type") {
            "message_start" => self.tokens = tokens(event.pointer("/message/usage"), self.tokens),
            "content_block_start" if text("/content_block/type") == "tool_use" => {
                let (id, name) = (text("/content_block/id").to_owned(), text("/content_block/name").to_owned());
                self.calls.insert(index, PartialCall::of(id, name));
            }
            "content_block_delta" => match text("/delta/type") {
                "text_delta" => {
                    self.text.push_str(text("/delta/text"));
                    on_text(text("/delta/text"));
                }
                "input_json_delta" => {
                    if let Some(call) = self.calls.get_mut(&index) {
                        call.push(text("/delta/partial_json"));
                    }
                }
                _ => {}
            },
            "message_delta" => {
                self.stop = text("/delta/stop_reason").to_owned();
                self.tokens = tokens(event.get("usage"), self.tokens);
            }
            "message_stop" => self.is_done = true,
            _ => {}
        }
    }

    fn finish(self) -> ModelAnswer {
        ModelAnswer {
            text: self.text,
            calls: self.calls.into_values().map(PartialCall::finish).collect(),
            tokens: self.tokens,
            cut: self.stop == "max_tokens",
            ..ModelAnswer::default()
        }
    }
}

/// The counts only grow; tokens read from or written to the cache count as input too.
fn tokens(usage: Option<&Value>, known: TokenUsage) -> TokenUsage {
    let count = |field: &str| usage.and_then(|usage| usage.get(field)?.as_u64()).unwrap_or_default();
    let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].map(count).iter().sum();
    TokenUsage { input: known.input.max(input), output: known.output.max(count("output_tokens")) }
}
