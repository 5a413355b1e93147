//! `tools/call`: a call through the gate. In the newer era a question to the person is part of a result: the call waits,
//! and the client's next request for the same call brings the answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_contract::{BoxFuture, Call, CancellationToken, Declaration, Event, Happening, Refusal, Reply, Right};

use crate::client::{Client, lock};
use crate::conformance;
use crate::fault::Fault;
use crate::host::Guest;
use crate::link::{Asked, Link};
use crate::methods::{Asking, text};
use crate::pending::{PATIENCE, Running};
use crate::result::result;
use crate::seal::{Bound, digest};
use crate::tools::REQUESTED;

/// A client that wants to hear of progress hears at least this often.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Answers `tools/call`.
pub(crate) async fn call(asking: &Asking<'_>) -> Result<Value, Fault> {
    let guest = asking.client.guest()?;
    let state = match asking.params.get("requestState") {
        Some(state) if asking.manner.is_modern() => Some(opened(asking, &guest, state)?),
        _ => None,
    };
    asking.client.roots.hold(asking, &guest.session).await;
    let waited_for = state.as_ref().and_then(|state| state.get("call")?.as_str());
    let running = match waited_for {
        Some(id) => resume(asking, &guest, id)?,
        None => begin(asking, &guest, state.as_ref().and_then(|state| state.get("data").cloned()))?,
    };
    go_on(asking, &guest, running).await
}

/// Begins a call.
fn begin(asking: &Asking<'_>, guest: &Arc<Guest>, state: Option<Value>) -> Result<Running, Fault> {
    let client = asking.client;
    let name = text(asking.params, "name")?;
    let mut args = match asking.params.get("arguments") {
        None => json!({}),
        Some(args) => args.clone(),
    };
    let requested = requested(&mut args, client.server.host.gate().declarations().find(|tool| tool.name == name))?;
    let mut call = Call::new(name, args, client.server.host.clock());
    call.requested_permissions = requested;
    let (link, asks) = Link::new(asking.manner.clone(), asking.params, state, Arc::clone(asking.outlet));
    let cancel = client.stop.child_token();
    let reply = perform(Arc::clone(client), Arc::clone(guest), call, Arc::clone(&link), cancel.clone());
    Ok(Running { reply, asks, link, cancel })
}

/// The rights that stand among the arguments, taken out of them, unless the tool itself has an argument of that name.
fn requested(args: &mut Value, tool: Option<&Declaration>) -> Result<Vec<Right>, Fault> {
    let pointer = format!("/properties/{REQUESTED}");
    let is_its_own = tool.is_some_and(|tool| tool.args_schema.pointer(&pointer).is_some());
    let taken = args.as_object_mut().filter(|_| !is_its_own).and_then(|args| args.remove(REQUESTED));
    let rights = taken.map(serde_json::from_value).transpose();
    rights.map(Option::unwrap_or_default).map_err(|fault| Fault::invalid_params(format!("`{REQUESTED}`: {fault}.")))
}

