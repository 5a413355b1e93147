//! The doors of a sandbox: sockets that listen inside and are answered outside. Every sandbox with a way out has those for
//! names, for plain HTTP and for HTTPS; hosts that were cleared for other ports have doors of their own.

use std::net::{Ipv4Addr, SocketAddrV4};

use toolgate_contract::EgressPolicy;

use super::synthetic_addresses::SyntheticAddresses;

/// What the sandbox's list of nameservers names. Every address leads to the same door.
pub(crate) const NAMESERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Ports at which every address is answered.
pub(super) const USUAL_PORTS: [u16; 2] = [80, 443];

/// The port of names.
const DNS: u16 = 53;

/// Doors beside the usual ones; all of them go out in one message.
const MOST_OTHERS: usize = 24;

/// Doors to be opened inside.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ListenerAddresses {
    /// Beside the usual ones.
    pub(crate) others: Vec<SocketAddrV4>,
}

impl ListenerAddresses {
    /// Those for connections, in the order in which they are opened: the usual ones, then the others.
    pub(crate) fn for_connections(&self) -> impl Iterator<Item = SocketAddrV4> + '_ {
        let usual = USUAL_PORTS.into_iter().map(|port| SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
        usual.chain(self.others.iter().copied())
    }

    /// Where names are asked for.
    pub(crate) fn for_names() -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, DNS)
    }
}

/// The doors that a border needs, with the addresses of the names behind them.
pub(crate) fn listener_addresses(egress: &dyn EgressPolicy) -> ListenerAddresses {
    with_synthetic_addresses(egress).0
}

/// The same, and which name has which address. It is the same every time, so that doors can be opened ahead.
pub(super) fn with_synthetic_addresses(egress: &dyn EgressPolicy) -> (ListenerAddresses, SyntheticAddresses) {
    let (mut cleared, mut names, mut others) = (egress.cleared(), SyntheticAddresses::default(), Vec::new());
    cleared.sort();
    cleared.dedup();
    for (host, port) in cleared.iter().filter(|(_, port)| !USUAL_PORTS.contains(port) && *port != DNS) {
        let address = match host.parse::<std::net::IpAddr>() {
            // Its own loopback is a sandbox's own affair, and there is no way out by IPv6.
            Ok(std::net::IpAddr::V4(address)) => (!address.is_loopback()).then_some(address),
            Ok(std::net::IpAddr::V6(_)) => None,
            Err(_) => names.address_of(host),
        };
        others.extend(address.map(|address| SocketAddrV4::new(address, *port)));
    }
    others.truncate(MOST_OTHERS);
    (ListenerAddresses { others }, names)
}
