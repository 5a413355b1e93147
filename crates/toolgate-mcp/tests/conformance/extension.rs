//! What the suite asks for beside tools: prompts, resources, completion, and results that no reply of the gate can hold.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use toolgate_mcp::{ClientCall, ExtensionRequest, JsonRpcError, ServerExtension};

use crate::prompts;

/// A one-pixel image.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// The calls that run, and the results of their tools.
#[derive(Default)]
pub(crate) struct ConformanceExtension {
    calls: Mutex<HashMap<String, ClientCall>>,
    results: Mutex<HashMap<String, Result<Value, JsonRpcError>>>,
}

impl ConformanceExtension {
    /// The running call of this id.
    pub(crate) fn call(&self, id: &str) -> Option<ClientCall> {
        self.calls.lock().get(id).cloned()
    }

    /// Sets the result of a call, unless it has one already.
    pub(crate) fn set_result(&self, id: &str, result: Result<Value, JsonRpcError>) {
        self.results.lock().entry(id.to_owned()).or_insert(result);
    }
}

impl ServerExtension for ConformanceExtension {
    fn add_capabilities(&self, capabilities: &mut Map<String, Value>, is_stateless: bool) {
        capabilities.insert("prompts".into(), json!({ "listChanged": true }));
        capabilities.insert("completions".into(), json!({}));
        if !is_stateless {
            capabilities.insert("resources".into(), json!({ "subscribe": true }));
        }
    }

    fn answer(&self, request: &ExtensionRequest<'_>) -> Option<Result<Value, JsonRpcError>> {
        let params = request.params;
        match request.method {
            "prompts/list" => Some(Ok(json!({ "prompts": prompts::all() }))),
            "prompts/get" => Some(prompts::get(params)),
            "completion/complete" => Some(complete(params)),
            "resources/list" => Some(Ok(json!({ "resources": resources() }))),
            "resources/templates/list" => Some(Ok(json!({ "resourceTemplates": templates() }))),
            "resources/read" => read(params.get("uri")?.as_str()?).map(Ok),
            "resources/subscribe" | "resources/unsubscribe" if !request.is_stateless => {
                Some(text(params, "uri").map(|_| json!({})))
            }
            _ => None,
        }
    }

    fn call_started(&self, call: ClientCall) {
        self.calls.lock().insert(call.id().to_owned(), call);
    }

    fn call_ended(&self, call_id: &str) -> Option<Result<Value, JsonRpcError>> {
        self.calls.lock().remove(call_id);
        self.results.lock().remove(call_id)
    }
}

fn complete(params: &Map<String, Value>) -> Result<Value, JsonRpcError> {
    params.get("ref").ok_or_else(|| JsonRpcError::invalid_params("`params.ref` is missing."))?;
    Ok(json!({ "completion": { "values": [], "total": 0, "hasMore": false } }))
}

fn resources() -> Vec<Value> {
    let resource = |uri: &str, mime: &str| json!({ "uri": uri, "name": uri, "description": "For the conformance suite.", "mimeType": mime });
    vec![
        resource("test://static-text", "text/plain"),
        resource("test://static-binary", "image/png"),
        resource("test://watched-resource", "text/plain"),
    ]
}

fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "For the conformance suite.",
        "mimeType": "application/json",
    })]
}

/// A resource by its URI.
fn read(uri: &str) -> Option<Value> {
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
pub(crate) fn question(message: &str, field: &str, kind: &str) -> Value {
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

/// What the person answered to a question, if they accepted it.
pub(crate) fn accepted<'a>(inputs: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let input = inputs.get(key)?;
    (input.get("action")? == "accept").then(|| input.get("content")).flatten()
}

/// A required param that is a string.
pub(crate) fn text<'a>(params: &'a Map<String, Value>, field: &str) -> Result<&'a str, JsonRpcError> {
    let value = params.get(field).and_then(Value::as_str);
    value.ok_or_else(|| JsonRpcError::invalid_params(format!("`params.{field}` has to be a string.")))
}
