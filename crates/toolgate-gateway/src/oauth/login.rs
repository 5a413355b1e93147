//! A person's login, from the address that they open to the token. What comes back has to belong to this very login: the state that was
//! sent, the issuer that was asked, and a secret that never left this process (PKCE).

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolgate_contract::{EgressPolicy, ErrorCode, ToolError, Web};

use super::ServerToken;
use super::address::{OauthClient, RequestBody, checked};
use super::discovery::AuthorizationServer;
use crate::foreign_text::excerpt;

/// As whom this program is known to an issuer. One issuer's registration is never shown to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRegistration {
    /// Its id.
    pub client_id: String,
    /// Its secret, where the issuer insists on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
}

/// Introduces this program to an issuer (RFC 7591).
pub async fn register(
    server: &AuthorizationServer,
    redirect_uri: &str,
    web: &dyn Web,
    egress: &dyn EgressPolicy,
) -> Result<ClientRegistration, ToolError> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(failed("The issuer lets no program introduce itself").with_hint(
            "Register Toolgate there by hand, with a loopback redirect, and give its id: toolgate mcp login NAME --client-id ID",
        ));
    };
    let about = json!({
        "client_name": "Toolgate",
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    let url = checked("registration_endpoint", endpoint)?;
    let (status, said) = OauthClient { web, egress }.json(&url, Some(RequestBody::Json(&about))).await?;
    match serde_json::from_value(said.clone()) {
        Ok(registration) if (200..300).contains(&status) => Ok(registration),
        _ => Err(failed(&format!("The issuer refused to know this program ({status}{})", reason(&said)))),
    }
}

/// A login that was begun.
pub struct LoginAttempt {
    /// The issuer.
    pub server: AuthorizationServer,
    /// The server that the token is for.
    pub resource: String,
    /// As whom this program logs in.
    pub client: ClientRegistration,
    /// Where the person's browser comes back to.
    pub redirect_uri: String,
    /// What comes back with it, unchanged.
    pub state: String,
    /// What only this process knows: 43 to 128 letters and digits.
    pub verifier: String,
}

impl LoginAttempt {
    /// The address that the person opens.
    pub fn address(&self, scope: Option<&str>) -> Result<String, ToolError> {
        let mut url = checked("authorization_endpoint", &self.server.authorization_endpoint)?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&self.verifier));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.client_id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("state", &self.state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.resource);
        if let Some(scope) = scope {
            url.query_pairs_mut().append_pair("scope", scope);
        }
        Ok(url.into())
    }

    /// The code that came back, if it belongs to this login.
    pub fn code(&self, came_back: &BTreeMap<String, String>) -> Result<String, ToolError> {
        if came_back.get("state") != Some(&self.state) {
            return Err(failed("What came back belongs to another login"));
        }
        match came_back.get("iss") {
            Some(issuer) if *issuer != self.server.issuer => {
                let issuer = excerpt(issuer, 200);
                return Err(failed(&format!("What came back is from another issuer: `{issuer}`")));
            }
            None if self.server.names_itself => {
                return Err(failed("What came back doesn't say which issuer it is from, though this one always does"));
            }
            _ => {}
        }
        if let Some(error) = came_back.get("error") {
            return Err(failed(&format!("The issuer refused the login: {}", excerpt(error, 200))));
        }
        came_back.get("code").cloned().ok_or_else(|| failed("What came back has no code"))
    }

    /// Exchanges the code for a token.
    pub async fn exchange(
        &self,
        code: &str,
        web: &dyn Web,
        egress: &dyn EgressPolicy,
    ) -> Result<ServerToken, ToolError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", &self.verifier),
            ("resource", &self.resource),
        ];
        let blank = ServerToken {
            issuer: self.server.issuer.clone(),
            resource: self.resource.clone(),
            token_endpoint: self.server.token_endpoint.clone(),
            client: self.client.clone(),
            access_token: String::new(),
            refresh_token: None,
            scope: None,
        };
        blank.requested(&fields, &OauthClient { web, egress }).await
    }
}

