//! The resolver: looks names up on the host, after the egress policy has allowed them.

use std::fmt::Debug;
use std::net::SocketAddr;

use toolgate_contract::BoxFuture;

/// Finds the addresses of a name.
pub trait Resolver: Debug + Send + Sync {
    /// All addresses of a host, each with this port.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>>;
}

/// Asks the resolver of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}
