//! Tokens for MCP servers elsewhere: signed files of the user's state directory, private to the user, kept by who gave them. The token of one
//! issuer is never sent for another, even if a server names another one later.

use std::sync::Arc;

use toolgate_contract::ToolError;
use toolgate_gateway::{ServerToken, TokenStore};
use toolgate_journal::PinStore;

use crate::error::WorkspaceError;
use crate::location::WorkspaceLocation;

/// Keeps the token of one server.
pub struct ServerTokens {
    store: PinStore,
    url: String,
}

impl ServerTokens {
    fn login_name(&self) -> String {
        format!("login {}", self.url)
    }

    fn token_name(&self, issuer: &str) -> String {
        format!("token {issuer} {}", self.url)
    }

    /// Forgets the token.
    pub fn forget(&self) -> Result<bool, ToolError> {
        let Some(issuer) = self.store.load::<String>(&self.login_name())? else { return Ok(false) };
        self.store.remove(&self.token_name(&issuer))?;
        self.store.remove(&self.login_name())?;
        Ok(true)
    }
}

impl TokenStore for ServerTokens {
    fn load(&self) -> Result<Option<ServerToken>, ToolError> {
        let Some(issuer) = self.store.load::<String>(&self.login_name())? else { return Ok(None) };
        let token = self.store.load::<ServerToken>(&self.token_name(&issuer))?;
        Ok(token.filter(|token| token.issuer == issuer))
    }

    fn save(&self, token: &ServerToken) -> Result<(), ToolError> {
        self.store.put(&self.token_name(&token.issuer), token)?;
        Ok(self.store.put(&self.login_name(), &token.issuer)?)
    }

    fn lock(&self) -> Result<Box<dyn Send>, ToolError> {
        Ok(Box::new(self.store.lock(&self.login_name())?))
    }
}

impl WorkspaceLocation {
    /// Where the token of the server at this address is kept.
    pub fn server_tokens(&self, url: &str) -> Result<Arc<ServerTokens>, WorkspaceError> {
        let key = self
            .signing_key()
            .ok_or_else(|| ToolError::internal("Tokens for MCP servers can't be kept, as there is no signing key."))?;
        let store = PinStore::open(&self.config.mcp_tokens(), key)?;
        Ok(Arc::new(ServerTokens { store, url: url.to_owned() }))
    }
}
