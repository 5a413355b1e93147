//! `tools/call`: a call through the gate. In the newer era a question to the person is part of a result: the call waits,
//! and the client's next request for the same call brings the answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_contract::{
    BoxFuture, Call, CancellationToken, Declaration, Event, EventPayload, RefusedRequest, Reply, Right,
};

use crate::backend::McpSession;
use crate::call_context::{CallContext, InputRequest};
use crate::client::{Client, lock};
use crate::conformance;
use crate::json_rpc_error::JsonRpcError;
use crate::methods::{RequestContext, text};
use crate::request_state::{StateBinding, digest};
use crate::suspended_calls::{InFlightCall, PATIENCE};
use crate::tool_result::result;
use crate::tools::REQUESTED;

/// A client that wants to hear of progress hears at least this often.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Answers `tools/call`.
pub(crate) async fn call(asking: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let mcp_session = asking.client.mcp_session()?;
    let state = match asking.params.get("requestState") {
        Some(state) if asking.profile.is_modern() => Some(opened(asking, &mcp_session, state)?),
        _ => None,
    };
    asking.client.roots.hold(asking, &mcp_session.session).await;
    let waited_for = state.as_ref().and_then(|state| state.get("call")?.as_str());
    let running = match waited_for {
        Some(id) => resume(asking, &mcp_session, id)?,
        None => begin(asking, &mcp_session, state.as_ref().and_then(|state| state.get("data").cloned()))?,
    };
    wait_for_reply(asking, &mcp_session, running).await
}

/// Begins a call.
fn begin(
    asking: &RequestContext<'_>,
    mcp_session: &Arc<McpSession>,
    state: Option<Value>,
) -> Result<InFlightCall, JsonRpcError> {
    let client = asking.client;
    let name = text(asking.params, "name")?;
    let mut args = match asking.params.get("arguments") {
        None => json!({}),
        Some(args) => args.clone(),
    };
    let requested = requested(&mut args, client.server.host.gate().declarations().find(|tool| tool.name == name))?;
    let mut call = Call::new(name, args, client.server.host.clock());
    call.requested_permissions = requested;
    let (link, asks) = CallContext::new(asking.profile.clone(), asking.params, state, Arc::clone(asking.outlet));
    let cancel = client.stop.child_token();
    let reply = perform(Arc::clone(client), Arc::clone(mcp_session), call, Arc::clone(&link), cancel.clone());
    Ok(InFlightCall { reply, asks, link, cancel })
}

/// The rights that stand among the arguments, taken out of them, unless the tool itself has an argument of that name.
fn requested(args: &mut Value, tool: Option<&Declaration>) -> Result<Vec<Right>, JsonRpcError> {
    let pointer = format!("/properties/{REQUESTED}");
    let is_its_own = tool.is_some_and(|tool| tool.args_schema.pointer(&pointer).is_some());
    let taken = args.as_object_mut().filter(|_| !is_its_own).and_then(|args| args.remove(REQUESTED));
    let rights = taken.map(serde_json::from_value).transpose();
    rights
        .map(Option::unwrap_or_default)
        .map_err(|fault| JsonRpcError::invalid_params(format!("`{REQUESTED}`: {fault}.")))
}

/// The call itself, tied to its request while it lasts.
fn perform(
    client: Arc<Client>,
    mcp_session: Arc<McpSession>,
    call: Call,
    link: Arc<CallContext>,
    cancel: CancellationToken,
) -> BoxFuture<'static, Option<Reply>> {
    Box::pin(async move {
        let _work = client.work();
        // What is declared later goes earlier: the stay isn't ours any longer when the work is over.
        let mcp_session = mcp_session;
        let _tied = client.tie(&call.tool_call_id, Arc::clone(&link));
        let gate = client.server.host.gate();
        let performing = conformance::tied(&client, &link, gate.perform(call, &mcp_session.session, cancel));
        tokio::pin!(performing);
        loop {
            tokio::select! {
                biased;
                reply = &mut performing => return Some(reply),
                () = tokio::time::sleep(HEARTBEAT), if link.wants_progress() => link.progress("still running"),
            }
        }
    })
}

/// Follows a call until it ends or asks something.
async fn wait_for_reply(
    asking: &RequestContext<'_>,
    mcp_session: &Arc<McpSession>,
    mut running: InFlightCall,
) -> Result<Value, JsonRpcError> {
    let asked = loop {
        tokio::select! {
            biased;
            reply = &mut running.reply => return ended(asking, mcp_session, reply, &running.link),
            Some(asked) = running.asks.recv() => break asked,
            () = asking.cancel.cancelled(), if !running.cancel.is_cancelled() => running.cancel.cancel(),
        }
    };
    suspend(asking, mcp_session, running, asked)
}

