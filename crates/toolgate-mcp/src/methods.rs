//! Every method, and who answers it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_contract::CancellationToken;

use crate::call;
use crate::client::{Client, lock};
use crate::conformance;
use crate::json_rpc::{self, JsonRpcRequest, RequestId};
use crate::json_rpc_error::JsonRpcError;
use crate::message_sink::SharedMessageSink;
use crate::protocol_version::{self, ClientProfile, SERVER};
use crate::{notifications, resources, subscriptions, tools};

/// How long lists may be kept: they don't change without notice.
const LIST_LIFE_MS: u64 = 60_000;

/// One request on its way to an answer.
pub(crate) struct RequestContext<'a> {
    pub(crate) client: &'a Arc<Client>,
    pub(crate) profile: &'a ClientProfile,
    pub(crate) params: &'a Map<String, Value>,
    pub(crate) id: &'a RequestId,
    pub(crate) outlet: &'a SharedMessageSink,
    pub(crate) cancel: &'a CancellationToken,
}

/// In which manner a request is made: its own, or the one that the handshake settled on.
pub(crate) fn protocol_version_of(client: &Client, request: &JsonRpcRequest) -> Result<ClientProfile, JsonRpcError> {
    if let Some(profile) = ClientProfile::of_request(&request.params)? {
        return Ok(profile);
    }
    if request.method == "initialize" {
        return Ok(ClientProfile::of_handshake(&request.params));
    }
    match client.settled.get() {
        Some(profile) => Ok(profile.clone()),
        None if request.method == "ping" => Ok(ClientProfile::of_handshake(&request.params)),
        None => Err(protocol_version::missing_version()),
    }
}

/// Answers one request.
pub(crate) async fn answer(asking: &RequestContext<'_>, method: &str) -> Result<Value, JsonRpcError> {
    match asking.profile.is_modern() {
        true => modern(asking, method).await.map(|result| finish(asking, method, result)),
        false => legacy(asking, method).await,
    }
}

/// An answer as a message.
pub(crate) fn response_message(id: &RequestId, answer: &Result<Value, JsonRpcError>) -> String {
    match answer {
        Ok(result) => json_rpc::result(id, result),
        Err(fault) => json_rpc::error(Some(id), fault),
    }
}

/// Takes note of what a client says without asking. What isn't known is passed over, as the protocol wants.
pub(crate) fn note(client: &Client, method: &str, params: &Map<String, Value>) {
    match method {
        "notifications/cancelled" => {
            if let Some(id) = RequestId::mentioned(params, "requestId") {
                client.cancel(&id);
            }
        }
        "notifications/roots/list_changed" => client.roots.changed(),
        _ => {}
    }
}

/// Methods of the era with a handshake, beside those of both.
async fn legacy(asking: &RequestContext<'_>, method: &str) -> Result<Value, JsonRpcError> {
    let RequestContext { client, profile, params, .. } = asking;
    match method {
        "initialize" => initialize(asking),
        "ping" => Ok(json!({})),
        "logging/setLevel" => {
            let level = text(params, "level")?;
            if !notifications::is_severity(level) {
                return Err(JsonRpcError::invalid_params(format!("`{level}` is no level.")));
            }
            *lock(&client.log_level) = Some(level.to_owned());
            Ok(json!({}))
        }
        "resources/subscribe" | "resources/unsubscribe" if client.server.options.conformance => {
            text(params, "uri").map(|_| json!({}))
        }
        "server/discover" => Ok(discover(client, profile)),
        _ => common_methods(asking, method).await,
    }
}

/// Methods of the era in which requests stand alone, beside those of both.
async fn modern(asking: &RequestContext<'_>, method: &str) -> Result<Value, JsonRpcError> {
    match method {
        "server/discover" => Ok(discover(asking.client, asking.profile)),
        "subscriptions/listen" => subscriptions::listen(asking).await,
        _ => common_methods(asking, method).await,
    }
}

async fn common_methods(asking: &RequestContext<'_>, method: &str) -> Result<Value, JsonRpcError> {
    match method {
        "tools/list" => tools::list(asking),
        "tools/call" => call::call(asking).await,
        "resources/list" => resources::list(asking),
        "resources/templates/list" => resources::templates(asking),
        "resources/read" => resources::read(asking).await,
        _ if asking.client.server.options.conformance => conformance::answer(asking, method),
        _ => Err(JsonRpcError::method_not_found(method)),
    }
}

fn initialize(asking: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let RequestContext { client, profile, .. } = asking;
    if client.settled.set((*profile).clone()).is_err() {
        return Err(JsonRpcError::invalid_request("This connection is initialized already."));
    }
    Ok(json!({
        "protocolVersion": profile.version,
        "capabilities": client.server.capabilities(profile),
        "serverInfo": client.server.identity(),
        "instructions": client.server.instructions(),
    }))
}

fn discover(client: &Client, profile: &ClientProfile) -> Value {
    json!({
        "supportedVersions": protocol_version::served().collect::<Vec<_>>(),
        "capabilities": client.server.capabilities(profile),
        "instructions": client.server.instructions(),
    })
}

/// What every result of the newer era says: what kind it is, who answers, and how long it may be kept.
fn finish(asking: &RequestContext<'_>, method: &str, mut result: Value) -> Value {
    let Some(fields) = result.as_object_mut() else { return result };
    fields.entry("resultType").or_insert_with(|| "complete".into());
    let meta = fields.entry("_meta").or_insert_with(|| json!({}));
    meta[SERVER] = asking.client.server.identity();
    if method.ends_with("/list") || matches!(method, "resources/read" | "server/discover") {
        let life = if method == "resources/read" { 0 } else { LIST_LIFE_MS };
        fields.entry("ttlMs").or_insert_with(|| life.into());
        fields.entry("cacheScope").or_insert_with(|| "private".into());
    }
    result
}

/// A param that has to be there and be text.
pub(crate) fn text<'a>(params: &'a Map<String, Value>, field: &str) -> Result<&'a str, JsonRpcError> {
    let value = params.get(field).and_then(Value::as_str);
    value.ok_or_else(|| JsonRpcError::invalid_params(format!("`params.{field}` has to be a string.")))
}

/// One page of a list, and the cursor of the next.
pub(crate) fn page(asking: &RequestContext<'_>, name: &str, entries: &[Value]) -> Result<Value, JsonRpcError> {
    let size = asking.client.server.options.page.max(1);
    let start = match asking.params.get("cursor") {
        None => 0,
        Some(cursor) => cursor
            .as_str()
            .and_then(|cursor| cursor.strip_prefix("from-")?.parse().ok())
            .filter(|&start| start < entries.len())
            .ok_or_else(|| JsonRpcError::invalid_params("This cursor isn't one of this list; begin without one."))?,
    };
    let end = entries.len().min(start + size);
    let mut result = json!({ name: entries[start..end] });
    if end < entries.len() {
        result["nextCursor"] = format!("from-{end}").into();
    }
    Ok(result)
}
