//! The doors of a sandbox's network. Every address is made to mean the sandbox itself, so whatever a command connects to,
//! it comes to one of its own doors; these are handed out, and answered by the host.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

use super::super::plan::{NetworkPlan, SandboxPlan};
use super::super::setup_step::{SetupFault, SetupStep, StepContext};
use crate::network::{ListenerAddresses, NAMESERVER};

/// Connections that may wait at a door.
const WAITING: i32 = 128;

/// Opens the doors that the plan names, in their order.
pub(super) fn open(plan: &SandboxPlan) -> Result<Vec<OwnedFd>, SetupFault> {
    let NetworkPlan::Listed { listeners, .. } = &plan.network else { return Ok(Vec::new()) };
    let names = ListenerAddresses::for_names();
    tell(&[claim_every_address(), add_nameserver_address(NAMESERVER)]).during(SetupStep::OpenDoors)?;
    let mut opened = vec![door(names, SocketType::DGRAM).during(SetupStep::OpenDoors)?];
    for address in std::iter::once(names).chain(listeners.for_connections()) {
        let door = door(address, SocketType::STREAM).and_then(|door| {
            rustix::net::listen(&door, WAITING)?;
            Ok(door)
        });
        opened.push(door.map_err(|error| SetupFault {
            step: SetupStep::OpenDoors,
            subject: address.to_string(),
            errno: error.raw_os_error(),
        })?);
    }
    Ok(opened)
}

fn door(address: SocketAddrV4, kind: SocketType) -> Result<OwnedFd, Errno> {
    let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

/// The loopback, which is the first device of every network.
const LOOPBACK: u32 = 1;

/// Something to tell the kernel about the network: its kind, and what it says.
type NetlinkMessage = (u16, Vec<u8>);

/// `ip route add local 0.0.0.0/0 dev lo`.
fn claim_every_address() -> NetlinkMessage {
    // The route: family, bits of destination and source, service, table, origin, scope, kind, flags.
    let table = libc::RT_TABLE_LOCAL;
    let mut route = vec![libc::AF_INET as u8, 0, 0, 0, table, libc::RTPROT_BOOT, libc::RT_SCOPE_HOST, libc::RTN_LOCAL];
    route.extend([0; 4]);
    route.extend(attribute(libc::RTA_OIF, LOOPBACK.to_ne_bytes()));
    (libc::RTM_NEWROUTE, route)
}

/// `ip address add 198.18.0.1/32 dev lo`. With no address but 127.0.0.1, resolvers take it that there is no network and ask
/// for no name.
fn add_nameserver_address(own: Ipv4Addr) -> NetlinkMessage {
    // The address: family, bits, flags, scope, device.
    let mut address = vec![libc::AF_INET as u8, 32, 0, libc::RT_SCOPE_UNIVERSE];
    address.extend(LOOPBACK.to_ne_bytes());
    address.extend(attribute(libc::IFA_LOCAL, own.octets()));
    (libc::RTM_NEWADDR, address)
}

fn attribute(kind: u16, value: [u8; 4]) -> Vec<u8> {
    [&8u16.to_ne_bytes()[..], &kind.to_ne_bytes(), &value].concat()
}

/// Tells the kernel all of it at once, and waits for its answer to each.
fn tell(words: &[NetlinkMessage]) -> Result<(), Errno> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
    let mut message = Vec::new();
    for (kind, body) in words {
        // The header: length, kind, flags, number, sender.
        message.extend((16 + body.len() as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
    }
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    words.iter().try_for_each(|_| acknowledged(&socket))
}

/// The kernel answers with an error number, which is 0 if all went well.
fn acknowledged(socket: &OwnedFd) -> Result<(), Errno> {
    let mut answer = [0u8; 256];
    let (length, _) = rustix::net::recv(socket, &mut answer, RecvFlags::empty())?;
    match answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) if length >= 20 => Ok(()),
        Some(error) => Err(Errno::from_raw_os_error(-error)),
        None => Err(Errno::BADMSG),
    }
}
