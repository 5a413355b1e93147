//! Requests to the endpoint's router, without a socket.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A response that has come whole.
#[derive(Debug)]
pub(crate) struct EndpointAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The messages: the body, or the data of every event of a stream.
    pub(crate) messages: Vec<Value>,
}

impl EndpointAnswer {
    /// The last message, which is the answer to the request.
    pub(crate) fn body(&self) -> &Value {
        self.messages.last().unwrap_or(&Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A request, as a client on this machine sends it unless these headers say otherwise.
pub(crate) fn request(method: &str, headers: &[(&str, &str)], body: String) -> Request<Body> {
    let defaults = [("host", "localhost"), ("content-type", "application/json")];
    let missing =
        defaults.iter().filter(|(name, _)| !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)));
    let all = headers.iter().chain(missing);
    let request =
        all.fold(Request::builder().method(method).uri("/"), |request, (name, value)| request.header(*name, *value));
    request.body(Body::from(body)).unwrap()
}

pub(crate) async fn send(router: &Router, request: Request<Body>) -> EndpointAnswer {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().into()).unwrap();
    let is_stream = parts.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    let messages = match is_stream {
        true => body.lines().filter_map(|line| line.strip_prefix("data: ")).map(parsed).collect(),
        false => vec![parsed(&body)],
    };
    EndpointAnswer { status: parts.status.as_u16(), headers: parts.headers, messages }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A message that asks for this.
pub(crate) fn message(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// Begins a session, and returns its id.
pub(crate) async fn initialize(router: &Router, capabilities: Value) -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities });
    let answer = send(router, request("POST", &[], message("initialize", &params))).await;
    answer.header("mcp-session-id").unwrap().to_owned()
}

/// A request in a session.
pub(crate) async fn in_session(router: &Router, session: &str, method: &str, params: Value) -> EndpointAnswer {
    send(router, request("POST", &[("mcp-session-id", session)], message(method, &params))).await
}

/// A call without a handshake, by a client that can show forms.
pub(crate) fn stateless_call(tool: &str, mut params: Value) -> Request<Body> {
    params["name"] = json!(tool);
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    request("POST", &headers, message("tools/call", &params))
}
