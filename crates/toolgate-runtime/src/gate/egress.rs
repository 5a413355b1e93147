//! The egress policy of calls: the hosts that policy allows without asking, and the hosts that a call named and that were
//! approved with it. Policy's denies apply to both.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use toolgate_contract::{Decision, Denial, EgressPolicy};
use toolgate_policy::{Policy, plain_host};

/// The egress policy of one call, or of an MCP server that many calls share.
pub struct CallEgress {
    policy: Arc<Policy>,
    cleared: Vec<(String, u16)>,
    /// The server whose configuration lists the hosts; none for a call that names them.
    server: Option<String>,
}

impl CallEgress {
    /// The egress policy of a call with which these hosts were approved.
    pub fn new(policy: Arc<Policy>, cleared: Vec<(String, u16)>) -> Self {
        Self { policy, cleared, server: None }
    }

    /// The egress policy of a server whose configuration lists these hosts.
    pub(super) fn of_server(policy: Arc<Policy>, server: &str, listed: Vec<(String, u16)>) -> Self {
        Self { policy, cleared: listed, server: Some(server.to_owned()) }
    }

    /// Why a host that nothing allows isn't among those that were approved.
    fn not_named(&self, port: u16, is_other_port: bool) -> String {
        match (&self.server, is_other_port) {
            (Some(server), false) => format!("`hosts` of the MCP server `{server}` doesn't list it"),
            (Some(server), true) => format!("`hosts` of the MCP server `{server}` lists it without its port {port}"),
            (None, false) => "The call doesn't name this host".to_owned(),
            (None, true) => format!("The call names this host, but not its port {port}"),
        }
    }

    /// The ports at which a host was approved with the call.
    fn cleared_at(&self, host: &str) -> Vec<u16> {
        let host = plain_host(host);
        let same = self.cleared.iter().filter(|(name, _)| Some(name) == host.as_ref());
        same.map(|(_, port)| *port).collect()
    }
}

impl EgressPolicy for CallEgress {
    fn pass(&self, host: &str, port: u16) -> Result<(), Denial> {
        let (verdict, cleared) = (self.policy.judge_connection(host), self.cleared_at(host));
        match verdict.decision {
            Decision::Allow => Ok(()),
            Decision::Ask if cleared.contains(&port) => Ok(()),
            Decision::Ask if self.policy.is_unattended() => {
                let reason = format!("{host} wasn't reached: {} Nobody can be asked here.", verdict.reason);
                Err(Denial::of_host(host, port, reason, Some(verdict.name)))
            }
            Decision::Ask => {
                let unnamed = self.not_named(port, !cleared.is_empty());
                let reason = format!("{host} wasn't reached: {} {unnamed}, and no rule allows it.", verdict.reason);
                Err(Denial::of_host(host, port, reason, None))
            }
            Decision::Deny => {
                let reason = format!("{host} wasn't reached: {}", verdict.reason);
                Err(Denial::of_host(host, port, reason, Some(verdict.name)))
            }
        }
    }

    fn arrive(&self, host: &str, port: u16, address: IpAddr) -> Result<(), Denial> {
        match self.policy.forbids_address(host, address) {
            None => Ok(()),
            Some(verdict) => {
                let reason = format!("{host} wasn't reached: it leads to {address}. {}", verdict.reason);
                Err(Denial::of_host(host, port, reason, Some(verdict.name)))
            }
        }
    }

    fn cleared(&self) -> Vec<(String, u16)> {
        self.cleared.clone()
    }

    fn takes_requests(&self) -> bool {
        self.server.is_none()
    }
}

impl fmt::Debug for CallEgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallEgress").field("cleared", &self.cleared).finish_non_exhaustive()
    }
}
