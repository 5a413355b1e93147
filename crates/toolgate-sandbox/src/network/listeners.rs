//! Which sockets listen inside a sandbox and are answered outside. Every sandbox with an allow list listens for DNS, HTTP and
//! HTTPS on all addresses; a host that was allowed at another port has a listener of its own. So has a port of this machine's
//! loopback that was named; the rest of the loopback is the sandbox's own.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use toolgate_contract::EgressPolicy;

use super::synthetic_addresses::SyntheticAddresses;

/// The nameserver in the sandbox's `/etc/resolv.conf`. Any other address reaches the same listener.
pub(crate) const NAMESERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The ports of HTTP and HTTPS, at which every address is answered.
pub(super) const HTTP_PORTS: [u16; 2] = [80, 443];

const DNS_PORT: u16 = 53;

/// Listeners beside those for DNS and HTTP. All of them are handed out in one message, which holds 32 descriptors.
const MAX_OTHER_LISTENERS: usize = 24;

/// Where a sandbox listens for TCP, beside the ports of DNS and HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ListenerAddresses {
    /// Addresses beside the ports of DNS and HTTP.
    pub(crate) others: Vec<SocketAddrV4>,
}

impl ListenerAddresses {
    /// The addresses of TCP listeners for the proxy, in the order in which they are opened: HTTP's, then the others.
    pub(crate) fn for_connections(&self) -> impl Iterator<Item = SocketAddrV4> + '_ {
        let http = HTTP_PORTS.into_iter().map(|port| SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
        http.chain(self.others.iter().copied())
    }

    /// The address at which DNS is answered, by UDP and by TCP.
    pub(crate) fn for_dns() -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, DNS_PORT)
    }
}

/// Whether connections to a port have to speak HTTP or TLS.
pub(super) fn is_http_port(port: u16) -> bool {
    HTTP_PORTS.contains(&port)
}

/// The listeners that an egress policy needs.
pub(crate) fn listener_addresses(egress: &dyn EgressPolicy) -> ListenerAddresses {
    with_synthetic_addresses(egress).0
}

/// The listeners that an egress policy needs, and the synthetic addresses behind them. Equal policies give equal results, so
/// a sandbox can be built ahead.
pub(super) fn with_synthetic_addresses(egress: &dyn EgressPolicy) -> (ListenerAddresses, SyntheticAddresses) {
    let (mut cleared, mut names, mut others) = (egress.cleared(), SyntheticAddresses::default(), Vec::new());
    cleared.sort();
    cleared.dedup();
    for (host, port) in cleared.iter().filter(|(_, port)| !is_http_port(*port) && *port != DNS_PORT) {
        let address = match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => Some(address),
            // There is no way out by IPv6.
            Ok(IpAddr::V6(_)) => None,
            // Inside, this name is looked up in `/etc/hosts`.
            Err(_) if host == "localhost" => Some(Ipv4Addr::LOCALHOST),
            Err(_) => names.address_of(host),
        };
        // A port of this machine may have been named by its address and by its name.
        let listener = address.map(|address| SocketAddrV4::new(address, *port));
        others.extend(listener.filter(|listener| !others.contains(listener)));
    }
    others.truncate(MAX_OTHER_LISTENERS);
    (ListenerAddresses { others }, names)
}