fn ended(
    asking: &RequestContext<'_>,
    mcp_session: &McpSession,
    reply: Option<Reply>,
    link: &CallContext,
) -> Result<Value, JsonRpcError> {
    if let Some(instead) = lock(&link.instead).take() {
        let mut instead = instead?;
        if let Some(data) = instead.as_object_mut().and_then(|fields| fields.remove("state")) {
            instead["requestState"] = sealed(asking, mcp_session, &json!({ "data": data })).into();
        }
        return Ok(instead);
    }
    let reply = reply.ok_or_else(|| JsonRpcError::internal("The call was lost."))?;
    asking.client.keep(&reply.artifacts.refs);
    asking.client.announce_changed_tools(&mcp_session.session);
    Ok(result(&reply, asking.profile, mcp_session.session.artifacts.as_ref()))
}

/// Lets the call wait beside us, and answers with its question.
fn suspend(
    asking: &RequestContext<'_>,
    mcp_session: &McpSession,
    mut running: InFlightCall,
    asked: InputRequest,
) -> Result<Value, JsonRpcError> {
    let clock = asking.client.server.host.clock();
    let id = clock.id().simple().to_string();
    // Whoever else may answer does so meanwhile, and then the call goes on by itself.
    let task = tokio::spawn(running.reply);
    running.reply = Box::pin(async move { task.await.ok().flatten() });
    let (name, question) = (asked.name, json!({ "method": "elicitation/create", "params": asked.params }));
    if !asking.client.pending.keep(id.clone(), running, asked, clock.now()) {
        return Err(JsonRpcError::internal("Too many calls wait for an answer. Answer those first."));
    }
    Ok(input_required(asking, mcp_session, name, &question, &json!({ "call": id })))
}

/// A result that asks for something first; the client's next request for the same call brings it, with the state.
fn input_required(
    asking: &RequestContext<'_>,
    mcp_session: &McpSession,
    name: &str,
    request: &Value,
    state: &Value,
) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": { name: request },
        "requestState": sealed(asking, mcp_session, state),
    })
}

/// Takes a waiting call up again, with the answer.
fn resume(asking: &RequestContext<'_>, mcp_session: &McpSession, id: &str) -> Result<InFlightCall, JsonRpcError> {
    let now = asking.client.server.host.clock().now();
    let waiting = asking.client.pending.take(id, now);
    let waiting = waiting.ok_or_else(|| refused(asking, mcp_session, "it was used before, or its time is up"))?;
    let inputs = asking.params.get("inputResponses").and_then(Value::as_object);
    let answer = inputs.and_then(|inputs| inputs.get(waiting.name)).cloned().unwrap_or_default();
    waiting.running.link.redirect(asking.params, Arc::clone(asking.outlet));
    // Somebody else may have answered first; then the call has gone on already.
    let _ = waiting.answer.send(answer);
    Ok(waiting.running)
}

/// A state for this client's next request for this very call.
fn sealed(asking: &RequestContext<'_>, mcp_session: &McpSession, content: &Value) -> String {
    let mut content = content.clone();
    let expires = asking.client.server.host.clock().now() + PATIENCE;
    content["expires"] = expires.as_second().into();
    asking.client.server.key.seal(&content, &bound(asking.params, mcp_session))
}

/// The content of a state that the client brought back.
fn opened(asking: &RequestContext<'_>, mcp_session: &McpSession, state: &Value) -> Result<Value, JsonRpcError> {
    let server = &asking.client.server;
    let content = state.as_str().and_then(|state| server.key.open(state, &bound(asking.params, mcp_session)));
    let content =
        content.ok_or_else(|| refused(asking, mcp_session, "it isn't one that this session got for this call"))?;
    let expires = content.get("expires").and_then(Value::as_i64).unwrap_or_default();
    if server.host.clock().now().as_second() >= expires {
        return Err(refused(asking, mcp_session, "its time is up"));
    }
    Ok(content)
}

fn bound<'a>(params: &Map<String, Value>, mcp_session: &'a McpSession) -> StateBinding<'a> {
    StateBinding { session: &mcp_session.session.id, method: "tools/call", params: digest(params) }
}

/// Refuses a state, and puts that on record.
fn refused(asking: &RequestContext<'_>, mcp_session: &McpSession, why: &str) -> JsonRpcError {
    let tool = asking.params.get("name").and_then(Value::as_str).unwrap_or_default();
    let refusal = RefusedRequest {
        door: "mcp".into(),
        code: "bad_state".into(),
        request: format!("tools/call {tool}: {why}"),
        from: Some(asking.client.visitor.principal.clone()),
        unrecorded: 0,
    };
    let event = Event {
        time: asking.client.server.host.clock().now(),
        run: mcp_session.session.run.clone(),
        turn: mcp_session.session.turn,
        trace_id: None,
        tool_call_id: None,
        payload: EventPayload::RequestRefused(refusal),
    };
    let reason = format!("The state that came with the request was refused: {why}.");
    match mcp_session.session.recorder.record(&[event]) {
        Ok(()) => JsonRpcError::invalid_params(format!("{reason} Make the call anew, without a state.")),
        Err(error) => JsonRpcError::internal(error.message),
    }
}
