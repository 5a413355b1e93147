//! `subscriptions/listen`: a request that stays open and tells its client when lists change.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::client::Client;
use crate::json_rpc;
use crate::json_rpc_error::JsonRpcError;
use crate::methods::RequestContext;
use crate::protocol_version::SUBSCRIPTION;
use crate::server::ListKind;
use crate::server_lists;

impl ListKind {
    /// The notification of a change, and the name by which clients subscribe to it.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Tools => ("notifications/tools/list_changed", "toolsListChanged"),
            Self::Prompts => ("notifications/prompts/list_changed", "promptsListChanged"),
            Self::Resources => ("notifications/resources/list_changed", "resourcesListChanged"),
        }
    }
}

/// Answers `subscriptions/listen`, which stays open until the client cancels it.
pub(crate) async fn listen(context: &RequestContext<'_>) -> Result<Value, JsonRpcError> {
    let wanted = context.params.get("notifications").cloned().unwrap_or_default();
    let wants = |changed: ListKind| wanted.get(changed.names().1) == Some(&Value::Bool(true));
    let accepted: serde_json::Map<String, Value> = [ListKind::Tools, ListKind::Prompts, ListKind::Resources]
        .into_iter()
        .filter(|&changed| wants(changed))
        .map(|changed| (changed.names().1.to_owned(), true.into()))
        .collect();
    let mut changes = context.client.server.changes.subscribe();
    let meta = json!({ SUBSCRIPTION: context.id.value() });
    let say = |method: &str, params: Value| context.sink.send(json_rpc::notification(method, params));
    say("notifications/subscriptions/acknowledged", json!({ "notifications": accepted, "_meta": meta }));
    loop {
        tokio::select! {
            () = context.cancel.cancelled() => return Ok(json!({})),
            changed = changes.recv() => match changed {
                Ok(news) if news.is_for(context.client.number) && wants(news.changed) => {
                    say(news.changed.names().0, json!({ "_meta": meta }));
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(json!({})),
            },
        }
    }
}

/// Forwards changes to a client with a handshake, which has no `subscriptions/listen`.
pub(crate) fn forward(client: &Arc<Client>) {
    client.server.follows_servers.call_once(|| server_lists::follow(&client.server));
    let mut changes = client.server.changes.subscribe();
    let (stop, client) = (client.stop.clone(), Arc::downgrade(client));
    tokio::spawn(async move {
        loop {
            let changed = tokio::select! {
                () = stop.cancelled() => return,
                changed = changes.recv() => changed,
            };
            let Some(client) = client.upgrade() else { return };
            match changed {
                Ok(news) if news.is_for(client.number) && client.negotiated.get().is_some() => {
                    client.notify(json_rpc::notification(news.changed.names().0, json!({})));
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    });
}
