//! For whom a connection was let through, and whether what its client says is for the same.

use std::net::IpAddr;

use toolgate_contract::{Denial, EgressPolicy};

use super::client_hello::{self, SniffedProtocol};

/// The host that a connection was let through for.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllowedHost<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) egress: &'a dyn EgressPolicy,
}

impl AllowedHost<'_> {
    /// Whether the greeting is for that host.
    pub(super) fn hears(&self, heard: &SniffedProtocol) -> Result<(), Denial> {
        let Self { host, port, egress } = *self;
        let is_address = host.parse::<IpAddr>().is_ok();
        let only = |named: &str, by: &str| {
            self.refuse(format!("The connection to {host} was for `{named}` by its {by}; only {host} was let through."))
        };
        match heard {
            SniffedProtocol::Tls(Some(named)) | SniffedProtocol::Http(Some(named))
                if client_hello::is_same(named, host) =>
            {
                Ok(())
            }
            // Of an address that may be reached, the name has to pass as well.
            SniffedProtocol::Tls(Some(named)) | SniffedProtocol::Http(Some(named)) if is_address => {
                egress.pass(named, port)
            }
            SniffedProtocol::Tls(Some(named)) => Err(only(named, "TLS greeting")),
            SniffedProtocol::Http(Some(named)) => Err(only(named, "request")),
            SniffedProtocol::Ambiguous => Err(self.unclear()),
            SniffedProtocol::Tls(None) | SniffedProtocol::Http(None) if is_address => Ok(()),
            SniffedProtocol::Other if is_address || !matches!(port, 80 | 443) => Ok(()),
            SniffedProtocol::Unfinished if !matches!(port, 80 | 443) => Ok(()),
            _ => {
                let reason = format!("The connection to {host}:{port} doesn't say whom it is for, as TLS and HTTP do.");
                Err(self.refuse(reason))
            }
        }
    }

    /// The refusal of what different servers would read in different ways.
    pub(super) fn unclear(&self) -> Denial {
        self.refuse(format!("The request to {} can be read as one to another host.", self.host))
    }

    fn refuse(&self, reason: String) -> Denial {
        Denial::of_host(self.host, self.port, reason, None)
    }
}
