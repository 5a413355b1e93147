//! A server elsewhere, spoken to over streamable HTTP.

use std::sync::Arc;
use std::time::Duration;

use toolgate_contract::{
    BoxFuture, RootAccess, ServerChannel, ServerConnection, ServerListener, ServerLocation, ToolError, ToolServer,
};

use crate::connection::{Connection, HttpChannel, ProtocolChoice, ServerFacts};
use crate::oauth::{Authorization, TokenStore, host_of};

/// What configuration says of a server elsewhere.
pub struct RemoteOptions {
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// A token of the person's own for it, in place of a login.
    pub bearer: Option<String>,
    /// Where the token of a login is kept.
    pub tokens: Arc<dyn TokenStore>,
    /// Hosts that may be reached for it beside its own, such as the one that renews its tokens.
    pub hosts: Vec<String>,
    /// Which protocol versions are tried.
    pub protocol: ProtocolChoice,
    /// How long a call may take without a sign of life.
    pub timeout: Duration,
    /// Seconds without a call after which the connection is closed.
    pub idle_seconds: u64,
    /// Whether it may use the model of whoever calls it.
    pub may_sample: bool,
}

/// A server elsewhere.
pub struct RemoteServer {
    options: RemoteOptions,
}

impl RemoteServer {
    /// A server that isn't connected to yet.
    pub fn new(options: RemoteOptions) -> Self {
        Self { options }
    }
}

impl ToolServer for RemoteServer {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn location(&self) -> Result<ServerLocation, ToolError> {
        let (host, port) = host_of(&self.options.url)
            .ok_or_else(|| ToolError::internal(format!("`{}` isn't an address.", self.options.url)))?;
        Ok(ServerLocation::Remote(host, port))
    }

    fn workspace_access(&self) -> RootAccess {
        RootAccess::Read
    }

    fn hosts(&self) -> &[String] {
        &self.options.hosts
    }

    fn idle_seconds(&self) -> u64 {
        self.options.idle_seconds
    }

    fn connect(
        &self,
        channel: ServerChannel,
        listener: Arc<dyn ServerListener>,
    ) -> BoxFuture<'_, Result<Arc<dyn ServerConnection>, ToolError>> {
        Box::pin(async move {
            let ServerChannel::Remote(web, egress) = channel else {
                return Err(ToolError::internal("A server elsewhere isn't started as a program."));
            };
            let RemoteOptions { name, url, bearer, tokens, protocol, timeout, may_sample, .. } = &self.options;
            let authorization = match bearer {
                Some(token) => Authorization::Fixed(token.clone()),
                None => Authorization::Login(Arc::clone(tokens)),
            };
            let (protocol, timeout, may_sample) = (*protocol, *timeout, *may_sample);
            let facts = ServerFacts { name, root: None, protocol, timeout, may_sample, listener };
            let connection = Connection::to_address(&facts, HttpChannel::new(url, web, egress, authorization)).await?;
            Ok(Arc::new(connection) as Arc<dyn ServerConnection>)
        })
    }
}
