//! Protocol versions of MCP. Until 2025-11-25 a client introduces itself once (`initialize`) and the server can send it
//! requests; since 2026-07-28 every request carries the client's information, and whatever the server needs from the
//! client is part of a result.

use serde_json::{Map, Value, json};

use crate::json_rpc_error::JsonRpcError;

/// The version without a handshake.
pub(crate) const STATELESS: &str = "2026-07-28";
/// Versions with a handshake, newest first.
pub(crate) const HANDSHAKE: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The first version with structured results.
const STRUCTURED_SINCE: &str = "2025-06-18";

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The server's name and version, in results.
pub(crate) const SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// The subscription that a notification belongs to.
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a client says of itself: protocol version, capabilities, name, log level.
#[derive(Debug, Clone)]
pub(crate) struct ClientProfile {
    /// The protocol version that it speaks.
    pub(crate) version: String,
    pub(crate) capabilities: Value,
    /// Its name; empty when it didn't say.
    pub(crate) client: String,
    /// The least severe log message that it wants to see.
    pub(crate) log_level: Option<String>,
}

impl ClientProfile {
    /// Reads the profile in a request without a handshake; none when it has none.
    pub(crate) fn of_request(params: &Map<String, Value>) -> Result<Option<Self>, JsonRpcError> {
        let (Some(version), Some(meta)) = (version_in(params), params.get("_meta")) else { return Ok(None) };
        if version != STATELESS {
            return Err(unsupported(version));
        }
        let capabilities =
            meta.get(CAPABILITIES).filter(|value| value.is_object()).ok_or_else(|| missing(&[CAPABILITIES]))?;
        let text = |key: &str, field: &str| Some(meta.get(key)?.get(field)?.as_str()?.to_owned());
        Ok(Some(Self {
            version: version.to_owned(),
            capabilities: capabilities.clone(),
            client: text(CLIENT, "name").unwrap_or_default(),
            log_level: meta.get(LOG_LEVEL).and_then(Value::as_str).map(str::to_owned),
        }))
    }

    /// The profile that a handshake negotiates: the client's version if it is served, else the newest with a handshake.
    pub(crate) fn of_handshake(params: &Map<String, Value>) -> Self {
        let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let version = HANDSHAKE.iter().find(|&&served| served == wanted).unwrap_or(&HANDSHAKE[0]);
        let client = params.get("clientInfo").and_then(|info| info.get("name")?.as_str());
        Self {
            version: (*version).to_owned(),
            capabilities: params.get("capabilities").cloned().unwrap_or_else(|| json!({})),
            client: client.unwrap_or_default().to_owned(),
            log_level: Some("info".to_owned()),
        }
    }

    /// Whether requests carry the client's information, without a handshake.
    pub(crate) fn is_stateless(&self) -> bool {
        self.version == STATELESS
    }

    /// Whether results may be structured.
    pub(crate) fn is_structured(&self) -> bool {
        self.version.as_str() >= STRUCTURED_SINCE
    }

    /// Whether the client declares a capability.
    pub(crate) fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(Value::is_object)
    }

    /// Whether the client can show a form. Elicitation without further details means forms.
    pub(crate) fn can_show_forms(&self) -> bool {
        let Some(Value::Object(ways)) = self.capabilities.get("elicitation") else { return false };
        ways.contains_key("form") || !ways.contains_key("url")
    }
}

/// The protocol version in a request's `_meta`.
pub(crate) fn version_in(params: &Map<String, Value>) -> Option<&str> {
    params.get("_meta")?.get(VERSION)?.as_str()
}

/// A request lacks keys in its `_meta`.
pub(crate) fn missing(keys: &[&str]) -> JsonRpcError {
    JsonRpcError::invalid_params(format!("`params._meta` lacks {}.", keys.join(" and ")))
}

/// A request has neither a handshake before it nor a profile of its own.
pub(crate) fn missing_version() -> JsonRpcError {
    missing(&[VERSION, CAPABILITIES])
}

fn unsupported(version: &str) -> JsonRpcError {
    let served: Vec<&str> = served().collect();
    JsonRpcError::new(
        JsonRpcError::UNSUPPORTED_VERSION,
        format!("Protocol version {version} is not supported without a handshake."),
    )
    .with_data(json!({ "supported": served, "requested": version }))
}

/// Every version that is served, newest first.
pub(crate) fn served() -> impl Iterator<Item = &'static str> {
    std::iter::once(STATELESS).chain(HANDSHAKE.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_handshake_settles_on_what_both_know() {
        for (wanted, negotiated) in [
            ("2025-06-18", "2025-06-18"),
            ("2024-11-05", "2024-11-05"),
            (STATELESS, "2025-11-25"),
            ("1999", "2025-11-25"),
        ] {
            let profile = ClientProfile::of_handshake(&object(json!({ "protocolVersion": wanted })));
            assert_eq!(profile.version, negotiated);
            assert!(!profile.is_stateless());
        }
    }

    #[test]
    fn a_request_of_its_own_says_what_the_client_can_do() {
        let with = |meta: Value| ClientProfile::of_request(&object(json!({ "_meta": meta })));
        assert!(with(json!({})).unwrap().is_none());
        assert_eq!(with(json!({ VERSION: STATELESS })).unwrap_err().code, JsonRpcError::INVALID_PARAMS);
        assert_eq!(
            with(json!({ VERSION: "v9", CAPABILITIES: {} })).unwrap_err().code,
            JsonRpcError::UNSUPPORTED_VERSION
        );
        let profile = with(json!({ VERSION: STATELESS, CAPABILITIES: { "elicitation": {} } })).unwrap().unwrap();
        assert!(profile.is_stateless() && profile.can_show_forms() && !profile.can("sampling"));
    }

    #[test]
    fn a_client_that_can_only_open_pages_is_not_shown_forms() {
        for (ways, expected) in
            [(json!({}), true), (json!({ "url": {} }), false), (json!({ "url": {}, "form": {} }), true)]
        {
            let params = object(json!({ "capabilities": { "elicitation": ways } }));
            assert_eq!(ClientProfile::of_handshake(&params).can_show_forms(), expected, "{ways}");
        }
    }
}
