//! Tools of a client's own: registered in its session, called back by events, answered by it, gone with it.

use serde_json::{Value, json};

use crate::test_server::{ConsoleTestServer, OWNER};

const ALLOWED: &str = "rules = [{ decision = 'allow', permission = 'mcp.call' }]";

fn lookup(description: &str) -> Value {
    let schema = json!({
        "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"], "additionalProperties": false,
    });
    json!({ "name": "lookup", "description": description, "args_schema": schema })
}

#[tokio::test]
async fn a_clients_tool_is_called_by_an_event_and_answered_by_the_client() {
    let server = ConsoleTestServer::with(ALLOWED, Default::default());
    let (session, token) = server.session(json!({})).await;
    let registered = server.post(&token, "/v1/tools", &lookup("Looks it up.")).await;
    assert_eq!((registered.status, registered.json()["name"].as_str()), (201, Some("client__lookup")));
    let tools = server.get(&token, "/v1/tools").await.json().to_string();
    assert!(tools.contains("client__lookup"), "{tools}");
    let call = json!({ "name": "client__lookup", "args": { "id": 7 }, "tool_call_id": "call_1" });
    let calling = server.spawn(&token, "/v1/calls", &call);
    let event = server.event(&session["run"], "client_call.requested").await;
    assert_eq!((&event["tool"], &event["args"]["id"]), (&json!("lookup"), &json!(7)), "{event}");
    let waiting = server.get(&token, "/v1/client-calls").await.json();
    assert_eq!(waiting["calls"][0]["tool_call_id"], "call_1", "{waiting}");
    let (_, stranger) = server.session(json!({})).await;
    let foreign = server.post(&stranger, "/v1/client-calls/call_1", &json!({ "result": "forged" })).await;
    assert_eq!(foreign.status, 404, "another session's call");
    for wrong in [json!({}), json!({ "result": 1, "error": "x" })] {
        assert_eq!(server.post(&token, "/v1/client-calls/call_1", &wrong).await.status, 400, "{wrong}");
    }
    assert_eq!(
        server.post(&token, "/v1/client-calls/call_1", &json!({ "result": { "name": "Ada" } })).await.status,
        204
    );
    let reply = calling.await.unwrap().json();
    assert_eq!(reply["payload"]["result"]["name"], "Ada", "{reply}");
    assert_eq!(server.post(&token, "/v1/client-calls/call_1", &json!({ "result": 2 })).await.status, 404, "answered");
    let started = server.event(&session["run"], "tool_call.started").await;
    assert_eq!(started["effects"][0]["server"], "client", "{started}");
    let failing = server.spawn(
        &token,
        "/v1/calls",
        &json!({ "name": "client__lookup", "args": { "id": 8 }, "tool_call_id": "call_2" }),
    );
    while server.get(&token, "/v1/client-calls").await.json()["calls"].as_array().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    server.post(&token, "/v1/client-calls/call_2", &json!({ "error": "no such id" })).await;
    assert_eq!(failing.await.unwrap().json()["error"]["code"], "server_error");
}

#[tokio::test]
async fn a_clients_tool_is_validated_judged_and_leaves_with_its_session() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({ "wait_seconds": 0 })).await;
    for wrong in [
        json!({ "name": "a b", "description": "d", "args_schema": { "type": "object" } }),
        json!({ "name": "ok", "description": "d", "args_schema": { "type": "string" } }),
        json!({ "name": "ok", "description": "d", "args_schema": { "type": "object", "properties": 5 } }),
        json!({ "name": "x".repeat(80), "description": "d", "args_schema": { "type": "object" } }),
    ] {
        assert_eq!(server.post(&token, "/v1/tools", &wrong).await.status, 400, "{wrong}");
    }
    assert_eq!(server.post(&token, "/v1/tools", &lookup("d")).await.status, 201);
    let code = async |args: Value| server.call(&token, "client__lookup", args).await["error"]["code"].clone();
    assert_eq!(code(json!({ "id": 7, "more": 1 })).await, "invalid_args");
    assert_eq!(code(json!({ "id": 7 })).await, "approval_required", "it is asked about like a server's tool");
    let (_, stranger) = server.session(json!({})).await;
    assert_eq!(server.call(&stranger, "client__lookup", json!({ "id": 7 })).await["error"]["code"], "unknown_tool");
    assert_eq!(server.delete(&token, "/v1/tools/client__lookup").await.status, 204);
    assert_eq!(code(json!({ "id": 7 })).await, "unknown_tool");
    assert_eq!(server.post(&token, "/v1/tools", &lookup("d")).await.status, 201);
    let id = session["id"].as_str().unwrap();
    assert_eq!(server.delete(OWNER, &format!("/v1/sessions/{id}")).await.status, 204);
    let (_, again) = server.session(json!({ "id": id })).await;
    let gone = server.call(&again, "client__lookup", json!({ "id": 7 })).await;
    assert_eq!(gone["error"]["code"], "unknown_tool", "it left with its session");
}
