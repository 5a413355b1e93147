//! `tools/call`: a call through the gate. In the protocol version without a handshake, a question to the person is part
//! of a result: the call is suspended, and the client's next request for the same call brings the answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_contract::{BoxFuture, Call, CancellationToken, Declaration, Event, EventPayload, RefusedRequest, Right};
use toolgate_workspace::{DialectReply, DialectSession};

use crate::call_context::{CallContext, InputRequest};
use crate::client::Client;
use crate::extension::ClientCall;
use crate::json_rpc_error::JsonRpcError;
use crate::mcp_session::McpSession;
use crate::methods::{RequestContext, text};
use crate::request_state::{StateBinding, digest};
use crate::suspended_calls::{ANSWER_TIMEOUT, InFlightCall};
use crate::tool_result::{checked_result, result, shown_result};
use crate::tools::{JUSTIFICATION, REQUESTED};

/// A client that sent a progress token hears of its call at least this often.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The key in `_meta` of a call that is to be judged and not made.
const CHECK: &str = "toolgate/check";

/// Answers `tools/call`.
pub(crate) async fn call(context: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let mcp_session = context.client.mcp_session()?;
    if context.params.get("_meta").and_then(|meta| meta.get(CHECK)).is_some_and(|check| *check == true) {
        context.client.roots.apply(context, &mcp_session.session).await;
        return check(context, &mcp_session);
    }
    let state = match context.params.get("requestState") {
        Some(state) if context.profile.is_stateless() => Some(verified_state(context, &mcp_session, state)?),
        _ => None,
    };
    context.client.roots.apply(context, &mcp_session.session).await;
    let suspended = state.as_ref().and_then(|state| state.get("call")?.as_str());
    let running = match suspended {
        Some(id) => resume(context, &mcp_session, id)?,
        None => begin(context, &mcp_session, state.as_ref().and_then(|state| state.get("data").cloned()))?,
    };
    wait_for_reply(context, &mcp_session, running).await
}

/// What would become of a call. The client asks this for itself: no model fills `_meta`.
fn check(context: &RequestContext<'_>, mcp_session: &McpSession) -> Result<Value, JsonRpcError> {
    let (call, dialects) = read_call(context)?;
    let checked = dialects.check(call, &context.client.server.workspace.gate, &mcp_session.session);
    Ok(checked_result(&checked, context.profile))
}

/// Begins a call.
fn begin(
    context: &RequestContext<'_>,
    mcp_session: &Arc<McpSession>,
    state: Option<Value>,
) -> Result<InFlightCall, JsonRpcError> {
    let client = context.client;
    let (call, dialects) = read_call(context)?;
    let (call_context, input_requests) =
        CallContext::new(context.profile.clone(), context.params, state, Arc::clone(context.sink));
    let (id, cancel) = (call.tool_call_id.clone(), client.stop.child_token());
    let registered = client.principal_session.as_ref().map(|principal| principal.calls.register(&id, &cancel));
    let registered = registered.transpose().map_err(|error| JsonRpcError::busy(error.to_string()))?;
    let making = MadeCall { call, dialects, cancel: cancel.clone() };
    let end = perform(Arc::clone(client), Arc::clone(mcp_session), making, Arc::clone(&call_context));
    let end = Box::pin(async move {
        let _registered = registered;
        end.await
    });
    Ok(InFlightCall { id, end, input_requests, context: call_context, cancel })
}

/// The call of a request, and the dialects that it is in.
fn read_call(context: &RequestContext<'_>) -> Result<(Call, Arc<DialectSession>), JsonRpcError> {
    let client = context.client;
    let name = text(context.params, "name")?;
    let mut args = match context.params.get("arguments") {
        None => json!({}),
        Some(args) => args.clone(),
    };
    let workspace = &client.server.workspace;
    let dialects = client.dialect_session(&context.profile.client);
    let tool = workspace.gate.declaration(name);
    let requested = take_requested(&mut args, tool)?;
    // In a dialect, a tool of the same name may have a justification of its own.
    let justification =
        tool.filter(|_| dialects.names().is_none()).and_then(|tool| take_justification(&mut args, tool));
    let mut call = Call::new(name, args, workspace.clock.as_ref());
    (call.requested_permissions, call.justification) = (requested, justification);
    Ok((call, dialects))
}

