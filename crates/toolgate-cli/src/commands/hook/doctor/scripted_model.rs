//! A model on loopback that asks a client for one command and then says that it is done, in the four wire forms that clients speak. It
//! keeps what the client told it of that command.

use std::net::{Ipv4Addr, TcpListener as BlockingListener};
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The longest request that is read, in bytes.
const MAX_REQUEST: usize = 64 << 20;
/// Clients ask for titles and the like with no tools or few; only a turn has more than these.
const FEW_TOOLS: usize = 2;
const DONE: &str = "Done.";
const CALL_ID: &str = "call_canary";

/// What the client is asked to do, by the name of its shell.
#[derive(Debug, Clone)]
pub(super) struct CanaryCall {
    pub(super) tool: &'static str,
    pub(super) input: Value,
}

/// The model, before it is asked.
pub(super) struct CanaryModel {
    listener: BlockingListener,
    port: u16,
}

/// What happened so far.
#[derive(Debug, Default)]
struct CanaryConversation {
    is_called: bool,
    told: Option<String>,
}

#[derive(Clone)]
struct ModelState {
    call: CanaryCall,
    conversation: Arc<Mutex<CanaryConversation>>,
}

/// How a conversation went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToldModel {
    /// Whether the client asked for a turn at all.
    pub(super) is_asked: bool,
    /// What the client sent after the call, as JSON.
    pub(super) told: String,
}

impl ToldModel {
    /// Whether the client told its model this.
    pub(super) fn has(&self, text: &str) -> bool {
        // As it stands in JSON, without the quotes.
        let quoted = json!(text).to_string();
        self.told.contains(quoted.trim_matches('"'))
    }
}

impl CanaryModel {
    #[allow(clippy::disallowed_methods, reason = "a server for a client that is started here, on loopback")]
    pub(super) fn bind() -> Result<Self> {
        let listener = BlockingListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port can be listened on")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Answers while this work goes on.
    pub(super) async fn answer_during<T>(
        self,
        call: CanaryCall,
        work: impl Future<Output = T>,
    ) -> Result<(T, ToldModel)> {
        let conversation = Arc::new(Mutex::new(CanaryConversation::default()));
        let state = ModelState { call, conversation: Arc::clone(&conversation) };
        let listener = TcpListener::from_std(self.listener)?;
        let routes = Router::new().fallback(answer).with_state(state);
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await });
        let done = work.await;
        serving.abort();
        let conversation = conversation.lock();
        let told = ToldModel { is_asked: conversation.is_called, told: conversation.told.clone().unwrap_or_default() };
        Ok((done, told))
    }
}

async fn answer(State(state): State<ModelState>, request: Request) -> Response {
    let path = request.uri().path().to_lowercase();
    let is_post = request.method() == axum::http::Method::POST;
    let body = to_bytes(request.into_body(), MAX_REQUEST).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if !is_post {
        return whole(&json!({ "object": "list", "data": [{ "id": "scripted", "object": "model" }], "models": [] }));
    }
    if path.contains("count") {
        return whole(&json!({ "input_tokens": 10, "totalTokens": 10 }));
    }
    let call = state.next(&body);
    match path.as_str() {
        path if path.ends_with("/messages") => messages(&body, call),
        path if path.ends_with("/responses") => responses(&body, call),
        path if path.ends_with("/chat/completions") => chat(&body, call),
        path if path.contains("generatecontent") => gemini(&body, call, path.contains("stream")),
        _ => whole(&json!({})),
    }
}

impl ModelState {
    /// The call, if this is the first turn. What comes later tells what became of it.
    fn next(&self, body: &Value) -> Option<CanaryCall> {
        let groups = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let count = |group: &Value| group["functionDeclarations"].as_array().map_or(1, Vec::len);
        if groups.iter().map(count).sum::<usize>() <= FEW_TOOLS {
            return None;
        }
        let mut conversation = self.conversation.lock();
        if !conversation.is_called {
            conversation.is_called = true;
            return Some(self.call.clone());
        }
        let said = ["messages", "input", "contents"].iter().find_map(|name| body.get(name));
        conversation.told = said.map(Value::to_string);
        None
    }
}

