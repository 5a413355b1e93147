//! For whom a connection was let through, and whether what its client says is for the same.

use std::net::IpAddr;

use toolgate_contract::{Border, Denial};

use super::greeting::{self, Greeting};

/// The host that a connection was let through for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meant<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) border: &'a dyn Border,
}

impl Meant<'_> {
    /// Whether the greeting is for that host.
    pub(super) fn hears(&self, heard: &Greeting) -> Result<(), Denial> {
        let Self { host, port, border } = *self;
        let is_address = host.parse::<IpAddr>().is_ok();
        let only = |named: &str, by: &str| {
            self.refuse(format!("The connection to {host} was for `{named}` by its {by}; only {host} was let through."))
        };
        match heard {
            Greeting::Tls(Some(named)) | Greeting::Http(Some(named)) if greeting::is_same(named, host) => Ok(()),
            // Of an address that may be reached, the name has to pass as well.
            Greeting::Tls(Some(named)) | Greeting::Http(Some(named)) if is_address => border.pass(named, port),
            Greeting::Tls(Some(named)) => Err(only(named, "TLS greeting")),
            Greeting::Http(Some(named)) => Err(only(named, "request")),
            Greeting::Ambiguous => Err(self.unclear()),
            Greeting::Tls(None) | Greeting::Http(None) if is_address => Ok(()),
            Greeting::Other if is_address || !matches!(port, 80 | 443) => Ok(()),
            Greeting::Unfinished if !matches!(port, 80 | 443) => Ok(()),
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