/// Takes the requested rights out of the arguments, unless the tool itself has an argument of that name.
fn take_requested(args: &mut Value, tool: Option<&Declaration>) -> Result<Vec<Right>, JsonRpcError> {
    let pointer = format!("/properties/{REQUESTED}");
    let is_its_own = tool.is_some_and(|tool| tool.args_schema.pointer(&pointer).is_some());
    let taken = args.as_object_mut().filter(|_| !is_its_own).and_then(|args| args.remove(REQUESTED));
    let rights = taken.map(serde_json::from_value).transpose();
    rights
        .map(Option::unwrap_or_default)
        .map_err(|fault| JsonRpcError::invalid_params(format!("`{REQUESTED}`: {fault}.")))
}

/// Takes the reason for those rights out of the arguments, unless the tool itself has an argument of that name.
fn take_justification(args: &mut Value, tool: &Declaration) -> Option<String> {
    let is_its_own = tool.args_schema.pointer(&format!("/properties/{JUSTIFICATION}")).is_some();
    let given =
        args.as_object_mut().filter(|given| !is_its_own && given.get(JUSTIFICATION).is_some_and(Value::is_string))?;
    given.remove(JUSTIFICATION)?.as_str().map(str::to_owned)
}

/// A call, and what it is made with.
struct MadeCall {
    call: Call,
    dialects: Arc<DialectSession>,
    cancel: CancellationToken,
}

/// The call itself. While it runs, the client finds its context by the call's id.
fn perform(
    client: Arc<Client>,
    mcp_session: Arc<McpSession>,
    MadeCall { call, dialects, cancel }: MadeCall,
    call_context: Arc<CallContext>,
) -> BoxFuture<'static, Option<DialectReply>> {
    Box::pin(async move {
        let _activity = client.activity();
        // Declared after the activity, so dropped before it: once the client is idle, nothing here holds its session.
        let mcp_session = mcp_session;
        let _registration = client.register_call(&call.tool_call_id, Arc::clone(&call_context));
        if let Some(extension) = &client.server.extension {
            extension.call_started(ClientCall::new(&call.tool_call_id, &client, &call_context));
        }
        let performing = dialects.perform(call, &client.server.workspace.gate, &mcp_session.session, cancel);
        tokio::pin!(performing);
        loop {
            tokio::select! {
                biased;
                end = &mut performing => return Some(end),
                () = tokio::time::sleep(HEARTBEAT), if call_context.wants_progress() => {
                    call_context.progress("still running");
                }
            }
        }
    })
}

/// Follows a call until it ends or asks something.
async fn wait_for_reply(
    context: &RequestContext<'_>,
    mcp_session: &Arc<McpSession>,
    mut running: InFlightCall,
) -> Result<Value, JsonRpcError> {
    let asked = loop {
        tokio::select! {
            biased;
            end = &mut running.end => return ended(context, mcp_session, &running.id, end),
            Some(asked) = running.input_requests.recv() => break asked,
            () = context.cancel.cancelled(), if !running.cancel.is_cancelled() => running.cancel.cancel(),
        }
    };
    suspend(context, mcp_session, running, asked)
}

/// The result of a call that came back from the gate.
fn ended(
    context: &RequestContext<'_>,
    mcp_session: &McpSession,
    id: &str,
    end: Option<DialectReply>,
) -> Result<Value, JsonRpcError> {
    let extension = context.client.server.extension.as_ref();
    if let Some(replacement) = extension.and_then(|extension| extension.call_ended(id)) {
        let mut replacement = replacement?;
        if let Some(data) = replacement.as_object_mut().and_then(|fields| fields.remove("state")) {
            replacement["requestState"] = signed_state(context, mcp_session, &json!({ "data": data })).into();
        }
        return Ok(replacement);
    }
    let DialectReply { reply, shown } = end.ok_or_else(|| JsonRpcError::internal("The call was lost."))?;
    let artifacts = mcp_session.session.artifacts.as_ref();
    let redactor = context.client.server.workspace.gate.redactor();
    context.client.remember_artifacts(&reply.artifacts.refs);
    context.client.announce_changed_tools(&mcp_session.session);
    if let Some(shown) = shown {
        return Ok(shown_result(&shown, &reply, artifacts, redactor));
    }
    let gate = &context.client.server.workspace.gate;
    let name = context.params.get("name").and_then(Value::as_str).unwrap_or_default();
    // In a dialect, a tool of another server may have the client's name for it.
    let native = context.client.dialect_session(&context.profile.client).server_tool(name, gate);
    let name = native.as_deref().unwrap_or(name);
    let form = gate.declaration(name).map(|tool| tool.result_form);
    Ok(result(&reply, form.unwrap_or_default(), context.profile, artifacts, redactor))
}

