//! Stored output as resources. Reading one is a call of the tool `artifact`, so it is judged and recorded like any other;
//! the part that is wanted stands in the address: `toolgate://artifact/art_…?offset=501&limit=500`.

use serde_json::{Value, json};
use toolgate_contract::{Call, ErrorCode, Reply};
use toolgate_redact::Redactor;

use crate::backend::McpSession;
use crate::conformance;
use crate::json_rpc_error::JsonRpcError;
use crate::methods::{RequestContext, page, text};
use crate::tool_result::{bytes_of, encoded, error_text, link};

const SCHEME: &str = "toolgate://artifact/";
/// Bytes of an artifact that isn't text; more can't be sent.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// The address of an artifact.
pub(crate) fn uri_of(id: &str) -> String {
    format!("{SCHEME}{id}")
}

/// Answers `resources/list`: what this client's calls have left.
pub(crate) fn list(asking: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let mut resources: Vec<Value> = asking.client.kept().iter().map(link).collect();
    for resource in resources.iter_mut().filter_map(Value::as_object_mut) {
        resource.remove("type");
    }
    if asking.client.server.options.conformance {
        resources.extend(conformance::resources());
    }
    page(asking, "resources", &resources)
}

/// Answers `resources/templates/list`.
pub(crate) fn templates(asking: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let mut templates = vec![json!({
        "uriTemplate": format!("{SCHEME}{{id}}{{?offset,limit}}"),
        "name": "artifact",
        "title": "Stored output",
        "description": "Output that was cut from a reply, by lines: `offset` from 1, `limit` up to 2000.",
    })];
    if asking.client.server.options.conformance {
        templates.extend(conformance::templates());
    }
    page(asking, "resourceTemplates", &templates)
}

/// Answers `resources/read`.
pub(crate) async fn read(asking: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let uri = text(asking.params, "uri")?;
    if asking.client.server.options.conformance
        && let Some(found) = conformance::resource(uri)
    {
        return Ok(found);
    }
    let args = arguments(uri).ok_or_else(|| unknown(uri, "There is no such resource."))?;
    let mcp_session = asking.client.mcp_session()?;
    let host = &asking.client.server.host;
    let call = Call::new("artifact", args.clone(), host.clock());
    let reply = host.gate().perform(call, &mcp_session.session, asking.cancel.clone()).await;
    contents(uri, &args, &reply, &mcp_session, host.gate().redactor())
}

/// The arguments of the call that an address stands for.
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

/// An artifact that isn't text, which the gate let us have a moment ago. It may hold some, and that may hold secrets.
fn whole(uri: &str, args: &Value, mcp_session: &McpSession, redactor: &Redactor) -> Result<Value, JsonRpcError> {
    let artifacts = mcp_session.session.artifacts.as_ref();
    let opened = artifacts.open(args["id"].as_str().unwrap_or_default());
    let (artifact, _) = opened.map_err(|error| unknown(uri, &error_text(&error)))?;
    if artifact.bytes > MOST_BYTES {
        return Err(unknown(uri, "It is too large to be sent."));
    }
    let bytes = bytes_of(&artifact, artifacts).ok_or_else(|| unknown(uri, "It can't be read."))?;
    let content = match std::str::from_utf8(&bytes) {
        Ok(text) => json!({ "uri": uri, "mimeType": artifact.mime, "text": redactor.text(text) }),
        Err(_) => json!({ "uri": uri, "mimeType": artifact.mime, "blob": encoded(&redactor.bytes(&bytes)) }),
    };
    Ok(json!({ "contents": [content] }))
}

fn unknown(uri: &str, why: &str) -> JsonRpcError {
    JsonRpcError::invalid_params(format!("The resource can't be read. {why}")).with_data(json!({ "uri": uri }))
}
