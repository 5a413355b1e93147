//! Every method, and the function that answers it. Clients with a handshake and clients without one share most methods.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_contract::CancellationToken;

use crate::call;
use crate::client::Client;
use crate::extension::ExtensionRequest;
use crate::json_rpc::{self, JsonRpcRequest, RequestId};
use crate::json_rpc_error::JsonRpcError;
use crate::message_sink::SharedMessageSink;
use crate::protocol_version::{self, ClientProfile, SERVER};
use crate::{notifications, resources, subscriptions, tools};

/// How long clients may cache lists, in milliseconds. Changes are announced.
const LIST_TTL_MS: u64 = 60_000;

/// One request, and what its answer needs.
pub(crate) struct RequestContext<'a> {
    pub(crate) client: &'a Arc<Client>,
    pub(crate) profile: &'a ClientProfile,
    pub(crate) params: &'a Map<String, Value>,
    pub(crate) id: &'a RequestId,
    pub(crate) sink: &'a SharedMessageSink,
    pub(crate) cancel: &'a CancellationToken,
}

/// The profile of a request: its own, or the one that the handshake negotiated.
pub(crate) fn profile_of(client: &Client, request: &JsonRpcRequest) -> Result<ClientProfile, JsonRpcError> {
    if let Some(profile) = ClientProfile::of_request(&request.params)? {
        return Ok(profile);
    }
    if request.method == "initialize" {
        return Ok(ClientProfile::of_handshake(&request.params));
    }
    match client.negotiated.get() {
        Some(profile) => Ok(profile.clone()),
        None if request.method == "ping" => Ok(ClientProfile::of_handshake(&request.params)),
        None => Err(protocol_version::missing_version()),
    }
}

/// Answers one request. An extension comes first.
pub(crate) async fn answer(context: &RequestContext<'_>, method: &str) -> Result<Value, JsonRpcError> {
    if let Some(answer) = extension_answer(context, method) {
        return match context.profile.is_stateless() {
            true => answer.map(|result| finish(context, method, result)),
            false => answer,
        };
    }
    match context.profile.is_stateless() {
        true => stateless_methods(context, method).await.map(|result| finish(context, method, result)),
        false => handshake_methods(context, method).await,
    }
}

fn extension_answer(context: &RequestContext<'_>, method: &str) -> Option<Result<Value, JsonRpcError>> {
    let extension = context.client.server.extension.as_ref()?;
    let is_stateless = context.profile.is_stateless();
    extension.answer(&ExtensionRequest { method, params: context.params, is_stateless })
}

/// An answer as a message.
pub(crate) fn response_message(id: &RequestId, answer: &Result<Value, JsonRpcError>) -> String {
    match answer {
        Ok(result) => json_rpc::result(id, result),
        Err(fault) => json_rpc::error(Some(id), fault),
    }
}

/// Handles a notification. Unknown ones are ignored, as the protocol requires.
pub(crate) fn handle_notification(client: &Client, method: &str, params: &Map<String, Value>) {
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

/// Methods of protocol versions with a handshake, beside the common ones.
async fn handshake_methods(context: &RequestContext<'_>, method: &str) -> Result<Value, JsonRpcError> {
    let RequestContext { client, profile, params, .. } = context;
    match method {
        "initialize" => initialize(context),
        "ping" => Ok(json!({})),
        "logging/setLevel" => {
            let level = text(params, "level")?;
            if !notifications::is_severity(level) {
                return Err(JsonRpcError::invalid_params(format!("`{level}` is not a log level.")));
            }
            *client.log_level.lock() = Some(level.to_owned());
            Ok(json!({}))
        }
        "server/discover" => Ok(discover(client, profile)),
        _ => common_methods(context, method).await,
    }
}

/// Methods of the protocol version without a handshake, beside the common ones.
async fn stateless_methods(context: &RequestContext<'_>, method: &str) -> Result<Value, JsonRpcError> {
    match method {
        "server/discover" => Ok(discover(context.client, context.profile)),
        "subscriptions/listen" => subscriptions::listen(context).await,
        _ => common_methods(context, method).await,
    }
}

async fn common_methods(context: &RequestContext<'_>, method: &str) -> Result<Value, JsonRpcError> {
    match method {
        "tools/list" => tools::list(context),
        "tools/call" => call::call(context).await,
        "resources/list" => resources::list(context),
        "resources/templates/list" => resources::templates(context),
        "resources/read" => resources::read(context).await,
        _ => Err(JsonRpcError::method_not_found(method)),
    }
}

fn initialize(context: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let RequestContext { client, profile, .. } = context;
    if client.negotiated.set((*profile).clone()).is_err() {
        return Err(JsonRpcError::invalid_request("This connection is already initialized."));
    }
    client.server.workspace.gate.look_ahead();
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

/// Adds what every result without a handshake says: its type, who answers, and how long it may be cached.
fn finish(context: &RequestContext<'_>, method: &str, mut result: Value) -> Value {
    let Some(fields) = result.as_object_mut() else { return result };
    fields.entry("resultType").or_insert_with(|| "complete".into());
    let meta = fields.entry("_meta").or_insert_with(|| json!({}));
    meta[SERVER] = context.client.server.identity();
    if method.ends_with("/list") || matches!(method, "resources/read" | "server/discover") {
        let ttl = if method == "resources/read" { 0 } else { LIST_TTL_MS };
        fields.entry("ttlMs").or_insert_with(|| ttl.into());
        fields.entry("cacheScope").or_insert_with(|| "private".into());
    }
    result
}

/// A required param that is a string.
pub(crate) fn text<'a>(params: &'a Map<String, Value>, field: &str) -> Result<&'a str, JsonRpcError> {
    let value = params.get(field).and_then(Value::as_str);
    value.ok_or_else(|| JsonRpcError::invalid_params(format!("`params.{field}` has to be a string.")))
}

/// One page of a list, and the cursor of the next.
pub(crate) fn page(context: &RequestContext<'_>, name: &str, entries: &[Value]) -> Result<Value, JsonRpcError> {
    let size = context.client.server.options.page_size.max(1);
    let start = match context.params.get("cursor") {
        None => 0,
        Some(cursor) => cursor
            .as_str()
            .and_then(|cursor| cursor.strip_prefix("from-")?.parse().ok())
            .filter(|&start| start < entries.len())
            .ok_or_else(|| {
                JsonRpcError::invalid_params("This cursor doesn't belong to this list; start without one.")
            })?,
    };
    let end = entries.len().min(start + size);
    let mut result = json!({ name: entries[start..end] });
    if end < entries.len() {
        result["nextCursor"] = format!("from-{end}").into();
    }
    Ok(result)
}
