//! The two ways to speak MCP: until 2025-11-25 a client introduces itself once, since 2026-07-28 with every request.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, ServerDescription, ToolError};

use super::ServerPeer;

/// The newest version with a handshake.
const HANDSHAKE: &str = "2025-11-25";

/// The version without one.
const STATELESS: &str = "2026-07-28";

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Handshake,
    Stateless,
}

impl Protocol {
    /// The parameters of a request, with what this way of speaking adds to them.
    pub(super) fn params(self, mut params: Value) -> Value {
        if self == Self::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": client_info(),
            });
        }
        params
    }
}

fn client_info() -> Value {
    json!({ "name": "toolgate", "version": env!("CARGO_PKG_VERSION") })
}

/// Finds out how to speak to a server, and what it says of itself.
pub(super) async fn greet(peer: &Arc<ServerPeer>) -> Result<(Protocol, ServerDescription), ToolError> {
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} }, "roots": {} });
    let hello = json!({ "protocolVersion": HANDSHAKE, "capabilities": capabilities, "clientInfo": client_info() });
    let (protocol, about) = match peer.request("initialize", hello).await {
        Ok(about) => {
            peer.notify("notifications/initialized", json!({})).await?;
            (Protocol::Handshake, about)
        }
        Err(error) if is_refused(&error) => {
            let about = peer.request("server/discover", Protocol::Stateless.params(json!({}))).await?;
            (Protocol::Stateless, about)
        }
        Err(error) => return Err(error),
    };
    let server = about.get("serverInfo").or_else(|| about["_meta"].get("io.modelcontextprotocol/serverInfo"));
    let instructions = about.get("instructions").and_then(Value::as_str).filter(|text| !text.is_empty());
    let description = ServerDescription {
        server: server.cloned().unwrap_or_default(),
        instructions: instructions.map(str::to_owned),
        tools: Vec::new(),
    };
    Ok((protocol, description))
}

/// Whether the server answered, and refused.
fn is_refused(error: &ToolError) -> bool {
    error.code == ErrorCode::ServerError && error.details.as_ref().is_some_and(|details| details.get("code").is_some())
}
