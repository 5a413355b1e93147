//! Looking up names, on the host's side, once a name has passed.

use std::fmt::Debug;
use std::net::SocketAddr;

use toolgate_contract::BoxFuture;

/// Finds the addresses of a name.
pub trait Resolver: Debug + Send + Sync {
    /// All addresses of a host, to be connected to at this port.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>>;
}

/// Asks this machine's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}
