//! OAuth for servers elsewhere: who gives tokens for a server (RFC 9728, RFC 8414), how this program introduces itself there (RFC 7591),
//! how a person's login becomes a token (PKCE, RFC 8707, RFC 9207), and how a token is renewed once, whichever process needs it.
//!
//! Every address is one that a server named, so each is checked and passes the egress policy. None is ever given to a shell or opened.

mod address;
mod authorization;
mod discovery;
mod login;

use serde::{Deserialize, Serialize};
use toolgate_contract::ToolError;

pub(crate) use self::authorization::Authorization;
pub(crate) use self::discovery::challenge_parameter;
pub use self::discovery::{AuthorizationServer, discover_issuer, discover_server, host_of};
pub use self::login::{ClientRegistration, LoginAttempt, register};

/// A token for a server, with all that is needed to renew it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerToken {
    /// Who gave it.
    pub issuer: String,
    /// The server that it is for.
    pub resource: String,
    /// Where it is renewed.
    pub token_endpoint: String,
    /// As whom this program is known to the issuer.
    pub client: ClientRegistration,
    /// What is sent to the server.
    pub access_token: String,
    /// What is sent to the issuer for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// What it allows, in the issuer's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl std::fmt::Debug for ServerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerToken")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

/// Keeps the token of one server, outside of all workspaces.
pub trait TokenStore: Send + Sync {
    /// The token; none before the first login.
    fn load(&self) -> Result<Option<ServerToken>, ToolError>;
    /// Keeps a token in place of the one before.
    fn save(&self, token: &ServerToken) -> Result<(), ToolError>;
    /// Waits until no other process renews the token. Held until what is given is dropped.
    fn lock(&self) -> Result<Box<dyn Send>, ToolError>;
}
