//! Fetches over HTTP what the border lets pass.
//!
//! Every request goes by itself: the host is shown to the border, looked up once, its addresses are shown to the border
//! too, and the connection is made to one of those, whatever the name leads to a moment later. A redirect is a new
//! request and takes the same way. No proxy of the environment is used. Trusted are the usual certificates and those of this
//! machine.

mod hop;
mod limits;
mod redirect;
mod trusted_roots;

use std::sync::Arc;

use toolgate_contract::{BoxFuture, Denial, EgressPolicy, ErrorCode, ToolError, Web, WebRequest, WebResponse};
use toolgate_sandbox::{Resolver, SystemResolver};
use url::Url;

use crate::hop::{Hop, HopOutcome};
pub use crate::limits::FetchLimits;
use crate::redirect::next_hop;
use crate::trusted_roots::TrustedRoots;

/// Fetches over HTTP.
#[derive(Debug, Clone)]
pub struct WebClient {
    resolver: Arc<dyn Resolver>,
    trust: Arc<TrustedRoots>,
    limits: FetchLimits,
}

impl WebClient {
    /// A client that looks names up, and trusts certificates, as this machine does.
    pub fn new(limits: FetchLimits) -> Self {
        Self::with(limits, Arc::new(SystemResolver), Vec::new())
    }

    /// A client that looks names up elsewhere, and trusts these certificates (DER) as well.
    pub fn with(limits: FetchLimits, resolver: Arc<dyn Resolver>, trusted: Vec<Vec<u8>>) -> Self {
        Self { resolver, trust: Arc::new(TrustedRoots::new(trusted)), limits }
    }

    async fn follow_redirects(&self, request: WebRequest, egress: &dyn EgressPolicy) -> Result<WebResponse, ToolError> {
        let mut hop = Hop::first(request)?;
        let mut redirects = Vec::new();
        loop {
            match self.take(&hop, egress).await? {
                HopOutcome::Elsewhere { status, to } if redirects.len() < self.limits.redirects => {
                    let next = next_hop(&hop, status, &to)?;
                    redirects.push(std::mem::replace(&mut hop, next).url.to_string());
                }
                HopOutcome::Elsewhere { .. } => {
                    let message = format!("More than {} redirects came one after the other.", self.limits.redirects);
                    return Err(ToolError::new(ErrorCode::LimitReached, message));
                }
                HopOutcome::Here(response) => return Ok(WebResponse { redirects, ..response }),
            }
        }
    }

    /// One request: shown to the border, looked up, made.
    async fn take(&self, hop: &Hop, egress: &dyn EgressPolicy) -> Result<HopOutcome, ToolError> {
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
            (false, _) => hop.make(&usable, self.trust.tls().await?, &self.limits).await,
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
                let message = format!("{} took longer than {} seconds.", shown(&url), timeout.as_secs());
                Err(ToolError::new(ErrorCode::Timeout, message))
            };
            tokio::time::timeout(timeout, self.follow_redirects(request, egress)).await.unwrap_or_else(late)
        })
    }
}

fn not_found(host: &str, fault: &std::io::Error) -> ToolError {
    ToolError::new(ErrorCode::NotFound, format!("`{host}` can't be looked up: {fault}."))
        .with_hint("Check the spelling of the host.")
}

/// An address without what might be secret in it.
fn shown(url: &str) -> String {
    Url::parse(url).map_or_else(
        |_| "The address".into(),
        |mut url| {
            url.set_query(None);
            url.to_string()
        },
    )
}
