//! Checks of a request's headers. A page in a browser must not reach a server on this machine: neither by DNS rebinding
//! (`Host`) nor from another site (`Origin`). Headers that repeat parts of the body have to agree with it.

use axum::http::{HeaderMap, Uri, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::json_rpc::JsonRpcRequest;
use crate::json_rpc_error::JsonRpcError;
use crate::protocol_version::{self, STATELESS};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Characters of a request that a record tells of.
const LONGEST_DESCRIPTION: usize = 200;

/// Allows only names of this machine as `Host`, and only its own pages as `Origin`.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), &'static str> {
    let host = text(headers, header::HOST.as_str()).unwrap_or_default();
    if !is_local(host) {
        return Err("This `Host` is not served here.");
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin: Option<Uri> = origin.to_str().ok().and_then(|origin| origin.parse().ok());
    match origin.as_ref().and_then(Uri::authority) {
        Some(authority) if is_local(authority.as_str()) => Ok(()),
        _ => Err("This `Origin` is not allowed."),
    }
}

fn is_local(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

/// Whether the body is JSON. Any page can send a form anywhere, so forms are refused.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    text(headers, header::ACCEPT.as_str())
        .is_some_and(|kinds| kinds.contains("text/event-stream") || kinds.contains("*/*"))
}

/// Whether a request uses the protocol version without a handshake.
pub(super) fn is_stateless(headers: &HeaderMap, request: &JsonRpcRequest) -> bool {
    protocol_version::version_in(&request.params).is_some()
        || text(headers, VERSION) == Some(STATELESS) && !headers.contains_key(super::SESSION)
        || request.method == "server/discover"
}

/// Compares headers with the parts of the body that they repeat.
pub(super) fn check_headers(headers: &HeaderMap, request: &JsonRpcRequest) -> Result<(), JsonRpcError> {
    let Some(version) = protocol_version::version_in(&request.params) else { return Ok(()) };
    agree(headers, VERSION, version)?;
    agree(headers, METHOD, &request.method)?;
    name_in(request).map_or(Ok(()), |name| agree(headers, NAME, name))
}

/// What a request is about: a tool, a prompt, a resource.
fn name_in(request: &JsonRpcRequest) -> Option<&str> {
    let name = match request.method.as_str() {
        "tools/call" | "prompts/get" => request.params.get("name"),
        "resources/read" => request.params.get("uri"),
        _ => None,
    };
    name.and_then(Value::as_str)
}

/// A request in a few words, for the record.
pub(super) fn described(request: &JsonRpcRequest) -> String {
    let words = format!("{} {}", request.method, name_in(request).unwrap_or_default());
    words.trim_end().chars().take(LONGEST_DESCRIPTION).collect()
}

fn agree(headers: &HeaderMap, header: &str, expected: &str) -> Result<(), JsonRpcError> {
    let said = text(headers, header).and_then(decoded);
    if said.as_deref() == Some(expected) {
        return Ok(());
    }
    let what = if headers.contains_key(header) { "differs from" } else { "is missing; it repeats" };
    Err(JsonRpcError::new(JsonRpcError::HEADER_MISMATCH, format!("The header {header} {what} the body: `{expected}`.")))
}

/// A header's value, which may be encoded as `=?base64?…?=`.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_served_and_only_its_pages() {
        for (host, origin, expected) in [
            ("127.0.0.1:8080", None, true),
            ("localhost", Some("http://localhost:3000"), true),
            ("[::1]:8080", Some("http://[::1]:8080"), true),
            ("evil.example.com", None, false),
            ("127.0.0.1.evil.example.com", None, false),
            ("", None, false),
            ("localhost", Some("http://evil.example.com"), false),
            ("localhost", Some("http://localhost.evil.example.com"), false),
            ("localhost", Some("null"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(check_origin(&headers).is_ok(), expected, "{host} {origin:?}");
        }
    }
}
