//! The state that a client carries from one request of a call to the next expires.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolgate_contract::RefusedRequest;
use toolgate_mcp::service;

use crate::backend::McpTestServer;
use crate::http_client::{send, stateless_call};

/// Makes a call that asks, lets so much time pass, and brings the answer. Returns the second response, how often the tool
/// ran, and what was refused.
async fn answered_after(seconds: i64) -> (Value, usize, Vec<RefusedRequest>) {
    let server = McpTestServer::configured("[[rules]]\ndecision = \"ask\"\ntool = \"writes\"\n");
    let router = service(server.server.clone());
    let call = json!({ "arguments": { "path": "a.txt" } });
    let first = send(&router, stateless_call("writes", call.clone())).await;
    assert_eq!(first.body()["result"]["resultType"], "input_required", "{first:?}");
    server.backend.workspace.clock.pass(seconds);
    let mut again = call;
    again["requestState"] = first.body()["result"]["requestState"].clone();
    again["inputResponses"] = json!({ "approval": { "action": "accept", "content": { "answer": "yes" } } });
    let second = send(&router, stateless_call("writes", again)).await;
    (second.body().clone(), server.backend.writing.0.load(Ordering::SeqCst), server.refusals())
}

#[tokio::test]
async fn a_state_is_valid_for_ten_minutes() {
    let (done, ran, refused) = answered_after(599).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert_eq!((ran, refused.len()), (1, 0));
}

#[tokio::test]
async fn an_expired_state_is_refused_on_record() {
    let (late, ran, refused) = answered_after(600).await;
    assert_eq!(late["error"]["code"], -32602, "{late}");
    assert!(late["error"]["message"].as_str().unwrap().contains("it has expired"), "{late}");
    assert_eq!(ran, 0, "nothing ran");
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].code.as_str(), refused[0].door.as_str()), ("bad_state", "mcp"));
    assert!(refused[0].request.contains("writes: it has expired"), "{}", refused[0].request);
}
