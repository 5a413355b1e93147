//! The listeners of a sandbox. In its network namespace every address is local, so whatever a command connects to, it reaches
//! one of them. The sockets are handed out to the host, where the proxy accepts.

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::super::plan::{NetworkPlan, SandboxPlan};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use super::netlink::{self, add_address, add_local_route};
use crate::network::{ListenerAddresses, NAMESERVER};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Opens the listeners that the plan names, in their order.
pub(super) fn open(plan: &SandboxPlan) -> Result<Vec<OwnedFd>, SetupFault> {
    let NetworkPlan::Listed { listeners, .. } = &plan.network else { return Ok(Vec::new()) };
    let dns = ListenerAddresses::for_dns();
    // Resolvers that find no address but 127.0.0.1 assume that there is no network, and look nothing up.
    netlink::request(&[add_local_route(), add_address(NAMESERVER)]).during(SetupStep::OpenListeners)?;
    let mut opened = vec![bound_socket(dns, SocketType::DGRAM).during(SetupStep::OpenListeners)?];
    for address in std::iter::once(dns).chain(listeners.for_connections()) {
        opened.push(listener(address).map_err(|error| SetupFault {
            step: SetupStep::OpenListeners,
            subject: address.to_string(),
            errno: error.raw_os_error(),
        })?);
    }
    Ok(opened)
}

/// A netlink socket that lists the Unix sockets of the sandbox's network namespace; none if it shares the host's, or nobody needs
/// to know.
pub(super) fn socket_list(plan: &SandboxPlan) -> Option<OwnedFd> {
    if plan.network == NetworkPlan::Shared || !plan.watches_connects {
        return None;
    }
    let kind = (SocketType::RAW, SocketFlags::CLOEXEC);
    socket_with(AddressFamily::NETLINK, kind.0, kind.1, Some(rustix::net::netlink::SOCK_DIAG)).ok()
}

fn listener(address: SocketAddrV4) -> Result<OwnedFd, Errno> {
    let socket = bound_socket(address, SocketType::STREAM)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn bound_socket(address: SocketAddrV4, kind: SocketType) -> Result<OwnedFd, Errno> {
    let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}
