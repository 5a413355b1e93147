//! The two ways to speak MCP: until 2025-11-25 a client introduces itself once, since 2026-07-28 with every request.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, ServerDescription, ToolError};

use super::message_channel::MessageChannel;
use super::peer::ServerPeer;

/// The newest version with a handshake.
pub(super) const HANDSHAKE: &str = "2025-11-25";

/// The version without one.
pub(super) const STATELESS: &str = "2026-07-28";

/// Which protocol versions are tried with a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProtocolChoice {
    /// The one with a handshake first, then the one without.
    #[default]
    Both,
    /// Only the one with a handshake.
    Handshake,
    /// Only the one without.
    Stateless,
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Handshake,
    Stateless,
}

impl Protocol {
    /// The parameters of a request, with what this way of speaking adds to them.
    pub(super) fn params_for(self, peer: &ServerPeer, mut params: Value) -> Value {
        if self == Self::Stateless {
            let mut meta = params["_meta"].take();
            meta["io.modelcontextprotocol/protocolVersion"] = STATELESS.into();
            meta["io.modelcontextprotocol/clientCapabilities"] = capabilities(peer);
            meta["io.modelcontextprotocol/clientInfo"] = client_info();
            params["_meta"] = meta;
        }
        params
    }
}

fn client_info() -> Value {
    json!({ "name": "toolgate", "version": env!("CARGO_PKG_VERSION") })
}

fn capabilities(peer: &ServerPeer) -> Value {
    let mut can = json!({ "elicitation": { "form": {}, "url": {} }, "roots": {} });
    if peer.may_sample {
        can["sampling"] = json!({});
    }
    can
}

/// Finds out how to speak to a server, and what it says of itself.
pub(super) async fn greet(
    peer: &Arc<ServerPeer>,
    choice: ProtocolChoice,
) -> Result<(Protocol, ServerDescription), ToolError> {
    let (protocol, about) = match choice {
        ProtocolChoice::Stateless => (Protocol::Stateless, discover(peer).await?),
        _ => match introduce(peer).await {
            Err(error) if choice == ProtocolChoice::Both && is_refused(&error) => {
                (Protocol::Stateless, discover(peer).await?)
            }
            introduced => (Protocol::Handshake, introduced?),
        },
    };
    peer.announces_changes.store(announces_changes(peer, protocol, &about), Ordering::SeqCst);
    let changes = |list: &str| about["capabilities"][list]["listChanged"] == true;
    peer.has_changing_lists.store(changes("tools") || changes("resources"), Ordering::SeqCst);
    let server = about.get("serverInfo").or_else(|| about["_meta"].get("io.modelcontextprotocol/serverInfo"));
    let instructions = about.get("instructions").and_then(Value::as_str).filter(|text| !text.is_empty());
    let description = ServerDescription {
        server: server.cloned().unwrap_or_default(),
        instructions: instructions.map(str::to_owned),
        tools: Vec::new(),
    };
    Ok((protocol, description))
}

async fn introduce(peer: &Arc<ServerPeer>) -> Result<Value, ToolError> {
    let hello =
        json!({ "protocolVersion": HANDSHAKE, "capabilities": capabilities(peer), "clientInfo": client_info() });
    let about = peer.request("initialize", hello).await?;
    if let MessageChannel::Http(channel) = &peer.channel {
        let version = about.get("protocolVersion").and_then(Value::as_str).unwrap_or(HANDSHAKE);
        channel.speak(version);
    }
    peer.notify("notifications/initialized", json!({})).await?;
    Ok(about)
}

async fn discover(peer: &Arc<ServerPeer>) -> Result<Value, ToolError> {
    if let MessageChannel::Http(channel) = &peer.channel {
        channel.speak(STATELESS);
    }
    peer.request("server/discover", Protocol::Stateless.params_for(peer, json!({}))).await
}

/// Whether the server says on its standard output when its tools change. One that doesn't, or that is elsewhere, is asked for its tools
/// before every call.
fn announces_changes(peer: &ServerPeer, protocol: Protocol, about: &Value) -> bool {
    matches!(peer.channel, MessageChannel::Program(_))
        && protocol == Protocol::Handshake
        && about["capabilities"]["tools"]["listChanged"] == true
}

/// Whether the server answered, and refused.
fn is_refused(error: &ToolError) -> bool {
    let has = |name: &str| error.details.as_ref().is_some_and(|details| details.get(name).is_some());
    error.code == ErrorCode::ServerError && (has("code") || has("status"))
}
