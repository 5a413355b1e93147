//! Who gives tokens for a server: the server names its issuer (RFC 9728), the issuer describes itself (RFC 8414). Both documents have to
//! be about the one that was asked for, or a stranger could put itself in between.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_contract::{EgressPolicy, ErrorCode, ToolError, Web};
use url::Url;

use super::address::{OauthClient, RequestBody, checked, shown_host};
use crate::connection::read_body;
use crate::foreign_text::excerpt;

/// An issuer, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationServer {
    /// Its name, which is an address.
    pub issuer: String,
    /// Where the person logs in.
    pub authorization_endpoint: String,
    /// Where a login becomes a token.
    pub token_endpoint: String,
    /// Where programs introduce themselves.
    pub registration_endpoint: Option<String>,
    /// Whether it names itself in what comes back from a login (RFC 9207).
    pub names_itself: bool,
}

impl AuthorizationServer {
    /// The hosts of its addresses, each with its port.
    pub fn hosts(&self) -> Vec<(String, u16)> {
        let addresses = [Some(&self.issuer), Some(&self.token_endpoint), self.registration_endpoint.as_ref()];
        let mut hosts: Vec<(String, u16)> = addresses.into_iter().flatten().filter_map(|url| host_of(url)).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

/// The host and the port of an address.
pub fn host_of(address: &str) -> Option<(String, u16)> {
    let url = Url::parse(address).ok()?;
    Some((url.host_str()?.trim_matches(['[', ']']).to_owned(), url.port_or_known_default()?))
}

/// The issuer that a server names, and what its tokens are for: the server's own name for itself.
pub async fn discover_issuer(
    server: &str,
    web: &dyn Web,
    egress: &dyn EgressPolicy,
) -> Result<(String, String, Option<String>), ToolError> {
    let (url, client) = (checked("address of the server", server)?, OauthClient { web, egress });
    let challenge = challenge_of(&url, &client).await?;
    let named = challenge_parameter(&challenge, "resource_metadata");
    let places = match &named {
        Some(address) => vec![checked("address of the server's metadata", address)?],
        None => well_known(&url, "oauth-protected-resource"),
    };
    let metadata = first_document(&places, &client, "The server doesn't say who gives tokens for it").await?;
    let resource = metadata["resource"].as_str().unwrap_or_default();
    if !is_same_or_above(resource, &url) {
        return Err(mismatch(&format!(
            "The metadata of `{}` is about another server: `{}`",
            shown_host(&url),
            excerpt(resource, 200)
        )));
    }
    let issuer =
        metadata["authorization_servers"].as_array().and_then(|issuers| issuers.first()).and_then(Value::as_str);
    let issuer = issuer.ok_or_else(|| mismatch("The server names nobody who gives tokens for it"))?;
    checked("issuer", issuer)?;
    Ok((issuer.to_owned(), resource.to_owned(), challenge_parameter(&challenge, "scope")))
}

/// How an issuer describes itself.
pub async fn discover_server(
    issuer: &str,
    web: &dyn Web,
    egress: &dyn EgressPolicy,
) -> Result<AuthorizationServer, ToolError> {
    let (url, client) = (checked("issuer", issuer)?, OauthClient { web, egress });
    let mut places = well_known(&url, "oauth-authorization-server");
    places.truncate(1);
    places.extend(well_known(&url, "openid-configuration").into_iter().take(1));
    places.extend(url.join(&format!("{}/.well-known/openid-configuration", url.path().trim_end_matches('/'))));
    let metadata = first_document(&places, &client, "The issuer doesn't describe itself").await?;
    if metadata["issuer"].as_str() != Some(issuer) {
        let said = excerpt(metadata["issuer"].as_str().unwrap_or("nothing"), 200);
        return Err(mismatch(&format!("The issuer `{issuer}` says that it is another one: `{said}`")));
    }
    let methods = metadata["code_challenge_methods_supported"].as_array();
    if !methods.is_some_and(|methods| methods.iter().any(|method| method == "S256")) {
        return Err(mismatch("The issuer doesn't say that it checks PKCE (S256), so a login could be stolen"));
    }
    let endpoint = |name: &str| -> Result<Option<String>, ToolError> {
        let address = metadata.get(name).and_then(Value::as_str);
        address.map(|address| checked(name, address).map(|_| address.to_owned())).transpose()
    };
    let required = |name: &str| endpoint(name)?.ok_or_else(|| mismatch(&format!("The issuer has no `{name}`")));
    Ok(AuthorizationServer {
        issuer: issuer.to_owned(),
        authorization_endpoint: required("authorization_endpoint")?,
        token_endpoint: required("token_endpoint")?,
        registration_endpoint: endpoint("registration_endpoint")?,
        names_itself: metadata["authorization_response_iss_parameter_supported"] == true,
    })
}

fn mismatch(what: &str) -> ToolError {
    ToolError::new(ErrorCode::ServerError, format!("{what}.")).with_hint("Ask whoever runs the server.")
}

/// What the server answers to somebody without a token.
async fn challenge_of(url: &Url, client: &OauthClient<'_>) -> Result<String, ToolError> {
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let request = toolgate_contract::WebRequest {
        url: url.to_string(),
        method: "POST".to_owned(),
        headers: vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ],
        body: Some(ping.to_string()),
        timeout: std::time::Duration::from_secs(30),
    };
    let mut response = client.web.stream(request, client.egress).await?;
    let challenge = response.header("www-authenticate").unwrap_or_default().to_owned();
    let _ = read_body(response.body.as_mut(), 1024).await;
    Ok(challenge)
}

/// The first of these documents that is there.
async fn first_document(places: &[Url], client: &OauthClient<'_>, otherwise: &str) -> Result<Value, ToolError> {
    for place in places {
        let (status, document) = client.json(place, None::<RequestBody<'_>>).await?;
        if status == 200 && document.as_object().is_some_and(|fields| !fields.is_empty()) {
            return Ok(document);
        }
    }
    Err(mismatch(otherwise))
}

/// Where a document about an address is: between host and path, and at the host alone.
fn well_known(url: &Url, name: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut places = vec![format!("/.well-known/{name}{path}"), format!("/.well-known/{name}")];
    places.dedup();
    places.into_iter().filter_map(|place| url.join(&place).ok()).collect()
}

/// Whether a name for a server is this address, or leads to it from above.
fn is_same_or_above(resource: &str, url: &Url) -> bool {
    let Ok(named) = Url::parse(resource) else { return false };
    let (above, path) = (named.path().trim_end_matches('/'), url.path().trim_end_matches('/'));
    named.origin() == url.origin()
        && named.query().is_none()
        && (path == above || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/')))
}

/// A parameter of a `WWW-Authenticate` header.
pub(crate) fn challenge_parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some(start) = rest.find(name) {
        let before = rest[..start].chars().next_back();
        let after = rest[start + name.len()..].trim_start();
        rest = &rest[start + name.len()..];
        let is_whole = before.is_none_or(|letter| letter == ' ' || letter == ',');
        let Some(value) = after.strip_prefix('=').filter(|_| is_whole) else { continue };
        let value = value.trim_start();
        return Some(match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default().to_owned(),
            None => value.split([',', ' ']).next().unwrap_or_default().to_owned(),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_challenge_are_read_whole() {
        let challenge =
            r#"Bearer xscope="no", scope="a b", resource_metadata="https://x.example/r", error=invalid_token"#;
        let read = |name: &str| challenge_parameter(challenge, name);
        assert_eq!(read("scope").as_deref(), Some("a b"));
        assert_eq!(read("resource_metadata").as_deref(), Some("https://x.example/r"));
        assert_eq!(read("error").as_deref(), Some("invalid_token"));
        assert_eq!(read("realm"), None);
    }

    #[test]
    fn a_name_is_for_its_own_address_and_what_is_beneath() {
        let url = Url::parse("https://mcp.example.com/team/mcp").unwrap();
        for (resource, expected) in [
            ("https://mcp.example.com/team/mcp", true),
            ("https://mcp.example.com/team/mcp/", true),
            ("https://mcp.example.com/team", true),
            ("https://mcp.example.com", true),
            ("https://mcp.example.com/team/mc", false),
            ("https://mcp.example.com/other", false),
            ("https://evil.example/team/mcp", false),
            ("http://mcp.example.com/team/mcp", false),
            ("", false),
        ] {
            assert_eq!(is_same_or_above(resource, &url), expected, "{resource}");
        }
        let places: Vec<String> = well_known(&url, "x").iter().map(Url::to_string).collect();
        assert_eq!(places, ["https://mcp.example.com/.well-known/x/team/mcp", "https://mcp.example.com/.well-known/x"]);
    }
}