/// The call itself, tied to its request while it lasts.
fn perform(
    client: Arc<Client>,
    guest: Arc<Guest>,
    call: Call,
    link: Arc<Link>,
    cancel: CancellationToken,
) -> BoxFuture<'static, Option<Reply>> {
    Box::pin(async move {
        let _work = client.work();
        // What is declared later goes earlier: the stay isn't ours any longer when the work is over.
        let guest = guest;
        let _tied = client.tie(&call.tool_call_id, Arc::clone(&link));
        let gate = client.server.host.gate();
        let performing = conformance::tied(&client, &link, gate.perform(call, &guest.session, cancel));
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
async fn go_on(asking: &Asking<'_>, guest: &Arc<Guest>, mut running: Running) -> Result<Value, Fault> {
    let asked = loop {
        tokio::select! {
            biased;
            reply = &mut running.reply => return ended(asking, guest, reply, &running.link),
            Some(asked) = running.asks.recv() => break asked,
            () = asking.cancel.cancelled(), if !running.cancel.is_cancelled() => running.cancel.cancel(),
        }
    };
    suspend(asking, guest, running, asked)
}

fn ended(asking: &Asking<'_>, guest: &Guest, reply: Option<Reply>, link: &Link) -> Result<Value, Fault> {
    if let Some(instead) = lock(&link.instead).take() {
        let mut instead = instead?;
        if let Some(data) = instead.as_object_mut().and_then(|fields| fields.remove("state")) {
            instead["requestState"] = sealed(asking, guest, &json!({ "data": data })).into();
        }
        return Ok(instead);
    }
    let reply = reply.ok_or_else(|| Fault::internal("The call was lost."))?;
    asking.client.keep(&reply.artifacts.refs);
    asking.client.notice_tools(&guest.session);
    Ok(result(&reply, asking.manner, guest.session.artifacts.as_ref()))
}

/// Lets the call wait beside us, and answers with its question.
fn suspend(asking: &Asking<'_>, guest: &Guest, mut running: Running, asked: Asked) -> Result<Value, Fault> {
    let clock = asking.client.server.host.clock();
    let id = clock.id().simple().to_string();
    // Whoever else may answer does so meanwhile, and then the call goes on by itself.
    let task = tokio::spawn(running.reply);
    running.reply = Box::pin(async move { task.await.ok().flatten() });
    let (name, question) = (asked.name, json!({ "method": "elicitation/create", "params": asked.params }));
    if !asking.client.pending.keep(id.clone(), running, asked, clock.now()) {
        return Err(Fault::internal("Too many calls wait for an answer. Answer those first."));
    }
    Ok(input_required(asking, guest, name, &question, &json!({ "call": id })))
}

/// A result that asks for something first; the client's next request for the same call brings it, with the state.
fn input_required(asking: &Asking<'_>, guest: &Guest, name: &str, request: &Value, state: &Value) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": { name: request },
        "requestState": sealed(asking, guest, state),
    })
}

/// Takes a waiting call up again, with the answer.
fn resume(asking: &Asking<'_>, guest: &Guest, id: &str) -> Result<Running, Fault> {
    let now = asking.client.server.host.clock().now();
    let waiting = asking.client.pending.take(id, now);
    let waiting = waiting.ok_or_else(|| refused(asking, guest, "it was used before, or its time is up"))?;
    let inputs = asking.params.get("inputResponses").and_then(Value::as_object);
    let answer = inputs.and_then(|inputs| inputs.get(waiting.name)).cloned().unwrap_or_default();
    waiting.running.link.move_to(asking.params, Arc::clone(asking.outlet));
    // Somebody else may have answered first; then the call has gone on already.
    let _ = waiting.answer.send(answer);
    Ok(waiting.running)
}

/// A state for this client's next request for this very call.
fn sealed(asking: &Asking<'_>, guest: &Guest, content: &Value) -> String {
    let mut content = content.clone();
    let expires = asking.client.server.host.clock().now() + PATIENCE;
    content["expires"] = expires.as_second().into();
    asking.client.server.key.seal(&content, &bound(asking.params, guest))
}

/// The content of a state that the client brought back.
fn opened(asking: &Asking<'_>, guest: &Guest, state: &Value) -> Result<Value, Fault> {
    let server = &asking.client.server;
    let content = state.as_str().and_then(|state| server.key.open(state, &bound(asking.params, guest)));
    let content = content.ok_or_else(|| refused(asking, guest, "it isn't one that this session got for this call"))?;
    let expires = content.get("expires").and_then(Value::as_i64).unwrap_or_default();
    if server.host.clock().now().as_second() >= expires {
        return Err(refused(asking, guest, "its time is up"));
    }
    Ok(content)
}

fn bound<'a>(params: &Map<String, Value>, guest: &'a Guest) -> Bound<'a> {
    Bound { session: &guest.session.id, method: "tools/call", params: digest(params) }
}

/// Refuses a state, and puts that on record.
fn refused(asking: &Asking<'_>, guest: &Guest, why: &str) -> Fault {
    let tool = asking.params.get("name").and_then(Value::as_str).unwrap_or_default();
    let refusal = Refusal {
        door: "mcp".into(),
        code: "bad_state".into(),
        request: format!("tools/call {tool}: {why}"),
        from: Some(asking.client.visitor.principal.clone()),
        unrecorded: 0,
    };
    let event = Event {
        time: asking.client.server.host.clock().now(),
        run: guest.session.run.clone(),
        turn: guest.session.turn,
        trace_id: None,
        tool_call_id: None,
        happening: Happening::RequestRefused(refusal),
    };
    let reason = format!("The state that came with the request was refused: {why}.");
    match guest.session.recorder.record(&[event]) {
        Ok(()) => Fault::invalid_params(format!("{reason} Make the call anew, without a state.")),
        Err(error) => Fault::internal(error.message),
    }
}