impl ServerToken {
    /// This token, as the issuer gives it for these fields.
    pub(super) async fn requested(&self, fields: &[(&str, &str)], client: &OauthClient<'_>) -> Result<Self, ToolError> {
        let mut fields = fields.to_vec();
        fields.push(("client_id", &self.client.client_id));
        fields.extend(self.client.client_secret.as_deref().map(|secret| ("client_secret", secret)));
        let url = checked("token_endpoint", &self.token_endpoint)?;
        let (status, said) = client.json(&url, Some(RequestBody::Form(&fields))).await?;
        let text = |name: &str| said.get(name).and_then(Value::as_str).map(str::to_owned);
        let is_bearer = text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
        match text("access_token").filter(|token| is_usable(token)) {
            Some(access_token) if status == 200 && is_bearer => Ok(Self {
                access_token,
                refresh_token: text("refresh_token").or_else(|| self.refresh_token.clone()),
                scope: text("scope").or_else(|| self.scope.clone()),
                ..self.clone()
            }),
            _ => Err(failed(&format!("The issuer gave no token ({status}{})", reason(&said)))),
        }
    }
}

/// Whether a token can be part of a header.
fn is_usable(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The issuer's reason, as part of a message.
fn reason(said: &Value) -> String {
    said.get("error").and_then(Value::as_str).map(|error| format!(", {}", excerpt(error, 100))).unwrap_or_default()
}

fn failed(what: &str) -> ToolError {
    ToolError::new(ErrorCode::ServerError, format!("{what}."))
        .with_hint("Log in again, or ask whoever runs the server.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(names_itself: bool) -> LoginAttempt {
        LoginAttempt {
            server: AuthorizationServer {
                issuer: "https://auth.example.com".into(),
                authorization_endpoint: "https://auth.example.com/authorize?tenant=1".into(),
                token_endpoint: "https://auth.example.com/token".into(),
                registration_endpoint: None,
                names_itself,
            },
            resource: "https://mcp.example.com/mcp".into(),
            client: ClientRegistration { client_id: "id".into(), client_secret: None },
            redirect_uri: "http://127.0.0.1:9/callback".into(),
            state: "s".into(),
            verifier: "v".repeat(43),
        }
    }

    #[test]
    fn the_address_asks_for_this_resource_with_a_challenge() {
        let address = attempt(false).address(Some("read write")).unwrap();
        for part in [
            "tenant=1&response_type=code",
            "resource=https%3A%2F%2Fmcp.example.com%2Fmcp",
            "code_challenge_method=S256",
            "scope=read+write",
            "state=s",
        ] {
            assert!(address.contains(part), "{part}: {address}");
        }
        assert!(!address.contains(&"v".repeat(43)), "the secret stays here: {address}");
    }

    #[test]
    fn only_what_belongs_to_this_login_counts() {
        let back = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let (code, state, iss) = (("code", "c"), ("state", "s"), ("iss", "https://auth.example.com"));
        for (names_itself, pairs, expected) in [
            (false, vec![code, state], Ok("c")),
            (true, vec![code, state, iss], Ok("c")),
            (true, vec![code, state], Err("doesn't say which issuer")),
            (false, vec![code, state, ("iss", "https://evil.example")], Err("another issuer")),
            (false, vec![code, ("state", "x")], Err("another login")),
            (false, vec![code], Err("another login")),
            (false, vec![state, ("error", "access_denied")], Err("access_denied")),
            (false, vec![state], Err("no code")),
        ] {
            let read = attempt(names_itself).code(&back(&pairs));
            match expected {
                Ok(expected) => assert_eq!(read.unwrap(), expected, "{pairs:?}"),
                Err(expected) => assert!(read.unwrap_err().message.contains(expected), "{pairs:?}"),
            }
        }
    }
}
