//! The host that a connection was allowed for, and whether the client names that host as well.

use std::net::IpAddr;

use toolgate_contract::{Denial, EgressPolicy};

use super::listeners::is_http_port;
use super::sniff::{SniffedProtocol, is_same_host};

/// The host that a connection was allowed for.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllowedHost<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) egress: &'a dyn EgressPolicy,
}

impl AllowedHost<'_> {
    /// Whether what the client sent names this host.
    pub(super) fn check(&self, sniffed: &SniffedProtocol) -> Result<(), Denial> {
        let Self { host, port, egress } = *self;
        let is_address = host.parse::<IpAddr>().is_ok();
        match sniffed {
            SniffedProtocol::Tls(Some(named)) | SniffedProtocol::Http(Some(named)) if is_same_host(named, host) => {
                Ok(())
            }
            // A server at an allowed address may serve many names; each needs to be allowed, too.
            SniffedProtocol::Tls(Some(named)) | SniffedProtocol::Http(Some(named)) if is_address => {
                egress.pass(named, port)
            }
            SniffedProtocol::Tls(Some(named)) => Err(self.names_another(named, "TLS ClientHello")),
            SniffedProtocol::Http(Some(named)) => Err(self.names_another(named, "HTTP request")),
            SniffedProtocol::Ambiguous => Err(self.ambiguous()),
            SniffedProtocol::Tls(None) | SniffedProtocol::Http(None) if is_address => Ok(()),
            SniffedProtocol::Other if is_address || !is_http_port(port) => Ok(()),
            SniffedProtocol::Incomplete if !is_http_port(port) => Ok(()),
            _ => {
                Err(self
                    .deny(format!("The connection to {host}:{port} doesn't name its host, as TLS (SNI) and HTTP do.")))
            }
        }
    }

    /// The denial of what different servers would read in different ways.
    pub(super) fn ambiguous(&self) -> Denial {
        let host = self.host;
        self.deny(format!(
            "The request or ClientHello sent to {host} is ambiguous: it can be read as one to another host."
        ))
    }

    fn names_another(&self, named: &str, by: &str) -> Denial {
        let host = self.host;
        self.deny(format!("The connection to {host} names `{named}` in its {by}; only {host} is allowed."))
    }

    fn deny(&self, reason: String) -> Denial {
        Denial::of_host(self.host, self.port, reason, None)
    }
}
