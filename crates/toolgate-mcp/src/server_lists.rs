//! Tells clients when the tools of other servers change: when a person approves something, and when a running server says so.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;
use toolgate_runtime::ServerListChange;

use crate::server::{ListKind, McpServer};

/// How often it is looked whether a person approved something, which another program writes down.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Follows the lists of other servers, until the server stops.
pub(crate) fn follow(server: &Arc<McpServer>) {
    let mut changes = server.workspace.gate.server_list_changes();
    let (stop, server) = (server.stop.clone(), Arc::downgrade(server));
    tokio::spawn(async move {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let changed = tokio::select! {
                () = stop.cancelled() => return,
                change = changes.recv() => match change {
                    Ok(ServerListChange::Tools) | Err(RecvError::Lagged(_)) => Some(ListKind::Tools),
                    Ok(ServerListChange::Resources) => Some(ListKind::Resources),
                    Err(RecvError::Closed) => return,
                },
                _ = looks.tick() => was_approved(&server).await.then_some(ListKind::Tools),
            };
            let Some(server) = server.upgrade() else { return };
            if let Some(changed) = changed {
                server.announce(changed);
            }
        }
    });
}

/// Whether a person approved other tools. What can't be read is read at the next look.
async fn was_approved(server: &Weak<McpServer>) -> bool {
    let Some(server) = server.upgrade() else { return false };
    if server.workspace.gate.settings().mcp_servers.is_empty() {
        return false;
    }
    let refresh = move || server.workspace.refresh_server_tools().unwrap_or(false);
    tokio::task::spawn_blocking(refresh).await.unwrap_or(false)
}
