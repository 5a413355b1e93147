//! The state that a client carries from one request of a call to the next: for how long it is good, and what becomes of
//! one that is brought too late.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use toolgate_contract::{Clock, EventPayload, RefusedRequest, ToolError, erase};
use toolgate_mcp::{ClientHandlers, ClientIdentity, McpOptions, McpServer, McpSession, ServerBackend, service};
use toolgate_runtime::{Ceiling, Gate};
use toolgate_testkit::{TestWorkspace, WritingTool};
use tower::ServiceExt;

/// A world that serves MCP.
struct House(TestWorkspace);

impl ServerBackend for House {
    fn gate(&self) -> &Gate {
        &self.0.gate
    }

    fn clock(&self) -> &dyn Clock {
        self.0.clock.as_ref()
    }

    fn workspace(&self) -> &Path {
        self.0.path()
    }

    fn ceilings(&self) -> &[Ceiling] {
        &[]
    }

    fn receive(&self, _visitor: &ClientIdentity, present: ClientHandlers) -> Result<McpSession, ToolError> {
        Ok(McpSession::new(self.0.session().approved_by(present.approver).watched_by(present.sink), || {}))
    }
}

/// A call that has to be approved, by a client whose requests stand alone and that can show forms.
fn call() -> Value {
    json!({
        "name": "writes",
        "arguments": { "path": "a.txt" },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        },
    })
}

async fn ask(endpoint: &Router, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "writes"),
    ];
    let request = headers.iter().fold(Request::post("/"), |request, (name, value)| request.header(*name, *value));
    let response = endpoint.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Asks, lets so much time pass, and brings the answer. Tells how that ended, how often the tool ran, and what was refused.
async fn answered_after(seconds: i64) -> (Value, usize, Vec<RefusedRequest>) {
    let tool = WritingTool::default();
    let world = TestWorkspace::new([erase(tool.clone())], "[[rules]]\ndecision = \"ask\"\ntool = \"writes\"\n");
    let backend = Arc::new(House(world));
    let endpoint = service(McpServer::new(Arc::clone(&backend) as _, McpOptions::default()).unwrap());
    let first = ask(&endpoint, &call()).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    backend.0.clock.pass(seconds);
    let mut again = call();
    again["requestState"] = first["result"]["requestState"].clone();
    again["inputResponses"] = json!({ "approval": { "action": "accept", "content": { "answer": "yes" } } });
    let second = ask(&endpoint, &again).await;
    let refused = backend.0.events().into_iter().filter_map(|event| match event.payload {
        EventPayload::RequestRefused(refusal) => Some(refusal),
        _ => None,
    });
    (second, tool.0.load(Ordering::SeqCst), refused.collect())
}

#[tokio::test]
async fn a_state_is_good_for_ten_minutes() {
    let (done, ran, refused) = answered_after(599).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert_eq!((ran, refused.len()), (1, 0));
}

#[tokio::test]
async fn a_state_whose_time_is_up_is_refused_and_that_is_on_record() {
    let (late, ran, refused) = answered_after(600).await;
    assert_eq!(late["error"]["code"], -32602, "{late}");
    assert!(late["error"]["message"].as_str().unwrap().contains("its time is up"), "{late}");
    assert_eq!(ran, 0, "nothing ran");
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].code.as_str(), refused[0].door.as_str()), ("bad_state", "mcp"));
    assert!(refused[0].request.contains("writes: its time is up"), "{}", refused[0].request);
}
