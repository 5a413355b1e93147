//! Every method, and who answers it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_contract::CancellationToken;

use crate::call;
use crate::client::{Client, lock};
use crate::conformance;
use crate::era::{self, Manner, SERVER};
use crate::fault::Fault;
use crate::message::{self, Id, Request};
use crate::outlet::SharedOutlet;
use crate::{listen, resources, tools, watch};

/// How long lists may be kept: they don't change without notice.
const LIST_LIFE_MS: u64 = 60_000;

/// One request on its way to an answer.
pub(crate) struct Asking<'a> {
    pub(crate) client: &'a Arc<Client>,
    pub(crate) manner: &'a Manner,
    pub(crate) params: &'a Map<String, Value>,
    pub(crate) id: &'a Id,
    pub(crate) outlet: &'a SharedOutlet,
    pub(crate) cancel: &'a CancellationToken,
}

/// In which manner a request is made: its own, or the one that the handshake settled on.
pub(crate) fn manner_of(client: &Client, request: &Request) -> Result<Manner, Fault> {
    if let Some(manner) = Manner::of_request(&request.params)? {
        return Ok(manner);
    }
    if request.method == "initialize" {
        return Ok(Manner::of_handshake(&request.params));
    }
    match client.settled.get() {
        Some(manner) => Ok(manner.clone()),
        None if request.method == "ping" => Ok(Manner::of_handshake(&request.params)),
        None => Err(era::unintroduced()),
    }
}

/// Answers one request.
pub(crate) async fn answer(asking: &Asking<'_>, method: &str) -> Result<Value, Fault> {
    match asking.manner.is_modern() {
        true => modern(asking, method).await.map(|result| finish(asking, method, result)),
        false => legacy(asking, method).await,
    }
}

/// An answer as a message.
pub(crate) fn worded(id: &Id, answer: &Result<Value, Fault>) -> String {
    match answer {
        Ok(result) => message::result(id, result),
        Err(fault) => message::error(Some(id), fault),
    }
}

/// Takes note of what a client says without asking. What isn't known is passed over, as the protocol wants.
pub(crate) fn note(client: &Client, method: &str, params: &Map<String, Value>) {
    match method {
        "notifications/cancelled" => {
            if let Some(id) = Id::mentioned(params, "requestId") {
                client.cancel(&id);
            }
        }
        "notifications/roots/list_changed" => client.roots.changed(),
        _ => {}
    }
}

/// Methods of the era with a handshake, beside those of both.
async fn legacy(asking: &Asking<'_>, method: &str) -> Result<Value, Fault> {
    let Asking { client, manner, params, .. } = asking;
    match method {
        "initialize" => initialize(asking),
        "ping" => Ok(json!({})),
        "logging/setLevel" => {
            let level = text(params, "level")?;
            if !watch::is_severity(level) {
                return Err(Fault::invalid_params(format!("`{level}` is no level.")));
            }
            *lock(&client.log_level) = Some(level.to_owned());
            Ok(json!({}))
        }
        "resources/subscribe" | "resources/unsubscribe" if client.server.options.conformance => {
            text(params, "uri").map(|_| json!({}))
        }
        "server/discover" => Ok(discover(client, manner)),
        _ => of_both(asking, method).await,
    }
}

/// Methods of the era in which requests stand alone, beside those of both.
async fn modern(asking: &Asking<'_>, method: &str) -> Result<Value, Fault> {
    match method {
        "server/discover" => Ok(discover(asking.client, asking.manner)),
        "subscriptions/listen" => listen::listen(asking).await,
        _ => of_both(asking, method).await,
    }
}

async fn of_both(asking: &Asking<'_>, method: &str) -> Result<Value, Fault> {
    match method {
        "tools/list" => tools::list(asking),
        "tools/call" => call::call(asking).await,
        "resources/list" => resources::list(asking),
        "resources/templates/list" => resources::templates(asking),
        "resources/read" => resources::read(asking).await,
        _ if asking.client.server.options.conformance => conformance::answer(asking, method),
        _ => Err(Fault::method_not_found(method)),
    }
}

fn initialize(asking: &Asking<'_>) -> Result<Value, Fault> {
    let Asking { client, manner, .. } = asking;
    if client.settled.set((*manner).clone()).is_err() {
        return Err(Fault::invalid_request("This connection is initialized already."));
    }
    Ok(json!({
        "protocolVersion": manner.version,
        "capabilities": client.server.capabilities(manner),
        "serverInfo": client.server.identity(),
        "instructions": client.server.instructions(),
    }))
}

fn discover(client: &Client, manner: &Manner) -> Value {
    json!({
        "supportedVersions": era::served().collect::<Vec<_>>(),
        "capabilities": client.server.capabilities(manner),
        "instructions": client.server.instructions(),
    })
}

/// What every result of the newer era says: what kind it is, who answers, and how long it may be kept.
fn finish(asking: &Asking<'_>, method: &str, mut result: Value) -> Value {
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
pub(crate) fn text<'a>(params: &'a Map<String, Value>, field: &str) -> Result<&'a str, Fault> {
    let value = params.get(field).and_then(Value::as_str);
    value.ok_or_else(|| Fault::invalid_params(format!("`params.{field}` has to be a string.")))
}

/// One page of a list, and the cursor of the next.
pub(crate) fn page(asking: &Asking<'_>, name: &str, entries: &[Value]) -> Result<Value, Fault> {
    let size = asking.client.server.options.page.max(1);
    let start = match asking.params.get("cursor") {
        None => 0,
        Some(cursor) => cursor
            .as_str()
            .and_then(|cursor| cursor.strip_prefix("from-")?.parse().ok())
            .filter(|&start| start < entries.len())
            .ok_or_else(|| Fault::invalid_params("This cursor isn't one of this list; begin without one."))?,
    };
    let end = entries.len().min(start + size);
    let mut result = json!({ name: entries[start..end] });
    if end < entries.len() {
        result["nextCursor"] = format!("from-{end}").into();
    }
    Ok(result)
}
