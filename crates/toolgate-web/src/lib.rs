//! Fetches URLs over HTTP, as far as the egress policy allows.
//!
//! Every request is separate: the egress policy checks the host, the host is resolved once, the policy checks its
//! addresses too, and the connection is made to one of those, whatever the name resolves to a moment later. A redirect
//! is a new request with the same checks. Proxies from the environment are ignored. Certificates are checked against
//! the bundled roots and those of this machine.

mod hop;
mod limits;
mod redirect;
mod streamed;
mod trusted_roots;

use std::net::SocketAddr;
use std::sync::Arc;

use toolgate_contract::{
    BoxFuture, Denial, EgressPolicy, ErrorCode, StreamedResponse, ToolError, Web, WebRequest, WebResponse, counted,
};
use toolgate_sandbox::{Resolver, SystemResolver};
use url::Url;

use crate::hop::{Hop, HopOutcome};
pub use crate::limits::FetchLimits;
use crate::redirect::next_hop;
use crate::streamed::KeptClients;
use crate::trusted_roots::TrustedRoots;

/// Fetches over HTTP.
#[derive(Debug, Clone)]
pub struct WebClient {
    resolver: Arc<dyn Resolver>,
    trust: Arc<TrustedRoots>,
    limits: FetchLimits,
    clients: Arc<KeptClients>,
}

impl WebClient {
    /// A client that uses this machine's resolver and certificates.
    pub fn new(limits: FetchLimits) -> Self {
        Self::with(limits, Arc::new(SystemResolver), Vec::new())
    }

    /// A client with another resolver, which also trusts these certificates (DER).
    pub fn with(limits: FetchLimits, resolver: Arc<dyn Resolver>, trusted: Vec<Vec<u8>>) -> Self {
        Self { resolver, trust: Arc::new(TrustedRoots::new(trusted)), limits, clients: Arc::default() }
    }

    async fn follow_redirects(&self, request: WebRequest, egress: &dyn EgressPolicy) -> Result<WebResponse, ToolError> {
        let mut hop = Hop::first(request)?;
        let mut redirects = Vec::new();
        loop {
            match self.request(&hop, egress).await? {
                HopOutcome::Redirect { status, to } if redirects.len() < self.limits.redirects => {
                    let next = next_hop(&hop, status, &to)?;
                    redirects.push(std::mem::replace(&mut hop, next).url.to_string());
                }
                HopOutcome::Redirect { .. } => {
                    let message = format!("There were more than {} redirects in a row.", self.limits.redirects);
                    return Err(ToolError::new(ErrorCode::LimitReached, message));
                }
                HopOutcome::Response(response) => return Ok(WebResponse { redirects, ..response }),
            }
        }
    }

    /// One request: checked against the egress policy, resolved, made.
    async fn request(&self, hop: &Hop, egress: &dyn EgressPolicy) -> Result<HopOutcome, ToolError> {
        let usable = self.usable_addresses(hop, egress).await?;
        hop.make(&usable, self.trust.tls().await?, &self.limits).await
    }

    /// The addresses of the request's host that the egress policy lets be reached.
    async fn usable_addresses(&self, hop: &Hop, egress: &dyn EgressPolicy) -> Result<Vec<SocketAddr>, ToolError> {
        let (host, port) = hop.target()?;
        egress.pass(&host, port)?;
        let found = self.resolver.resolve(&host, port).await.map_err(|fault| not_found(&host, &fault))?;
        let (mut usable, mut refused) = (Vec::new(), None::<Denial>);
        for address in found {
            match egress.arrive(&host, port, address.ip()) {
                Ok(()) => usable.push(address),
                Err(denial) => refused = refused.or(Some(denial)),
            }
        }
        match (usable.is_empty(), refused) {
            (true, Some(denial)) => Err(denial.into()),
            (true, None) => Err(ToolError::new(ErrorCode::NotFound, format!("`{host}` has no address."))),
            (false, _) => Ok(usable),
        }
    }
}

impl Web for WebClient {
    fn fetch<'a>(
        &'a self,
        request: WebRequest,
        egress: &'a dyn EgressPolicy,
    ) -> BoxFuture<'a, Result<WebResponse, ToolError>> {
        Box::pin(async move {
            let (timeout, url) = (request.timeout, request.url.clone());
            let late = |_| {
                let message = format!("{} took longer than {}.", shown(&url), counted(timeout.as_secs(), "second"));
                Err(ToolError::new(ErrorCode::Timeout, message))
            };
            tokio::time::timeout(timeout, self.follow_redirects(request, egress)).await.unwrap_or_else(late)
        })
    }

    fn stream<'a>(
        &'a self,
        request: WebRequest,
        egress: &'a dyn EgressPolicy,
    ) -> BoxFuture<'a, Result<StreamedResponse, ToolError>> {
        Box::pin(self.begin_stream(request, egress))
    }
}

fn not_found(host: &str, fault: &std::io::Error) -> ToolError {
    ToolError::new(ErrorCode::NotFound, format!("`{host}` can't be resolved: {fault}."))
        .with_hint("Check the spelling of the host.")
}

/// A URL for a message, without parts that may be secret.
fn shown(url: &str) -> String {
    Url::parse(url).map_or_else(
        |_| "The URL".into(),
        |mut url| {
            url.set_query(None);
            url.to_string()
        },
    )
}
