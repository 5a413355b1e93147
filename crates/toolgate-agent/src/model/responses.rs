//! OpenAI's responses API: function, custom and local shell calls. The server stores nothing; the items of each answer
//! are sent back unchanged, so that the model keeps its own reasoning.

use serde_json::{Value, json};
use toolgate_contract::{BoxFuture, Declaration, TokenUsage};
use toolgate_dialects::{DefinitionFormat, ToolCall, ToolCallKind, definition};

use super::http::{cut_off, understood};
use super::{
    ConversationEntry, InlineImage, Model, ModelAnswer, ModelEndpoint, ModelError, ModelErrorKind, ModelRequest,
    Observation, OnText,
};

/// A model behind `POST /responses`.
#[derive(Debug)]
pub struct Responses {
    name: String,
    wire: ModelEndpoint,
    effort: Option<String>,
}

impl Responses {
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
            body["reasoning"] = json!({ "effort": effort });
        }
        let mut events = self.wire.post("responses", &body).await?;
        let mut answer = ModelAnswer::default();
        while let Some(event) = events.next().await? {
            if event.data == "[DONE]" {
                break;
            }
            for event in understood(&event, as_stream)? {
                if apply(&mut answer, &event, on_text)? {
                    return Ok(answer.with_estimated_tokens(request));
                }
            }
        }
        Err(cut_off())
    }
}

impl Model for Responses {
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
    let mut input = Vec::new();
    request.entries.iter().for_each(|entry| add(entry, &mut input));
    let mut body = json!({
        "model": model,
        "instructions": request.system,
        "input": input,
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
    });
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| declared(model, tool));
        body["tools"] = tools.collect();
    }
    body
}

/// One family of models was trained with a built-in shell; our native `shell` tool, which takes a line, is declared as that.
fn declared(model: &str, tool: &Declaration) -> Value {
    let takes_line = || tool.args_schema.pointer("/properties/command/type").is_some_and(|kind| kind == "string");
    match model.starts_with("codex-mini") && tool.name == "shell" && takes_line() {
        true => json!({ "type": "local_shell" }),
        false => definition(tool, DefinitionFormat::OpenAiResponses),
    }
}

fn add(entry: &ConversationEntry, input: &mut Vec<Value>) {
    match entry {
        ConversationEntry::Told(text) => input.push(message("user", "input_text", text)),
        ConversationEntry::Answered(answer) if !answer.raw.is_empty() => input.extend(answer.raw.iter().cloned()),
        ConversationEntry::Answered(answer) => {
            if !answer.text.is_empty() {
                input.push(message("assistant", "output_text", &answer.text));
            }
            input.extend(answer.calls.iter().map(call));
        }
        ConversationEntry::Observed(observations) => input.extend(observations.iter().map(output)),
    }
}

fn message(role: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

/// A call in the API's form, where the model's own item is gone.
fn call(asked: &ToolCall) -> Value {
    let arguments = asked.arguments_or_empty();
    match asked.shape {
        ToolCallKind::Custom => {
            let input = arguments.as_str().unwrap_or_default();
            json!({ "type": "custom_tool_call", "call_id": asked.id, "name": asked.name, "input": input })
        }
        ToolCallKind::Function => {
            let arguments = arguments.to_string();
            json!({ "type": "function_call", "call_id": asked.id, "name": asked.name, "arguments": arguments })
        }
        ToolCallKind::LocalShell => {
            let command = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
            let action = json!({ "type": "exec", "command": ["bash", "-c", command], "env": {} });
            let (id, status) = (&asked.id, "completed");
            json!({ "type": "local_shell_call", "id": id, "call_id": id, "action": action, "status": status })
        }
    }
}

fn output(observation: &Observation) -> Value {
    let (id, text) = (&observation.id, shown(observation));
    match observation.shape {
        ToolCallKind::Function => json!({ "type": "function_call_output", "call_id": id, "output": text }),
        ToolCallKind::Custom => json!({ "type": "custom_tool_call_output", "call_id": id, "output": text }),
        ToolCallKind::LocalShell => json!({ "type": "local_shell_call_output", "id": id, "output": observation.text }),
    }
}

/// A result as text, with its images.
fn shown(observation: &Observation) -> Value {
    let image = |image: &InlineImage| json!({ "type": "input_image", "image_url": image.url() });
    match observation.images.as_slice() {
        [] => json!(observation.text),
        images => {
            let text = json!({ "type": "input_text", "text": observation.text });
            [text].into_iter().chain(images.iter().map(image)).collect()
        }
    }
}

/// A response that wasn't streamed, as the events that would have streamed it.
fn as_stream(response: Value) -> Vec<Value> {
    let mut events = Vec::new();
    for item in response.get("output").and_then(Value::as_array).into_iter().flatten() {
        // Reasoning items have content parts of their own, which aren't part of the answer.
        let parts = item.get("content").filter(|_| item["type"] == "message");
        for part in parts.and_then(Value::as_array).into_iter().flatten() {
            let words = part.get("text").or_else(|| part.get("refusal"));
            events.extend(words.map(|words| json!({ "type": "response.output_text.delta", "delta": words })));
        }
        events.push(json!({ "type": "response.output_item.done", "item": item }));
    }
    let status = response.get("status").and_then(Value::as_str).unwrap_or_default();
    events.push(json!({ "type": format!("response.{status}"), "response": response }));
    events
}

/// Applies one event; returns whether it was the last.
fn apply(answer: &mut ModelAnswer, event: &Value, on_text: OnText<'_>) -> Result<bool, ModelError> {
    match event.get("type").and_then(Value::as_str).unwrap_or_default() {
        "response.output_text.delta" | "response.refusal.delta" => {
            let piece = event.get("delta").and_then(Value::as_str).unwrap_or_default();
            answer.text.push_str(piece);
            on_text(piece);
        }
        "response.output_item.done" => {
            if let Some(item) = event.get("item") {
                answer.calls.extend(parse_call(item));
                answer.raw.push(item.clone());
            }
        }
        kind @ ("response.completed" | "response.incomplete") => {
            answer.cut = kind == "response.incomplete";
            let usage = event.pointer("/response/usage");
            let count = |field: &str| usage.and_then(|usage| usage.get(field)?.as_u64()).unwrap_or_default();
            answer.tokens = TokenUsage { input: count("input_tokens"), output: count("output_tokens") };
            return Ok(true);
        }
        "response.failed" => return Err(failed(event.pointer("/response/error"))),
        "error" => return Err(failed(Some(event))),
        _ => {}
    }
    Ok(false)
}

/// The call in an item, if there is one.
fn parse_call(item: &Value) -> Option<ToolCall> {
    let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "function_call" => Some(ToolCall::function(text("call_id"), text("name"), text("arguments"))),
        "custom_tool_call" => Some(ToolCall::custom(text("call_id"), text("name"), text("input"))),
        "local_shell_call" => Some(ToolCall::local_shell(text("call_id"), item.get("action").unwrap_or(&Value::Null))),
        _ => None,
    }
}

fn failed(error: Option<&Value>) -> ModelError {
    let text = |field: &str| error.and_then(|error| error.get(field)?.as_str()).unwrap_or_default();
    let kind = match text("code") {
        code if super::http::is_about_length(code, text("message")) => ModelErrorKind::TooLong,
        "rate_limit_exceeded" => ModelErrorKind::Busy,
        "invalid_prompt" | "insufficient_quota" | "invalid_api_key" => ModelErrorKind::Refused,
        _ => ModelErrorKind::Broken,
    };
    ModelError::new(kind, format!("The model's server says: {} {}", text("code"), text("message")))
}
