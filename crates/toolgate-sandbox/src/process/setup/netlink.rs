//! Routes and addresses of a new network namespace, set by rtnetlink messages (`linux/rtnetlink.h`). Two messages are all that
//! a sandbox needs, so they are put together here and not by a crate.

use std::mem::offset_of;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

/// The index of `lo` in every network namespace (`net/flow.h`).
const LOOPBACK_IFINDEX: u32 = 1;
/// Bytes of the header of a message.
const NLMSG_HDRLEN: usize = size_of::<libc::nlmsghdr>();
/// Where an answer has its error number.
const NLMSGERR_AT: usize = NLMSG_HDRLEN + offset_of!(libc::nlmsgerr, error);
/// Bytes of an attribute with an IPv4 address or an index: `struct rtattr` and four bytes.
const ATTRIBUTE_LENGTH: u16 = 8;
/// Bits of the prefix that is one IPv4 address.
const HOST_PREFIX: u8 = 32;
/// Bytes of an answer that are read. The kernel repeats the message that it answers.
const MAX_ANSWER_BYTES: usize = 256;

/// A message to the kernel: its type (`RTM_*`), and what follows the header.
pub(super) type NetlinkMessage = (u16, Vec<u8>);

/// `ip route add local 0.0.0.0/0 dev lo`: makes every address a local one.
pub(super) fn add_local_route() -> NetlinkMessage {
    // struct rtmsg: family, destination and source prefix, TOS, table, protocol, scope, type, flags.
    let mut route = vec![libc::AF_INET as u8, 0, 0, 0];
    route.extend([libc::RT_TABLE_LOCAL, libc::RTPROT_BOOT, libc::RT_SCOPE_HOST, libc::RTN_LOCAL]);
    route.extend(0u32.to_ne_bytes());
    route.extend(attribute(libc::RTA_OIF, LOOPBACK_IFINDEX.to_ne_bytes()));
    (libc::RTM_NEWROUTE, route)
}

/// `ip address add ADDRESS/32 dev lo`.
pub(super) fn add_address(address: Ipv4Addr) -> NetlinkMessage {
    // struct ifaddrmsg: family, prefix, flags, scope, index.
    let mut message = vec![libc::AF_INET as u8, HOST_PREFIX, 0, libc::RT_SCOPE_UNIVERSE];
    message.extend(LOOPBACK_IFINDEX.to_ne_bytes());
    message.extend(attribute(libc::IFA_LOCAL, address.octets()));
    (libc::RTM_NEWADDR, message)
}

/// struct rtattr: length, type; then the value.
fn attribute(attribute_type: u16, value: [u8; 4]) -> Vec<u8> {
    [&ATTRIBUTE_LENGTH.to_ne_bytes()[..], &attribute_type.to_ne_bytes(), &value].concat()
}

/// Sends all messages at once, and waits until the kernel has acknowledged each.
pub(super) fn request(messages: &[NetlinkMessage]) -> Result<(), Errno> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
    let mut bytes = Vec::new();
    for (message_type, body) in messages {
        // struct nlmsghdr: length, type, flags, sequence number, port.
        bytes.extend(((NLMSG_HDRLEN + body.len()) as u32).to_ne_bytes());
        bytes.extend(message_type.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(body);
    }
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &bytes, SendFlags::empty())?;
    messages.iter().try_for_each(|_| receive_acknowledgement(&socket))
}

/// The kernel answers with a negative error number, or 0.
fn receive_acknowledgement(socket: &OwnedFd) -> Result<(), Errno> {
    let mut answer = [0u8; MAX_ANSWER_BYTES];
    let (length, _) = rustix::net::recv(socket, &mut answer, RecvFlags::empty())?;
    let error = answer[..length].get(NLMSGERR_AT..NLMSGERR_AT + size_of::<i32>());
    match error.and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(Errno::from_raw_os_error(-error)),
        None => Err(Errno::BADMSG),
    }
}
