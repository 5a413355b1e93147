//! What the public conformance suite asks a server for: tools, prompts and resources of known names. They are offered
//! only behind a hidden switch; the tools are registered like any others and reached through the gate.

mod fixtures;
mod prompts;

use std::future::Future;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::AnyTool;

use crate::call_context::CallContext;
use crate::client::Client;
use crate::json_rpc_error::JsonRpcError;
use crate::methods::{RequestContext, page, text};

/// A one-pixel image.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// The shortest sound.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

tokio::task_local! {
    /// The client of the call that is running, for tools that talk to it.
    static TIE: FixtureContext;
}

/// A client and the call that it waits for.
#[derive(Clone)]
struct FixtureContext {
    client: Arc<Client>,
    link: Arc<CallContext>,
}

/// Lets the tools of this module find their client while `future` runs.
pub(crate) fn tied<F: Future>(
    client: &Arc<Client>,
    link: &Arc<CallContext>,
    future: F,
) -> impl Future<Output = F::Output> {
    TIE.scope(FixtureContext { client: Arc::clone(client), link: Arc::clone(link) }, future)
}

/// The tools.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    fixtures::all()
}

/// Answers the methods that only the suite asks for.
pub(crate) fn answer(asking: &RequestContext<'_>, method: &str) -> Result<Value, JsonRpcError> {
    match method {
        "prompts/list" => page(asking, "prompts", &prompts::all()),
        "prompts/get" => prompts::get(asking),
        "completion/complete" => {
            asking.params.get("ref").ok_or_else(|| JsonRpcError::invalid_params("`params.ref` is missing."))?;
            Ok(json!({ "completion": { "values": [], "total": 0, "hasMore": false } }))
        }
        _ => Err(JsonRpcError::method_not_found(method)),
    }
}

/// The resources.
pub(crate) fn resources() -> Vec<Value> {
    let resource = |uri: &str, mime: &str| json!({ "uri": uri, "name": uri, "description": "For the conformance suite.", "mimeType": mime });
    vec![
        resource("test://static-text", "text/plain"),
        resource("test://static-binary", "image/png"),
        resource("test://watched-resource", "text/plain"),
    ]
}

/// The templates of resources.
pub(crate) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "For the conformance suite.",
        "mimeType": "application/json",
    })]
}

/// A resource by its address.
pub(crate) fn resource(uri: &str) -> Option<Value> {
    let words = |text: &str| json!({ "uri": uri, "mimeType": "text/plain", "text": text });
    let content = match uri {
        "test://static-text" => words("This is the content of the static text resource."),
        "test://watched-resource" => words("Watched."),
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PIXEL }),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
        }
    };
    Some(json!({ "contents": [content] }))
}

/// A question for the person, with one field.
fn question(message: &str, field: &str, kind: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": { field: { "type": kind } },
                "required": [field],
            },
        },
    })
}

/// What the person answered to a question, if they did.
fn accepted<'a>(inputs: &'a serde_json::Map<String, Value>, key: &str) -> Option<&'a Value> {
    let input = inputs.get(key)?;
    (input.get("action")? == "accept").then(|| input.get("content")).flatten()
}

fn param<'a>(asking: &RequestContext<'a>, field: &str) -> Result<&'a str, JsonRpcError> {
    let arguments = asking.params.get("arguments").and_then(Value::as_object);
    text(arguments.ok_or_else(|| JsonRpcError::invalid_params("`params.arguments` is missing."))?, field)
}
