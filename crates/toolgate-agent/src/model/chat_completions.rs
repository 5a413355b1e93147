//! OpenAI's chat completions API, which many servers implement, local ones included.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_contract::{BoxFuture, TokenUsage};
use toolgate_dialects::{DefinitionFormat, ToolCall, ToolCallKind, definition};

use super::http::{cut_off, understood};
use super::partial_call::PartialCall;
use super::{ConversationEntry, Model, ModelAnswer, ModelEndpoint, ModelError, ModelRequest, Observation, OnText};

/// A model behind `POST /chat/completions`.
#[derive(Debug)]
pub struct ChatCompletions {
    name: String,
    wire: ModelEndpoint,
    effort: Option<String>,
}

impl ChatCompletions {
    /// The model of this name.
    pub fn new(name: impl Into<String>, wire: ModelEndpoint) -> Self {
        Self { name: name.into(), wire, effort: None }
    }

    /// Sets how much the model should reason, in the provider's own word, such as `low` or `high`.
    #[must_use]
    pub fn with_effort(mut self, effort: Option<String>) -> Self {
        self.effort = effort;
        self
    }

    async fn ask(&self, request: &ModelRequest<'_>, on_text: OnText<'_>) -> Result<ModelAnswer, ModelError> {
        let mut body = body(&self.name, request);
        if let Some(effort) = &self.effort {
            body["reasoning_effort"] = json!(effort);
        }
        let mut events = self.wire.post("chat/completions", &body).await?;
        let mut answer = CompletionBuilder::default();
        while let Some(event) = events.next().await? {
            if event.data == "[DONE]" {
                answer.is_done = true;
                break;
            }
            for chunk in understood(&event, as_stream)? {
                answer.apply(&chunk, on_text);
            }
        }
        Ok(answer.finish()?.with_estimated_tokens(request))
    }
}

impl Model for ChatCompletions {
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
    let mut messages = vec![json!({ "role": "system", "content": request.system })];
    request.entries.iter().for_each(|entry| add(entry, &mut messages));
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| definition(tool, DefinitionFormat::OpenAi));
        body["tools"] = tools.collect();
    }
    body
}

fn add(entry: &ConversationEntry, messages: &mut Vec<Value>) {
    match entry {
        ConversationEntry::Told(text) => messages.push(json!({ "role": "user", "content": text })),
        ConversationEntry::Answered(answer) => {
            let mut message = json!({ "role": "assistant", "content": answer.text });
            if !answer.calls.is_empty() {
                message["tool_calls"] = answer.calls.iter().map(call).collect();
            }
            messages.push(message);
        }
        ConversationEntry::Observed(observations) => {
            messages.extend(observations.iter().map(
                |observation| json!({ "role": "tool", "tool_call_id": observation.id, "content": observation.text }),
            ));
            messages.extend(images_message(observations));
        }
    }
}

/// Tool messages can contain only text, so images follow in a user message.
fn images_message(observations: &[Observation]) -> Option<Value> {
    let mut content = Vec::new();
    for observation in observations.iter().filter(|observation| !observation.images.is_empty()) {
        let whose = format!("What `{}` ({}) shows:", observation.name, observation.id);
        content.push(json!({ "type": "text", "text": whose }));
        let urls = observation.images.iter().map(|image| json!({ "url": image.url() }));
        content.extend(urls.map(|url| json!({ "type": "image_url", "image_url": url })));
    }
    (!content.is_empty()).then(|| json!({ "role": "user", "content": content }))
}

/// A response that wasn't streamed, as the chunk that would have streamed it.
fn as_stream(mut completion: Value) -> Vec<Value> {
    if let Some(choice) = completion.pointer_mut("/choices/0").and_then(Value::as_object_mut)
        && let Some(message) = choice.shift_remove("message")
    {
        choice.insert("delta".into(), message);
    }
    vec![completion]
}

fn call(asked: &ToolCall) -> Value {
    let arguments = asked.arguments_or_empty();
    match asked.shape {
        ToolCallKind::Custom => {
            let input = arguments.as_str().unwrap_or_default();
            json!({ "id": asked.id, "type": "custom", "custom": { "name": asked.name, "input": input } })
        }
        ToolCallKind::Function | ToolCallKind::LocalShell => {
            let function = json!({ "name": asked.name, "arguments": arguments.to_string() });
            json!({ "id": asked.id, "type": "function", "function": function })
        }
    }
}

/// An answer under construction: its chunks arrive in order, its calls by index.
#[derive(Default)]
struct CompletionBuilder {
    text: String,
    calls: BTreeMap<u64, PartialCall>,
    tokens: TokenUsage,
    finish: Option<String>,
    is_done: bool,
}

impl CompletionBuilder {
    fn apply(&mut self, chunk: &Value, on_text: OnText<'_>) {
        if let Some(usage) = chunk.get("usage").filter(|usage| !usage.is_null()) {
            let count = |field: &str| usage.get(field).and_then(Value::as_u64).unwrap_or_default();
            self.tokens = TokenUsage { input: count("prompt_tokens"), output: count("completion_tokens") };
        }
        let Some(choice) = chunk.pointer("/choices/0") else { return };
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(reason.to_owned());
        }
        let Some(delta) = choice.get("delta") else { return };
        // A refusal is part of the answer's text.
        for field in ["content", "refusal"] {
            if let Some(piece) = delta.get(field).and_then(Value::as_str) {
                self.text.push_str(piece);
                on_text(piece);
            }
        }
        for piece in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.apply_call(piece);
        }
    }

    fn apply_call(&mut self, piece: &Value) {
        // Some servers send each call at once and leave the index out.
        let next = self.calls.last_key_value().map_or(0, |(last, _)| last + 1);
        let index = piece.get("index").and_then(Value::as_u64).unwrap_or(next);
        let call = self.calls.entry(index).or_default();
        let text = |pointer: &str| piece.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        call.id.push_str(text("/id"));
        call.name.push_str(text("/function/name"));
        call.push(text("/function/arguments"));
        if piece.get("custom").is_some() {
            call.is_custom = true;
            call.name.push_str(text("/custom/name"));
            call.push(text("/custom/input"));
        }
    }

    fn finish(self) -> Result<ModelAnswer, ModelError> {
        if !self.is_done && self.finish.is_none() {
            return Err(cut_off());
        }
        let calls = self.calls.into_iter().map(|(index, mut call)| {
            if call.id.is_empty() {
                call.id = format!("call_{index}");
            }
            call.finish()
        });
        Ok(ModelAnswer {
            text: self.text,
            calls: calls.collect(),
            tokens: self.tokens,
            cut: self.finish.as_deref() == Some("length"),
            ..ModelAnswer::default()
        })
    }
}