/// Suspends the call, and answers with its question.
fn suspend(
    context: &RequestContext<'_>,
    mcp_session: &McpSession,
    mut running: InFlightCall,
    asked: InputRequest,
) -> Result<Value, JsonRpcError> {
    let clock = context.client.server.workspace.clock.as_ref();
    let id = clock.id().simple().to_string();
    // Somebody else may answer meanwhile (the approval queue); then the call goes on by itself.
    let task = tokio::spawn(running.end);
    running.end = Box::pin(async move { task.await.ok().flatten() });
    let (name, question) = (asked.name, json!({ "method": asked.method, "params": asked.params }));
    if !context.client.suspended_calls.keep(id.clone(), running, asked, clock.now()) {
        return Err(JsonRpcError::internal("Too many calls wait for an answer. Answer those first."));
    }
    Ok(json!({
        "resultType": "input_required",
        "inputRequests": { name: question },
        "requestState": signed_state(context, mcp_session, &json!({ "call": id })),
    }))
}

/// Resumes a suspended call with the answer that the client brought.
fn resume(context: &RequestContext<'_>, mcp_session: &McpSession, id: &str) -> Result<InFlightCall, JsonRpcError> {
    let now = context.client.server.workspace.clock.now();
    let suspended = context.client.suspended_calls.take(id, now);
    let suspended = suspended.ok_or_else(|| refused(context, mcp_session, "it was used before or has expired"))?;
    let inputs = context.params.get("inputResponses").and_then(Value::as_object);
    let answer = inputs.and_then(|inputs| inputs.get(suspended.name)).cloned().unwrap_or_default();
    suspended.running.context.redirect(context.params, Arc::clone(context.sink));
    // Somebody else may have answered first; then the call has gone on already.
    let _ = suspended.answer.send(answer);
    Ok(suspended.running)
}

/// A signed state for this client's next request for this very call.
fn signed_state(context: &RequestContext<'_>, mcp_session: &McpSession, content: &Value) -> String {
    let mut content = content.clone();
    let expires = context.client.server.workspace.clock.now() + ANSWER_TIMEOUT;
    content["expires"] = expires.as_second().into();
    context.client.server.key.sign(&content, &binding(context.params, mcp_session))
}

/// The content of a state that the client brought back.
fn verified_state(
    context: &RequestContext<'_>,
    mcp_session: &McpSession,
    state: &Value,
) -> Result<Value, JsonRpcError> {
    let server = &context.client.server;
    let content = state.as_str().and_then(|state| server.key.verify(state, &binding(context.params, mcp_session)));
    let content =
        content.ok_or_else(|| refused(context, mcp_session, "it wasn't issued to this session for this call"))?;
    let expires = content.get("expires").and_then(Value::as_i64).unwrap_or_default();
    if server.workspace.clock.now().as_second() >= expires {
        return Err(refused(context, mcp_session, "it has expired"));
    }
    Ok(content)
}

fn binding<'a>(params: &Map<String, Value>, mcp_session: &'a McpSession) -> StateBinding<'a> {
    StateBinding { session: &mcp_session.session.id, method: "tools/call", params: digest(params) }
}

/// Refuses a state, and records that.
fn refused(context: &RequestContext<'_>, mcp_session: &McpSession, why: &str) -> JsonRpcError {
    let tool = context.params.get("name").and_then(Value::as_str).unwrap_or_default();
    let refusal = RefusedRequest {
        door: "mcp".into(),
        code: "bad_state".into(),
        request: format!("tools/call {tool}: {why}"),
        from: Some(context.client.identity.principal.clone()),
        unrecorded: 0,
    };
    let event = Event {
        time: context.client.server.workspace.clock.now(),
        run: mcp_session.session.run.clone(),
        turn: mcp_session.session.turn,
        trace_id: None,
        tool_call_id: None,
        payload: EventPayload::RequestRefused(refusal),
    };
    match mcp_session.session.recorder.record(&[event]) {
        Ok(()) => JsonRpcError::invalid_params(format!(
            "`requestState` was refused: {why}. Repeat the call without `requestState`."
        )),
        Err(error) => JsonRpcError::internal(error.message),
    }
}
