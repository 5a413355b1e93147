//! Stored output as resources. Reading one is a call of the tool `artifact`, so it is judged and recorded like any other;
//! the URI says which part: `toolgate://artifact/art_…?offset=501&limit=500`.

use serde_json::{Value, json};
use toolgate_contract::{Call, ErrorCode, Reply};
use toolgate_redact::Redactor;

use crate::json_rpc_error::JsonRpcError;
use crate::mcp_session::McpSession;
use crate::methods::{RequestContext, page, text};
use crate::tool_result::{bytes_of, encoded, error_text, link};

const SCHEME: &str = "toolgate://artifact/";
/// The largest artifact that is sent whole because it isn't text.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The URI of an artifact.
pub(crate) fn uri_of(id: &str) -> String {
    format!("{SCHEME}{id}")
}

/// Answers `resources/list`: the stored output of this client's calls.
pub(crate) fn list(context: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let mut resources: Vec<Value> = context.client.artifacts().iter().map(link).collect();
    for resource in resources.iter_mut().filter_map(Value::as_object_mut) {
        resource.remove("type");
    }
    page(context, "resources", &resources)
}

/// Answers `resources/templates/list`.
pub(crate) fn templates(context: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let templates = [json!({
        "uriTemplate": format!("{SCHEME}{{id}}{{?offset,limit}}"),
        "name": "artifact",
        "title": "Stored output",
        "description": "Output that was cut from a reply, by lines: `offset` from 1, `limit` up to 2000.",
    })];
    page(context, "resourceTemplates", &templates)
}

/// Answers `resources/read`.
pub(crate) async fn read(context: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let uri = text(context.params, "uri")?;
    let args = arguments(uri).ok_or_else(|| unknown(uri, "No such resource."))?;
    let mcp_session = context.client.mcp_session()?;
    let workspace = &context.client.server.workspace;
    let call = Call::new("artifact", args.clone(), workspace.clock.as_ref());
    let reply = workspace.gate.perform(call, &mcp_session.session, context.cancel.clone()).await;
    contents(uri, &args, &reply, &mcp_session, workspace.gate.redactor())
}

/// The arguments of the call of `artifact` that reads this URI.
fn arguments(uri: &str) -> Option<Value> {
    let rest = uri.strip_prefix(SCHEME)?;
    let (id, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut args = json!({ "id": id });
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        if !["offset", "limit"].contains(&name) {
            return None;
        }
        args[name] = value.parse::<u64>().ok()?.into();
    }
    Some(args)
}

fn contents(
    uri: &str,
    args: &Value,
    reply: &Reply,
    mcp_session: &McpSession,
    redactor: &Redactor,
) -> Result<Value, JsonRpcError> {
    if let Some(error) = &reply.error {
        return match error.code {
            ErrorCode::IsBinary => whole(uri, args, mcp_session, redactor),
            _ => Err(unknown(uri, &error_text(error))),
        };
    }
    let payload = reply.payload.clone().unwrap_or_default();
    let mut content = json!({ "uri": uri, "mimeType": "text/plain", "text": payload["content"] });
    if payload["has_more"] == true {
        let id = args["id"].as_str().unwrap_or_default();
        let next = payload["end_line"].as_u64().unwrap_or_default() + 1;
        let limit = args.get("limit").map(|limit| format!("&limit={limit}")).unwrap_or_default();
        content["_meta"] = json!({
            "toolgate/next": format!("{}?offset={next}{limit}", uri_of(id)),
            "toolgate/total_lines": payload["total_lines"],
        });
    }
    Ok(json!({ "contents": [content] }))
}

/// An artifact that isn't text, which the gate has just allowed to read. Binary data with a secret in it is refused: a
/// replacement would damage it.
fn whole(uri: &str, args: &Value, mcp_session: &McpSession, redactor: &Redactor) -> Result<Value, JsonRpcError> {
    let artifacts = mcp_session.session.artifacts.as_ref();
    let opened = artifacts.open(args["id"].as_str().unwrap_or_default());
    let (artifact, _) = opened.map_err(|error| unknown(uri, &error_text(&error)))?;
    if artifact.bytes > MAX_BYTES {
        return Err(unknown(uri, "It is too large to send."));
    }
    let bytes = bytes_of(&artifact, artifacts).ok_or_else(|| unknown(uri, "It can't be read."))?;
    let content = match std::str::from_utf8(&bytes) {
        Ok(text) => json!({ "uri": uri, "mimeType": artifact.mime, "text": redactor.text(text) }),
        Err(_) if redactor.finds_secret(&bytes) => return Err(unknown(uri, "It contains a secret.")),
        Err(_) => json!({ "uri": uri, "mimeType": artifact.mime, "blob": encoded(&bytes) }),
    };
    Ok(json!({ "contents": [content] }))
}

fn unknown(uri: &str, why: &str) -> JsonRpcError {
    JsonRpcError::invalid_params(format!("The resource can't be read. {why}")).with_data(json!({ "uri": uri }))
}