fn whole(value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Events of a stream. Those with a type are named by it.
fn stream(events: &[Value]) -> Response {
    let line = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    let text: String = events.iter().map(line).collect();
    ([(CONTENT_TYPE, "text/event-stream")], text).into_response()
}

/// Anthropic's messages.
fn messages(body: &Value, call: Option<CanaryCall>) -> Response {
    let stop = if call.is_some() { "tool_use" } else { "end_turn" };
    let (block, start, delta) = match call {
        Some(CanaryCall { tool, input }) => {
            let block = |input: &Value| json!({ "type": "tool_use", "id": CALL_ID, "name": tool, "input": input });
            let delta = json!({ "type": "input_json_delta", "partial_json": input.to_string() });
            (block(&input), block(&json!({})), delta)
        }
        None => {
            let block = |text: &str| json!({ "type": "text", "text": text });
            (block(DONE), block(""), json!({ "type": "text_delta", "text": DONE }))
        }
    };
    let usage = json!({ "input_tokens": 10, "output_tokens": 10 });
    let mut message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": usage,
    });
    if body["stream"] != true {
        message["content"] = json!([block]);
        message["stop_reason"] = json!(stop);
        return whole(&message);
    }
    stream(&[
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": start }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": usage }),
        json!({ "type": "message_stop" }),
    ])
}

/// OpenAI's responses.
fn responses(body: &Value, call: Option<CanaryCall>) -> Response {
    let item = match call {
        Some(CanaryCall { tool, input }) => json!({
            "type": "function_call", "id": format!("fc_{CALL_ID}"), "call_id": CALL_ID, "name": tool,
            "arguments": input.to_string(), "status": "completed",
        }),
        None => json!({
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": DONE, "annotations": [] }],
        }),
    };
    let mut response = json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": body["model"], "output": [],
    });
    let created = json!({ "type": "response.created", "response": response });
    response["status"] = json!("completed");
    response["output"] = json!([item]);
    response["usage"] = json!({
        "input_tokens": 10, "output_tokens": 10, "total_tokens": 20, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens_details": { "reasoning_tokens": 0 },
    });
    stream(&[
        created,
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": response }),
    ])
}

/// OpenAI's chat completions.
fn chat(body: &Value, call: Option<CanaryCall>) -> Response {
    let finish = if call.is_some() { "tool_calls" } else { "stop" };
    let message = match call {
        Some(CanaryCall { tool, input }) => json!({ "role": "assistant", "content": null, "tool_calls": [{
            "index": 0, "id": CALL_ID, "type": "function", "function": { "name": tool, "arguments": input.to_string() },
        }] }),
        None => json!({ "role": "assistant", "content": DONE }),
    };
    let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
    let part = |choices: Value| {
        json!({
            "id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": body["model"], "choices": choices,
        })
    };
    if body["stream"] != true {
        let mut completion = part(json!([{ "index": 0, "message": message, "finish_reason": finish }]));
        completion["object"] = json!("chat.completion");
        completion["usage"] = usage;
        return whole(&completion);
    }
    let mut last = part(json!([]));
    last["usage"] = usage;
    stream(&[
        part(json!([{ "index": 0, "delta": message, "finish_reason": null }])),
        part(json!([{ "index": 0, "delta": {}, "finish_reason": finish }])),
        last,
    ])
}

/// Gemini's content.
fn gemini(body: &Value, call: Option<CanaryCall>, is_stream: bool) -> Response {
    let part = match call {
        Some(CanaryCall { tool, input }) => json!({ "functionCall": { "name": tool, "args": input } }),
        // It is also asked for judgements as JSON, and goes on without them.
        None if body["generationConfig"]["responseJsonSchema"].is_object() => json!({ "text": "{}" }),
        None => json!({ "text": DONE }),
    };
    let answer = json!({
        "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 },
        "modelVersion": "scripted",
    });
    if is_stream { stream(&[answer]) } else { whole(&answer) }
}
